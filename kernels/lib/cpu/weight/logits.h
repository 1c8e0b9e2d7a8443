// Logits: as Linear over the rows that Index chooses. A block makes kPanels·16 outputs of all rows.
#pragma once
#include "multiply.h"

static inline int logits_row(const atlas_Logits *a, int i) {
    const int row = a->Index[i];
    return row < a->InRows ? row : -1;
}

static inline void logits_block(const atlas_Logits *a, const activation *rows, uint32_t x) {
    const int n = a->W.Rows;
    const int panel_end = least((x + 1) * kPanels, panels_of(n));
    const size_t pitch = activation_pitch(a->W.Cols);
    for (int p = x * kPanels; p < panel_end; p += 2) {
        const int panels = least(2, panel_end - p);
        for (int r = 0, tile; r < a->Rows; r += tile) {
            tile = tile_rows(a->Rows - r);
            const activation *row[kTileRows];
            for (int i = 0; i < tile; i++) {
                const int from = logits_row(a, r + i);
                row[i] = rows + pitch * (kForm ? r + i : from < 0 ? 0 : from);
            }
            products out;
            multiply(&a->W, 0, p, panels, row, tile, out);
            for (int i = 0; i < panels; i++) {
                const int first = (p + i) * kLanes, lanes = least(kLanes, n - first);
                for (int j = 0; j < tile; j++) {
                    const int given = logits_row(a, r + j) >= 0;
                    for (int lane = 0; lane < lanes; lane++) a->Out[(size_t)(r + j) * n + first + lane] = given ? out[i][j][lane] : 0;
                }
            }
        }
    }
}

#if kForm == 0
static inline void logits(const atlas_Logits *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    logits_block(a, a->In, x);
}
#else
static inline void logits_rows(const atlas_Logits *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int cols = a->W.Cols, from = logits_row(a, x);
    const size_t pitch = activation_pitch(cols);
    activation *out = (activation *)scratch + x * pitch;
    if (from < 0)
        memset(out, 0, pitch * sizeof *out);
    else
        prepare_row(a->In + (size_t)from * cols, out, cols);
}

static inline void logits(const atlas_Logits *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    logits_block(a, scratch, x);
}
#endif
