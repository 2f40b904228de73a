/* What every kernel shares: the real type, chunks of work, dropout by hash, exp.
 *
 * The kernels are plain C11 with OpenMP: no Python, no PyTorch, pointers in and out. Each file is written for
 * one `real` and compiled twice (float32.c, float64.c). Two rules hold everywhere:
 *  - work is cut into chunks by the data alone, never by the number of threads, and no two threads write the
 *    same place, so results are the same bits at any thread count; the chunks of a thread follow one another, the same
 *    in each call (`schedule(static)`), because fetching from another core's cache what it wrote costs more than waiting;
 *  - the order of additions is fixed by the source (`omp simd` reductions included): no -ffast-math.
 */
#ifndef CONJOINT_COMMON_H
#define CONJOINT_COMMON_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int64_t ix;

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Floats of work below which a second chunk costs more than it gives, and the most chunks there can be. */
enum { CHUNK_WORK = 16384, MAX_CHUNKS = 64 };
/* Chunks from which on more than one thread is worth waking: a busy machine may be slow to wake them. */
enum { PARALLEL_CHUNKS = 6 };

ALWAYS_INLINE ix smaller(ix a, ix b) { return a < b ? a : b; }

ALWAYS_INLINE ix chunk_count(ix rows, ix work) {
    ix chunks = 1 + work / CHUNK_WORK;
    return smaller(smaller(chunks, MAX_CHUNKS), rows > 0 ? rows : 1);
}

/* First row of a chunk when rows are alike. */
ALWAYS_INLINE ix even_start(ix rows, ix chunk, ix chunks) {
    return rows / chunks * chunk + smaller(rows % chunks, chunk);
}

/* First row of a chunk when a row costs 1 + its entries: the smallest r with rowptr[r] + r >= share. */
static inline ix row_start(const ix *rowptr, ix rows, ix chunk, ix chunks) {
    if (chunk >= chunks) return rows;
    ix total = rowptr[rows] + rows;
    ix share = total / chunks * chunk + smaller(total % chunks, chunk);
    ix low = 0, high = rows;
    while (low < high) {
        ix middle = low + (high - low) / 2;
        if (rowptr[middle] + middle < share) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Short rows are taken together, so that work on their entries fills whole vectors: the row after the last that
 * joins row i. Each of them has at most `most` entries, all together twice as many; at least one row. */
ALWAYS_INLINE ix rows_together(const ix *rowptr, ix i, ix end, ix most) {
    ix after = i + 1;
    while (after < end && rowptr[after] - rowptr[i] <= most && rowptr[after + 1] - rowptr[after] <= most) after++;
    return after;
}

/* Dropout: a place is kept when hash(seed, place) >= threshold; the same function as nn/ops/activation.py. */
typedef struct {
    uint32_t low, high, threshold;
    int on;
} Mask;

ALWAYS_INLINE Mask make_mask(const ix *seed, ix threshold) {
    Mask mask = {0, 0, 0, 0};
    if (seed != NULL) {
        mask.low = (uint32_t)(uint64_t)*seed;
        mask.high = (uint32_t)((uint64_t)*seed >> 32);
        mask.threshold = (uint32_t)threshold;
        mask.on = 1;
    }
    return mask;
}

ALWAYS_INLINE uint32_t mix_word(uint32_t word) {
    word ^= word >> 16;
    word *= 0x7FEB352Du;
    word ^= word >> 15;
    word *= 0x846CA68Bu;
    return word ^ (word >> 16);
}

ALWAYS_INLINE int kept(Mask mask, uint64_t place) {
    uint32_t word = mix_word((uint32_t)place ^ mask.low);
    return mix_word(word ^ (uint32_t)(place >> 32) ^ mask.high) >= mask.threshold;
}

/* 1 where a place is kept, else 0, for `count` places from `first` on. */
static inline void keep_run(Mask mask, uint64_t first, ix count, uint32_t *out) {
    uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32) ^ mask.high;
    if ((uint64_t)low + (uint64_t)count > ((uint64_t)1 << 32))
        for (ix i = 0; i < count; i++) out[i] = (uint32_t)kept(mask, first + (uint64_t)i);
    else
        for (ix i = 0; i < count; i++)
            out[i] = mix_word(mix_word((low + (uint32_t)i) ^ mask.low) ^ high) >= mask.threshold;
}

#endif
