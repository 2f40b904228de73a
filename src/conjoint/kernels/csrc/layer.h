/* A layer after its projection, one call each way: Eq. 6, the scores of the nodes, Eq. 4, 7 or 8, Eq. 9.
 *
 * The parts are the kernels of the other files, one after the other on the same rows. On the way
 * back d alpha is kept in the order of the walk by source that makes it: in the order of the entries, two threads would
 * write next to each other, and to one cache line. `place` is where an entry stands in the other order. */

typedef struct {
    const ix *rowptr, *col, *back_rowptr, *back_row, *back_perm;
    ix rows, sources, heads, channels, merged, structure_heads, groups, rank;
    /* NULL: absent. Factors of rank `rank`: in place of a structure, which is made of them here; only with a mix. */
    const real *h, *att_src, *att_dst, *edge_logit, *structure, *mix_logit, *eps_logit, *bias, *factors;
    double negative_slope;
    const ix *seed;
    ix threshold;
    double scale;
} NAME(Layer);

/* What the forward pass leaves for the way back, all in one buffer; alpha is feature where nothing is mixed in. */
typedef struct {
    real *mix, *eps, *a_src, *a_dst, *feature, *alpha, *of_factors;
} NAME(Made);

/* The next `count` numbers of a buffer. */
ALWAYS_INLINE real *taken(real **buffer, ix count) {
    real *first = *buffer;
    *buffer += count;
    return first;
}

ALWAYS_INLINE NAME(Made) made_in(const NAME(Layer) * in, real *buffer) {
    ix heads = in->heads, entries = in->rowptr[in->rows] * heads;
    real *mix = taken(&buffer, 2 * heads), *eps = taken(&buffer, heads);
    NAME(Made) made = {in->mix_logit != NULL ? mix : NULL, in->eps_logit != NULL ? eps : NULL,
                       taken(&buffer, in->sources * heads), taken(&buffer, in->rows * heads), taken(&buffer, entries), NULL, NULL};
    made.alpha = in->mix_logit != NULL ? taken(&buffer, entries) : made.feature;
    made.of_factors = in->factors != NULL ? buffer : NULL;
    return made;
}

ALWAYS_INLINE NAME(Attention) attention_of(const NAME(Layer) * in, const NAME(Made) * made) {
    NAME(Attention) part = {in->rowptr, in->col, in->rows, in->heads, in->structure_heads, made->a_src, made->a_dst,
                            in->edge_logit, in->factors != NULL ? made->of_factors : in->structure, made->mix, in->negative_slope};
    return part;
}

ALWAYS_INLINE NAME(Aggregation) aggregation_of(const NAME(Layer) * in, const NAME(Made) * made) {
    NAME(Aggregation) part = {in->rowptr, in->col, in->back_rowptr, in->back_row, in->back_perm, in->rows, in->sources,
                              in->heads, in->heads, in->channels, in->merged, made->alpha, in->h, made->eps, in->seed,
                              in->threshold, in->scale};
    return part;
}

/* The sum of each column of x, [rows, width], through `partial`, [MAX_CHUNKS, width]. */
static void sum_columns(const real *x, ix rows, ix width, double *partial, real *out, int threads) {
    ix chunks = chunk_count(rows, rows * width);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        double *total = partial + chunk * width;
        ix end = even_start(rows, chunk + 1, chunks);
        for (ix c = 0; c < width; c++) total[c] = 0;
        for (ix i = even_start(rows, chunk, chunks); i < end; i++)
            SIMD for (ix c = 0; c < width; c++) total[c] += (double)x[i * width + c];
    }
    fold(partial, chunks, width, out);
}

/* kept: heads * (3 + sources + rows + entries) numbers, as many as there are in feature again for a mix, and one for each
 * entry with factors. Their scores are not kept: they stand where alpha comes. */
EXPORT void NAME(attend)(const NAME(Layer) * in, real *kept, real *out, int threads) {
    NAME(Made) made = made_in(in, kept);
    NAME(Attention) scores = attention_of(in, &made);
    NAME(Aggregation) sums = aggregation_of(in, &made);
    if (in->groups > 0) NAME(shares)(in->mix_logit, in->eps_logit, in->groups, in->heads, made.mix, made.eps, 1);
    if (in->factors != NULL)
        NAME(factor_attention)(in->rowptr, in->col, in->rows, in->sources, in->rank, in->factors, made.alpha, made.of_factors, threads);
    NAME(head_dots)(in->h, in->sources, in->heads, in->channels, in->att_src, in->att_dst, in->rows, made.a_src, made.a_dst, threads);
    NAME(attention)(&scores, made.feature, made.alpha, threads);
    aggregate_onto(&sums, in->bias, out, threads);
}

/* scratch: MAX_CHUNKS * 2 * heads * channels doubles, heads * (3 + sources + rows + 2 * entries) numbers, one for each
 * entry, a byte per row. d_edge, d_structure, d_bias, d_factors and the gradients of the logits may be NULL: not wanted. d_att is [2, heads, channels]. */
EXPORT void NAME(attend_backward)(const NAME(Layer) * in, real *kept, const real *grad, const ix *place, double *scratch,
                                  real *d_edge, real *d_structure, real *d_h, real *d_att, real *d_mix_logit,
                                  real *d_eps_logit, real *d_bias, real *d_factors, int threads) {
    NAME(Made) made = made_in(in, kept);
    NAME(Attention) scores = attention_of(in, &made);
    NAME(Aggregation) sums = aggregation_of(in, &made);
    ix heads = in->heads, entries = in->rowptr[in->rows] * heads;
    double *partial = scratch;
    real *buffer = (real *)(scratch + MAX_CHUNKS * 2 * heads * in->channels);
    real *d_mix = taken(&buffer, 2 * heads), *d_eps = taken(&buffer, heads);
    real *d_src = taken(&buffer, in->sources * heads), *d_dst = taken(&buffer, in->rows * heads);
    real *d_alpha = taken(&buffer, entries), *d_logit = taken(&buffer, entries);
    if (d_factors != NULL) d_structure = taken(&buffer, in->rowptr[in->rows]);
    uint8_t *set = (uint8_t *)buffer;
    if (d_edge != NULL) d_logit = d_edge;
    find_set(&sums, grad, set, threads);
    if (d_bias != NULL) sum_columns(grad, in->rows, result_width(&sums, heads, in->channels), partial, d_bias, threads);
    by_source(&sums, grad, set, 1, d_h, d_alpha, partial, d_eps_logit != NULL ? d_eps : NULL, threads);
    NAME(AttentionBackward) out = {made.feature, d_alpha, NULL, place, d_logit, d_dst, d_structure};
    attention_backward_by_row(&scores, &out, partial, d_mix_logit != NULL ? d_mix : NULL, threads);
    if (d_factors != NULL)
        NAME(factor_attention_backward)(in->rowptr, in->col, in->back_rowptr, in->back_row, in->back_perm, in->rows, in->sources,
                                        in->rank, in->factors, made.of_factors, d_structure, NULL, d_alpha, d_factors, threads);
    NAME(sum_entries)(in->back_rowptr, in->back_perm, in->sources, heads, d_logit, d_src, threads);
    NAME(head_dots_backward)(in->h, in->sources, heads, in->channels, in->att_src, in->att_dst, in->rows, d_src, d_dst,
                             1, d_h, partial, d_att, threads);
    if (d_mix_logit != NULL || d_eps_logit != NULL)
        NAME(shares_backward)(made.mix, made.eps, d_mix, d_eps, in->groups, heads, d_mix_logit, d_eps_logit, 1);
}
