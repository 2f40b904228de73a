/* Dense products with vectors of 64 bytes, which the BLAS behind torch does not use on every processor that has them:
 * there they are twice as fast. Called only where the processor has AVX-512 (kernels/library.py).
 *
 * The sums are those of MKL in its reproducible AVX2 order, which the rest of a network uses: blocks of up to DEPTH
 * terms, each added one by one with fused multiply-adds, then block to block. So the bits are the same. */
#if defined(__AVX2__) && defined(__x86_64__)

#define WIDE __attribute__((target("avx512f")))
enum { DEPTH = 192, TILE_ROWS = 12, VECTOR = 64 / sizeof(real), TILE_COLUMNS = 2 * VECTOR, BLOCK_ROWS = 8 * TILE_ROWS };
typedef real wide __attribute__((vector_size(64), aligned(sizeof(real)), may_alias));

/* A product a b of [rows, depth] and [depth, columns]; a is read with any two steps, b and c row by row. */
typedef struct {
    const real *a, *b;
    ix a_row, a_step, rows, columns, depth;
    real *c;
} NAME(Product);

ALWAYS_INLINE ix depth_block(ix depth) { return depth <= DEPTH ? depth : depth <= 2 * DEPTH ? depth / 2 : DEPTH; }

/* c = a b, or c += a b, for one tile; b is packed, [depth, TILE_COLUMNS]. */
WIDE ALWAYS_INLINE void multiply_tile(const real *a, ix a_row, ix a_step, const real *b, ix depth, real *c, ix c_row,
                                      int add) {
    wide sum[TILE_ROWS][2];
    const real *every_third[TILE_ROWS / 3]; /* few enough to stay in registers */
    for (int r = 0; r < TILE_ROWS; r++) sum[r][0] = sum[r][1] = (wide){0};
    for (int r = 0; r < TILE_ROWS / 3; r++) every_third[r] = a + 3 * r * a_row;
    for (ix p = 0; p < depth; p++) {
        wide left = *(const wide *)(b + p * TILE_COLUMNS), right = *(const wide *)(b + p * TILE_COLUMNS + VECTOR);
#pragma GCC unroll 12
        for (int r = 0; r < TILE_ROWS; r++) {
            real from = every_third[r / 3][r % 3 * a_row];
            sum[r][0] += from * left, sum[r][1] += from * right;
        }
#pragma GCC unroll 4
        for (int r = 0; r < TILE_ROWS / 3; r++) every_third[r] += a_step;
    }
#pragma GCC unroll 12
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
            wide *to = (wide *)(c + r * c_row + v * VECTOR);
            if (add) sum[r][v] += *to;
            *to = sum[r][v];
        }
}

/* Rows of a at the edge, copied with zeros after them, into and out of a tile of c of their own. */
WIDE static void multiply_edge(const NAME(Product) * in, ix i, ix rows, ix p0, ix depth, const real *b, ix j, ix columns) {
    real a[TILE_ROWS * DEPTH], c[TILE_ROWS * TILE_COLUMNS];
    clear(a, TILE_ROWS * DEPTH);
    for (ix r = 0; r < rows; r++)
        for (ix p = 0; p < depth; p++) a[r * DEPTH + p] = in->a[(i + r) * in->a_row + (p0 + p) * in->a_step];
    for (ix r = 0; r < rows && p0 > 0; r++)
        memcpy(c + r * TILE_COLUMNS, in->c + (i + r) * in->columns + j, (size_t)columns * sizeof(real));
    multiply_tile(a, DEPTH, 1, b, depth, c, TILE_COLUMNS, p0 > 0);
    for (ix r = 0; r < rows; r++)
        memcpy(in->c + (i + r) * in->columns + j, c + r * TILE_COLUMNS, (size_t)columns * sizeof(real));
}

/* One panel of columns for rows begin .. end. */
WIDE static void multiply_panel(const NAME(Product) * in, ix begin, ix end, ix j) {
    real b[DEPTH * TILE_COLUMNS];
    ix columns = smaller(TILE_COLUMNS, in->columns - j), most = depth_block(in->depth);
    for (ix p0 = 0; p0 < in->depth; p0 += most) {
        ix depth = smaller(most, in->depth - p0);
        for (ix p = 0; p < depth; p++) {
            const real *from = in->b + (p0 + p) * in->columns + j;
            if (in->a_row == 1) { /* a deep product: what the next block reads is asked for now */
                ix next = smaller(p0 + most + p, in->depth - 1);
                fetch(in->b + next * in->columns + j, columns);
                fetch(in->a + begin + next * in->a_step, end - begin);
            }
            if (columns == TILE_COLUMNS) memcpy(b + p * TILE_COLUMNS, from, TILE_COLUMNS * sizeof(real));
            else
                for (ix k = 0; k < TILE_COLUMNS; k++) b[p * TILE_COLUMNS + k] = k < columns ? from[k] : 0;
        }
        for (ix i = begin; i < end; i += TILE_ROWS) {
            const real *a = in->a + i * in->a_row + p0 * in->a_step;
            real *c = in->c + i * in->columns + j;
            if (end - i < TILE_ROWS || columns < TILE_COLUMNS)
                multiply_edge(in, i, smaller(TILE_ROWS, end - i), p0, depth, b, j, columns);
            else if (in->a_row == 1) multiply_tile(a, 1, in->a_step, b, depth, c, in->columns, p0 > 0);
            else multiply_tile(a, in->a_row, 1, b, depth, c, in->columns, p0 > 0);
        }
    }
}

/* c = a b; with `a_turned` a is stored as [depth, rows], with `b_turned` b as [columns, depth], and then `turned` is a
 * buffer of its size. */
EXPORT void NAME(product)(const real *a, const real *b, ix rows, ix columns, ix depth, ix a_turned, ix b_turned,
                          real *turned, real *c, int threads) {
    if (b_turned) transpose(b, columns, depth, turned, threads);
    NAME(Product) in = {a, b_turned ? turned : b, a_turned ? 1 : depth, a_turned ? rows : 1, rows, columns, depth, c};
    ix blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS, panels = (columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && rows * columns * depth > 64 * CHUNK_WORK)
    for (ix task = 0; task < blocks * panels; task++) {
        ix begin = task / panels * BLOCK_ROWS;
        multiply_panel(&in, begin, smaller(begin + BLOCK_ROWS, rows), task % panels * TILE_COLUMNS);
    }
}

#endif
