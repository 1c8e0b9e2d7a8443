// Rows of many tiles times FP8: a span of columns is decoded once for all of them. Outputs are the same chains as in span.h.
#pragma once
#include "multiply.h"

typedef float span[kF8Cols][kLanes];  // decoded columns

INLINE void decode_span(const panel *at, int g, int cols, span w) {
    for (int c = 0; c < least(kF8Cols, cols - g * kF8Cols); c += 2) {
        f32x16 even, next;
        f32x16_pairs_e4m3(pairs_at(at, (g * kF8Cols + c) / 2), &even, &next);
        f32x16_store(w[c], even);
        f32x16_store(w[c + 1], next);
    }
}

// Adds decoded columns of span g to outputs of n rows of p panels; those of two panels lie pitch apart.
INLINE void tile_decoded(int p, int n, const span *w, const panel *at, int g, int cols, const activation *const *row, float (*out)[kLanes],
                         int pitch) {
    f32x16 sum[2][kTileRows];
#pragma GCC unroll 16
    for (int i = 0; i < 2 * kTileRows; i++) sum[i / kTileRows][i % kTileRows] = f32x16_zero();
    for (int c = 0; c < least(kF8Cols, cols - g * kF8Cols); c++) {
        f32x16 column[2];
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) column[i] = f32x16_load(w[i][c]);
        tile_column(p, n, column, row, g * kF8Cols + c, sum);
    }
#pragma GCC unroll 2
    for (int i = 0; i < p; i++) {
        const f32x16 scale = sum_scale(&at[i], g);
#pragma GCC unroll 8
        for (int r = 0; r < n; r++) {
            float *const to = out[i * pitch + r];
            f32x16_store(to, f32x16_fma(sum[i][r], scale, f32x16_load(to)));
        }
    }
}

static __attribute__((noinline)) void add_decoded(int panels, int n, const span *w, const panel *at, int g, int cols, const activation *const *row,
                                                  float (*out)[kLanes], int pitch) {
#define CASE(n)                                                                                                   \
    case n:                                                                                                       \
        if (n > kTileRows) break;                                                                                 \
        if (panels == 2 && n <= kPairRows)                                                                        \
            tile_decoded(2, n, w, at, g, cols, row, out, pitch);                                                  \
        else                                                                                                      \
            for (int i = 0; i < panels; i++) tile_decoded(1, n, w + i, at + i, g, cols, row, out + i * pitch, 0); \
        break
    switch (n) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
    }
#undef CASE
}

// out[i][r] = panel first+i times row[r], for one or two panels of FP8 and rows of several tiles.
static inline void multiply_decoded(const atlas_Weight *w, int first, int panels, const activation *const *row, int n, float (*out)[kRows][kLanes]) {
    const panel at[2] = {panel_at(w, 0, first), panel_at(w, 0, first + panels - 1)};
    for (int i = 0; i < panels; i++) memset(out[i], 0, n * sizeof *out[i]);
    for (int g = 0; g < spans_of(w->Cols); g++) {
        _Alignas(64) span decoded[2];
        for (int i = 0; i < panels; i++) decode_span(&at[i], g, w->Cols, decoded[i]);
        for (int r = 0, tile; r < n; r += tile) {
            tile = tile_rows(n - r);
            add_decoded(panels, tile, decoded, at, g, w->Cols, row + r, out[0] + r, kRows);
        }
    }
}
