// The words of dot.h, by whatever multiplies bytes.
#pragma once

// Rows of a tile, and of one that spans two panels.
#ifdef __AVX512BW__
enum { kTileRows = 8, kPairRows = 8 };
#else
enum { kTileRows = 4, kPairRows = 0 };
#endif

// How far the loop over a block's words is unrolled: where sums are plain additions gcc reorders them until they spill,
// and where they are not it copies them around a loop.
#ifdef __AVX512VNNI__
enum { kUnroll = 8 };
#else
enum { kUnroll = 1 };
#endif

#ifdef __AVX512VNNI__
// Signed weights enter with 128 added; that much of the row's sum is taken off at the start.
INLINE i32x16 dot_start(const activation *x) { return kScheme == ATLAS_SCHEME_Q8_0 ? i32x16_set(-128 * x->sum) : i32x16_zero(); }
INLINE i32x16 dot_bytes(i32x16 sum, i32x16 w, i32x16 x) {
    return _mm512_dpbusd_epi32(sum, _mm512_xor_si512(w, _mm512_set1_epi8(-128)), x);
}
INLINE i32x16 dot_nibbles(i32x16 sum, i32x16 w, i32x16 x) { return _mm512_dpbusd_epi32(sum, w, x); }
INLINE i32x16 dot_nibbles_end(i32x16 sum) { return sum; }
#elif defined __AVX512BW__
INLINE i32x16 dot_start(const activation *x) {
    (void)x;
    return i32x16_zero();
}
INLINE i32x16 dot_bytes(i32x16 sum, i32x16 w, i32x16 x) {
    const __m512i turned = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(w), turned);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
INLINE i32x16 dot_nibbles(i32x16 sum, i32x16 w, i32x16 x) { return _mm512_add_epi16(sum, _mm512_maddubs_epi16(w, x)); }
INLINE i32x16 dot_nibbles_end(i32x16 sum) { return _mm512_madd_epi16(sum, _mm512_set1_epi16(1)); }
#else
INLINE i32x16 dot_start(const activation *x) {
    (void)x;
    return i32x16_zero();
}
// One half of the lanes: |w|·(x with the sign of w).
INLINE __m256i dot_bytes_half(__m256i sum, __m256i w, __m256i x) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
INLINE i32x16 dot_bytes(i32x16 sum, i32x16 w, i32x16 x) {
    return (i32x16){dot_bytes_half(sum.lo, w.lo, x.lo), dot_bytes_half(sum.hi, w.hi, x.hi)};
}
// Nibble products pile up in pairs of 16 bits; the end adds the two of a lane.
INLINE i32x16 dot_nibbles(i32x16 sum, i32x16 w, i32x16 x) {
    const i32x16 pairs = {_mm256_maddubs_epi16(w.lo, x.lo), _mm256_maddubs_epi16(w.hi, x.hi)};
    return (i32x16){_mm256_add_epi16(sum.lo, pairs.lo), _mm256_add_epi16(sum.hi, pairs.hi)};
}
INLINE i32x16 dot_nibbles_end(i32x16 sum) {
    const __m256i ones = _mm256_set1_epi16(1);
    return (i32x16){_mm256_madd_epi16(sum.lo, ones), _mm256_madd_epi16(sum.hi, ones)};
}
#endif
