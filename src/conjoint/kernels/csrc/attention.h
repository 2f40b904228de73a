/* Softmax over each node's entries, alone (Eq. 5) and inside the attention of Eq. 4, 7 and 8. */

/* Most graphs are met with 1 or 8 heads: as constants they let the compiler unroll the loops over heads. */
#define FOR_USUAL_HEADS(heads, call) \
    if (heads == 8) { enum { HEADS = 8 }; call; } \
    else if (heads == 1) { enum { HEADS = 1 }; call; } \
    else { const ix HEADS = heads; call; }

/* Left to itself the compiler unrolls eight heads into eight scalars; this asks for one vector. */
#define EACH_HEAD SIMD for (ix h = 0; h < heads; h++)

/* Entries of a row up to which it is taken together with others. */
enum { SHORT_ROW = 256 };

/* The softmax of short rows goes in three strides, of which the middle one fills whole vectors: each row is lowered by
 * its peak, exponentials are taken over all rows at once, each row is divided by its sum. Sums are kept in double: a
 * hub adds a million terms. */
ALWAYS_INLINE void lower_row(real *restrict weight, ix count, ix heads, const real *peak) {
    for (ix e = 0; e < count; e++)
        EACH_HEAD weight[e * heads + h] -= peak[h];
}

ALWAYS_INLINE void exp_all(real *weight, ix count) {
    SIMD for (ix k = 0; k < count; k++) weight[k] = exp_real(weight[k]);
}

ALWAYS_INLINE void row_inverse(const real *weight, ix count, ix heads, double *restrict total, real *restrict inverse) {
    EACH_HEAD total[h] = 0;
    for (ix e = 0; e < count; e++)
        EACH_HEAD total[h] += (double)weight[e * heads + h];
    EACH_HEAD inverse[h] = (real)(1 / total[h]);
}

#define RAISE_PEAK(logit) \
    EACH_HEAD peak[h] = (logit)[h] > peak[h] ? (logit)[h] : peak[h]

/* One head, and as many rows from i on as have up to eight entries: each is a vector, so that no processor has to guess
 * where a short loop ends. The row after them. */
ALWAYS_INLINE ix softmax_of_vectors(const ix *rowptr, ix i, ix end, real *out) {
    ix start = rowptr[i], first = i, stop, most = rowptr[end];
    real weight[WEIGHTS + LANES];
    const lanes none = (lanes){0} - INFINITY;
    for (ix count; i < end && (count = rowptr[i + 1] - rowptr[i]) <= LANES && rowptr[i + 1] - start <= WEIGHTS; i++) {
        lanes row = chosen(first_places(count), load_part(out + rowptr[i], count, most - rowptr[i]), none);
        *(lanes *)(weight + rowptr[i] - start) = row - largest_lane(row);
    }
    stop = rowptr[i];
    exp_all(weight, stop - start);
    for (; first < i; first++) {
        ix e = rowptr[first], count = rowptr[first + 1] - e;
        lanes row = (lanes)((lane_bits)*lanes_at(weight + e - start) & first_places(count));
        double total = 0;
        for (ix k = 0; k < LANES; k++) total += (double)row[k];
        store_part(out + e, row * (real)(1 / total), stop - e >= LANES ? LANES : count);
    }
    return i;
}

/* Rows begin .. end, taken together, of logits that become their softmax. */
ALWAYS_INLINE void softmax_in_place(const ix *rowptr, ix begin, ix end, ix heads, real *restrict out) {
    real peak[heads];
    double total[heads];
    for (ix i = begin; i < end; i++) {
        EACH_HEAD peak[h] = -INFINITY;
        for (ix e = rowptr[i]; e < rowptr[i + 1]; e++) RAISE_PEAK(out + e * heads);
        lower_row(out + rowptr[i] * heads, rowptr[i + 1] - rowptr[i], heads, peak);
    }
    exp_all(out + rowptr[begin] * heads, (rowptr[end] - rowptr[begin]) * heads);
    for (ix i = begin; i < end; i++) {
        row_inverse(out + rowptr[i] * heads, rowptr[i + 1] - rowptr[i], heads, total, peak);
        for (ix e = rowptr[i]; e < rowptr[i + 1]; e++)
            EACH_HEAD out[e * heads + h] *= peak[h];
    }
}

