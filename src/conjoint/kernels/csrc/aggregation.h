/* Eq. 9: out_i = sum_j alpha_ij x_j + eps / |N_i| x_i, dropout on alpha made on the fly.
 *
 * x is [sources, x_heads, channels] with x_heads = heads, or 1 where all heads read the same rows. The result is
 * [rows, heads, channels], or the mean of the heads, [rows, channels], where they are merged. */

typedef struct {
    const ix *rowptr, *col;                 /* by target */
    const ix *back_rowptr, *back_row, *back_perm; /* the same entries by source; only the backward with d x */
    ix rows, sources, heads, x_heads, channels, merged;
    const real *alpha, *x, *self_weight;
    const ix *seed;
    ix threshold;
    double scale;
} NAME(Aggregation);

/* Weights made at once for a run of entries, so that the hash fills whole vectors. */
enum { WEIGHTS = 512 };
/* From one head to the next in a row of the result and of its gradient, and the part of the result it makes. */
ALWAYS_INLINE ix result_step(const NAME(Aggregation) * in, ix channels) { return in->merged ? 0 : channels; }
ALWAYS_INLINE ix result_width(const NAME(Aggregation) * in, ix heads, ix channels) {
    return in->merged ? channels : heads * channels;
}
ALWAYS_INLINE double head_part(const NAME(Aggregation) * in) { return in->merged ? 1.0 / (double)in->heads : 1.0; }

/* What a head's epsilon is multiplied by in row i: 1 / |N_i|, divided among merged heads. */
ALWAYS_INLINE real self_part(const NAME(Aggregation) * in, ix i) {
    ix degree = in->rowptr[i + 1] - in->rowptr[i];
    return (real)head_part(in) / (real)(degree > 1 ? degree : 1);
}

/* sum <grad_i, x_i> / |N_i| per head, added to by_self. */
ALWAYS_INLINE void self_backward(const NAME(Aggregation) * in, ix i, const real *grad, const real *x, double *by_self) {
    ix step = in->x_heads == 1 ? 0 : in->channels, from_step = result_step(in, in->channels);
    real part = self_part(in, i);
    for (ix h = 0; h < in->heads; h++)
        by_self[h] += (double)part * (double)dot(grad + h * from_step, x + h * step, in->channels);
}

#include "narrow.h"
#include "wide.h"

ALWAYS_INLINE void aggregate_rows(const NAME(Aggregation) * in, Mask mask, ix begin, ix end, ix last, real *out) {
    ix heads = in->heads, channels = in->channels, stride = in->x_heads * channels, step = in->x_heads == 1 ? 0 : channels;
    ix width = result_width(in, heads, channels), to_step = result_step(in, channels);
    ix block = WEIGHTS / heads > 0 ? WEIGHTS / heads : 1;
    real weight[block * heads], scale = (real)(in->scale * head_part(in));
    double total[spill_width(width)];
    for (ix i = begin; i < end; i++) {
        real *restrict to = out + i * width;
        Spill spill = start_spill(total, width, in->rowptr[i + 1] - in->rowptr[i]);
        clear(to, width);
        for (ix h = 0; h < heads && in->self_weight != NULL; h++)
            add_scaled(to + h * to_step, in->self_weight[h] * self_part(in, i), in->x + i * stride + h * step, channels);
        for (ix e0 = in->rowptr[i]; e0 < in->rowptr[i + 1]; e0 += block) {
            ix e1 = smaller(e0 + block, in->rowptr[i + 1]);
            drop_run(mask, scale, (uint64_t)(e0 * heads), (e1 - e0) * heads, in->alpha + e0 * heads, weight);
            for (ix e = e0; e < e1; e++) {
                if (e + AHEAD < last) fetch(in->x + in->col[e + AHEAD] * stride, stride);
                const real *from = in->x + in->col[e] * stride, *w = weight + (e - e0) * heads;
                for (ix h = 0; h < heads; h++)
                    if (channels < 16 || w[h] != 0) add_scaled(to + h * to_step, w[h], from + h * step, channels);
                after_term(&spill, to);
            }
        }
        end_spill(&spill, to);
    }
}

