/* Structural scores <left_i, right_j> per entry, and sums of rows over entries (their gradient, and A V). */

/* Ranks that are compiled as constants, so that their short loops are unrolled. */
#define BY_RANK(constant, any)      \
    switch (rank) {                 \
        case 3: constant(3); break; \
        case 6: constant(6); break; \
        case 7: constant(7); break; \
        case 8: constant(8); break; \
        default: any(rank);         \
    }

/* Rows of up to eight numbers are vectors: a row is read whole, with the first numbers of what follows it. */
ALWAYS_INLINE lanes short_row(const real *x, ix i, ix rank, ix rows) { return load_part(x + i * rank, rank, rows * rank - i * rank); }

/* Of how many numbers of the ranks 1, 2, 4 and 5 the products are rounded before they are added. */
ALWAYS_INLINE ix rounded_products(ix rank) { return rank == 3 || rank > 5 ? 0 : rank & -(16 / (ix)sizeof(real)); }

/* <left, right_j> for eight j. Products are added unrounded where the processor can do that; those that shall be rounded
 * go through a mask whose bits are all set, as only we know. Eight are added as a tree. */
ALWAYS_INLINE lanes dot_eight(const real *left, const ix *col, const real *right, ix others, ix rank, lane_bits all) {
    lanes row[LANES], sum = {0};
    for (int k = 0; k < LANES; k++) row[k] = short_row(right, col[k], rank, others);
    if (rank == LANES) {
        for (int k = 0; k < LANES; k++) row[k] = (lanes)((lane_bits)(row[k] * *lanes_at(left)) & all);
        return sum_eight(row) + sum;
    }
    turn_eight(row);
    ix rounded = rounded_products(rank);
#pragma GCC unroll 8
    for (ix c = 0; c < LANES - 1; c++)
        if (c < rounded) sum += (lanes)((lane_bits)(left[c] * row[c]) & all);
        else if (c < rank) sum += left[c] * row[c];
    return sum;
}

/* What eight find beyond row i is of no use, and overwritten with the next rows. */
ALWAYS_INLINE void edge_dot_rows(const ix *rowptr, const ix *col, ix begin, ix end, const real *left, const real *right,
                                 ix others, real *out, ix rank) {
    ix last = rowptr[end];
    int far = lies_far(others * rank);
    lane_bits all = first_places(LANES + end);
    for (ix i = begin; i < end; i++)
        for (ix e = rowptr[i]; e < rowptr[i + 1]; e += LANES) {
            ix count = smaller(LANES, last - e), final[LANES] = {0};
            for (ix k = 0; k < LANES && count < LANES; k++) final[k] = k < count ? col[e + k] : 0;
            for (ix k = 0; k < LANES && far && e + FAR_AHEAD + LANES < last; k++)
                __builtin_prefetch(right + col[e + FAR_AHEAD + k] * rank, 0, 3);
            lanes found = dot_eight(left + i * rank, count < LANES ? final : col + e, right, others, rank, all);
            store_part(out + e, found, count);
        }
}

static void edge_dot_chunk(const ix *rowptr, const ix *col, ix begin, ix end, const real *left, const real *right,
                           ix others, real *out, ix rank) {
    ix last = rowptr[end];
    int far = lies_far(others * rank);
#define DOTS(n) edge_dot_rows(rowptr, col, begin, end, left, right, others, out, n)
    if (rank <= LANES) BY_RANK(DOTS, DOTS)
#undef DOTS
    for (ix i = begin; i < end && rank > LANES; i++)
        for (ix e = rowptr[i]; e < rowptr[i + 1]; e++) {
            if (far && e + FAR_AHEAD < last) fetch(right + col[e + FAR_AHEAD] * rank, rank);
            out[e] = dot(left + i * rank, right + col[e] * rank, rank);
        }
}

/* out[e] = <left_i, right_j>, where right has `others` rows. */
EXPORT void NAME(edge_dot)(const ix *rowptr, const ix *col, ix rows, ix others, ix rank, const real *left,
                           const real *right, real *out, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * rank);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(rowptr, rows, chunk, chunks), end = row_start(rowptr, rows, chunk + 1, chunks);
        edge_dot_chunk(rowptr, col, begin, end, left, right, others, out, rank);
    }
}

ALWAYS_INLINE void sum_rows_chunk(const ix *rowptr, const ix *other, const ix *perm, ix begin, ix end, const real *value,
                                  const uint8_t *simple, const real *x, ix add, real *out, ix rank) {
    double total[spill_width(rank)];
    ix last = rowptr[end];
    int far = lies_far(end * rank);
    for (ix i = begin; i < end; i++) {
        real *to = out + i * rank;
        Spill spill = start_spill(total, rank, rowptr[i + 1] - rowptr[i]);
        if (!add) clear(to, rank);
        for (ix k = rowptr[i]; k < rowptr[i + 1]; k++) {
            if (far && k + FAR_AHEAD < last) {
                fetch(x + other[k + FAR_AHEAD] * rank, rank);
                if (perm != NULL && value != NULL) __builtin_prefetch(value + perm[k + FAR_AHEAD], 0, 3);
                if (perm != NULL && simple != NULL) __builtin_prefetch(simple + perm[k + FAR_AHEAD], 0, 3);
            }
            ix p = perm != NULL ? perm[k] : k;
            real weight = value != NULL ? value[p] : (real)1;
            if (simple == NULL || simple[p]) add_scaled(to, weight, x + other[k] * rank, rank);
            after_term(&spill, to);
        }
        end_spill(&spill, to);
    }
}

