// Linear: a block makes kPanels·16 outputs of kRows rows. With kForm the first launch prepares the rows in the scratch.
#pragma once
#include "multiply.h"
#if kForm == 0
#include "decoded.h"
#endif

// Outputs of a panel and n rows from row r on.
static inline void store_outputs(const atlas_Linear *a, int p, int r, int n, float (*out)[kLanes]) {
    const int first = p * kLanes, lanes = least(kLanes, a->W.Rows - first);
    scale_outputs(&a->W, 0, p, n, out);
    for (int j = 0; j < n; j++)
        for (int lane = 0; lane < lanes; lane++)
            a->Out[(size_t)(r + j) * a->OutPitch + first + lane] = out[j][lane] + (a->Bias ? a->Bias[first + lane] : 0);
}

static inline void linear_block(const atlas_Linear *a, const activation *rows, uint32_t x, uint32_t y) {
    const int cols = a->W.Cols, first = y * kRows, n = least(kRows, a->Rows - first);
    const int panel_end = least((x + 1) * kPanels, panels_of(a->W.Rows));
    const size_t pitch = activation_pitch(cols);
    const activation *row[kRows];
    for (int i = 0; i < n; i++) row[i] = rows + (first + i) * pitch;
#if kForm == 1
    const int groups = groups_of(cols);
    uint64_t who[groups];
    const int together = n - (n % kTileRows == 1 && (n == 1 || kTileRows == 2));  // rows of tiles of more than one
    if (together) find_rests(row, together, groups, who);
#endif
    for (int p = x * kPanels; p < panel_end; p += 2) {
        const int panels = least(2, panel_end - p);
        products part;
        float all[2][kRows][kLanes], (*out)[kLanes] = all[0];
        int pitch = kRows;
        int r = 0;
#if kForm == 0
        if (kIsF8 && n > kTileRows) {
            multiply_decoded(&a->W, p, panels, row, n, all);
            r = n;
        }
#endif
        for (int tile; r < n; r += tile) {
            tile = tile_rows(n - r);
            multiply_blocks(&a->W, 0, p, panels, row + r, tile, part);
            if (tile == n) {
                out = part[0];
                pitch = kTileRows;
            } else {
                for (int i = 0; i < panels; i++) memcpy(all[i][r], part[i], tile * sizeof *part[i]);
            }
        }
#if kForm == 1
        const panel at[2] = {panel_at(&a->W, 0, p), panel_at(&a->W, 0, p + panels - 1)};
        if (together) add_rests(at, panels, groups, who, row, together, out, pitch);
#endif
        for (int i = 0; i < panels; i++) store_outputs(a, p + i, first, n, out + i * pitch);
    }
}

#if kForm == 0
static inline void linear(const atlas_Linear *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    linear_block(a, a->In, x, y);
}
#else
static inline void linear_rows(const atlas_Linear *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    prepare_rows(a->In, scratch, x, a->Rows, a->W.Cols);
}

static inline void linear(const atlas_Linear *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    linear_block(a, scratch, x, y);
}
#endif
