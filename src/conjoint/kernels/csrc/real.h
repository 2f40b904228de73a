/* Helpers in the precision of the file that includes this one: exp, dropped copies, small vector loops. */

#define SIMD _Pragma("omp simd")

#ifdef REAL_IS_FLOAT
typedef float real;
typedef uint32_t bits;
#define NAME(function) function##_f32
#define ROUNDER 12582912.0f /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
#define LOG2_E 1.44269504088896341f
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f
#define EXPONENT_BIAS 127u
#define MANTISSA_BITS 23
#define EXP_LOWEST -87.0f
#define EXP_HIGHEST 88.0f
#else
typedef double real;
typedef uint64_t bits;
#define NAME(function) function##_f64
#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52 */
#define LOG2_E 1.44269504088896340736
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define EXPONENT_BIAS 1023u
#define MANTISSA_BITS 52
#define EXP_LOWEST -708.0
#define EXP_HIGHEST 709.0
#endif

/* exp(x) - 1 = scale * tail + (scale - 1), where x = n ln 2 + r, scale = 2^n, tail = exp(r) - 1.
 * The Taylor series in |r| <= ln(2) / 2 is cut where its next term is below half a unit in the last place. */
typedef struct {
    real scale, tail;
} ExpParts;

ALWAYS_INLINE ExpParts exp_parts(real x) {
    x = x < (real)EXP_LOWEST ? (real)EXP_LOWEST : x;
    x = x > (real)EXP_HIGHEST ? (real)EXP_HIGHEST : x;
    real shifted = x * (real)LOG2_E + (real)ROUNDER;
    real n = shifted - (real)ROUNDER;
    real r = (x - n * (real)LN2_HIGH) - n * (real)LN2_LOW;
#ifdef REAL_IS_FLOAT
    real p = (real)(1.0 / 5040);
#else
    real p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
#endif
    p = p * r + (real)(1.0 / 720);
    p = p * r + (real)(1.0 / 120);
    p = p * r + (real)(1.0 / 24);
    p = p * r + (real)(1.0 / 6);
    p = p * r + (real)0.5;
    /* The low bits of `shifted` are n: move them to the exponent. Unsigned, so a NaN input is not undefined. */
    real rounder = (real)ROUNDER;
    bits word, zero;
    memcpy(&word, &shifted, sizeof word);
    memcpy(&zero, &rounder, sizeof zero);
    word = (word - zero + EXPONENT_BIAS) << MANTISSA_BITS;
    ExpParts parts;
    memcpy(&parts.scale, &word, sizeof word);
    parts.tail = r + r * r * p;
    return parts;
}

/* exp for x <= 0; exactly 0 far below, so that a logit of -inf gets no weight. */
ALWAYS_INLINE real exp_real(real x) {
    ExpParts parts = exp_parts(x);
    real value = parts.scale + parts.scale * parts.tail;
    return x < (real)EXP_LOWEST ? (real)0 : value;
}

ALWAYS_INLINE real expm1_real(real x) {
    ExpParts parts = exp_parts(x);
    return parts.scale * parts.tail + (parts.scale - (real)1);
}

/* out = in * (kept ? scale : 0) for places first .. first + count; all are kept when the mask is off.
 * Cut at multiples of 2^32, so that the loop works on 32-bit lanes. `out` may be `in`. */
ALWAYS_INLINE void drop_run(Mask mask, real scale, uint64_t first, ix count, const real *in, real *out) {
    if (!mask.on) {
        if (scale != 1) {
            SIMD for (ix i = 0; i < count; i++) out[i] = in[i] * scale;
        } else if (in != out) memcpy(out, in, (size_t)count * sizeof(real));
        return;
    }
    while (count > 0) {
        uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32) ^ mask.high;
        ix room = (ix)(((uint64_t)1 << 32) - low), run = smaller(count, room);
        SIMD for (ix i = 0; i < run; i++) {
            uint32_t word = mix_word(mix_word((low + (uint32_t)i) ^ mask.low) ^ high);
            out[i] = in[i] * (word >= mask.threshold ? scale : (real)0);
        }
        first += (uint64_t)run, in += run, out += run, count -= run;
    }
}

/* What drop_run would multiply by: scale where kept, 0 where dropped. */
ALWAYS_INLINE void mask_run(Mask mask, real scale, uint64_t first, ix count, real *out) {
    uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32) ^ mask.high;
    if (!mask.on) {
        SIMD for (ix i = 0; i < count; i++) out[i] = scale;
    } else if ((uint64_t)low + (uint64_t)count <= ((uint64_t)1 << 32)) {
        SIMD for (ix i = 0; i < count; i++) {
            uint32_t word = mix_word(mix_word((low + (uint32_t)i) ^ mask.low) ^ high);
            out[i] = word >= mask.threshold ? scale : (real)0;
        }
    } else
        for (ix i = 0; i < count; i++) out[i] = kept(mask, first + (uint64_t)i) ? scale : (real)0;
}