ALWAYS_INLINE void softmax_of_rows(const ix *rowptr, ix begin, ix end, ix heads, real *out) {
    for (ix i = begin, after; i < end; i = after) {
        if (heads == 1 && (after = softmax_of_vectors(rowptr, i, end, out)) > i) continue;
        after = heads == 1 ? i + 1 : rows_together(rowptr, i, end, SHORT_ROW);
        softmax_in_place(rowptr, i, after, heads, out);
    }
}

ALWAYS_INLINE void softmax_rows(const ix *rowptr, ix begin, ix end, ix heads, const real *logit, real *restrict out) {
    ix first = rowptr[begin] * heads;
    memcpy(out + first, logit + first, (size_t)(rowptr[end] * heads - first) * sizeof(real));
    softmax_of_rows(rowptr, begin, end, heads, out);
}

EXPORT void NAME(softmax)(const ix *rowptr, ix rows, ix heads, const real *logit, real *out, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * heads * 4);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(rowptr, rows, chunk, chunks), end = row_start(rowptr, rows, chunk + 1, chunks);
        FOR_USUAL_HEADS(heads, softmax_rows(rowptr, begin, end, HEADS, logit, out))
    }
}

/* d logit = weight * (d weight - <weight, d weight> over the row). In single precision one head's row of up to eight
 * entries is a vector, of which the rest is written again with the next row; in double the products are not rounded. */
ALWAYS_INLINE void softmax_rows_backward(const ix *rowptr, ix begin, ix end, ix heads, const real *weight,
                                         const real *grad, real *restrict out) {
    double total[heads];
    for (ix i = begin; i < end; i++) {
        ix first = rowptr[i], last = rowptr[i + 1], count = last - first;
        EACH_HEAD total[h] = 0;
        if (heads == 1 && sizeof(real) < sizeof(double) && count <= LANES && first + LANES <= rowptr[end]) {
            lane_bits own = first_places(count);
            lanes w = (lanes)((lane_bits)*lanes_at(weight + first) & own), g = (lanes)((lane_bits)*lanes_at(grad + first) & own);
            for (ix k = 0; k < LANES; k++) total[0] += (double)(w[k] * g[k]);
            *(lanes *)(out + first) = w * (g - (real)total[0]);
            continue;
        }
        for (ix e = first; e < last; e++)
            EACH_HEAD total[h] += (double)(weight[e * heads + h] * grad[e * heads + h]);
        for (ix e = first; e < last; e++)
            EACH_HEAD
                out[e * heads + h] = weight[e * heads + h] * (grad[e * heads + h] - (real)total[h]);
    }
}

EXPORT void NAME(softmax_backward)(const ix *rowptr, ix rows, ix heads, const real *weight, const real *grad,
                                   real *out, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * heads);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(rowptr, rows, chunk, chunks), end = row_start(rowptr, rows, chunk + 1, chunks);
        FOR_USUAL_HEADS(heads, softmax_rows_backward(rowptr, begin, end, HEADS, weight, grad, out))
    }
}

/* The inputs of the attention that both directions read. NULL: absent. structure is [entries, heads or 1]. */
typedef struct {
    const ix *rowptr, *col;
    ix rows, heads, structure_heads;
    const real *a_src, *a_dst, *edge_logit, *structure, *mix;
    double negative_slope;
} NAME(Attention);

/* What a row adds to its entries' logits and scores, with zeros in place of what is absent. */
typedef struct {
    const real *zeros, *dst;
    int edges, wide;
} NAME(RowView);

ALWAYS_INLINE NAME(RowView) view_row(const NAME(Attention) * in, ix i, ix heads, const real *zeros) {
    NAME(RowView) view = {zeros, in->a_dst != NULL ? in->a_dst + i * heads : zeros, in->edge_logit != NULL,
                          in->structure_heads > 1};
    return view;
}

/* The logit of an entry before the leaky ReLU. */
#define LOGIT(h) (src[h] + view.dst[h] + edge[h])
#define ENTRY_POINTERS(e) \
    const real *src = in->a_src + in->col[e] * heads, *edge = view.edges ? in->edge_logit + (e) * heads : view.zeros

