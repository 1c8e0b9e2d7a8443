// prepare_row of activation.h in AVX2 and AVX-512.
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
static inline void prepare_row(const float *in, activation *out, int cols) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int b = 0; b < cols / 32; b++, in += 32, out++) {
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
        const int tiny = top < 0x1p-100f;  // 127/top would overflow
        const __m256 inverse = _mm256_set1_ps(tiny ? 0 : 127 / top);
        __m256i q[4];
        for (int i = 0; i < 4; i++) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], inverse));
        const __m256i codes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
        _mm256_storeu_si256((__m256i *)out->code, _mm256_permutevar8x32_epi32(codes, order));
        out->scale = tiny ? 0 : top / 127;
        finish_block(out);
    }
}
#endif