/* mask_run for places that do not follow one another. */
ALWAYS_INLINE void mask_places(Mask mask, real scale, const ix *place, ix count, real *out) {
    if (!mask.on) {
        SIMD for (ix i = 0; i < count; i++) out[i] = scale;
        return;
    }
    SIMD for (ix i = 0; i < count; i++) {
        uint32_t low = (uint32_t)place[i], high = (uint32_t)((uint64_t)place[i] >> 32);
        uint32_t word = mix_word(mix_word(low ^ mask.low) ^ high ^ mask.high);
        out[i] = word >= mask.threshold ? scale : (real)0;
    }
}

ALWAYS_INLINE void add_scaled(real *restrict out, real weight, const real *restrict x, ix count) {
    SIMD for (ix c = 0; c < count; c++) out[c] += weight * x[c];
}

ALWAYS_INLINE void set_scaled(real *restrict out, real weight, const real *restrict x, ix count) {
    SIMD for (ix c = 0; c < count; c++) out[c] = weight * x[c];
}

/* Eight numbers side by side, in whatever registers there are. */
enum { LANES = 8 };
typedef real lanes __attribute__((vector_size(LANES * sizeof(real)), aligned(sizeof(real)), may_alias));

ALWAYS_INLINE const lanes *lanes_at(const real *x) { return (const lanes *)x; }

/* Added as a tree: three steps, not eight. */
ALWAYS_INLINE real sum_lanes(lanes v) {
    v = v + __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v = v + __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    return v[0] + v[1];
}

