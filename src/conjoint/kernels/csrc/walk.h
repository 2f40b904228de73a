/* Aggregation by one head without a self term, a step of propagation: a row's sum is a few vectors, which stay in
 * registers.
 *
 * The same sums in the same order as in aggregation.h, for rows of up to LONG_RUN entries, which need no spilling. */

enum { WALK_VECTORS = 8 };

ALWAYS_INLINE int is_walk(const NAME(Aggregation) * in) {
    ix width = in->channels;
    return in->heads == 1 && in->self_weight == NULL && (width == 2 * LANES || width == 4 * LANES || width == 8 * LANES);
}

ALWAYS_INLINE void add_vectors(lanes *sum, real weight, const real *from, ix vectors) {
    for (ix v = 0; v < vectors; v++) sum[v] += weight * *lanes_at(from + v * LANES);
}

ALWAYS_INLINE void store_vectors(real *to, const lanes *sum, ix vectors) {
    for (ix v = 0; v < vectors; v++) *(lanes *)(to + v * LANES) = sum[v];
}

/* Rows begin .. end of the result; vectors is a constant. */
ALWAYS_INLINE void walk_rows(const NAME(Aggregation) * in, Mask mask, real scale, ix begin, ix end, ix last, real *out,
                             ix vectors) {
    ix width = vectors * LANES, start = in->rowptr[begin];
    real weight[2 * LONG_RUN];
    drop_run(mask, scale, (uint64_t)start, in->rowptr[end] - start, in->alpha + start, weight);
    for (ix i = begin; i < end; i++) {
        lanes sum[WALK_VECTORS] = {{0}};
        for (ix e = in->rowptr[i]; e < in->rowptr[i + 1]; e++) {
            if (e + AHEAD < last) fetch(in->x + in->col[e + AHEAD] * width, width);
            if (weight[e - start] != 0) add_vectors(sum, weight[e - start], in->x + in->col[e] * width, vectors);
        }
        store_vectors(out + i * width, sum, vectors);
    }
}

/* Rows begin .. end of d x; rows of grad that are not `set` are all 0. */
ALWAYS_INLINE void walk_rows_backward(const NAME(Aggregation) * in, Mask mask, real scale, ix begin, ix end, ix last,
                                      const real *grad, const uint8_t *set, real *d_x, ix vectors) {
    ix width = vectors * LANES, start = in->back_rowptr[begin];
    real factor[2 * LONG_RUN];
    mask_places(mask, scale, in->back_perm + start, in->back_rowptr[end] - start, factor);
    for (ix j = begin; j < end; j++) {
        lanes sum[WALK_VECTORS] = {{0}};
        for (ix k = in->back_rowptr[j]; k < in->back_rowptr[j + 1]; k++) {
            if (k + AHEAD < last && set[in->back_row[k + AHEAD]]) {
                fetch(grad + in->back_row[k + AHEAD] * width, width);
                __builtin_prefetch(in->alpha + in->back_perm[k + AHEAD], 0, 3);
            }
            if (set[in->back_row[k]])
                add_vectors(sum, in->alpha[in->back_perm[k]] * factor[k - start], grad + in->back_row[k] * width, vectors);
        }
        store_vectors(d_x + j * width, sum, vectors);
    }
}

/* The widths that are taken, as constants. */
#define FOR_WALK_WIDTHS(in, call)            \
    if (in->channels == 2 * LANES) {         \
        enum { VECTORS = 2 };                \
        call;                                \
    } else if (in->channels == 4 * LANES) {  \
        enum { VECTORS = 4 };                \
        call;                                \
    } else {                                 \
        enum { VECTORS = 8 };                \
        call;                                \
    }
