/* Scores as every head of a residual block reads them, C_ij times a factor of its own, and their softmax over each row. */

/* Beside each other in a sum of many entries, and how often sums of sums are taken. */
enum { SIDE_BY_SIDE = 4, LEVELS = 4 };

/* out[e, h] = score[e] * factor[h] for entries begin .. end. */
ALWAYS_INLINE void scale_entries(const real *score, const real *factor, ix begin, ix end, ix heads, real *restrict out) {
    for (ix e = begin; e < end; e++)
        EACH_HEAD out[e * heads + h] = score[e] * factor[h];
}

EXPORT void NAME(scaled)(const real *score, const real *factor, ix entries, ix heads, real *out, int threads) {
    ix chunks = chunk_count(entries, entries * heads);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = even_start(entries, chunk, chunks), end = even_start(entries, chunk + 1, chunks);
        FOR_USUAL_HEADS(heads, scale_entries(score, factor, begin, end, HEADS, out))
    }
}

ALWAYS_INLINE void scaled_softmax_rows(const ix *rowptr, ix begin, ix end, ix heads, const real *score, const real *factor,
                                       real *restrict out) {
    scale_entries(score, factor, rowptr[begin], rowptr[end], heads, out);
    softmax_of_rows(rowptr, begin, end, heads, out);
}

EXPORT void NAME(scaled_softmax)(const ix *rowptr, ix rows, ix heads, const real *score, const real *factor, real *out,
                                 int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * heads * 4);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(rowptr, rows, chunk, chunks), end = row_start(rowptr, rows, chunk + 1, chunks);
        FOR_USUAL_HEADS(heads, scaled_softmax_rows(rowptr, begin, end, HEADS, score, factor, out))
    }
}

/* d_score[e] = sum over heads of grad[e, h] * factor[h]. Products are rounded before they are added, here and below, as
 * where each of the two is an operation of its own; so they stand in memory in between. */
ALWAYS_INLINE void score_gradient(const real *grad, const real *factor, ix begin, ix end, ix heads, real *d_score) {
    ix block = WEIGHTS / heads > 0 ? WEIGHTS / heads : 1;
    real product[block * heads];
    for (ix e0 = begin; e0 < end; e0 += block) {
        ix count = smaller(block, end - e0);
        for (ix e = 0; e < count; e++)
            EACH_HEAD product[e * heads + h] = grad[(e0 + e) * heads + h] * factor[h];
        for (ix e = 0; e < count; e++) {
            real sum = 0;
            for (ix h = 0; h < heads; h++) sum += product[e * heads + h];
            d_score[e0 + e] = sum;
        }
    }
}

/* sum[(e % 4), h] += grad[e, h] * score[e] for entries begin .. end, of which there are whole fours. */
ALWAYS_INLINE void add_products(const real *grad, const real *score, ix begin, ix end, ix heads, real *restrict sum) {
    ix width = SIDE_BY_SIDE * heads, block = (WEIGHTS / width > 0 ? WEIGHTS / width : 1) * SIDE_BY_SIDE;
    real product[block * heads];
    for (ix e0 = begin; e0 < end; e0 += block) {
        ix count = smaller(block, end - e0);
        for (ix e = 0; e < count; e++)
            EACH_HEAD product[e * heads + h] = grad[(e0 + e) * heads + h] * score[e0 + e];
        for (ix e = 0; e < count; e += SIDE_BY_SIDE)
            SIMD for (ix c = 0; c < width; c++) sum[c] += product[e * heads + c];
    }
}

/* Fours of entries in a run: the fourth root of how many there are, as a power of two, at least 16. */
static ix run_length(ix fours) {
    ix power = 0;
    while (((ix)1 << power) < fours) power++;
    return (ix)1 << (power / LEVELS > 4 ? power / LEVELS : 4);
}

/* d_factor[h] = sum over entries of grad[e, h] * score[e], added in runs, runs of runs and so on, which keeps digits
 * among millions of terms. The order is that in which torch adds eight columns. `sums` is [entries / 16 + 4, heads]. */
static void factor_gradient(const real *grad, const real *score, ix entries, ix heads, real *sums, real *d_factor, int threads) {
    ix fours = entries / SIDE_BY_SIDE, length = run_length(fours), runs = fours / length, width = SIDE_BY_SIDE * heads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && entries * heads >= PARALLEL_CHUNKS * CHUNK_WORK)
    for (ix run = 0; run < runs; run++) {
        real *to = sums + run * width;
        ix begin = run * length * SIDE_BY_SIDE, end = begin + length * SIDE_BY_SIDE;
        clear(to, width);
        FOR_USUAL_HEADS(heads, add_products(grad, score, begin, end, HEADS, to))
    }
    real level[LEVELS][width];
    clear(level[0], LEVELS * width);
    for (ix run = 0; run < runs; run++) {
        add_scaled(level[0], 1, sums + run * width, width);
        for (ix k = 1, passed = run + 1; k < LEVELS; k++) {
            add_scaled(level[k], 1, level[k - 1], width);
            clear(level[k - 1], width);
            if (passed % length != 0) break;
            passed /= length;
        }
    }
    add_products(grad, score, runs * length * SIDE_BY_SIDE, fours * SIDE_BY_SIDE, heads, level[0]);
    for (ix k = 1; k < LEVELS; k++) add_scaled(level[0], 1, level[k], width);
    for (ix e = fours * SIDE_BY_SIDE; e < entries; e++) {
        real product[heads];
        set_scaled(product, score[e], grad + e * heads, heads);
        add_scaled(level[0], 1, product, heads);
    }
    memcpy(d_factor, level[0], (size_t)heads * sizeof(real));
    for (ix k = 1; k < SIDE_BY_SIDE; k++) add_scaled(d_factor, 1, level[0] + k * heads, heads);
}

/* `weight`, the softmax, turns its gradient into that of the scaled scores, in `d_scaled`; NULL: grad is that already.
 * d_score may be NULL: not wanted. */
EXPORT void NAME(scaled_backward)(const ix *rowptr, ix rows, ix heads, const real *score, const real *factor,
                                  const real *weight, const real *grad, real *d_scaled, real *sums, real *d_score,
                                  real *d_factor, int threads) {
    const real *found = weight != NULL ? d_scaled : grad;
    ix chunks = chunk_count(rows, rowptr[rows] * heads);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(rowptr, rows, chunk, chunks), end = row_start(rowptr, rows, chunk + 1, chunks);
        for (ix i = begin, after; i < end; i = after) {
            after = rows_together(rowptr, i, end, SHORT_ROW);
            if (weight != NULL)
                FOR_USUAL_HEADS(heads, softmax_rows_backward(rowptr, i, after, HEADS, weight, grad, d_scaled))
            if (d_score != NULL)
                FOR_USUAL_HEADS(heads, score_gradient(found, factor, rowptr[i], rowptr[after], HEADS, d_score))
        }
    }
    factor_gradient(found, score, rowptr[rows], heads, sums, d_factor, threads);
}
