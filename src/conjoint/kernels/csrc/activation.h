/* Between two layers: ELU, ReLU or nothing, then dropout, in one pass; `out` may be `in`. */

enum { ACT_NONE = 0, ACT_RELU = 1, ACT_ELU = 2 };

/* Elements at a time: small enough to stay in the nearest cache between the two loops. */
enum { PIECE = 2048 };

EXPORT void NAME(activate_and_drop)(const real *in, ix count, ix activation, const ix *seed, ix threshold,
                                    double scale, real *out, int threads) {
    ix pieces = (count + PIECE - 1) / PIECE;
    Mask mask = make_mask(seed, threshold);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1 && count > PARALLEL_CHUNKS * CHUNK_WORK)
    for (ix piece = 0; piece < pieces; piece++) {
        ix first = piece * PIECE, run = smaller(PIECE, count - first);
        const real *x = in + first;
        real *y = out + first;
        if (activation == ACT_ELU) {
            SIMD for (ix c = 0; c < run; c++) {
                real low = expm1_real(x[c]);
                y[c] = x[c] > 0 ? x[c] : low;
            }
        } else if (activation == ACT_RELU) {
            SIMD for (ix c = 0; c < run; c++) y[c] = x[c] < 0 ? (real)0 : x[c];
        } else if (x != y) memcpy(y, x, (size_t)run * sizeof(real));
        drop_run(mask, (real)scale, (uint64_t)first, run, y, y);
    }
}

/* From the result alone: where ELU's input was negative, scale * exp(x) = result + scale. `out` may be `grad`. */
EXPORT void NAME(activate_and_drop_backward)(const real *grad, const real *result, ix count, ix activation,
                                             const ix *seed, ix threshold, double scale, real *out, int threads) {
    ix pieces = (count + PIECE - 1) / PIECE;
    Mask mask = make_mask(seed, threshold);
    real factor = (real)scale, inverse = mask.on && scale > 0 ? (real)(1.0 / scale) : (real)1;
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1 && count > PARALLEL_CHUNKS * CHUNK_WORK)
    for (ix piece = 0; piece < pieces; piece++) {
        ix first = piece * PIECE, run = smaller(PIECE, count - first);
        const real *g = grad + first, *y = result + first;
        real *to = out + first;
        real slope[PIECE];
        if (activation == ACT_ELU) {
            SIMD for (ix c = 0; c < run; c++) slope[c] = g[c] * (y[c] > 0 ? (real)1 : y[c] * inverse + (real)1);
        } else if (activation == ACT_RELU) {
            SIMD for (ix c = 0; c < run; c++) slope[c] = y[c] > 0 ? g[c] : (real)0;
        } else memcpy(slope, g, (size_t)run * sizeof(real));
        drop_run(mask, factor, (uint64_t)first, run, slope, to);
    }
}
