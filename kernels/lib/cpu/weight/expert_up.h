// ExpertUp: a block makes 32 gated outputs of the picks of one expert, its rows gathered through Order.
//
// With kFew, for fewer picks than experts, y is a place in Order and a block serves the tile that begins there; else y
// is an expert. With kForm the first launch prepares the rows in the scratch.
#pragma once
#include "multiply.h"
#include "pick.h"

// Picks s … s+n-1 of Order, outputs first … first+31.
static inline void expert_up_tile(const atlas_ExpertUp *a, const activation *rows, int expert, int first, int s, int n) {
    const int inner = a->W.Rows / 2, count = least(kSpan, inner - first), total = a->Rows * a->TopK;
    const size_t pitch = activation_pitch(a->W.Cols);
    const activation *row[kTileRows];
    int pick[kTileRows];
    for (int j = 0; j < n; j++) {
        pick[j] = a->Order[s + j];
        if (pick[j] < 0 || pick[j] >= total) pick[j] = -1;
        row[j] = rows + (pick[j] < 0 ? 0 : pick[j] / a->TopK * pitch);
    }
    float gate[kTileRows][kSpan], up[kTileRows][kSpan];
    multiply_span(&a->W, expert, first, count, row, n, gate);
    multiply_span(&a->W, expert, inner + first, count, row, n, up);
    for (int j = 0; j < n; j++) {
        if (pick[j] < 0) continue;
        float *out = a->Out + (size_t)pick[j] * inner + first;
        for (int i = 0; i < count; i += kWidth) {
            const f32x8 g = load_up_to8(gate[j] + i, count - i), u = load_up_to8(up[j] + i, count - i);
            store_up_to8(out + i, mul8(div8(g, add8(set8(1), exp8(neg8(g)))), u), count - i);
        }
    }
}

static inline void expert_up_block(const atlas_ExpertUp *a, const activation *rows, uint32_t x, uint32_t y) {
    const int expert = kFew ? expert_at(a->Starts, a->W.Count, y) : (int)y;
    const picks of = picks_of(a->Starts, expert, a->Rows * a->TopK);
    if (kFew) {
        const int s = y;
        if (s >= of.begin && s < of.end && (s - of.begin) % kTileRows == 0)
            expert_up_tile(a, rows, expert, x * kSpan, s, least(kTileRows, of.end - s));
        return;
    }
    for (int s = of.begin, n; s < of.end; s += n) {
        n = tile_rows(of.end - s);
        expert_up_tile(a, rows, expert, x * kSpan, s, n);
    }
}

#if kForm == 0
static inline void expert_up(const atlas_ExpertUp *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    expert_up_block(a, a->In, x, y);
}
#else
static inline void expert_up_rows(const atlas_ExpertUp *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    prepare_rows(a->In, scratch, x, a->Rows, a->W.Cols);
}

static inline void expert_up(const atlas_ExpertUp *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    expert_up_block(a, scratch, x, y);
}
#endif
