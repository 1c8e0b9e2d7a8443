// A tile of int8: n rows by p panels of 16 outputs; a block of 32 columns is an exact integer sum in registers.
//
// An output is one chain over the blocks in order: fma with the two scales, and for Q4_1 another with the minimum.
#pragma once
#include "dot.h"

enum { kAhead = 2048 };  // bytes to fetch ahead of use

// Integer sums of block b, for all rows of the tile.
INLINE void tile_sums(int p, int n, const panel *at, int b, const activation *const *row, i32x16 (*sum)[kTileRows]) {
    const i32x16 low = i32x16_set(0x0f0f0f0f);
#pragma GCC unroll 8
    for (int r = 0; r < n; r++)
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) sum[i][r] = dot_start(&row[r][b]);
#pragma GCC unroll 2
    for (int half = 0; half < 8 / kWords; half++) {
#pragma GCC unroll kUnroll
        for (int w = 0; w < kWords; w++) {
            i32x16 weights[2];
#pragma GCC unroll 2
            for (int i = 0; i < p; i++) {
                weights[i] = i32x16_load(words_at(&at[i], b, w));
                if (half) weights[i] = i32x16_right(weights[i], 4);
                if (kScheme != ATLAS_SCHEME_Q8_0) weights[i] = i32x16_and(weights[i], low);
            }
#pragma GCC unroll 8
            for (int r = 0; r < n; r++) {
                const i32x16 x = codes_at(&row[r][b], half * kWords + w);
#pragma GCC unroll 2
                for (int i = 0; i < p; i++)
                    sum[i][r] = (kScheme == ATLAS_SCHEME_Q8_0 ? dot_bytes : dot_nibbles)(sum[i][r], weights[i], x);
            }
        }
    }
}

#ifdef __ARM_FEATURE_MATMUL_INT8
#include "lib/cpu/arm64/sums_in_pairs.h"
#endif

INLINE void tile(int p, int n, const panel *at, int cols, const activation *const *row, f32x16 (*acc)[kTileRows]) {
    for (int b = 0; b < cols / 32; b++) {
        if (n == 1)  // one row waits for memory
            for (int i = 0; i < p; i++)
                for (int line = 0; line < kPackedBlock; line += 64)
                    __builtin_prefetch((const char *)words_at(&at[i], b, 0) + kAhead + line);
        i32x16 sum[2][kTileRows];
        if (n * p > 2) __asm__ volatile("" ::"r"(acc) : "memory");  // keeps acc in memory, so that sum has the registers
#ifdef __ARM_FEATURE_MATMUL_INT8
        if (n > 1)
            tile_sums_in_pairs(n, at, b, row, sum[0]);
        else
#endif
            tile_sums(p, n, at, b, row, sum);
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) {
            const uint16_t *scales = scales_at(&at[i], b);
            const f32x16 d = f32x16_halves(scales);
#pragma GCC unroll 8
            for (int r = 0; r < n; r++) {
                const f32x16 scale = f32x16_set(row[r][b].scale);
                i32x16 total = sum[i][r];
                if (kScheme != ATLAS_SCHEME_Q8_0) total = dot_nibbles_end(total);
                if (kScheme == ATLAS_SCHEME_Q4_0) total = i32x16_add(total, i32x16_set(-8 * row[r][b].sum));
                acc[i][r] = f32x16_fma(f32x16_ints(total), f32x16_mul(d, scale), acc[i][r]);
                if (kScheme != ATLAS_SCHEME_Q4_1) continue;
                const f32x16 codes = f32x16_mul(scale, f32x16_ints(i32x16_set(row[r][b].sum)));
                acc[i][r] = f32x16_fma(f32x16_halves(scales + kLanes), codes, acc[i][r]);
            }
        }
    }
}