ALWAYS_INLINE void attention_rows(const NAME(Attention) * in, ix begin, ix end, ix heads, real *feature, real *alpha) {
    int mixed = in->mix != NULL, added = in->structure != NULL && !mixed, wide = in->structure_heads > 1;
    real slope = (real)in->negative_slope, zeros[heads], from_feature[heads], from_structure[heads], peak[heads];
    double total[heads];
    ix end_entry = in->rowptr[end];
    int far = lies_far(in->rows * heads);
    clear(zeros, heads);
    EACH_HEAD
        from_feature[h] = mixed ? in->mix[2 * h] : 1, from_structure[h] = mixed ? in->mix[2 * h + 1] : 0;
    for (ix i0 = begin, after; i0 < end; i0 = after) {
        after = rows_together(in->rowptr, i0, end, SHORT_ROW);
        for (ix i = i0; i < after; i++) {
            ix first = in->rowptr[i], last = in->rowptr[i + 1];
            NAME(RowView) view = view_row(in, i, heads, zeros);
            EACH_HEAD peak[h] = -INFINITY;
            for (ix e = first; e < last; e++) {
                if (far && e + FAR_AHEAD < end_entry) fetch(in->a_src + in->col[e + FAR_AHEAD] * heads, heads);
                ENTRY_POINTERS(e);
                real *restrict to = feature + e * heads;
                EACH_HEAD to[h] = LOGIT(h) * (LOGIT(h) > 0 ? (real)1 : slope);
                if (added && wide)
                    EACH_HEAD to[h] += in->structure[e * heads + h];
                else if (added)
                    EACH_HEAD to[h] += in->structure[e];
                RAISE_PEAK(to);
            }
            if (heads > 1) lower_row(feature + first * heads, last - first, heads, peak);
        }
        if (heads == 1) {
            softmax_of_rows(in->rowptr, i0, after, 1, feature);
            SIMD for (ix e = in->rowptr[i0]; e < (mixed ? in->rowptr[after] : 0); e++)
                alpha[e] = from_feature[0] * feature[e] + from_structure[0] * in->structure[e];
            continue;
        }
        exp_all(feature + in->rowptr[i0] * heads, (in->rowptr[after] - in->rowptr[i0]) * heads);
        for (ix i = i0; i < after; i++) {
            ix first = in->rowptr[i], last = in->rowptr[i + 1];
            row_inverse(feature + first * heads, last - first, heads, total, peak);
            for (ix e = first; e < last; e++) {
                real *restrict by_feature = feature + e * heads, *restrict to = alpha + e * heads;
                EACH_HEAD by_feature[h] *= peak[h];
                if (mixed && wide)
                    EACH_HEAD to[h] = from_feature[h] * by_feature[h] + from_structure[h] * in->structure[e * heads + h];
                else if (mixed)
                    EACH_HEAD to[h] = from_feature[h] * by_feature[h] + from_structure[h] * in->structure[e];
            }
        }
    }
}

/* With a mix (implicit): feature = softmax of the logits, alpha = mix_f feature + mix_s structure.
 * Without: feature = softmax of the logits plus structure where there is one (explicit); alpha is not written. */
EXPORT void NAME(attention)(const NAME(Attention) * in, real *feature, real *alpha, int threads) {
    ix heads = in->heads, chunks = chunk_count(in->rows, in->rowptr[in->rows] * heads * 8);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(in->rowptr, in->rows, chunk, chunks);
        ix end = row_start(in->rowptr, in->rows, chunk + 1, chunks);
        FOR_USUAL_HEADS(heads, attention_rows(in, begin, end, HEADS, feature, alpha))
    }
}

/* What the backward pass is given and what it writes; NULL: absent, or not wanted. */
typedef struct {
    const real *feature, *grad, *grad_feature; /* d alpha; d feature where the caller used it */
    const ix *place;                           /* of an entry in d alpha, where that has another order */
    real *d_logit, *d_dst, *d_structure;       /* before the leaky ReLU, by entry; by row; by entry */
} NAME(AttentionBackward);