/* The sums of eight vectors at once, each added in the order of sum_lanes. */
ALWAYS_INLINE lanes sum_eight(const lanes *v) {
    lanes half[4], quarter[2];
    for (int k = 0; k < 4; k++)
        half[k] = __builtin_shufflevector(v[k], v[k + 4], 0, 1, 2, 3, 8, 9, 10, 11) +
                  __builtin_shufflevector(v[k], v[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    for (int k = 0; k < 2; k++)
        quarter[k] = __builtin_shufflevector(half[2 * k], half[2 * k + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
                     __builtin_shufflevector(half[2 * k], half[2 * k + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(quarter[0], quarter[1], 0, 2, 8, 10, 4, 6, 12, 14) +
           __builtin_shufflevector(quarter[0], quarter[1], 1, 3, 9, 11, 5, 7, 13, 15);
}

/* Each of `heads` vectors summed up. */
ALWAYS_INLINE void sum_each(const lanes *v, ix heads, real *sums) {
    if (heads == LANES) *(lanes *)sums = sum_eight(v);
    else
        for (ix h = 0; h < heads; h++) sums[h] = sum_lanes(v[h]);
}

typedef bits lane_bits __attribute__((vector_size(LANES * sizeof(real))));

/* A vector of which only the first `count` numbers belong to the head. Read whole unless the array ends before:
 * what follows is other data. */
ALWAYS_INLINE lanes load_part(const real *x, ix count, ix room) {
    if (room >= LANES) return *lanes_at(x);
    lanes part = {0};
    memcpy(&part, x, (size_t)count * sizeof(real));
    return part;
}

/* Four and more by two stores that may overlap: no loop, no call. */
ALWAYS_INLINE void store_part(real *to, lanes v, ix count) {
    enum { HALF = LANES / 2 };
    real from[LANES];
    *(lanes *)from = v;
    if (count == LANES) *(lanes *)to = v;
    else if (count >= HALF) {
        memcpy(to, from, HALF * sizeof(real));
        memcpy(to + count - HALF, from + count - HALF, HALF * sizeof(real));
    } else
        for (ix c = 0; c < count; c++) to[c] = from[c];
}

/* All bits of the first `count` numbers. */
ALWAYS_INLINE lane_bits first_places(ix count) {
    lane_bits place = {0, 1, 2, 3, 4, 5, 6, 7};
    return (lane_bits)(place < (bits)count);
}

/* a where all bits are set, else b. */
ALWAYS_INLINE lanes chosen(lane_bits keep, lanes a, lanes b) { return (lanes)(((lane_bits)a & keep) | ((lane_bits)b & ~keep)); }

ALWAYS_INLINE real largest_lane(lanes v) {
    lanes other = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v = chosen((lane_bits)(v > other), v, other), other = __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    v = chosen((lane_bits)(v > other), v, other);
    return v[0] > v[1] ? v[0] : v[1];
}

/* Zeros in place of other data, which in a product over channels would do harm. */
ALWAYS_INLINE lanes only(lanes v, lane_bits keep, ix count) {
    return count == LANES ? v : (lanes)((lane_bits)v & keep);
}

/* Number c of each of eight vectors side by side, in place c. */
ALWAYS_INLINE void turn_eight(lanes *v) {
    lanes pair[LANES], four[LANES];
    for (int k = 0; k < LANES; k += 2) {
        pair[k] = __builtin_shufflevector(v[k], v[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pair[k + 1] = __builtin_shufflevector(v[k], v[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int k = 0; k < LANES; k += 4)
        for (int half = 0; half < 2; half++) {
            four[k + 2 * half] = __builtin_shufflevector(pair[k + half], pair[k + 2 + half], 0, 1, 8, 9, 4, 5, 12, 13);
            four[k + 2 * half + 1] = __builtin_shufflevector(pair[k + half], pair[k + 2 + half], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int k = 0; k < LANES / 2; k++) {
        v[k] = __builtin_shufflevector(four[k], four[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        v[k + 4] = __builtin_shufflevector(four[k], four[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* The products of a and b over all whole vectors, of which sum_lanes makes <a, b>. */
ALWAYS_INLINE lanes dot_vectors(const real *restrict a, const real *restrict b, ix count) {
    lanes even = {0}, odd = {0};
    ix c = 0;
    /* Two sums side by side hide the latency of a multiply-add. */
    for (; c + 2 * LANES <= count; c += 2 * LANES) {
        even += *lanes_at(a + c) * *lanes_at(b + c);
        odd += *lanes_at(a + c + LANES) * *lanes_at(b + c + LANES);
    }
    for (; c + LANES <= count; c += LANES) even += *lanes_at(a + c) * *lanes_at(b + c);
    return even + odd;
}

ALWAYS_INLINE real dot(const real *restrict a, const real *restrict b, ix count) {
    real rest = 0;
    for (ix c = count / LANES * LANES; c < count; c++) rest += a[c] * b[c];
    return count < LANES ? rest : sum_lanes(dot_vectors(a, b, count)) + rest;
}

/* <g, x>, and sum += weight g, in one reading of g. */
ALWAYS_INLINE real dot_and_add(const real *restrict g, const real *restrict x, real weight, real *restrict sum,
                               ix count) {
    lanes product = {0};
    real rest = 0;
    ix c = 0;
    for (; c + LANES <= count; c += LANES) {
        lanes from = *lanes_at(g + c);
        product += from * *lanes_at(x + c);
        *(lanes *)(sum + c) += weight * from;
    }
    for (; c < count; c++) rest += g[c] * x[c], sum[c] += weight * g[c];
    return count < LANES ? rest : sum_lanes(product) + rest;
}

/* Whether any of the numbers is not 0. */
ALWAYS_INLINE int any_set(const real *x, ix count) {
    for (ix c = 0; c < count; c++)
        if (x[c] != 0) return 1;
    return 0;
}

ALWAYS_INLINE void clear(real *out, ix count) { memset(out, 0, (size_t)count * sizeof(real)); }

/* A hub's sum of 10^5 terms would lose digits in single precision: after every LONG_RUN terms a long row is
 * spilled into doubles. Only for rows of up to SPILL_WIDTH numbers, which fit on the stack. */
enum { LONG_RUN = 128, SPILL_WIDTH = 4096 };

typedef struct {
    double *total;
    ix width, left;
} Spill;

ALWAYS_INLINE ix spill_width(ix width) { return width <= SPILL_WIDTH ? width : 1; }

ALWAYS_INLINE Spill start_spill(double *total, ix width, ix terms) {
    Spill spill = {total, width, LONG_RUN};
    if (terms <= LONG_RUN || width > SPILL_WIDTH) spill.total = NULL;
    else
        for (ix c = 0; c < width; c++) total[c] = 0;
    return spill;
}

ALWAYS_INLINE void after_term(Spill *spill, real *sum) {
    if (spill->total == NULL || --spill->left > 0) return;
    for (ix c = 0; c < spill->width; c++) spill->total[c] += (double)sum[c], sum[c] = 0;
    spill->left = LONG_RUN;
}

ALWAYS_INLINE void end_spill(const Spill *spill, real *sum) {
    if (spill->total == NULL) return;
    for (ix c = 0; c < spill->width; c++) sum[c] = (real)(spill->total[c] + (double)sum[c]);
}

/* out = the chunks' partial sums, added in order. */
static void fold(const double *partial, ix chunks, ix width, real *out) {
    for (ix c = 0; c < width; c++) {
        double sum = 0;
        for (ix chunk = 0; chunk < chunks; chunk++) sum += partial[chunk * width + c];
        out[c] = (real)sum;
    }
}

/* Entries ahead whose rows are asked for early: rows are read in an order that hardware cannot guess. */
enum { AHEAD = 12, FAR_AHEAD = 16 };

/* Whether a table of so many numbers is likely to lie beyond the nearest cache, or in that of another thread: then even a
 * short row is worth asking for, and earlier, as little work stands between two of them. */
ALWAYS_INLINE int lies_far(ix count) { return count > (1 << 16) / (ix)sizeof(real); }

ALWAYS_INLINE void fetch(const real *x, ix count) {
    for (ix c = 0; c < count && c < 1024 / (ix)sizeof(real); c += 64 / (ix)sizeof(real))
        __builtin_prefetch(x + c, 0, 3);
}
