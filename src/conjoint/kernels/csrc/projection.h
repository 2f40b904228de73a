/* Products with few numbers on one side: sparse features times a weight, and rows times attention vectors. */

/* Eight rows of eight numbers, from `in` with `columns` a row to `out` with `rows` a row. */
ALWAYS_INLINE void transpose_square(const real *in, ix columns, real *out, ix rows) {
    lanes row[8], pair[8], four[8];
    for (int r = 0; r < 8; r++) row[r] = *lanes_at(in + r * columns);
    for (int r = 0; r < 4; r++) {
        pair[2 * r] = __builtin_shufflevector(row[2 * r], row[2 * r + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        pair[2 * r + 1] = __builtin_shufflevector(row[2 * r], row[2 * r + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int r = 0; r < 8; r += 4)
        for (int k = 0; k < 2; k++) {
            four[r + k] = __builtin_shufflevector(pair[r + k], pair[r + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            four[r + k + 2] = __builtin_shufflevector(pair[r + k], pair[r + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int k = 0; k < 4; k++) {
        *(lanes *)(out + k * rows) = __builtin_shufflevector(four[k], four[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(lanes *)(out + (k + 4) * rows) = __builtin_shufflevector(four[k], four[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* Eight columns at a time, so that what is written next to each other is written together. */
static void transpose(const real *in, ix rows, ix columns, real *out, int threads) {
    ix stripes = (columns + LANES - 1) / LANES;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && rows * columns > PARALLEL_CHUNKS * CHUNK_WORK)
    for (ix stripe = 0; stripe < stripes; stripe++) {
        ix c0 = stripe * LANES, c1 = smaller(columns, c0 + LANES), r = 0;
        for (; c1 - c0 == LANES && r + LANES <= rows; r += LANES)
            transpose_square(in + r * columns + c0, columns, out + c0 * rows + r, rows);
        for (; r < rows; r++)
            for (ix c = c0; c < c1; c++) out[c * rows + r] = in[r * columns + c];
    }
}

typedef struct {
    const ix *rowptr, *col;
    const real *value;
    ix rows, in, out;
    const ix *seed;
    ix threshold;
    double scale;
} NAME(SparseRows);

/* The non-zeros that survive dropout: those of row i are the first count[i] places of at + rowptr[i], as distances from
 * the first non-zero of the row. Found on the way forth and kept for the way back. NULL: nothing is dropped. */
typedef struct {
    int32_t *at, *count;
} Survivors;

/* Non-zeros whose hashes are made at once. */
enum { RUN = 256 };

static void find_survivors(const NAME(SparseRows) * x, Mask mask, ix begin, ix end, Survivors to) {
    uint32_t keep[RUN];
    ix i = begin, last = x->rowptr[end];
    int32_t count = 0;
    for (ix e0 = x->rowptr[begin]; e0 < last; e0 += RUN) {
        ix e1 = smaller(e0 + RUN, last);
        keep_run(mask, (uint64_t)e0, e1 - e0, keep);
        for (ix e = e0; e < e1;) {
            for (; x->rowptr[i + 1] == e; i++, count = 0) to.count[i] = count; /* rows that end here */
            ix first = x->rowptr[i], stop = smaller(e1, x->rowptr[i + 1]);
            for (; e < stop; e++) {
                to.at[first + count] = (int32_t)(e - first);
                count += (int32_t)keep[e - e0];
            }
        }
    }
    for (; i < end; i++, count = 0) to.count[i] = count;
}

/* Bit k is set where x[k] is not 0, for the first `count` numbers, at most eight. */
ALWAYS_INLINE unsigned nonzeros(const real *x, ix count) {
    unsigned found = 0;
    SIMD for (ix k = 0; k < count; k++) found |= (unsigned)(x[k] != 0) << k;
    return found;
}

/* Dense rows to CSR, first how many numbers of each row are not 0: rowptr is [rows + 1], from 0 on. */
EXPORT void NAME(count_nonzeros)(const real *x, ix rows, ix columns, ix *rowptr, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && rows * columns > PARALLEL_CHUNKS * CHUNK_WORK)
    for (ix i = 0; i < rows; i++) {
        int32_t count = 0;
        SIMD for (ix c = 0; c < columns; c++) count += x[i * columns + c] != 0;
        rowptr[i + 1] = count;
    }
    rowptr[0] = 0;
    for (ix i = 0; i < rows; i++) rowptr[i + 1] += rowptr[i];
}

/* Then which, in the order of the columns. */
EXPORT void NAME(pack_nonzeros)(const real *x, ix rows, ix columns, const ix *rowptr, ix *col, real *value, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && rows * columns > PARALLEL_CHUNKS * CHUNK_WORK)
    for (ix i = 0; i < rows; i++) {
        const real *row = x + i * columns;
        ix to = rowptr[i];
        for (ix c = 0; c < columns; c += LANES)
            for (unsigned set = nonzeros(row + c, smaller(LANES, columns - c)); set; set &= set - 1, to++)
                col[to] = c + __builtin_ctz(set), value[to] = row[col[to]];
    }
}

/* Columns whose sums are kept in registers: the paper's width, eight heads of eight channels. */
enum { SUMMED = 64 };

/* to = sum_k scale value[at[k]] * by_input[col[at[k]]], a stripe of columns at a time; at NULL: all of the row. */
ALWAYS_INLINE void add_rows(real *restrict to, const ix *col, const real *value, real scale, const int32_t *at, ix count,
                            const real *by_input, ix width) {
    ix begin = 0;
    for (; begin + SUMMED <= width; begin += SUMMED) {
        lanes sum[SUMMED / LANES] = {{0}};
        for (ix k = 0; k < count; k++) {
            ix e = at != NULL ? at[k] : k;
            real weight = scale * value[e];
            for (ix c = 0; c < SUMMED / LANES; c++)
                sum[c] += weight * *lanes_at(by_input + col[e] * width + begin + c * LANES);
        }
        memcpy(to + begin, sum, sizeof sum);
    }
    clear(to + begin, width - begin);
    for (ix k = 0; k < count && begin < width; k++) {
        ix e = at != NULL ? at[k] : k;
        add_scaled(to + begin, scale * value[e], by_input + col[e] * width + begin, width - begin);
    }
}

ALWAYS_INLINE void sparse_rows(const NAME(SparseRows) * x, Survivors kept, ix begin, ix end, const real *by_input,
                               real *out, ix width) {
    if (kept.at != NULL) find_survivors(x, make_mask(x->seed, x->threshold), begin, end, kept);
    for (ix i = begin; i < end; i++) {
        ix first = x->rowptr[i];
        const ix *col = x->col + first;
        const real *value = x->value + first;
        if (kept.at == NULL) add_rows(out + i * width, col, value, 1, NULL, x->rowptr[i + 1] - first, by_input, width);
        else add_rows(out + i * width, col, value, (real)x->scale, kept.at + first, kept.count[i], by_input, width);
    }
}

/* out = drop(x) weight^T; weight is [out, in], by_input a buffer of [in, out] for its transpose. at and count are those of
 * Survivors. */
EXPORT void NAME(sparse_project)(const NAME(SparseRows) * x, const real *weight, real *by_input, int32_t *at,
                                 int32_t *count, real *out, int threads) {
    ix chunks = chunk_count(x->rows, x->rowptr[x->rows] * x->out);
    Survivors kept = {at, count};
    transpose(weight, x->out, x->in, by_input, threads);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(x->rowptr, x->rows, chunk, chunks), end = row_start(x->rowptr, x->rows, chunk + 1, chunks);
        if (x->out == 64) sparse_rows(x, kept, begin, end, by_input, out, 64);
        else sparse_rows(x, kept, begin, end, by_input, out, x->out);
    }
}

/* by_input += grad_i times the surviving non-zeros of row i, for columns begin .. begin + width. */
ALWAYS_INLINE void spread_row(const NAME(SparseRows) * x, ix i, real scale, const int32_t *at, ix count, const real *grad,
                              real *by_input, ix begin, ix width) {
    const ix *col = x->col + x->rowptr[i];
    const real *value = x->value + x->rowptr[i];
    for (ix k = 0; k < count; k++) {
        ix e = at != NULL ? at[k] : k;
        add_scaled(by_input + col[e] * x->out + begin, scale * value[e], grad + i * x->out + begin, width);
    }
}

ALWAYS_INLINE void sparse_slice(const NAME(SparseRows) * x, Survivors kept, const real *grad, real *by_input, ix begin,
                                ix width) {
    for (ix f = 0; f < x->in; f++) clear(by_input + f * x->out + begin, width);
    for (ix i = 0; i < x->rows; i++) {
        if (!any_set(grad + i * x->out + begin, width)) continue; /* most rows, where few nodes are labelled */
        ix first = x->rowptr[i];
        if (kept.at == NULL) spread_row(x, i, 1, NULL, x->rowptr[i + 1] - first, grad, by_input, begin, width);
        else spread_row(x, i, (real)x->scale, kept.at + first, kept.count[i], grad, by_input, begin, width);
    }
}

/* d weight = grad^T drop(x). Each thread owns a slice of the output channels and walks all rows in order. */
EXPORT void NAME(sparse_project_backward)(const NAME(SparseRows) * x, const real *grad, int32_t *at, int32_t *count,
                                          real *by_input, real *d_weight, int threads) {
    Survivors kept = {at, count};
    ix share = (x->out + threads - 1) / threads, slice = (share + 15) / 16 * 16;
    ix slices = (x->out + slice - 1) / slice;
    if (x->rowptr[x->rows] * x->out < 2 * CHUNK_WORK) slice = x->out, slices = 1;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && slices > 1)
    for (ix s = 0; s < slices; s++) {
        ix width = smaller(slice, x->out - s * slice);
        if (width == 32) sparse_slice(x, kept, grad, by_input, s * slice, 32);
        else sparse_slice(x, kept, grad, by_input, s * slice, width);
    }
    transpose(by_input, x->in, x->out, d_weight, threads);
}

/* The paper's own shape and one of four times its width as constants, which lets the compiler unroll its loops. */
#define FOR_USUAL_SHAPE(heads, channels, call)                \
    if (heads == 8 && channels == 8) {                        \
        enum { HEADS = 8, CHANNELS = 8 };                     \
        call;                                                 \
    } else if (heads == 8 && channels == 32) {                \
        enum { HEADS = 8, CHANNELS = 32 };                    \
        call;                                                 \
    } else {                                                  \
        const ix HEADS = heads, CHANNELS = channels;          \
        call;                                                 \
    }

/* <x_h, vector_h> of every head of one row. */
ALWAYS_INLINE void row_dots(const real *x, const real *vector, ix heads, ix channels, real *out) {
    if (heads == LANES && channels % LANES == 0) {
        lanes product[LANES];
        for (ix h = 0; h < LANES; h++) {
            const real *a = x + h * channels, *b = vector + h * channels;
            if (channels == LANES) product[h] = *lanes_at(a) * *lanes_at(b);
            else product[h] = dot_vectors(a, b, channels);
        }
        *(lanes *)out = sum_eight(product);
    } else
        for (ix h = 0; h < heads; h++) out[h] = dot(x + h * channels, vector + h * channels, channels);
}

ALWAYS_INLINE void head_dots_rows(const real *x, ix begin, ix end, ix heads, ix channels, const real *first,
                                  const real *second, ix second_rows, real *out_first, real *out_second) {
    for (ix n = begin; n < end; n++) {
        const real *row = x + n * heads * channels;
        row_dots(row, first, heads, channels, out_first + n * heads);
        if (n < second_rows) row_dots(row, second, heads, channels, out_second + n * heads);
    }
}

/* out[v][n, h] = <x_nh, vector[v]_h> for one or two vectors per head (those of source and target); the second
 * only for the first second_rows rows, 0 without a second. */
EXPORT void NAME(head_dots)(const real *x, ix rows, ix heads, ix channels, const real *first, const real *second,
                            ix second_rows, real *out_first, real *out_second, int threads) {
    ix chunks = chunk_count(rows, rows * heads * channels);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = even_start(rows, chunk, chunks), end = even_start(rows, chunk + 1, chunks);
        FOR_USUAL_SHAPE(heads, channels, head_dots_rows(x, begin, end, HEADS, CHANNELS, first, second, second_rows, out_first, out_second))
    }
}

/* What the backward pass of head_dots reads and writes; NULL: a gradient of 0, or not wanted. */
typedef struct {
    const real *x, *first, *second, *grad_first, *grad_second;
    ix second_rows, add; /* with `add`, d_x is added to what is there */
    real *d_x;
} NAME(HeadDots);

ALWAYS_INLINE void head_dots_rows_backward(const NAME(HeadDots) * in, ix begin, ix end, ix heads, ix channels,
                                           double *total) {
    ix left = LONG_RUN, width = heads * channels;
    real by_first[width], by_second[width];
    clear(by_first, width);
    clear(by_second, width);
    for (ix c = 0; c < 2 * width; c++) total[c] = 0;
    for (ix n = begin; n < end; n++) {
        int both = n < in->second_rows;
        for (ix h = 0; h < heads; h++) {
            const real *row = in->x + n * width + h * channels;
            real a = in->grad_first != NULL ? in->grad_first[n * heads + h] : 0;
            real b = both && in->grad_second != NULL ? in->grad_second[n * heads + h] : 0;
            add_scaled(by_first + h * channels, a, row, channels);
            if (both) add_scaled(by_second + h * channels, b, row, channels);
            if (in->d_x == NULL) continue;
            real *to = in->d_x + n * width + h * channels;
            if (in->add) add_scaled(to, a, in->first + h * channels, channels);
            else set_scaled(to, a, in->first + h * channels, channels);
            if (both) add_scaled(to, b, in->second + h * channels, channels);
        }
        if (--left > 0 && n + 1 < end) continue;
        for (ix c = 0; c < width; c++) {
            total[c] += (double)by_first[c], total[width + c] += (double)by_second[c];
            by_first[c] = by_second[c] = 0;
        }
        left = LONG_RUN;
    }
}

/* d x, and d first and d second through `partial`, [MAX_CHUNKS, 2, heads * channels]. d_x NULL: not wanted;
 * with `add` it is added to what is there. A NULL gradient counts as 0. */
EXPORT void NAME(head_dots_backward)(const real *x, ix rows, ix heads, ix channels, const real *first,
                                     const real *second, ix second_rows, const real *grad_first, const real *grad_second,
                                     ix add, real *d_x, double *partial, real *d_vectors, int threads) {
    ix chunks = chunk_count(rows, rows * heads * channels), width = heads * channels;
    NAME(HeadDots) in = {x, first, second, grad_first, grad_second, second_rows, add, d_x};
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = even_start(rows, chunk, chunks), end = even_start(rows, chunk + 1, chunks);
        FOR_USUAL_SHAPE(heads, channels, head_dots_rows_backward(&in, begin, end, HEADS, CHANNELS, partial + chunk * 2 * width))
    }
    fold(partial, chunks, 2 * width, d_vectors);
}
