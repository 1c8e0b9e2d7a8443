// Eight lanes of f32: the words that the bodies in op/ are written in.
//
// Lanes and the order of every sum are written out, so bits depend on neither the compiler nor the width of a
// register. A tail of fewer than eight elements goes through the same arithmetic with zeros in the unused lanes.
#pragma once
#include <assert.h>
#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { kWidth = 8 };
typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef double f64x4 __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))

INLINE f32x8 set8(float x) { return (f32x8)_mm256_set1_ps(x); }
INLINE f32x8 load8(const float *p) { return (f32x8)_mm256_loadu_ps(p); }
INLINE void store8(float *p, f32x8 x) { _mm256_storeu_ps(p, (__m256)x); }
INLINE f32x8 fma8(f32x8 x, f32x8 y, f32x8 z) { return (f32x8)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z); }
// The larger of each lane; y where either is not a number.
INLINE f32x8 max8(f32x8 x, f32x8 y) { return (f32x8)_mm256_max_ps((__m256)x, (__m256)y); }
// y where the lane of mask is all ones, x where it is zero.
INLINE f32x8 pick8(i32x8 mask, f32x8 x, f32x8 y) { return (f32x8)_mm256_blendv_ps((__m256)x, (__m256)y, (__m256)mask); }

// All ones in the first n lanes.
INLINE i32x8 first8(int n) {
    const i32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return lane < n;
}
INLINE f32x8 load_first8(const float *p, int n) { return (f32x8)_mm256_maskload_ps(p, (__m256i)first8(n)); }
INLINE void store_first8(float *p, f32x8 x, int n) { _mm256_maskstore_ps(p, (__m256i)first8(n), (__m256)x); }

// Up to eight elements: all lanes where n allows, else the first n and zeros.
INLINE f32x8 load_up_to8(const float *p, int n) { return n >= kWidth ? load8(p) : load_first8(p, n); }
INLINE void store_up_to8(float *p, f32x8 x, int n) {
    if (n >= kWidth)
        store8(p, x);
    else
        store_first8(p, x, n);
}

INLINE float largest(f32x8 x) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}
// ((l0+l2)+(l1+l3)) + ((l4+l6)+(l5+l7)).
INLINE float sum8(f32x8 x) { return ((x[0] + x[2]) + (x[1] + x[3])) + ((x[4] + x[6]) + (x[5] + x[7])); }

// e to the power of each lane, within two units in the last place; subnormal results and infinities included.
// The polynomial is the minimax one of degree 6 on [-ln2/2, ln2/2] whose two lowest coefficients are 1.
INLINE f32x8 exp8(f32x8 x) {
    x = (f32x8)_mm256_max_ps(_mm256_set1_ps(-104.0f), _mm256_min_ps(_mm256_set1_ps(89.0f), (__m256)x));
    const f32x8 n = (f32x8)_mm256_round_ps((__m256)(x * 1.44269504f), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    f32x8 r = fma8(n, set8(-0.693359375f), x);
    r = fma8(n, set8(2.12194440e-4f), r);
    f32x8 p = set8(1.38145986e-3f);
    p = fma8(p, r, set8(8.36871688e-3f));
    p = fma8(p, r, set8(4.16683880e-2f));
    p = fma8(p, r, set8(1.66665206e-1f));
    p = fma8(p, r, set8(4.99999934e-1f));
    p = fma8(p, r * r, r) + 1.0f;
    // Two factors, because 2^n alone leaves the range of f32 where the result need not.
    const i32x8 whole = (i32x8)_mm256_cvtps_epi32((__m256)n), half = whole >> 1;
    return p * (f32x8)((half + 127) << 23) * (f32x8)((whole - half + 127) << 23);
}

// bf16 is the upper half of an f32.
INLINE f32x8 load8_bf16(const uint16_t *p) {
    return (f32x8)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16);
}
// One rounding to nearest even; what is not a number stays so.
INLINE void store8_bf16(uint16_t *p, f32x8 x) {
    const u32x8 bits = (u32x8)x;
    const u32x8 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    const __m256i h = _mm256_blendv_epi8((__m256i)rounded, (__m256i)quiet, (__m256i)(x != x));
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
}
INLINE f32x8 load_up_to8_bf16(const uint16_t *p, int n) {
    if (n >= kWidth) return load8_bf16(p);
    uint16_t part[kWidth] = {0};
    for (int i = 0; i < n; i++) part[i] = p[i];
    return load8_bf16(part);
}
INLINE void store_up_to8_bf16(uint16_t *p, f32x8 x, int n) {
    if (n >= kWidth) {
        store8_bf16(p, x);
        return;
    }
    uint16_t part[kWidth];
    store8_bf16(part, x);
    for (int i = 0; i < n; i++) p[i] = part[i];
}

// 1/√(mean of squares + eps), summed in f64: eight lanes, the lower four and the upper four apart, then as sum8.
INLINE float inverse_rms(const float *x, int n, float eps) {
    f64x4 lower = {0}, upper = {0};
    for (int c = 0; c < n; c += kWidth) {
        const __m256 v = (__m256)load_up_to8(x + c, n - c);
        const f64x4 a = (f64x4)_mm256_cvtps_pd(_mm256_castps256_ps128(v)), b = (f64x4)_mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
        lower += a * a;
        upper += b * b;
    }
    const double squares = ((lower[0] + lower[2]) + (lower[1] + lower[3])) + ((upper[0] + upper[2]) + (upper[1] + upper[3]));
    return (float)(1 / sqrt(squares / n + (double)eps));
}
