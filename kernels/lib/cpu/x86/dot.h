// The words of dot.h, by whatever multiplies bytes.
#pragma once

// Rows of a tile, and of one that spans two panels.
#ifdef __AVX512BW__
enum { kTileRows = 8, kPairRows = 8 };
#else
enum { kTileRows = 4, kPairRows = 0 };
#endif

// How far the loop over a block's words is unrolled: gcc copies sums around a loop.
#ifdef __AVX512VNNI__
enum { kUnroll = 8 };
#else
enum { kUnroll = 4 };
#endif

// gcc makes the products of all rows before it adds any, and runs out of registers: sums that it has to have now stop it.
#ifdef __AVX512BW__
#define HAVE(sum) __asm__ volatile("" : "+v"(sum))
#else
#define HAVE(sum) __asm__ volatile("" : "+x"(sum.lo), "+x"(sum.hi))
#endif

// Whether unsigned weights have two sums of 16 bits, and what sums begin with, times the codes.
#ifdef __AVX512VNNI__
enum { kInPairs = 0, kDotOffset = kIsQ8_0 ? 128 : kOffset };  // signed weights enter with 128 added
#else
enum { kInPairs = 1, kDotOffset = kOffset };
#endif

#ifdef __AVX512VNNI__
INLINE i32x16 dot_bytes(i32x16 sum, i32x16 w, i32x16 x) {
    return _mm512_dpbusd_epi32(sum, _mm512_xor_si512(w, _mm512_set1_epi8(-128)), x);
}
INLINE i32x16 dot_codes(i32x16 sum, i32x16 w, i32x16 x) { return _mm512_dpbusd_epi32(sum, w, x); }
INLINE i32x16 dot_end(i32x16 sum) { return sum; }
INLINE i32x16 dot_factor(i32x16 x) { return x; }
INLINE i32x16 dot_end_times(i32x16 sum, i32x16 factor) { return _mm512_mullo_epi32(sum, factor); }
#elif defined __AVX512BW__
INLINE i32x16 dot_bytes(i32x16 sum, i32x16 w, i32x16 x) {
    const __m512i turned = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(w), turned);
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
    HAVE(sum);
    return sum;
}
INLINE i32x16 dot_codes(i32x16 sum, i32x16 w, i32x16 x) {
    sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(w, x));
    HAVE(sum);
    return sum;
}
INLINE i32x16 dot_end(i32x16 sum) { return _mm512_madd_epi16(sum, _mm512_set1_epi16(1)); }
INLINE i32x16 dot_factor(i32x16 x) { return _mm512_mask_blend_epi16(0xaaaaaaaa, x, _mm512_slli_epi32(x, 16)); }
INLINE i32x16 dot_end_times(i32x16 sum, i32x16 factor) { return _mm512_madd_epi16(sum, factor); }
#else
// One half of the lanes: |w|·(x with the sign of w).
INLINE __m256i dot_bytes_half(__m256i sum, __m256i w, __m256i x) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
INLINE i32x16 dot_bytes(i32x16 sum, i32x16 w, i32x16 x) {
    sum = (i32x16){dot_bytes_half(sum.lo, w.lo, x.lo), dot_bytes_half(sum.hi, w.hi, x.hi)};
    HAVE(sum);
    return sum;
}
INLINE i32x16 dot_codes(i32x16 sum, i32x16 w, i32x16 x) {
    sum = (i32x16){_mm256_add_epi16(sum.lo, _mm256_maddubs_epi16(w.lo, x.lo)), _mm256_add_epi16(sum.hi, _mm256_maddubs_epi16(w.hi, x.hi))};
    HAVE(sum);
    return sum;
}
// The end adds the two sums of a lane, times a factor of 16 bits that both need a copy of.
INLINE i32x16 dot_end_times(i32x16 sum, i32x16 factor) {
    return (i32x16){_mm256_madd_epi16(sum.lo, factor.lo), _mm256_madd_epi16(sum.hi, factor.hi)};
}
INLINE i32x16 dot_end(i32x16 sum) {
    const __m256i ones = _mm256_set1_epi16(1);
    return dot_end_times(sum, (i32x16){ones, ones});
}
INLINE i32x16 dot_factor(i32x16 x) {
    return (i32x16){_mm256_blend_epi16(x.lo, _mm256_slli_epi32(x.lo, 16), 0xaa), _mm256_blend_epi16(x.hi, _mm256_slli_epi32(x.hi, 16), 0xaa)};
}
#endif
