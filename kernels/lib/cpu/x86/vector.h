// The words of vector.h in AVX2: eight lanes are one register.
#pragma once
#include <immintrin.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t mask8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef double f64x4 __attribute__((vector_size(32)));
typedef struct { f64x4 lo, hi; } f64x8;

INLINE f32x8 set8(float x) { return (f32x8)_mm256_set1_ps(x); }
INLINE f32x8 load8(const float *p) { return (f32x8)_mm256_loadu_ps(p); }
INLINE void store8(float *p, f32x8 x) { _mm256_storeu_ps(p, (__m256)x); }
INLINE float first_of8(f32x8 x) { return x[0]; }
INLINE f32x8 neg8(f32x8 x) { return -x; }
INLINE f32x8 add8(f32x8 x, f32x8 y) { return x + y; }
INLINE f32x8 sub8(f32x8 x, f32x8 y) { return x - y; }
INLINE f32x8 mul8(f32x8 x, f32x8 y) { return x * y; }
INLINE f32x8 div8(f32x8 x, f32x8 y) { return x / y; }
// x·y + z, rounded once.
INLINE f32x8 fma8(f32x8 x, f32x8 y, f32x8 z) { return (f32x8)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z); }
// The larger or the smaller of each lane; y where either is not a number.
INLINE f32x8 max8(f32x8 x, f32x8 y) { return (f32x8)_mm256_max_ps((__m256)x, (__m256)y); }
INLINE f32x8 min8(f32x8 x, f32x8 y) { return (f32x8)_mm256_min_ps((__m256)x, (__m256)y); }
// The nearest whole number, the even one of two.
INLINE f32x8 round8(f32x8 x) { return (f32x8)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// x·2^n for whole n, by two factors, because 2^n alone leaves the range of f32 where the result need not.
INLINE f32x8 times_power8(f32x8 x, f32x8 n) {
    const mask8 whole = (mask8)_mm256_cvtps_epi32((__m256)n), half = whole >> 1;
    return x * (f32x8)((half + 127) << 23) * (f32x8)((whole - half + 127) << 23);
}

INLINE mask8 less8(f32x8 x, f32x8 y) { return x < y; }
INLINE mask8 at_least8(f32x8 x, f32x8 y) { return x >= y; }
INLINE mask8 equal8(f32x8 x, f32x8 y) { return x == y; }
INLINE mask8 finite8(f32x8 x) { return (mask8)((u32x8)x & 0x7fffffff) < 0x7f800000; }
INLINE mask8 and8(mask8 x, mask8 y) { return x & y; }
INLINE mask8 or8(mask8 x, mask8 y) { return x | y; }
// y where the lane of mask is all ones, x where it is zero.
INLINE f32x8 pick8(mask8 mask, f32x8 x, f32x8 y) { return (f32x8)_mm256_blendv_ps((__m256)x, (__m256)y, (__m256)mask); }
// Lane i is all ones if bit i is set, and back.
INLINE mask8 mask_of8(uint32_t bits) {
    const mask8 bit = {1, 2, 4, 8, 16, 32, 64, 128};
    return ((int32_t)bits & bit) == bit;
}
INLINE int bits_of8(mask8 mask) { return _mm256_movemask_ps((__m256)mask); }
// All ones in the lanes i with first+i > n.
INLINE mask8 beyond8(int32_t first, int32_t n) {
    const mask8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return lane + first > n;
}
// All ones in the first n lanes.
INLINE mask8 first8(int n) {
    const mask8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return lane < n;
}
INLINE f32x8 load_first8(const float *p, int n) { return (f32x8)_mm256_maskload_ps(p, (__m256i)first8(n)); }
INLINE void store_first8(float *p, f32x8 x, int n) { _mm256_maskstore_ps(p, (__m256i)first8(n), (__m256)x); }

INLINE float largest(f32x8 x) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}
// ((l0+l2)+(l1+l3)) + ((l4+l6)+(l5+l7)).
INLINE float sum8(f32x8 x) { return ((x[0] + x[2]) + (x[1] + x[3])) + ((x[4] + x[6]) + (x[5] + x[7])); }
// Lane pairs of two sums, interleaved: the first step of sum8 for two vectors.
INLINE f32x8 sum_pairs(f32x8 x, f32x8 y) {
    return (f32x8)_mm256_unpacklo_ps((__m256)x, (__m256)y) + (f32x8)_mm256_unpackhi_ps((__m256)x, (__m256)y);
}
// Stores sum8 of four vectors, from sum_pairs of the first two and of the last two.
INLINE void store_sums4(float *p, f32x8 x, f32x8 y) {
    const f32x8 s = (f32x8)_mm256_shuffle_ps((__m256)x, (__m256)y, 0x44) + (f32x8)_mm256_shuffle_ps((__m256)x, (__m256)y, 0xee);
    _mm_storeu_ps(p, _mm_add_ps(_mm256_castps256_ps128((__m256)s), _mm256_extractf128_ps((__m256)s, 1)));
}

#ifdef __AVX512DQ__
#define HAS_TWINS
enum { kTwinRegisters = 1 };
typedef __m512 twin;

INLINE twin twin_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE twin twin_same(const float *p) { return _mm512_broadcast_f32x8(_mm256_loadu_ps(p)); }
INLINE twin twin_set(float x) { return _mm512_set1_ps(x); }
INLINE void twin_store(float *p, twin x) { _mm512_storeu_ps(p, x); }
INLINE twin twin_fma(twin x, twin y, twin z) { return _mm512_fmadd_ps(x, y, z); }
INLINE f32x8 twin_first(twin x) { return (f32x8)_mm512_castps512_ps256(x); }
INLINE f32x8 twin_second(twin x) { return (f32x8)_mm512_extractf32x8_ps(x, 1); }
INLINE twin twin_sum_pairs(twin x, twin y) { return _mm512_add_ps(_mm512_unpacklo_ps(x, y), _mm512_unpackhi_ps(x, y)); }
#endif

INLINE f64x8 add_squares8(f64x8 sum, f32x8 x) {
    const f64x4 lo = (f64x4)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x)), hi = (f64x4)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1));
    return (f64x8){sum.lo + lo * lo, sum.hi + hi * hi};
}
INLINE double sum8_f64(f64x8 x) {
    return ((x.lo[0] + x.lo[2]) + (x.lo[1] + x.lo[3])) + ((x.hi[0] + x.hi[2]) + (x.hi[1] + x.hi[3]));
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
INLINE f32x8 load8_f16(const uint16_t *p) { return (f32x8)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE void store8_f16(uint16_t *p, f32x8 x) { _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT)); }
