/* A layer after its projection, one call each way: Eq. 6, the scores of the nodes, Eq. 4, 7 or 8, Eq. 9.
 *
 * The parts are the kernels of the other files, one after the other on the same rows. On the way
 * back d alpha is kept in the order of the walk by source that makes it: in the order of the entries, two threads would
 * write next to each other, and to one cache line. `place` is where an entry stands in the other order. */

typedef struct {
    const ix *rowptr, *col, *back_rowptr, *back_row, *back_perm;
    ix rows, sources, heads, channels, merged, structure_heads, groups;
    const real *h, *att_src, *att_dst, *edge_logit, *structure, *mix_logit, *eps_logit, *bias; /* NULL: absent */
    double negative_slope;
    const ix *seed;
    ix threshold;
    double scale;
} NAME(Layer);

/* What the forward pass leaves for the way back; alpha is feature where nothing is mixed in. */
typedef struct {
    const real *mix, *eps, *a_src, *a_dst, *feature, *alpha;
} NAME(Made);

ALWAYS_INLINE NAME(Attention) attention_of(const NAME(Layer) * in, const NAME(Made) * made) {
    NAME(Attention) part = {in->rowptr, in->col, in->rows, in->heads, in->structure_heads, made->a_src, made->a_dst,
                            in->edge_logit, in->structure, made->mix, in->negative_slope};
    return part;
}

ALWAYS_INLINE NAME(Aggregation) aggregation_of(const NAME(Layer) * in, const NAME(Made) * made) {
    NAME(Aggregation) part = {in->rowptr, in->col, in->back_rowptr, in->back_row, in->back_perm, in->rows, in->sources,
                              in->heads, in->heads, in->channels, in->merged, made->alpha, in->h, made->eps, in->seed,
                              in->threshold, in->scale};
    return part;
}

EXPORT void NAME(attend)(const NAME(Layer) * in, real *mix, real *eps, real *a_src, real *a_dst, real *feature,
                         real *alpha, real *out, int threads) {
    NAME(Made) made = {mix, eps, a_src, a_dst, feature, mix != NULL ? alpha : feature};
    NAME(Attention) scores = attention_of(in, &made);
    NAME(Aggregation) sums = aggregation_of(in, &made);
    if (in->groups > 0) NAME(shares)(in->mix_logit, in->eps_logit, in->groups, in->heads, mix, eps, 1);
    NAME(head_dots)(in->h, in->sources, in->heads, in->channels, in->att_src, in->att_dst, in->rows, a_src, a_dst, threads);
    NAME(attention)(&scores, feature, alpha, threads);
    aggregate_onto(&sums, in->bias, out, threads);
}

/* `set` is a buffer of [rows], `partial` one of [MAX_CHUNKS, 2, heads * channels]; d_mix and d_eps are on the way to the
 * gradients of their logits. NULL: not wanted. d_att is [2, heads, channels]. */
EXPORT void NAME(attend_backward)(const NAME(Layer) * in, const real *mix, const real *eps, const real *a_src,
                                  const real *a_dst, const real *feature, const real *alpha, const real *grad,
                                  const ix *place, uint8_t *set, double *partial, real *d_alpha, real *d_logit, real *d_src, real *d_dst, real *d_structure,
                                  real *d_mix, real *d_eps, real *d_h, real *d_att, real *d_mix_logit, real *d_eps_logit,
                                  int threads) {
    NAME(Made) made = {mix, eps, a_src, a_dst, feature, alpha};
    NAME(Attention) scores = attention_of(in, &made);
    NAME(Aggregation) sums = aggregation_of(in, &made);
    find_set(&sums, grad, set, threads);
    by_source(&sums, grad, set, 1, d_h, d_alpha, partial, d_eps, threads);
    NAME(AttentionBackward) out = {feature, d_alpha, NULL, place, d_logit, d_dst, d_structure};
    attention_backward_by_row(&scores, &out, partial, d_mix, threads);
    NAME(sum_entries)(in->back_rowptr, in->back_perm, in->sources, in->heads, d_logit, d_src, threads);
    NAME(head_dots_backward)(in->h, in->sources, in->heads, in->channels, in->att_src, in->att_dst, in->rows, d_src, d_dst,
                             1, d_h, partial, d_att, threads);
    if (d_mix_logit != NULL || d_eps_logit != NULL)
        NAME(shares_backward)(mix, eps, d_mix, d_eps, in->groups, in->heads, d_mix_logit, d_eps_logit, 1);
}
