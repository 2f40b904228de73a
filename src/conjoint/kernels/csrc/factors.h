/* Scores C_ij = <V_i, V_j> together with their softmax over each row (Eq. 5): edge_dot and softmax in one walk, and one
 * walk back. The same functions on the same rows as in structure.h and attention.h, so the same bits. */

EXPORT void NAME(factor_attention)(const ix *rowptr, const ix *col, ix rows, ix nodes, ix rank, const real *factors,
                                   real *score, real *attention, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * (rank + 4));
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(rowptr, rows, chunk, chunks), end = row_start(rowptr, rows, chunk + 1, chunks);
        edge_dot_chunk(rowptr, col, begin, end, factors, factors, nodes, score, rank);
        softmax_rows(rowptr, begin, end, 1, score, attention);
    }
}

/* d V of both uses of V in the scores, from d attention and d score (NULL: the scores themselves were not used): by target,
 * and by source the entries `back`. by_entry is a buffer. */
EXPORT void NAME(factor_attention_backward)(const ix *rowptr, const ix *col, const ix *back_rowptr, const ix *back_row,
                                            const ix *back_perm, ix rows, ix nodes, ix rank, const real *factors,
                                            const real *attention, const real *d_attention, const real *d_score,
                                            real *by_entry, real *d_factors, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * (rank + 1));
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(rowptr, rows, chunk, chunks), end = row_start(rowptr, rows, chunk + 1, chunks);
        softmax_rows_backward(rowptr, begin, end, 1, attention, d_attention, by_entry);
        if (d_score != NULL)
            SIMD for (ix e = rowptr[begin]; e < rowptr[end]; e++) by_entry[e] += d_score[e];
#define SHORT(n) sum_short_rows(rowptr, col, NULL, begin, end, by_entry, NULL, factors, 0, d_factors, n)
#define LONG(n) sum_rows_chunk(rowptr, col, NULL, begin, end, by_entry, NULL, factors, 0, d_factors, n)
        BY_RANK(SHORT, LONG)
#undef SHORT
#undef LONG
    }
    clear(d_factors + rows * rank, (nodes - rows) * rank); /* those nodes are sources alone */
    NAME(sum_rows)(back_rowptr, back_row, back_perm, nodes, rank, by_entry, NULL, factors, 1, d_factors, threads);
}

/* V^T V over rows begin .. end, [rank, rank]. */
ALWAYS_INLINE void gram_rows(const real *v, ix rows, ix begin, ix end, ix rank, double *total) {
    for (ix k = 0; k < rank * rank; k++) total[k] = 0;
    for (ix i = begin; i < end;) {
        lanes sum[LANES] = {{0}};
        for (ix stop = smaller(i + LONG_RUN, end); i < stop; i++) {
            lanes row = only(short_row(v, i, rank, rows), first_places(rank), rank);
            for (ix r = 0; r < rank; r++) sum[r] += row[r] * row;
        }
        for (ix r = 0; r < rank; r++)
            for (ix c = 0; c < rank; c++) total[r * rank + c] += (double)sum[r][c];
    }
}

/* Number k of the chunks' partial results, added in order. */
ALWAYS_INLINE double folded(const double *partial, ix chunks, ix width, ix k) {
    double sum = 0;
    for (ix chunk = 0; chunk < chunks; chunk++) sum += partial[chunk * width + k];
    return sum;
}

/* scaled = factor * m, plus `diagonal` times the identity, row by row as vectors. */
ALWAYS_INLINE void scaled_rows(const real *m, ix rank, real factor, real diagonal, lanes *scaled) {
    for (ix r = 0; r < rank; r++) {
        scaled[r] = (lanes){0};
        for (ix c = 0; c < rank; c++) scaled[r][c] = factor * m[r * rank + c] + (r == c ? diagonal : 0);
    }
}

ALWAYS_INLINE void times_small(const real *v, ix begin, ix end, ix rank, const lanes *small, real *out) {
    for (ix i = begin; i < end; i++) {
        lanes sum = {0};
        for (ix r = 0; r < rank; r++) sum += v[i * rank + r] * small[r];
        store_part(out + i * rank, sum, rank);
    }
}

