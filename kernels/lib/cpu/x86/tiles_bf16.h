// Tiles of bf16: sixteen rows by a panel of 16 outputs, 32 columns an instruction.
//
// An output is one chain over 32 columns at a time in order, first of the rounded row and then of its rest; the tile adds
// the products of even columns and of odd ones, each in order, and then both to the sum.
#pragma once
#include "amx.h"

static_assert(kScheme == ATLAS_SCHEME_BF16, "words are pairs of bf16");

// Sixteen prepared rows, 32 columns of them: rounded, and what the rounding left, rounded.
typedef struct { uint16_t top[kTile][32], rest[kTile][32]; } row_tile;
static_assert(sizeof(row_tile) == 2048, "manifests size the scratch by it");

// Rows that are not there are zeros.
static inline void prepare_tile(const float *in, int n, int cols, row_tile *out) {
    for (int g = 0; g < cols / 32; g++)
        for (int r = 0; r < kTile; r++)
            for (int c = 0; c < 32; c += 16) {
                const __m512 x = r < n ? _mm512_loadu_ps(in + (size_t)r * cols + 32 * g + c) : _mm512_setzero_ps();
                const __m256i top = (__m256i)_mm512_cvtneps_pbh(x);
                const __m512 rounded = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(top), 16));
                _mm256_storeu_si256((__m256i *)&out[g].top[r][c], top);
                _mm256_storeu_si256((__m256i *)&out[g].rest[r][c], (__m256i)_mm512_cvtneps_pbh(_mm512_sub_ps(x, rounded)));
            }
}

static inline void shape(void) { shape_tiles(4, 64); }

// Two panels times one tile of rows, or two.
INLINE void multiply_pair(int both, const panel *first, const panel *second, const row_tile *upper, const row_tile *lower, int steps) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int s = 0; s < steps; s++) {
        _tile_loadd(5, words_at(first, 16 * s, 0), 64);
        _tile_loadd(7, words_at(second, 16 * s, 0), 64);
        _tile_loadd(4, upper[s].top, 64);
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 7);
        if (both) {
            _tile_loadd(6, lower[s].top, 64);
            _tile_dpbf16ps(2, 6, 5);
            _tile_dpbf16ps(3, 6, 7);
        }
        _tile_loadd(4, upper[s].rest, 64);
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 7);
        if (both) {
            _tile_loadd(6, lower[s].rest, 64);
            _tile_dpbf16ps(2, 6, 5);
            _tile_dpbf16ps(3, 6, 7);
        }
    }
}

// out[i][r] = panel i times row r, for one or two panels and all rows of some tiles, which have steps parts each. One panel
// stands for both.
static inline void multiply_tiles(const panel *at, int panels, const row_tile *rows, int tiles, int steps, float (*out)[kRows][kLanes]) {
    const panel *const second = &at[panels - 1];
    for (int t = 0; t < tiles; t += 2) {
        const row_tile *const upper = &rows[t * steps], *const lower = upper + steps;
        const int both = t + 1 < tiles;
        if (both)
            multiply_pair(1, at, second, upper, lower, steps);
        else
            multiply_pair(0, at, second, upper, upper, steps);
        _tile_stored(0, out[0] + t * kTile, 64);
        _tile_stored(1, out[panels - 1] + t * kTile, 64);
        if (!both) continue;
        _tile_stored(2, out[0] + (t + 1) * kTile, 64);
        _tile_stored(3, out[panels - 1] + (t + 1) * kTile, 64);
    }
}