/* The result plus `bias`, a row of its width; NULL: none. */
static void aggregate_onto(const NAME(Aggregation) * in, const real *bias, real *out, int threads) {
    ix chunks = chunk_count(in->rows, (in->rowptr[in->rows] + in->rows) * in->heads * in->channels);
    ix width = result_width(in, in->heads, in->channels);
    real scale = (real)(in->scale * head_part(in));
    int narrow = is_narrow(in), wide = is_wide(in);
    Mask mask = make_mask(in->seed, in->threshold);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(in->rowptr, in->rows, chunk, chunks);
        ix end = row_start(in->rowptr, in->rows, chunk + 1, chunks), last = in->rowptr[end];
        if (!narrow && !wide) aggregate_rows(in, mask, begin, end, last, out);
        else
            for (ix i = begin, after; i < end; i = after) {
                after = rows_together(in->rowptr, i, end, LONG_RUN);
                if (in->rowptr[i + 1] - in->rowptr[i] > LONG_RUN) aggregate_rows(in, mask, i, after = i + 1, last, out);
                else if (narrow)
                    FOR_NARROW_SHAPES(in, narrow_rows(in, mask, scale, i, after, last, out, HEADS, CHANNELS, MERGED))
                else wide_run(in, mask, scale, i, after, last, out);
            }
        for (ix i = begin; i < end && bias != NULL; i++) add_scaled(out + i * width, 1, bias, width);
    }
}

EXPORT void NAME(aggregate)(const NAME(Aggregation) * in, real *out, int threads) { aggregate_onto(in, NULL, out, threads); }

/* One walk by source: row j of x and of d x stay at hand, grad_i is gathered once and gives both d x_j and
 * d alpha_ij. Rows of grad that are all 0 are not gathered: where few nodes are labelled, most of them are. */
ALWAYS_INLINE void by_source_rows(const NAME(Aggregation) * in, Mask mask, ix begin, ix end, ix last, const real *grad,
                                  const uint8_t *set, int placed, real *d_x, real *d_alpha, double *by_self) {
    ix heads = in->heads, channels = in->channels;
    ix stride = in->x_heads * channels, step = in->x_heads == 1 ? 0 : channels;
    ix width = result_width(in, heads, channels), from_step = result_step(in, channels);
    real factor[heads], scale = (real)(in->scale * head_part(in));
    double total[spill_width(stride)];
    for (ix j = begin; j < end; j++) {
        const real *x = in->x + j * stride;
        real *to = d_x + j * stride;
        Spill spill = start_spill(total, stride, in->back_rowptr[j + 1] - in->back_rowptr[j]);
        clear(to, stride);
        if (in->self_weight != NULL && j < in->rows) {
            real part = self_part(in, j);
            for (ix h = 0; h < heads; h++)
                add_scaled(to + h * step, in->self_weight[h] * part, grad + j * width + h * from_step, channels);
            if (by_self != NULL) self_backward(in, j, grad + j * width, x, by_self);
        }
        for (ix k = in->back_rowptr[j]; k < in->back_rowptr[j + 1]; k++) {
            if (k + AHEAD < last && set[in->back_row[k + AHEAD]]) {
                fetch(grad + in->back_row[k + AHEAD] * width, width);
                __builtin_prefetch(in->alpha + in->back_perm[k + AHEAD] * heads, 0, 3);
            }
            const real *from = grad + in->back_row[k] * width;
            ix e = in->back_perm[k] * heads, place = placed ? k * heads : e;
            int nonzero = set[in->back_row[k]];
            if (nonzero) mask_run(mask, scale, (uint64_t)e, heads, factor);
            for (ix h = 0; h < heads && (nonzero || d_alpha != NULL); h++) {
                real sum = 0;
                if (nonzero && d_alpha == NULL)
                    add_scaled(to + h * step, in->alpha[e + h] * factor[h], from + h * from_step, channels);
                else if (nonzero && (channels < 16 || factor[h] != 0))
                    sum = dot_and_add(from + h * from_step, x + h * step, in->alpha[e + h] * factor[h], to + h * step,
                                      channels);
                if (d_alpha != NULL) d_alpha[place + h] = nonzero ? sum * factor[h] : (real)0;
            }
            after_term(&spill, to);
        }
        end_spill(&spill, to);
    }
}

/* Which rows of grad are not all 0. */
static void find_set(const NAME(Aggregation) * in, const real *grad, uint8_t *set, int threads) {
    ix width = result_width(in, in->heads, in->channels);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && in->rows * width > PARALLEL_CHUNKS * CHUNK_WORK)
    for (ix i = 0; i < in->rows; i++) set[i] = (uint8_t)any_set(grad + i * width, width);
}

