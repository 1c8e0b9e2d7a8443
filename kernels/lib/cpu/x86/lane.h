// The words of lane.h: sixteen lanes are one AVX-512 register or two AVX2 registers.
#pragma once
#include "lib/cpu/vector.h"

#ifdef __AVX512BW__
typedef __m512 f32x16;
typedef __m512i i32x16;

INLINE f32x16 f32x16_zero(void) { return _mm512_setzero_ps(); }
INLINE f32x16 f32x16_set(float x) { return _mm512_set1_ps(x); }
INLINE f32x16 f32x16_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE void f32x16_store(float *p, f32x16 x) { _mm512_storeu_ps(p, x); }
INLINE f32x16 f32x16_mul(f32x16 x, f32x16 y) { return _mm512_mul_ps(x, y); }
INLINE f32x16 f32x16_fma(f32x16 x, f32x16 y, f32x16 z) { return _mm512_fmadd_ps(x, y, z); }
INLINE f32x16 f32x16_halves(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE f32x16 f32x16_ints(i32x16 x) { return _mm512_cvtepi32_ps(x); }
INLINE f32x16 f32x16_bits(i32x16 x) { return _mm512_castsi512_ps(x); }

INLINE i32x16 i32x16_zero(void) { return _mm512_setzero_si512(); }
INLINE i32x16 i32x16_set(int32_t x) { return _mm512_set1_epi32(x); }
INLINE i32x16 i32x16_load(const uint32_t *p) { return _mm512_loadu_si512(p); }
INLINE i32x16 i32x16_add(i32x16 x, i32x16 y) { return _mm512_add_epi32(x, y); }
INLINE i32x16 i32x16_and(i32x16 x, i32x16 y) { return _mm512_and_si512(x, y); }
INLINE i32x16 i32x16_or(i32x16 x, i32x16 y) { return _mm512_or_si512(x, y); }
INLINE i32x16 i32x16_left(i32x16 x, int bits) { return _mm512_slli_epi32(x, bits); }
INLINE i32x16 i32x16_right(i32x16 x, int bits) { return _mm512_srli_epi32(x, bits); }
INLINE i32x16 i32x16_right_signed(i32x16 x, int bits) { return _mm512_srai_epi32(x, bits); }
INLINE i32x16 i32x16_lookup(const uint8_t *table, i32x16 x) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)table)), x);
}

INLINE f32x16 f32x16_of_halves(__m256i x) { return _mm512_cvtph_ps(x); }
#else
typedef struct { __m256 lo, hi; } f32x16;
typedef struct { __m256i lo, hi; } i32x16;

INLINE f32x16 f32x16_zero(void) { return (f32x16){_mm256_setzero_ps(), _mm256_setzero_ps()}; }
INLINE f32x16 f32x16_set(float x) {
    const __m256 v = _mm256_set1_ps(x);
    return (f32x16){v, v};
}
INLINE f32x16 f32x16_load(const float *p) { return (f32x16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
INLINE void f32x16_store(float *p, f32x16 x) {
    _mm256_storeu_ps(p, x.lo);
    _mm256_storeu_ps(p + 8, x.hi);
}
INLINE f32x16 f32x16_mul(f32x16 x, f32x16 y) { return (f32x16){_mm256_mul_ps(x.lo, y.lo), _mm256_mul_ps(x.hi, y.hi)}; }
INLINE f32x16 f32x16_fma(f32x16 x, f32x16 y, f32x16 z) {
    return (f32x16){_mm256_fmadd_ps(x.lo, y.lo, z.lo), _mm256_fmadd_ps(x.hi, y.hi, z.hi)};
}
INLINE f32x16 f32x16_halves(const uint16_t *p) {
    return (f32x16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)), _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)))};
}
INLINE f32x16 f32x16_ints(i32x16 x) { return (f32x16){_mm256_cvtepi32_ps(x.lo), _mm256_cvtepi32_ps(x.hi)}; }
INLINE f32x16 f32x16_bits(i32x16 x) { return (f32x16){_mm256_castsi256_ps(x.lo), _mm256_castsi256_ps(x.hi)}; }

INLINE i32x16 i32x16_zero(void) { return (i32x16){_mm256_setzero_si256(), _mm256_setzero_si256()}; }
INLINE i32x16 i32x16_set(int32_t x) {
    const __m256i v = _mm256_set1_epi32(x);
    return (i32x16){v, v};
}
INLINE i32x16 i32x16_load(const uint32_t *p) {
    return (i32x16){_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)(p + 8))};
}
INLINE i32x16 i32x16_add(i32x16 x, i32x16 y) { return (i32x16){_mm256_add_epi32(x.lo, y.lo), _mm256_add_epi32(x.hi, y.hi)}; }
INLINE i32x16 i32x16_and(i32x16 x, i32x16 y) { return (i32x16){_mm256_and_si256(x.lo, y.lo), _mm256_and_si256(x.hi, y.hi)}; }
INLINE i32x16 i32x16_or(i32x16 x, i32x16 y) { return (i32x16){_mm256_or_si256(x.lo, y.lo), _mm256_or_si256(x.hi, y.hi)}; }
INLINE i32x16 i32x16_left(i32x16 x, int bits) { return (i32x16){_mm256_slli_epi32(x.lo, bits), _mm256_slli_epi32(x.hi, bits)}; }
INLINE i32x16 i32x16_right(i32x16 x, int bits) { return (i32x16){_mm256_srli_epi32(x.lo, bits), _mm256_srli_epi32(x.hi, bits)}; }
INLINE i32x16 i32x16_right_signed(i32x16 x, int bits) { return (i32x16){_mm256_srai_epi32(x.lo, bits), _mm256_srai_epi32(x.hi, bits)}; }
INLINE i32x16 i32x16_lookup(const uint8_t *table, i32x16 x) {
    const __m256i both = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)table));
    return (i32x16){_mm256_shuffle_epi8(both, x.lo), _mm256_shuffle_epi8(both, x.hi)};
}

INLINE f32x16 f32x16_of_halves(__m256i x) {
    return (f32x16){_mm256_cvtph_ps(_mm256_castsi256_si128(x)), _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1))};
}
#endif

// An e4m3 byte is a half without the upper bit of the exponent and most of the fraction.
INLINE f32x16 f32x16_positive_e4m3(const uint8_t *p) {
    return f32x16_of_halves(_mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p)), 7));
}
// Of pairs whose upper byte is such a byte.
INLINE f32x16 f32x16_upper_e4m3(__m256i pairs) {
    return f32x16_of_halves(_mm256_and_si256(_mm256_srai_epi16(pairs, 1), _mm256_set1_epi16((short)0xbf80)));
}
INLINE void f32x16_pairs_e4m3(const uint16_t *p, f32x16 *lower, f32x16 *upper) {
    const __m256i pairs = _mm256_loadu_si256((const __m256i *)p);
    *lower = f32x16_upper_e4m3(_mm256_slli_epi16(pairs, 8));
    *upper = f32x16_upper_e4m3(pairs);
}

static inline float half_to_f32(uint16_t h) { return _cvtsh_ss(h); }
