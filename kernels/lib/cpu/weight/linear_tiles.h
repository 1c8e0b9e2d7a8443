// Linear by matrix tiles: a block makes kPanels·16 outputs of kRows rows. The first launch prepares the rows in the scratch,
// sixteen to a tile.
#pragma once
#if kForm == 1
#include "lib/cpu/x86/tiles_int8.h"
#else
#include "lib/cpu/x86/tiles_bf16.h"
#endif

#if kForm == 1
// Behind the tiles.
static inline activation *prepared_rows(const atlas_Linear *a, void *scratch) {
    return (activation *)((row_tile *)scratch + (size_t)(a->Rows + kTile - 1) / kTile * (a->W.Cols / 32));
}

// Adds the rests of rows first … first+rows-1 to outputs of panels.
static inline void add_all_rests(const atlas_Linear *a, void *scratch, const panel *at, int panels, int first, int rows, float (*out)[kRows][kLanes]) {
    const int cols = a->W.Cols;
    for (int r = 0; r < rows; r += kMostRests) {
        const int n = least(kMostRests, rows - r);
        const activation *row[kMostRests];
        uint64_t who[cols / 32];
        for (int i = 0; i < n; i++) row[i] = prepared_rows(a, scratch) + (first + r + i) * activation_pitch(cols);
        find_rests(row, n, cols / 32, who);
        add_rests(at, panels, cols / 32, who, row, n, out[0] + r, kRows);
    }
}
#endif

static inline void linear_rows(const atlas_Linear *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int cols = a->W.Cols, first = x * kTile, left = a->Rows - first, rows = left < kTile ? left : kTile;
    row_tile *const tile = (row_tile *)scratch + (size_t)x * (cols / 32);
    const float *const in = a->In + (size_t)first * cols;
#if kForm == 1
    activation *const prepared = prepared_rows(a, scratch) + first * activation_pitch(cols);
    for (int r = 0; r < rows; r++) prepare_row(in + (size_t)r * cols, prepared + r * activation_pitch(cols), cols);
    prepare_tile(prepared, rows, cols, tile);
#else
    prepare_tile(in, rows, cols, tile);
#endif
}

// Outputs of one panel, whose first is output first.
static inline void store_outputs(const atlas_Linear *a, int first, int row, int rows, float (*sums)[kLanes]) {
    const int lanes = a->W.Rows - first;
    const __mmask16 there = lanes < kLanes ? (1 << lanes) - 1 : 0xffff;
    const f32x16 bias = a->Bias ? _mm512_maskz_loadu_ps(there, a->Bias + first) : f32x16_zero();
    const f32x16 scale = a->W.Scale ? _mm512_maskz_loadu_ps(there, (const float *)a->W.Scale + first) : f32x16_set(1);
    for (int r = 0; r < rows; r++)
        _mm512_mask_storeu_ps(a->Out + (size_t)(row + r) * a->OutPitch + first, there, _mm512_add_ps(f32x16_mul(f32x16_load(sums[r]), scale), bias));
}

static inline void linear(const atlas_Linear *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    const int steps = a->W.Cols / 32, all = (a->W.Rows + kLanes - 1) / kLanes, first = y * kRows, left = a->Rows - first;
    const int rows = left < kRows ? left : kRows, tiles = (rows + kTile - 1) / kTile;
    const row_tile *const in = (const row_tile *)scratch + (size_t)first / kTile * steps;
    const int end = (int)(x + 1) * kPanels < all ? (int)(x + 1) * kPanels : all;
    shape();
    for (int p = x * kPanels; p < end; p += 2) {
        const int panels = end - p < 2 ? 1 : 2;
        const panel at[2] = {panel_at(&a->W, 0, p), panel_at(&a->W, 0, p + panels - 1)};
        _Alignas(64) float out[2][kRows][kLanes];
        multiply_tiles(at, panels, in, tiles, steps, out);
#if kForm == 1
        add_all_rests(a, scratch, at, panels, first, rows, out);
#endif
        for (int i = 0; i < panels; i++) store_outputs(a, (p + i) * kLanes, first, rows, out[i]);
    }
    _tile_release();
}
