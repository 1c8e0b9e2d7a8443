// Sums of a block by smmla, which multiplies eight bytes of two outputs with eight codes of two rows. An odd last row
// is its own partner. Sums are exact: they are those of tile_sums.
#pragma once

static_assert(!kIsQ5_0 && kBlock == 32 && kSums == 1, "codes are nibbles or bytes, and a block has one sum");

// Eight outputs from lane 4·first on, so that sums and all that meets them have registers.
INLINE void half_sums_in_pairs(int n, int first, const panel *at, int b, const activation *const *row, i32x16 *sum) {
    int32x4_t pair[kTileRows / 2][4];  // two outputs each, for the one row and the other
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows / 2 * 4; i++) pair[i / 4][i % 4] = vdupq_n_s32(0);
#pragma GCC unroll 4
    for (int c = 0; c < 32; c += 8) {
        const uint32_t *word = words_at(at, b, c / 4 % kWords) + 4 * first;
        int8x16_t x[kTileRows / 2];
#pragma GCC unroll 2
        for (int r = 0; r < n; r += 2) x[r / 2] = vcombine_s8(vld1_s8(row[r][b].code + c), vld1_s8(row[r + 1 < n ? r + 1 : r][b].code + c));
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            uint8x16_t w = (uint8x16_t)vld1q_u32(word + 4 * i), next = (uint8x16_t)vld1q_u32(word + kLanes + 4 * i);
            if (!kIsQ8_0) {
                w = c < 16 ? w & 15 : w >> 4;
                next = c < 16 ? next & 15 : next >> 4;
            }
            const int8x16_t lower = (int8x16_t)vzip1q_u32((uint32x4_t)w, (uint32x4_t)next);
            const int8x16_t upper = (int8x16_t)vzip2q_u32((uint32x4_t)w, (uint32x4_t)next);
#pragma GCC unroll 2
            for (int r = 0; r < (n + 1) / 2; r++) {
                pair[r][2 * i] = vmmlaq_s32(pair[r][2 * i], lower, x[r]);
                pair[r][2 * i + 1] = vmmlaq_s32(pair[r][2 * i + 1], upper, x[r]);
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < n; r++)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            const int32x4_t x = pair[r / 2][2 * i], y = pair[r / 2][2 * i + 1];
            sum[r].at[first + i] = (r % 2 ? vuzp2q_s32(x, y) : vuzp1q_s32(x, y)) + vdupq_n_s32(kDotOffset ? row[r][b].start[0] : 0);
        }
}

INLINE void tile_sums_in_pairs(int n, const panel *at, int b, const activation *const *row, i32x16 *sum) {
    half_sums_in_pairs(n, 0, at, b, row, sum);
    half_sums_in_pairs(n, 2, at, b, row, sum);
}
