/* Aggregation where a head has 16, 32 or 64 channels: its sum is a few vectors, which stay in registers while the head's
 * part of every neighbour is added.
 *
 * The same sums in the same order as in aggregation.h, for rows of up to LONG_RUN entries, which need no spilling. */

enum { WIDE_VECTORS = 8 };
/* From this many vectors on a dropped head is skipped: below, a branch that nobody can foresee costs more. */
enum { SKIPPED = 8 };

ALWAYS_INLINE int is_wide(const NAME(Aggregation) * in) {
    ix width = in->channels;
    return in->heads <= NARROW_HEADS && (width == 2 * LANES || width == 4 * LANES || width == 8 * LANES);
}

ALWAYS_INLINE void add_vectors(lanes *sum, real weight, const real *from, ix vectors) {
    for (ix v = 0; v < vectors; v++) sum[v] += weight * *lanes_at(from + v * LANES);
}

/* <g, x>, and sum += weight g, in one reading of g. */
ALWAYS_INLINE real dot_and_add_vectors(const real *g, const real *x, real weight, lanes *sum, ix vectors) {
    lanes product = {0};
    for (ix v = 0; v < vectors; v++) {
        lanes from = *lanes_at(g + v * LANES);
        product += from * *lanes_at(x + v * LANES);
        sum[v] += weight * from;
    }
    return sum_lanes(product);
}

ALWAYS_INLINE void store_vectors(real *to, const lanes *sum, ix vectors) {
    for (ix v = 0; v < vectors; v++) *(lanes *)(to + v * LANES) = sum[v];
}

/* Rows begin .. end of the result; vectors is a constant. */
ALWAYS_INLINE void wide_rows(const NAME(Aggregation) * in, Mask mask, real scale, ix begin, ix end, ix last, real *out,
                             ix heads, ix vectors) {
    ix channels = vectors * LANES, stride = in->x_heads * channels, step = in->x_heads == 1 ? 0 : channels;
    ix start = in->rowptr[begin], parts = in->merged ? 1 : heads, each = heads / parts;
    real weight[2 * LONG_RUN * NARROW_HEADS];
    drop_run(mask, scale, (uint64_t)(start * heads), (in->rowptr[end] - start) * heads, in->alpha + start * heads, weight);
    for (ix i = begin; i < end; i++) {
        ix first = in->rowptr[i], after = in->rowptr[i + 1];
        for (ix e = first; e < after && e + AHEAD < last; e++) fetch(in->x + in->col[e + AHEAD] * stride, stride);
        for (ix part = 0; part < parts; part++) { /* a head, or all that are merged */
            lanes sum[WIDE_VECTORS] = {{0}};
            for (ix h = part * each; h < (part + 1) * each && in->self_weight != NULL; h++)
                add_vectors(sum, in->self_weight[h] * self_part(in, i), in->x + i * stride + h * step, vectors);
            for (ix e = first; e < after; e++)
                for (ix h = part * each; h < (part + 1) * each; h++) {
                    real w = weight[(e - start) * heads + h];
                    if (vectors < SKIPPED || w != 0) add_vectors(sum, w, in->x + in->col[e] * stride + h * step, vectors);
                }
            store_vectors(out + (i * parts + part) * channels, sum, vectors);
        }
    }
}

