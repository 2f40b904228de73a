/* Softmax over each node's entries, alone (Eq. 5) and inside the attention of Eq. 4, 7 and 8. */

/* Sums over a row are kept in double: a hub adds a million terms.
 * In place over one row: weight[count, heads] goes from logits to their softmax over count. */
static void softmax_row(real *weight, ix count, ix heads, real *peak, double *total) {
    for (ix h = 0; h < heads; h++) peak[h] = weight[h], total[h] = 0;
    for (ix e = 1; e < count; e++)
        for (ix h = 0; h < heads; h++) {
            real logit = weight[e * heads + h];
            peak[h] = logit > peak[h] ? logit : peak[h];
        }
    for (ix e = 0; e < count; e++)
        for (ix h = 0; h < heads; h++) weight[e * heads + h] -= peak[h];
    SIMD for (ix k = 0; k < count * heads; k++) weight[k] = exp_real(weight[k]);
    for (ix e = 0; e < count; e++)
        for (ix h = 0; h < heads; h++) total[h] += weight[e * heads + h];
    for (ix h = 0; h < heads; h++) peak[h] = (real)(1 / total[h]);
    for (ix e = 0; e < count; e++)
        for (ix h = 0; h < heads; h++) weight[e * heads + h] *= peak[h];
}

EXPORT void NAME(softmax)(const ix *rowptr, ix rows, ix heads, const real *logit, real *out, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * heads * 4);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks > 1)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        real peak[heads];
        double total[heads];
        ix end = row_start(rowptr, rows, chunk + 1, chunks);
        for (ix i = row_start(rowptr, rows, chunk, chunks); i < end; i++) {
            ix first = rowptr[i] * heads, count = rowptr[i + 1] - rowptr[i];
            if (count == 0) continue;
            memcpy(out + first, logit + first, (size_t)(count * heads) * sizeof(real));
            softmax_row(out + first, count, heads, peak, total);
        }
    }
}

/* d logit = weight * (d weight - <weight, d weight> over the row). */
EXPORT void NAME(softmax_backward)(const ix *rowptr, ix rows, ix heads, const real *weight, const real *grad,
                                   real *out, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * heads);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks > 1)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        double total[heads];
        ix end = row_start(rowptr, rows, chunk + 1, chunks);
        for (ix i = row_start(rowptr, rows, chunk, chunks); i < end; i++) {
            for (ix h = 0; h < heads; h++) total[h] = 0;
            for (ix e = rowptr[i]; e < rowptr[i + 1]; e++)
                for (ix h = 0; h < heads; h++) total[h] += weight[e * heads + h] * grad[e * heads + h];
            for (ix e = rowptr[i]; e < rowptr[i + 1]; e++)
                for (ix h = 0; h < heads; h++)
                    out[e * heads + h] = weight[e * heads + h] * (grad[e * heads + h] - (real)total[h]);
        }
    }
}

/* The inputs of the attention that both directions read. NULL: absent. structure is [entries, wide or 1]. */
typedef struct {
    const ix *rowptr, *col;
    ix rows, heads, structure_heads;
    const real *a_src, *a_dst, *edge_logit, *structure, *mix;
    double negative_slope;
} NAME(Attention);

ALWAYS_INLINE real feature_logit(const NAME(Attention) * in, ix i, ix e, ix h) {
    real logit = in->a_src[in->col[e] * in->heads + h];
    if (in->a_dst != NULL) logit += in->a_dst[i * in->heads + h];
    if (in->edge_logit != NULL) logit += in->edge_logit[e * in->heads + h];
    return logit;
}

ALWAYS_INLINE real structure_at(const NAME(Attention) * in, ix e, ix h) {
    return in->structure_heads == 1 ? in->structure[e] : in->structure[e * in->heads + h];
}

/* With a mix (implicit): feature = softmax of the logits, alpha = mix_f feature + mix_s structure.
 * Without: feature = softmax of the logits plus structure where there is one (explicit); alpha is not written. */