/* MF: ||A||^2 - 2 <A, C> + ||V^T V||_F^2 for a rank of up to eight, and V^T V [rank, rank] for the way back. `linked`
 * and `score` are A and C by entry; `partial` is [MAX_CHUNKS, rank * rank + 1]. */
EXPORT void NAME(factor_loss)(const real *v, ix rows, ix rank, const real *linked, const real *score, ix entries,
                              double squares, double *partial, real *gram, real *loss, int threads) {
    ix chunks = chunk_count(rows, rows * rank * rank + entries), size = rank * rank, width = size + 1;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        double *total = partial + chunk * width;
        ix last = even_start(entries, chunk + 1, chunks);
        gram_rows(v, rows, even_start(rows, chunk, chunks), even_start(rows, chunk + 1, chunks), rank, total);
        total[size] = 0;
        for (ix e = even_start(entries, chunk, chunks); e < last; e += LONG_RUN)
            total[size] += (double)dot(linked + e, score + e, smaller(LONG_RUN, last - e));
    }
    double found = squares - 2 * folded(partial, chunks, width, size);
    for (ix k = 0; k < size; k++) {
        double sum = folded(partial, chunks, width, k);
        found += sum * sum, gram[k] = (real)sum;
    }
    *loss = (real)found;
}

/* d V = 4 g V (V^T V), without the way through C, and d C = -2 g A, where g is the gradient of the loss. */
EXPORT void NAME(factor_loss_backward)(const real *v, ix rows, ix rank, const real *gram, const real *linked, ix entries,
                                       const real *grad, real *d_v, real *d_score, int threads) {
    ix chunks = chunk_count(rows, rows * rank * rank + entries);
    lanes small[LANES];
    scaled_rows(gram, rank, 4 * *grad, 0, small);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix last = even_start(entries, chunk + 1, chunks);
        times_small(v, even_start(rows, chunk, chunks), even_start(rows, chunk + 1, chunks), rank, small, d_v);
        SIMD for (ix e = even_start(entries, chunk, chunks); e < last; e++) d_score[e] = -2 * *grad * linked[e];
    }
}

/* SC: ||A||^2 - 2 tr(H) + <H, G> with G = V^T V, H = S^T S, S = A^T V, for a rank of up to eight. `grams` receives G
 * and H, [2, rank, rank]; `partial` is [MAX_CHUNKS, 2, rank, rank]. */
EXPORT void NAME(expression_loss)(const real *v, const real *s, ix rows, ix rank, double squares, double *partial,
                                  real *grams, real *loss, int threads) {
    ix chunks = chunk_count(rows, 2 * rows * rank * rank), size = rank * rank;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = even_start(rows, chunk, chunks), end = even_start(rows, chunk + 1, chunks);
        gram_rows(v, rows, begin, end, rank, partial + chunk * 2 * size);
        gram_rows(s, rows, begin, end, rank, partial + chunk * 2 * size + size);
    }
    double found = squares;
    for (ix k = 0; k < size; k++) {
        double of_v = folded(partial, chunks, 2 * size, k), of_s = folded(partial, chunks, 2 * size, size + k);
        found += of_s * (of_v - (k % (rank + 1) == 0 ? 2 : 0));
        grams[k] = (real)of_v, grams[size + k] = (real)of_s;
    }
    *loss = (real)found;
}

/* d V = 2 g V H, without the way through S, and d S = S (2 g G - 4 g I). */
EXPORT void NAME(expression_loss_backward)(const real *v, const real *s, ix rows, ix rank, const real *grams,
                                           const real *grad, real *d_v, real *d_s, int threads) {
    ix chunks = chunk_count(rows, 2 * rows * rank * rank);
    lanes by_v[LANES], by_s[LANES];
    scaled_rows(grams + rank * rank, rank, 2 * *grad, 0, by_v);
    scaled_rows(grams, rank, 2 * *grad, -4 * *grad, by_s);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = even_start(rows, chunk, chunks), end = even_start(rows, chunk + 1, chunks);
        times_small(v, begin, end, rank, by_v, d_v);
        times_small(s, begin, end, rank, by_s, d_s);
    }
}
