// Rows times panels, in the form that kForm names: the one product that all bodies share.
#pragma once
#if kForm == 0
#include "tile_f32.h"
#elif kForm == 1
#include "rest.h"

INLINE void tile(int p, int n, const panel *at, int cols, const activation *const *row, f32x16 (*acc)[kTileRows]) {
    if (n == 1)
        tile_alone(p, at, cols, row[0], acc);
    else
        (kBlock == 256 ? tile_super_blocks : tile_blocks)(p, n, at, cols, row, acc);
}
#else
#include "lib/cpu/arm64/tile_bf16.h"
#endif

typedef float products[2][kTileRows][kLanes];  // of two panels and the rows of a tile

enum { kSpan = 32 };  // outputs of a span

// How many of the rows left make the next tile, so that tiles are about equal.
static inline int tile_rows(int left) {
    const int tiles = (left + kTileRows - 1) / kTileRows;
    return (left + tiles - 1) / tiles;
}

INLINE void multiply_tile(int p, int n, const panel *at, int cols, const activation *const *row, products out, int first) {
    f32x16 acc[2][kTileRows];
#pragma GCC unroll 16
    for (int i = 0; i < 2 * kTileRows; i++) acc[i / kTileRows][i % kTileRows] = f32x16_zero();
    tile(p, n, at, cols, row, acc);
#pragma GCC unroll 2
    for (int i = 0; i < p; i++)
#pragma GCC unroll 8
        for (int r = 0; r < n; r++) f32x16_store(out[first + i][r], acc[i][r]);
}

INLINE void multiply_panels(int p, int n, const panel *at, int cols, const activation *const *row, products out) {
    if (p == 1)
        multiply_tile(1, n, at, cols, row, out, 0);
    else if (n <= kPairRows)
        multiply_tile(2, n, at, cols, row, out, 0);
    else
        for (int i = 0; i < 2; i++) multiply_tile(1, n, at + i, cols, row, out, i);
}

// The same but for the factors of a matrix's rows, and for rests where there are several rows.
static __attribute__((noinline)) void multiply_blocks(const atlas_Weight *w, int matrix, int first, int panels,
                                               const activation *const *row, int n, products out) {
    const panel at[2] = {panel_at(w, matrix, first), panel_at(w, matrix, first + panels - 1)};
#define CASE(n)                                             \
    case n:                                                 \
        if (n > kTileRows) break;                           \
        if (panels == 1)                                    \
            multiply_panels(1, n, at, w->Cols, row, out);   \
        else                                                \
            multiply_panels(2, n, at, w->Cols, row, out);   \
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

// Multiplies outputs of panel p by the factors of their rows of the matrix.
static inline void scale_outputs(const atlas_Weight *w, int matrix, int p, int n, float (*out)[kLanes]) {
    if (!w->Scale) return;
    for (int r = 0; r < n; r++)
        for (int lane = 0; lane < least(kLanes, w->Rows - p * kLanes); lane++) out[r][lane] *= row_scale(w, matrix, p * kLanes + lane);
}

// out[i][r] = panel first+i of a stacked matrix times row[r], for one or two panels and at most kTileRows rows.
static inline void multiply(const atlas_Weight *w, int matrix, int first, int panels, const activation *const *row, int n, products out) {
    multiply_blocks(w, matrix, first, panels, row, n, out);
#if kForm == 1
    if (n > 1) {
        const panel at[2] = {panel_at(w, matrix, first), panel_at(w, matrix, first + panels - 1)};
        const int groups = groups_of(w->Cols);
        uint64_t who[groups];
        find_rests(row, n, groups, who);
        add_rests(at, panels, groups, who, row, n, out[0], kTileRows);
    }
#endif
    for (int i = 0; i < panels; i++) scale_outputs(w, matrix, first + i, n, out[i]);
}

// out[r][i] = output first+i of a stacked matrix times row[r], for count outputs that may begin anywhere in a panel.
static inline void multiply_span(const atlas_Weight *w, int matrix, int first, int count, const activation *const *row, int n,
                                 float (*out)[kSpan]) {
    const int end = panels_of(first + count);
    for (int p = first / kLanes; p < end; p += 2) {
        products part;
        const int panels = least(2, end - p);
        multiply(w, matrix, p, panels, row, n, part);
        for (int i = 0; i < panels; i++) {
            const int shift = (p + i) * kLanes - first;
            for (int r = 0; r < n; r++)
                for (int lane = shift < 0 ? -shift : 0; lane < least(kLanes, count - shift); lane++)
                    out[r][shift + lane] = part[i][r][lane];
        }
    }
}