EXPORT void NAME(attention)(const NAME(Attention) * in, real *feature, real *alpha, int threads) {
    ix heads = in->heads, chunks = chunk_count(in->rows, in->rowptr[in->rows] * heads * 8);
    int added = in->structure != NULL && in->mix == NULL;
    real slope = (real)in->negative_slope;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks > 1)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        real peak[heads];
        double total[heads];
        ix end = row_start(in->rowptr, in->rows, chunk + 1, chunks);
        for (ix i = row_start(in->rowptr, in->rows, chunk, chunks); i < end; i++) {
            ix first = in->rowptr[i], last = in->rowptr[i + 1];
            if (first == last) continue;
            for (ix e = first; e < last; e++)
                for (ix h = 0; h < heads; h++) {
                    real logit = feature_logit(in, i, e, h);
                    logit = logit > 0 ? logit : slope * logit;
                    feature[e * heads + h] = added ? logit + structure_at(in, e, h) : logit;
                }
            softmax_row(feature + first * heads, last - first, heads, peak, total);
            if (in->mix == NULL) continue;
            for (ix e = first; e < last; e++)
                for (ix h = 0; h < heads; h++)
                    alpha[e * heads + h] = in->mix[2 * h] * feature[e * heads + h] +
                                           in->mix[2 * h + 1] * structure_at(in, e, h);
        }
    }
}

/* grad is d alpha, grad_feature (may be NULL) d feature. Writes d logit before the leaky ReLU, by entry; from it
 * d a_dst by row; d structure; d mix through `partial`, [MAX_CHUNKS, heads, 2]. NULL: not wanted. */
EXPORT void NAME(attention_backward)(const NAME(Attention) * in, const real *feature, const real *grad,
                                     const real *grad_feature, real *d_logit, real *d_dst, real *d_structure,
                                     double *partial, real *d_mix, int threads) {
    ix heads = in->heads, chunks = chunk_count(in->rows, in->rowptr[in->rows] * heads * 8);
    int mixed = in->mix != NULL, added = in->structure != NULL && !mixed;
    real slope = (real)in->negative_slope;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks > 1)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        double total[heads], by_dst[heads], by_mix[2 * heads];
        for (ix k = 0; k < 2 * heads; k++) by_mix[k] = 0;
        ix end = row_start(in->rowptr, in->rows, chunk + 1, chunks);
        for (ix i = row_start(in->rowptr, in->rows, chunk, chunks); i < end; i++) {
            ix first = in->rowptr[i], last = in->rowptr[i + 1];
            for (ix h = 0; h < heads; h++) total[h] = by_dst[h] = 0;
            for (ix e = first; e < last; e++)
                for (ix h = 0; h < heads; h++) {
                    ix k = e * heads + h;
                    real by_feature = mixed ? in->mix[2 * h] * grad[k] : grad[k];
                    if (grad_feature != NULL) by_feature += grad_feature[k];
                    total[h] += feature[k] * by_feature;
                    d_logit[k] = by_feature;
                }
            if (d_mix != NULL)
                for (ix e = first; e < last; e++)
                    for (ix h = 0; h < heads; h++) {
                        by_mix[2 * h] += grad[e * heads + h] * feature[e * heads + h];
                        by_mix[2 * h + 1] += grad[e * heads + h] * structure_at(in, e, h);
                    }
            for (ix e = first; e < last; e++) {
                real shared = 0;
                for (ix h = 0; h < heads; h++) {
                    ix k = e * heads + h;
                    real slow = feature[k] * (d_logit[k] - (real)total[h]);
                    real by_structure = added ? slow : mixed ? in->mix[2 * h + 1] * grad[k] : 0;
                    if (d_structure != NULL && in->structure_heads > 1) d_structure[k] = by_structure;
                    shared += by_structure;
                    d_logit[k] = feature_logit(in, i, e, h) > 0 ? slow : slope * slow;
                    by_dst[h] += d_logit[k];
                }
                if (d_structure != NULL && in->structure_heads == 1) d_structure[e] = shared;
            }
            if (d_dst != NULL)
                for (ix h = 0; h < heads; h++) d_dst[i * heads + h] = (real)by_dst[h];
        }
        if (d_mix != NULL)
            for (ix k = 0; k < 2 * heads; k++) partial[chunk * 2 * heads + k] = by_mix[k];
    }
    if (d_mix != NULL) fold(partial, chunks, 2 * heads, d_mix);
}
