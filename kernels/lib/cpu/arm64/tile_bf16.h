// A tile of bf16 products by bfmmla: four columns of two outputs with those of a row and of what its rounding left.
//
// An output is two chains of bfmmla over the columns by fours, of the rounded row and of the rest, added at the end,
// whatever n and p are.
#pragma once
#include "lib/cpu/weight/activation.h"

static_assert(kScheme == ATLAS_SCHEME_BF16, "words are pairs of bf16");
enum { kTileRows = 3, kPairRows = 1 };  // rows of a tile, and of one that spans two panels

// Four columns, their words w and next; sums[2i] and [2i+1] hold outputs 4i … 4i+3, each with the row and the rest.
INLINE void tile_columns(int n, i32x16 w, i32x16 next, const activation *const *row, int group, float32x4_t (*sums)[8]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const bfloat16x8_t first = (bfloat16x8_t)vzip1q_s32(w.at[i], next.at[i]), second = (bfloat16x8_t)vzip2q_s32(w.at[i], next.at[i]);
#pragma GCC unroll 3
        for (int r = 0; r < n; r++) {
            const bfloat16x8_t x = (bfloat16x8_t)vld1q_u16((const uint16_t *)&row[r][group]);
            sums[r][2 * i] = vbfmmlaq_f32(sums[r][2 * i], first, x);
            sums[r][2 * i + 1] = vbfmmlaq_f32(sums[r][2 * i + 1], second, x);
        }
    }
}

INLINE void tile(int p, int n, const panel *at, int cols, const activation *const *row, f32x16 (*acc)[kTileRows]) {
    float32x4_t sums[2][kTileRows][8];
#pragma GCC unroll 48
    for (int i = 0; i < 2 * kTileRows * 8; i++) sums[i / (kTileRows * 8)][i / 8 % kTileRows][i % 8] = vdupq_n_f32(0);
    const int blocks = blocks_of(cols);
    int b = 0;
    for (; b + 1 < blocks; b += 2)
#pragma GCC unroll 2
        for (int i = 0; i < p; i++)
            tile_columns(n, i32x16_load(words_at(&at[i], b, 0)), i32x16_load(words_at(&at[i], b + 1, 0)), row, b / 2, sums[i]);
    if (b < blocks)
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) tile_columns(n, i32x16_load(words_at(&at[i], b, 0)), i32x16_zero(), row, b / 2, sums[i]);
#pragma GCC unroll 2
    for (int i = 0; i < p; i++)
#pragma GCC unroll 3
        for (int r = 0; r < n; r++)
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) acc[i][r].at[j] = vpaddq_f32(sums[i][r][2 * j], sums[i][r][2 * j + 1]);
}