/* partial is [MAX_CHUNKS, heads]; d_alpha and d_self may be NULL. With `placed`, d_alpha has the order of this walk, else
 * that of the entries. */
static void by_source(const NAME(Aggregation) * in, const real *grad, const uint8_t *set, int placed, real *d_x,
                      real *d_alpha, double *partial, real *d_self, int threads) {
    ix heads = in->heads, chunks = chunk_count(in->sources, in->rowptr[in->rows] * heads * in->channels);
    real scale = (real)(in->scale * head_part(in));
    int narrow = is_narrow(in), wide = is_wide(in) && in->x_heads == heads;
    Mask mask = make_mask(in->seed, in->threshold);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(in->back_rowptr, in->sources, chunk, chunks);
        ix end = row_start(in->back_rowptr, in->sources, chunk + 1, chunks), last = in->back_rowptr[end];
        double *by_self = d_self != NULL ? partial + chunk * heads : NULL;
        if (by_self != NULL) for (ix h = 0; h < heads; h++) by_self[h] = 0;
        if (!narrow && !wide) by_source_rows(in, mask, begin, end, last, grad, set, placed, d_x, d_alpha, by_self);
        else
            for (ix j = begin, after; j < end; j = after) {
                after = rows_together(in->back_rowptr, j, end, LONG_RUN);
                if (in->back_rowptr[j + 1] - in->back_rowptr[j] > LONG_RUN)
                    by_source_rows(in, mask, j, after = j + 1, last, grad, set, placed, d_x, d_alpha, by_self);
                else if (narrow)
                    FOR_NARROW_SHAPES(in, narrow_rows_backward(in, mask, scale, j, after, last, grad, set, placed, d_x, d_alpha, by_self,
                                                               HEADS, CHANNELS, MERGED))
                else wide_run_backward(in, mask, scale, j, after, last, grad, set, placed, d_x, d_alpha, by_self);
            }
    }
    if (d_self != NULL) fold(partial, chunks, heads, d_self);
}

/* set is a buffer of [rows]. */
EXPORT void NAME(aggregate_backward)(const NAME(Aggregation) * in, const real *grad, uint8_t *set, real *d_x, real *d_alpha,
                                     double *partial, real *d_self, int threads) {
    find_set(in, grad, set, threads);
    by_source(in, grad, set, 0, d_x, d_alpha, partial, d_self, threads);
}

/* d alpha and d eps alone (x needs no gradient): a walk by target, nothing transposed. */
EXPORT void NAME(aggregate_backward_alpha)(const NAME(Aggregation) * in, const real *grad, real *d_alpha, double *partial,
                                           real *d_self, int threads) {
    ix heads = in->heads, channels = in->channels;
    ix stride = in->x_heads * channels, step = in->x_heads == 1 ? 0 : channels;
    ix width = result_width(in, heads, channels), from_step = result_step(in, channels);
    real scale = (real)(in->scale * head_part(in));
    ix chunks = chunk_count(in->rows, in->rowptr[in->rows] * heads * channels);
    Mask mask = make_mask(in->seed, in->threshold);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix end = row_start(in->rowptr, in->rows, chunk + 1, chunks), last = in->rowptr[end];
        double *by_self = d_self != NULL ? partial + chunk * heads : NULL;
        real factor[heads];
        if (by_self != NULL) for (ix h = 0; h < heads; h++) by_self[h] = 0;
        for (ix i = row_start(in->rowptr, in->rows, chunk, chunks); i < end; i++) {
            const real *g = grad + i * width;
            if (by_self != NULL) self_backward(in, i, g, in->x + i * stride, by_self);
            for (ix e = in->rowptr[i]; e < in->rowptr[i + 1]; e++) {
                if (e + AHEAD < last) fetch(in->x + in->col[e + AHEAD] * stride, stride);
                const real *x = in->x + in->col[e] * stride;
                mask_run(mask, scale, (uint64_t)(e * heads), heads, factor);
                for (ix h = 0; h < heads; h++)
                    d_alpha[e * heads + h] =
                        factor[h] != 0 ? factor[h] * dot(g + h * from_step, x + h * step, channels) : (real)0;
            }
        }
    }
    if (d_self != NULL) fold(partial, chunks, heads, d_self);
}
