// A tile of bf16 dot products: n rows by p panels of 16 outputs, two columns an instruction.
//
// An output is one chain of vdpbf16ps over the pairs of columns in order, first the rounded pair and then its rest,
// whatever n and p are.
#pragma once
#include "lib/cpu/weight/activation.h"

static_assert(kScheme == ATLAS_SCHEME_BF16, "words are pairs of bf16");
enum { kTileRows = 8, kPairRows = 8 };  // rows of a tile, and of one that spans two panels

INLINE void tile(int p, int n, const panel *at, int cols, const activation *const *row, f32x16 (*acc)[kTileRows]) {
    for (int b = 0; b < (cols + 1) / 2; b++) {
        i32x16 word[2];
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) word[i] = i32x16_load(words_at(&at[i], b, 0));
#pragma GCC unroll 8
        for (int r = 0; r < n; r++) {
            int32_t pair[2];
            memcpy(pair, &row[r][b], sizeof pair);
#pragma GCC unroll 2
            for (int i = 0; i < p; i++) acc[i][r] = _mm512_dpbf16_ps(acc[i][r], (__m512bh)word[i], (__m512bh)i32x16_set(pair[0]));
#pragma GCC unroll 2
            for (int i = 0; i < p; i++) acc[i][r] = _mm512_dpbf16_ps(acc[i][r], (__m512bh)word[i], (__m512bh)i32x16_set(pair[1]));
        }
    }
}
