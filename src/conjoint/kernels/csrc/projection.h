/* Products with few numbers on one side: sparse features times a weight, and rows times attention vectors. */

static void transpose(const real *in, ix rows, ix columns, real *out, int threads) {
    enum { TILE = 32 };
    ix tiles = (rows + TILE - 1) / TILE;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && rows * columns > PARALLEL_CHUNKS * CHUNK_WORK)
    for (ix tile = 0; tile < tiles; tile++) {
        ix r1 = smaller(rows, (tile + 1) * TILE);
        for (ix c0 = 0; c0 < columns; c0 += TILE)
            for (ix r = tile * TILE; r < r1; r++)
                for (ix c = c0; c < smaller(columns, c0 + TILE); c++) out[c * rows + r] = in[r * columns + c];
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

/* Non-zeros of a row whose dropped values are made at once. */
enum { RUN = 256 };

/* The non-zeros e0 .. e1 that survive dropout, packed: their columns and values. Returns how many. */
ALWAYS_INLINE ix surviving(const NAME(SparseRows) * x, Mask mask, ix e0, ix e1, ix *col, real *value) {
    real dropped[RUN];
    drop_run(mask, (real)x->scale, (uint64_t)e0, e1 - e0, x->value + e0, dropped);
    ix count = 0;
    for (ix e = e0; e < e1; e++) {
        col[count] = x->col[e], value[count] = dropped[e - e0];
        count += dropped[e - e0] != 0;
    }
    return count;
}

ALWAYS_INLINE void sparse_rows(const NAME(SparseRows) * x, Mask mask, ix begin, ix end, const real *by_input, real *out,
                               ix width) {
    ix col[RUN];
    real value[RUN];
    for (ix i = begin; i < end; i++) {
        real *restrict to = out + i * width;
        clear(to, width);
        for (ix e0 = x->rowptr[i]; e0 < x->rowptr[i + 1]; e0 += RUN) {
            ix count = surviving(x, mask, e0, smaller(e0 + RUN, x->rowptr[i + 1]), col, value);
            for (ix k = 0; k < count; k++) add_scaled(to, value[k], by_input + col[k] * width, width);
        }
    }
}

/* out = drop(x) weight^T; weight is [out, in], by_input a buffer of [in, out] for its transpose. */
EXPORT void NAME(sparse_project)(const NAME(SparseRows) * x, const real *weight, real *by_input, real *out,
                                 int threads) {
    ix chunks = chunk_count(x->rows, x->rowptr[x->rows] * x->out);
    Mask mask = make_mask(x->seed, x->threshold);
    transpose(weight, x->out, x->in, by_input, threads);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        ix begin = row_start(x->rowptr, x->rows, chunk, chunks), end = row_start(x->rowptr, x->rows, chunk + 1, chunks);
        if (x->out == 64) sparse_rows(x, mask, begin, end, by_input, out, 64);
        else sparse_rows(x, mask, begin, end, by_input, out, x->out);
    }
}

ALWAYS_INLINE void sparse_slice(const NAME(SparseRows) * x, Mask mask, const real *grad, real *by_input, ix begin,
                                ix width) {
    ix col[RUN];
    real value[RUN];
    for (ix f = 0; f < x->in; f++) clear(by_input + f * x->out + begin, width);
    for (ix i = 0; i < x->rows; i++)
        for (ix e0 = x->rowptr[i]; e0 < x->rowptr[i + 1]; e0 += RUN) {
            ix count = surviving(x, mask, e0, smaller(e0 + RUN, x->rowptr[i + 1]), col, value);
            for (ix k = 0; k < count; k++)
                add_scaled(by_input + col[k] * x->out + begin, value[k], grad + i * x->out + begin, width);
        }
}

/* d weight = grad^T drop(x). Each thread owns a slice of the output channels and walks all rows in order. */
EXPORT void NAME(sparse_project_backward)(const NAME(SparseRows) * x, const real *grad, real *by_input, real *d_weight,
                                          int threads) {
    Mask mask = make_mask(x->seed, x->threshold);
    ix share = (x->out + threads - 1) / threads, slice = (share + 15) / 16 * 16;
    ix slices = (x->out + slice - 1) / slice;
    if (x->rowptr[x->rows] * x->out < 2 * CHUNK_WORK) slice = x->out, slices = 1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && slices > 1)
    for (ix s = 0; s < slices; s++) {
        ix width = smaller(slice, x->out - s * slice);
        if (width == 32) sparse_slice(x, mask, grad, by_input, s * slice, 32);
        else sparse_slice(x, mask, grad, by_input, s * slice, width);
    }
    transpose(by_input, x->in, x->out, d_weight, threads);
}

/* out[v][n, h] = <x_nh, vector[v]_h> for one or two vectors per head (those of source and target); the second
 * only for the first second_rows rows, 0 without a second. */
EXPORT void NAME(head_dots)(const real *x, ix rows, ix heads, ix channels, const real *first, const real *second,
                            ix second_rows, real *out_first, real *out_second, int threads) {
    ix chunks = chunk_count(rows, rows * heads * channels), width = heads * channels;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++)
        for (ix n = even_start(rows, chunk, chunks); n < even_start(rows, chunk + 1, chunks); n++)
            for (ix h = 0; h < heads; h++) {
                const real *row = x + n * width + h * channels;
                out_first[n * heads + h] = dot(row, first + h * channels, channels);
                if (n < second_rows) out_second[n * heads + h] = dot(row, second + h * channels, channels);
            }
}

/* d x, and d first and d second through `partial`, [MAX_CHUNKS, 2, heads * channels]. d_x NULL: not wanted;
 * with `add` it is added to what is there. A NULL gradient counts as 0. */
EXPORT void NAME(head_dots_backward)(const real *x, ix rows, ix heads, ix channels, const real *first,
                                     const real *second, ix second_rows, const real *grad_first, const real *grad_second,
                                     ix add, real *d_x, double *partial, real *d_vectors, int threads) {
    ix chunks = chunk_count(rows, rows * heads * channels), width = heads * channels;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && chunks >= PARALLEL_CHUNKS)
    for (ix chunk = 0; chunk < chunks; chunk++) {
        double *total = partial + chunk * 2 * width;
        real by_first[width], by_second[width];
        ix left = LONG_RUN, end = even_start(rows, chunk + 1, chunks);
        clear(by_first, width);
        clear(by_second, width);
        for (ix c = 0; c < 2 * width; c++) total[c] = 0;
        for (ix n = even_start(rows, chunk, chunks); n < end; n++) {
            for (ix h = 0; h < heads; h++) {
                const real *row = x + n * width + h * channels;
                real a = grad_first != NULL ? grad_first[n * heads + h] : 0;
                int both = n < second_rows;
                real b = both && grad_second != NULL ? grad_second[n * heads + h] : 0;
                add_scaled(by_first + h * channels, a, row, channels);
                if (both) add_scaled(by_second + h * channels, b, row, channels);
                if (d_x == NULL) continue;
                real *to = d_x + n * width + h * channels;
                if (add) add_scaled(to, a, first + h * channels, channels);
                else set_scaled(to, a, first + h * channels, channels);
                if (both) add_scaled(to, b, second + h * channels, channels);
            }
            if (--left > 0 && n + 1 < end) continue;
            for (ix c = 0; c < width; c++) {
                total[c] += (double)by_first[c], total[width + c] += (double)by_second[c];
                by_first[c] = by_second[c] = 0;
            }
            left = LONG_RUN;
        }
    }
    fold(partial, chunks, 2 * width, d_vectors);
}