/* The same for a rank that is a small constant: the sum stays in registers. */
ALWAYS_INLINE void sum_short_rows(const ix *rowptr, const ix *other, const ix *perm, ix begin, ix end, const real *value,
                                  const uint8_t *simple, const real *x, ix add, real *out, ix rank) {
    ix after = rowptr[end];
    int far = lies_far(end * rank);
    for (ix i = begin; i < end; i++) {
        real *to = out + i * rank, sum[LANES];
        double total[LANES] = {0};
        ix last = rowptr[i + 1], terms = last - rowptr[i];
        for (ix c = 0; c < rank; c++) sum[c] = add ? to[c] : (real)0;
        for (ix k = rowptr[i]; k < last;) {
            ix stop = smaller(k + LONG_RUN, last);
            for (; k < stop; k++) {
                if (far && k + FAR_AHEAD < after) {
                    fetch(x + other[k + FAR_AHEAD] * rank, rank);
                    if (perm != NULL && value != NULL) __builtin_prefetch(value + perm[k + FAR_AHEAD], 0, 3);
                    if (perm != NULL && simple != NULL) __builtin_prefetch(simple + perm[k + FAR_AHEAD], 0, 3);
                }
                ix p = perm != NULL ? perm[k] : k;
                real weight = value != NULL ? value[p] : (real)1;
                const real *from = x + other[k] * rank;
                if (simple != NULL && !simple[p]) continue;
                for (ix c = 0; c < rank; c++) sum[c] += weight * from[c];
            }
            if (terms > LONG_RUN)
                for (ix c = 0; c < rank; c++) total[c] += (double)sum[c], sum[c] = 0;
        }
        for (ix c = 0; c < rank; c++) to[c] = terms > LONG_RUN ? (real)total[c] : sum[c];
    }
}

/* out_i = (with `add`: +=) sum over k in row i of value[p] x[other[k]], where p = perm[k], or k without a perm. No
 * value: 1. With `simple` only over the entries that are. */
EXPORT void NAME(sum_rows)(const ix *rowptr, const ix *other, const ix *perm, ix rows, ix rank, const real *value,
                           const uint8_t *simple, const real *x, ix add, real *out, int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * rank);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(rowptr, rows, chunk, chunks), end = row_start(rowptr, rows, chunk + 1, chunks);
#define SHORT(n) sum_short_rows(rowptr, other, perm, begin, end, value, simple, x, add, out, n)
#define LONG(n) sum_rows_chunk(rowptr, other, perm, begin, end, value, simple, x, add, out, n)
        BY_RANK(SHORT, LONG)
#undef SHORT
#undef LONG
    }
}

/* total = <a, b>, in double precision and in an order that no number of threads changes. partial: [MAX_CHUNKS]. */
EXPORT void NAME(dot_total)(const real *a, const real *b, ix count, double *partial, real *total, int threads) {
    ix chunks = chunk_count(count, count);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        double sum = 0;
        ix end = even_start(count, chunk + 1, chunks);
        for (ix k = even_start(count, chunk, chunks); k < end; k += LONG_RUN)
            sum += (double)dot(a + k, b + k, smaller(LONG_RUN, end - k));
        partial[chunk] = sum;
    }
    fold(partial, chunks, 1, total);
}

ALWAYS_INLINE void sum_entries_rows(const ix *rowptr, const ix *perm, ix begin, ix end, int far, ix width,
                                    const real *value, real *out) {
    double total[spill_width(width)];
    ix last = rowptr[end];
    for (ix i = begin; i < end; i++) {
        real *to = out + i * width;
        Spill spill = start_spill(total, width, rowptr[i + 1] - rowptr[i]);
        clear(to, width);
        for (ix k = rowptr[i]; k < rowptr[i + 1]; k++) {
            if (far && k + FAR_AHEAD < last) fetch(value + perm[k + FAR_AHEAD] * width, width);
            add_scaled(to, 1, value + (perm != NULL ? perm[k] : k) * width, width);
            after_term(&spill, to);
        }
        end_spill(&spill, to);
    }
}

/* out_i = sum over k in row i of value[perm[k], :] ([entries, width]); without a perm the row's own entries. */
EXPORT void NAME(sum_entries)(const ix *rowptr, const ix *perm, ix rows, ix width, const real *value, real *out,
                              int threads) {
    ix chunks = chunk_count(rows, rowptr[rows] * width);
    int far = perm != NULL && lies_far(rowptr[rows] * width);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(rowptr, rows, chunk, chunks), end = row_start(rowptr, rows, chunk + 1, chunks);
        FOR_USUAL_HEADS(width, sum_entries_rows(rowptr, perm, begin, end, far, HEADS, value, out))
    }
}
