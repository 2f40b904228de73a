/* Aggregation where a head has at most eight channels: its sum is one vector, which stays in a register.
 *
 * The same sums in the same order as in aggregation.h, for rows of up to LONG_RUN entries, which need no spilling. */

/* Beyond this many heads the sums would not fit into registers anyway. */
enum { NARROW_HEADS = 16 };

ALWAYS_INLINE int is_narrow(const NAME(Aggregation) * in) {
    return in->channels <= LANES && in->heads <= NARROW_HEADS && in->x_heads == in->heads;
}

/* Rows begin .. end of the result. heads, channels and merged are constants in the usual cases. */
ALWAYS_INLINE void narrow_rows(const NAME(Aggregation) * in, Mask mask, real scale, ix begin, ix end, ix last, real *out,
                               ix heads, ix channels, int merged) {
    ix stride = heads * channels, size = in->sources * stride, parts = merged ? 1 : heads;
    ix start = in->rowptr[begin];
    real weight[2 * LONG_RUN * NARROW_HEADS];
    lanes sum[NARROW_HEADS];
    drop_run(mask, scale, (uint64_t)(start * heads), (in->rowptr[end] - start) * heads, in->alpha + start * heads, weight);
    for (ix i = begin; i < end; i++) {
        for (ix h = 0; h < heads; h++) sum[h] = (lanes){0};
        if (in->self_weight != NULL) {
            real part = self_part(in, i);
            for (ix h = 0; h < heads; h++) {
                ix at = i * stride + h * channels;
                sum[merged ? 0 : h] += in->self_weight[h] * part * load_part(in->x + at, channels, size - at);
            }
        }
        for (ix e = in->rowptr[i]; e < in->rowptr[i + 1]; e++) {
            if (e + AHEAD < last) fetch(in->x + in->col[e + AHEAD] * stride, stride);
            ix at = in->col[e] * stride, room = size - at - (heads - 1) * channels;
            const real *w = weight + (e - start) * heads;
            for (ix h = 0; h < heads; h++)
                sum[merged ? 0 : h] += w[h] * load_part(in->x + at + h * channels, channels, room);
        }
        for (ix h = 0; h < parts; h++) store_part(out + (i * parts + h) * channels, sum[h], channels);
    }
}

/* Rows begin .. end of d x, and d alpha of the entries that read them. */
ALWAYS_INLINE void narrow_rows_backward(const NAME(Aggregation) * in, Mask mask, real scale, ix begin, ix end, ix last,
                                        const real *grad, const uint8_t *set, int placed, real *d_x, real *d_alpha,
                                        double *by_self, ix heads, ix channels, int merged) {
    ix stride = heads * channels, size = in->sources * stride;
    ix width = merged ? channels : stride, step = merged ? 0 : channels, grad_size = in->rows * width;
    ix start = in->back_rowptr[begin];
    lane_bits keep = first_places(channels);
    lanes x[NARROW_HEADS], sum[NARROW_HEADS], product[NARROW_HEADS];
    real factors[2 * LONG_RUN], weight[NARROW_HEADS], dots[NARROW_HEADS];
    if (heads == 1) mask_places(mask, scale, in->back_perm + start, in->back_rowptr[end] - start, factors);
    for (ix j = begin; j < end; j++) {
        for (ix h = 0; h < heads; h++) {
            ix at = j * stride + h * channels;
            sum[h] = (lanes){0}, x[h] = load_part(in->x + at, channels, size - at);
        }
        if (in->self_weight != NULL && j < in->rows) {
            real part = self_part(in, j);
            for (ix h = 0; h < heads; h++) {
                ix at = j * width + h * step;
                lanes from = load_part(grad + at, channels, grad_size - at);
                sum[h] += in->self_weight[h] * part * from;
                product[h] = only(from * x[h], keep, channels);
            }
            sum_each(product, heads, dots);
            SIMD for (ix h = 0; h < (by_self != NULL ? heads : 0); h++) by_self[h] += (double)part * (double)dots[h];
        }
        for (ix k = in->back_rowptr[j]; k < in->back_rowptr[j + 1]; k++) {
            if (k + AHEAD < last && set[in->back_row[k + AHEAD]]) {
                fetch(grad + in->back_row[k + AHEAD] * width, width);
                __builtin_prefetch(in->alpha + in->back_perm[k + AHEAD] * heads, 0, 3);
            }
            ix at = in->back_row[k] * width, room = grad_size - at - (heads - 1) * step;
            ix e = in->back_perm[k] * heads, place = placed ? k * heads : e;
            if (!set[in->back_row[k]]) {
                SIMD for (ix h = 0; h < (d_alpha != NULL ? heads : 0); h++) d_alpha[place + h] = 0;
                continue;
            }
            real *factor = heads == 1 ? factors + (k - start) : factors;
            if (heads > 1) mask_run(mask, scale, (uint64_t)e, heads, factor);
            SIMD for (ix h = 0; h < heads; h++) weight[h] = in->alpha[e + h] * factor[h];
            for (ix h = 0; h < heads; h++) {
                lanes from = load_part(grad + at + h * step, channels, room);
                sum[h] += weight[h] * from;
                product[h] = only(from * x[h], keep, channels);
            }
            if (d_alpha == NULL) continue;
            sum_each(product, heads, dots);
            SIMD for (ix h = 0; h < heads; h++) d_alpha[place + h] = dots[h] * factor[h];
        }
        for (ix h = 0; h < heads; h++) store_part(d_x + j * stride + h * channels, sum[h], channels);
    }
}

/* The usual shapes as constants: the paper's eight heads of eight channels, eight that are merged, a single one. */
#define FOR_NARROW_SHAPES(in, call)                                            \
    if (in->heads == 8 && in->channels == 8 && !in->merged) {                  \
        enum { HEADS = 8, CHANNELS = 8, MERGED = 0 };                          \
        call;                                                                  \
    } else if (in->heads == 8 && in->merged) {                                 \
        enum { HEADS = 8, MERGED = 1 };                                        \
        const ix CHANNELS = in->channels;                                      \
        call;                                                                  \
    } else if (in->heads == 1) {                                               \
        enum { HEADS = 1, MERGED = 0 };                                        \
        const ix CHANNELS = in->channels;                                      \
        call;                                                                  \
    } else {                                                                   \
        const ix HEADS = in->heads, CHANNELS = in->channels;                   \
        const int MERGED = in->merged != 0;                                    \
        call;                                                                  \
    }
