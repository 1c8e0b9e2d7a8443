// Linear: a block makes kPanels·16 outputs of kRows rows. With kForm the first launch prepares the rows in the scratch.
#pragma once
#include "multiply.h"

static inline void linear_block(const atlas_Linear *a, const activation *rows, uint32_t x, uint32_t y) {
    const int n = a->W.Rows, cols = a->W.Cols;
    const int panel_end = least((x + 1) * kPanels, panels_of(n)), row_end = least((y + 1) * kRows, a->Rows);
    const size_t pitch = activation_pitch(cols);
    for (int p = x * kPanels; p < panel_end; p += 2) {
        const int panels = least(2, panel_end - p);
        for (int r = y * kRows, tile; r < row_end; r += tile) {
            tile = tile_rows(row_end - r);
            const activation *row[kTileRows];
            for (int i = 0; i < tile; i++) row[i] = rows + (r + i) * pitch;
            products out;
            multiply(&a->W, 0, p, panels, row, tile, out);
            for (int i = 0; i < panels; i++) {
                const int first = (p + i) * kLanes, lanes = least(kLanes, n - first);
                for (int j = 0; j < tile; j++)
                    for (int lane = 0; lane < lanes; lane++)
                        a->Out[(size_t)(r + j) * a->OutPitch + first + lane] = out[i][j][lane] + (a->Bias ? a->Bias[first + lane] : 0);
            }
        }
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