/* Rows begin .. end of d x, and d alpha of the entries that read them; rows of grad that are not `set` are all 0. */
ALWAYS_INLINE void wide_rows_backward(const NAME(Aggregation) * in, Mask mask, real scale, ix begin, ix end, ix last,
                                      const real *grad, const uint8_t *set, int placed, real *d_x, real *d_alpha,
                                      double *by_self, ix heads, ix vectors) {
    ix channels = vectors * LANES, stride = heads * channels;
    ix width = result_width(in, heads, channels), step = result_step(in, channels), start = in->back_rowptr[begin];
    real factor[2 * LONG_RUN * NARROW_HEADS], weight[2 * LONG_RUN * NARROW_HEADS];
    if (heads == 1) mask_places(mask, scale, in->back_perm + start, in->back_rowptr[end] - start, factor);
    for (ix k = start; k < in->back_rowptr[end]; k++) {
        ix e = in->back_perm[k] * heads, place = placed ? k * heads : e;
        real *f = factor + (k - start) * heads, *w = weight + (k - start) * heads;
        if (!set[in->back_row[k]]) clear(f, heads);
        else if (heads > 1) mask_run(mask, scale, (uint64_t)e, heads, f);
        SIMD for (ix h = 0; h < heads; h++) w[h] = in->alpha[e + h] * f[h];
        SIMD for (ix h = 0; h < (d_alpha != NULL ? heads : 0); h++) d_alpha[place + h] = 0;
    }
    for (ix j = begin; j < end; j++) {
        ix first = in->back_rowptr[j], after = in->back_rowptr[j + 1];
        for (ix k = first; k < after && k + AHEAD < last; k++)
            if (set[in->back_row[k + AHEAD]]) fetch(grad + in->back_row[k + AHEAD] * width, width);
        int own = in->self_weight != NULL && j < in->rows;
        if (own && by_self != NULL) self_backward(in, j, grad + j * width, in->x + j * stride, by_self);
        for (ix h = 0; h < heads; h++) {
            const real *x = in->x + j * stride + h * channels, *from = grad + h * step;
            lanes sum[WIDE_VECTORS] = {{0}};
            if (own) add_vectors(sum, in->self_weight[h] * self_part(in, j), from + j * width, vectors);
            for (ix k = first; k < after; k++) {
                real f = factor[(k - start) * heads + h], w = weight[(k - start) * heads + h];
                if (vectors >= SKIPPED ? f == 0 : !set[in->back_row[k]]) continue;
                const real *g = from + in->back_row[k] * width;
                if (d_alpha == NULL) add_vectors(sum, w, g, vectors);
                else d_alpha[(placed ? k : in->back_perm[k]) * heads + h] = f * dot_and_add_vectors(g, x, w, sum, vectors);
            }
            store_vectors(d_x + j * stride + h * channels, sum, vectors);
        }
    }
}

/* The shapes that are taken, as constants: one head, a step of propagation; eight of 32 channels; any number. */
#define FOR_WIDE_WIDTHS(call)                       \
    if (in->channels == 2 * LANES) {                \
        enum { VECTORS = 2 };                       \
        call;                                       \
    } else if (in->channels == 4 * LANES) {         \
        enum { VECTORS = 4 };                       \
        call;                                       \
    } else {                                        \
        enum { VECTORS = 8 };                       \
        call;                                       \
    }
#define FOR_WIDE_SHAPES(call)                              \
    if (in->heads == 1) {                                  \
        enum { HEADS = 1 };                                \
        FOR_WIDE_WIDTHS(call)                              \
    } else if (in->heads == 8 && in->channels == 4 * LANES) { \
        enum { HEADS = 8, VECTORS = 4 };                   \
        call;                                              \
    } else {                                               \
        const ix HEADS = in->heads;                        \
        FOR_WIDE_WIDTHS(call)                              \
    }

/* Functions of their own, so that the compiler's registers for the narrow ones are not shared with these. */
static __attribute__((noinline)) void wide_run(const NAME(Aggregation) * in, Mask mask, real scale, ix begin, ix end,
                                               ix last, real *out) {
    FOR_WIDE_SHAPES(wide_rows(in, mask, scale, begin, end, last, out, HEADS, VECTORS))
}

static __attribute__((noinline)) void wide_run_backward(const NAME(Aggregation) * in, Mask mask, real scale, ix begin,
                                                        ix end, ix last, const real *grad, const uint8_t *set, int placed,
                                                        real *d_x, real *d_alpha, double *by_self) {
    FOR_WIDE_SHAPES(wide_rows_backward(in, mask, scale, begin, end, last, grad, set, placed, d_x, d_alpha, by_self, HEADS, VECTORS))
}
