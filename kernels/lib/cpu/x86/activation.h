// What activation.h asks for in AVX2 and AVX-512.
#pragma once

#if kForm == 1
INLINE halves sums_of(const int8_t *code, int count) {
    const __m128i one = _mm_set1_epi8(1);
    __m128i sum = _mm_maddubs_epi16(one, _mm_loadu_si128((const __m128i *)code));
    if (count == 32) sum = _mm_add_epi16(sum, _mm_maddubs_epi16(one, _mm_loadu_si128((const __m128i *)(code + 16))));
    sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0xb1));
    const int both = _mm_cvtsi128_si32(sum);
    return (halves){(int16_t)both, (int16_t)(both >> 16)};
}

// Four groups of eight columns to 32 codes; the order that the two packs leave is undone by the permutation.
INLINE void store_codes(int8_t *code, const __m256i *q) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i codes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    _mm256_storeu_si256((__m256i *)code, _mm256_permutevar8x32_epi32(codes, order));
}

// Codes of 32 columns, and the largest of those.
INLINE float make_codes(const float *in, int8_t *code) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256 x[4];
    __m256i largest = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) {
        x[i] = _mm256_loadu_ps(in + 8 * i);
        largest = _mm256_max_epi32(largest, _mm256_and_si256(_mm256_castps_si256(x[i]), magnitude));
    }
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    const float top = _mm_cvtss_f32(_mm_castsi128_ps(m));
    const __m256 inverse = _mm256_set1_ps(top < 0x1p-100f ? 0 : 127 / top);
    __m256i q[4];
    for (int i = 0; i < 4; i++) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], inverse));
    store_codes(code, q);
    return top;
}

// Codes of what those leave.
INLINE void make_rest(const float *in, float inverse, int8_t *code) {
    __m256i q[4];
    for (int i = 0; i < 4; i++) {
        const __m256 x = _mm256_mul_ps(_mm256_loadu_ps(in + 8 * i), _mm256_set1_ps(inverse));
        const __m256 left = _mm256_sub_ps(x, _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(left, _mm256_set1_ps(kFiner)));
    }
    store_codes(code, q);
}
#endif
