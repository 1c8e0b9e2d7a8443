// Products of FP8 by spans of 128 columns, which have one scale where scales are of blocks.
//
// An output is one chain of fma over its spans in order, of their sums and scales. A sum is a chain of fma over the span's
// columns in order. decoded.h has the same for many rows.
#pragma once

// Two columns, the lower byte of each pair first.
INLINE void tile_bytes(int p, int n, const panel *at, const activation *const *row, int b, int odd, f32x16 (*acc)[kTileRows]) {
    f32x16 even[2], next[2];
#pragma GCC unroll 2
    for (int i = 0; i < p; i++) f32x16_pairs_e4m3(pairs_at(&at[i], b), &even[i], &next[i]);
    tile_column(p, n, even, row, 2 * b, acc);
    if (!odd) tile_column(p, n, next, row, 2 * b + 1, acc);
}

// What sums of span g are multiplied by.
INLINE f32x16 sum_scale(const panel *at, int g) { return f32x16_set(kIsF8Block ? kUnit * *span_scale(at, g) : kUnit); }

// Adds span g to outputs.
INLINE void tile_span(int p, int n, const panel *at, int g, int cols, const activation *const *row, f32x16 (*acc)[kTileRows]) {
    const int end = least((g + 1) * kF8Cols, cols);
    f32x16 sum[2][kTileRows];
    if (n * p > kTileRows / 2) __asm__ volatile("" ::"r"(acc) : "memory");  // keeps acc in memory, so that sum has the registers
#pragma GCC unroll 16
    for (int i = 0; i < 2 * kTileRows; i++) sum[i / kTileRows][i % kTileRows] = f32x16_zero();
    for (int b = g * kF8Cols / 2; b < end / 2; b++) {
        for (int i = 0; i < p && n == 1 && b % 2 == 0; i++) __builtin_prefetch((const char *)pairs_at(&at[i], b) + kAhead);
        tile_bytes(p, n, at, row, b, 0, sum);
    }
    if (end % 2) tile_bytes(p, n, at, row, end / 2, 1, sum);
#pragma GCC unroll 2
    for (int i = 0; i < p; i++) {
        const f32x16 scale = sum_scale(&at[i], g);
#pragma GCC unroll 8
        for (int r = 0; r < n; r++) acc[i][r] = f32x16_fma(sum[i][r], scale, acc[i][r]);
    }
}
