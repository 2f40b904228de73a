/* Structural scores <left_i, right_j> per entry, and sums of rows over entries (their gradient, and A V). */

/* out[e] = <left_i, right_j>. With `simple`: total = the sum of the scores of the simple entries. */
EXPORT void NAME(edge_dot)(const ix *rowptr, const ix *col, ix rows, ix rank, const real *left, const real *right,
                           const uint8_t *simple, real *out, double *partial, real *total, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * rank);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        double sum = 0;
        ix end = row_start(rowptr, rows, chunk + 1, chunks);
        for (ix i = row_start(rowptr, rows, chunk, chunks); i < end; i++)
            for (ix e = rowptr[i]; e < rowptr[i + 1]; e++) {
                out[e] = dot(left + i * rank, right + col[e] * rank, rank);
                if (simple != NULL && simple[e]) sum += (double)out[e];
            }
        if (simple != NULL) partial[chunk] = sum;
    }
    if (simple != NULL) fold(partial, chunks, 1, total);
}

/* out_i = (with `add`: +=) sum over k in row i of weight x[other[k]], weight = value[p] + (simple[p] ? level : 0), where
 * p = perm[k], or k without a perm. No value: 0. `simple` without a level counts each simple entry once. */
EXPORT void NAME(sum_rows)(const ix *rowptr, const ix *other, const ix *perm, ix rows, ix rank, const real *value,
                           const uint8_t *simple, const real *level, const real *x, ix add, real *out, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * rank);
    real unit = level != NULL ? *level : (real)1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        double total[spill_width(rank)];
        ix end = row_start(rowptr, rows, chunk + 1, chunks);
        for (ix i = row_start(rowptr, rows, chunk, chunks); i < end; i++) {
            real *to = out + i * rank;
            Spill spill = start_spill(total, rank, rowptr[i + 1] - rowptr[i]);
            if (!add) clear(to, rank);
            for (ix k = rowptr[i]; k < rowptr[i + 1]; k++) {
                ix p = perm != NULL ? perm[k] : k;
                real weight = value != NULL ? value[p] : 0;
                if (simple != NULL && simple[p]) weight += unit;
                if (weight != 0) add_scaled(to, weight, x + other[k] * rank, rank);
                after_term(&spill, to);
            }
            end_spill(&spill, to);
        }
    }
}

/* out_i = sum over k in row i of value[perm[k], :] ([entries, width]); without a perm the row's own entries. */
EXPORT void NAME(sum_entries)(const ix *rowptr, const ix *perm, ix rows, ix width, const real *value, real *out,
                              int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * width);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        double total[spill_width(width)];
        ix end = row_start(rowptr, rows, chunk + 1, chunks);
        for (ix i = row_start(rowptr, rows, chunk, chunks); i < end; i++) {
            real *to = out + i * width;
            Spill spill = start_spill(total, width, rowptr[i + 1] - rowptr[i]);
            clear(to, width);
            for (ix k = rowptr[i]; k < rowptr[i + 1]; k++) {
                add_scaled(to, 1, value + (perm != NULL ? perm[k] : k) * width, width);
                after_term(&spill, to);
            }
            end_spill(&spill, to);
        }
    }
}