ALWAYS_INLINE void attention_rows_backward(const NAME(Attention) * in, const NAME(AttentionBackward) * out, ix begin,
                                           ix end, ix heads, double *by_mix) {
    int mixed = in->mix != NULL, added = in->structure != NULL && !mixed;
    real slope = (real)in->negative_slope, zeros[heads], from_feature[heads], from_structure[heads];
    double total[heads], by_dst[heads], mix_feature[heads], mix_structure[heads];
    ix end_entry = in->rowptr[end];
    int far = lies_far(in->rows * heads);
    clear(zeros, heads);
    EACH_HEAD
        from_feature[h] = mixed ? in->mix[2 * h] : 1, from_structure[h] = mixed ? in->mix[2 * h + 1] : 0;
    EACH_HEAD mix_feature[h] = mix_structure[h] = 0;
    for (ix i = begin; i < end; i++) {
        ix first = in->rowptr[i], last = in->rowptr[i + 1];
        NAME(RowView) view = view_row(in, i, heads, zeros);
        EACH_HEAD total[h] = by_dst[h] = 0;
        for (ix e = first; e < last; e++) {
            if (far && e + FAR_AHEAD < end_entry) fetch(in->a_src + in->col[e + FAR_AHEAD] * heads, heads);
            if (out->place != NULL && e + FAR_AHEAD < end_entry) /* often written by another thread */
                fetch(out->grad + out->place[e + FAR_AHEAD] * heads, heads);
            const real *feature = out->feature + e * heads;
            const real *grad = out->grad + (out->place != NULL ? out->place[e] : e) * heads;
            const real *more = out->grad_feature != NULL ? out->grad_feature + e * heads : zeros;
            real *restrict slow = out->d_logit + e * heads;
            EACH_HEAD slow[h] = from_feature[h] * grad[h] + more[h];
            EACH_HEAD total[h] += (double)(feature[h] * slow[h]);
            if (by_mix == NULL) continue;
            EACH_HEAD mix_feature[h] += (double)(grad[h] * feature[h]);
            if (view.wide)
                EACH_HEAD mix_structure[h] += (double)(grad[h] * in->structure[e * heads + h]);
            else
                EACH_HEAD mix_structure[h] += (double)(grad[h] * in->structure[e]);
        }
        for (ix e = first; e < last; e++) {
            ENTRY_POINTERS(e);
            const real *feature = out->feature + e * heads;
            const real *grad = out->grad + (out->place != NULL ? out->place[e] : e) * heads;
            real *restrict slow = out->d_logit + e * heads;
            EACH_HEAD slow[h] = feature[h] * (slow[h] - (real)total[h]);
            if (out->d_structure != NULL && view.wide) {
                real *restrict to = out->d_structure + e * heads;
                EACH_HEAD to[h] = added ? slow[h] : from_structure[h] * grad[h];
            } else if (out->d_structure != NULL) {
                real sum = 0;
                for (ix h = 0; h < heads; h++) sum += added ? slow[h] : from_structure[h] * grad[h];
                out->d_structure[e] = sum;
            }
            EACH_HEAD slow[h] *= LOGIT(h) > 0 ? (real)1 : slope;
            EACH_HEAD by_dst[h] += (double)slow[h];
        }
        for (ix h = 0; h < heads && out->d_dst != NULL; h++) out->d_dst[i * heads + h] = (real)by_dst[h];
    }
    for (ix h = 0; h < heads && by_mix != NULL; h++) by_mix[h] = mix_feature[h], by_mix[heads + h] = mix_structure[h];
}

static void attention_backward_by_row(const NAME(Attention) * in, const NAME(AttentionBackward) * out, double *partial,
                                      real *d_mix, int threads) {
    ix heads = in->heads, chunks = chunk_count(in->rows, in->rowptr[in->rows] * heads * 8);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(in->rowptr, in->rows, chunk, chunks);
        ix end = row_start(in->rowptr, in->rows, chunk + 1, chunks);
        double *by_mix = d_mix != NULL ? partial + chunk * 2 * heads : NULL;
        FOR_USUAL_HEADS(heads, attention_rows_backward(in, out, begin, end, HEADS, by_mix))
    }
    if (d_mix != NULL) fold(partial, chunks, 2 * heads, d_mix);
}

/* d mix comes through `partial`, [MAX_CHUNKS, 2, heads], and is written as [2, heads]. NULL: not wanted. */
EXPORT void NAME(attention_backward)(const NAME(Attention) * in, const real *feature, const real *grad,
                                     const real *grad_feature, real *d_logit, real *d_dst, real *d_structure,
                                     double *partial, real *d_mix, int threads) {
    NAME(AttentionBackward) out = {feature, grad, grad_feature, NULL, d_logit, d_dst, d_structure};
    attention_backward_by_row(in, &out, partial, d_mix, threads);
}
