// ExpertDown: for few picks (kFew) a block makes 32 outputs of a row, one pick after the other. For many, blocks of an
// expert write each pick's product to the scratch, and a last launch sums them; the sums are the same.
//
// Scratch: the products where not kFew, then the prepared rows where kForm asks for them.
#pragma once
#include "multiply.h"
#include "pick.h"

// Adds weight·product to outputs that start at zero; the only sum over picks there is.
static inline void add_pick(float *out, const float *product, float weight, int count) {
    for (int i = 0; i < count; i++) out[i] += weight * product[i];
}

static inline int pick_expert(const atlas_ExpertDown *a, int pick) {
    const int expert = a->IDs[pick];
    return expert < a->W.Count ? expert : -1;
}

static inline float *down_products(void *scratch) { return scratch; }

static inline const activation *down_rows(const atlas_ExpertDown *a, void *scratch) {
#if kForm == 0
    (void)scratch;
    return a->In;
#else
    return (const activation *)(down_products(scratch) + (kFew ? 0 : (size_t)a->Rows * a->TopK * a->W.Rows));
#endif
}

static inline void expert_down_row(const atlas_ExpertDown *a, void *scratch, uint32_t x, uint32_t y) {
    const int n = a->W.Rows, first = x * kSpan, count = least(kSpan, n - first);
    const size_t pitch = activation_pitch(a->W.Cols);
    float sum[kSpan] = {0};
    for (int k = 0; k < a->TopK; k++) {
        const int pick = y * a->TopK + k, expert = pick_expert(a, pick);
        if (expert < 0) continue;
        const activation *const row = down_rows(a, scratch) + pick * pitch;
        float product[1][kSpan];
        multiply_span(&a->W, expert, first, count, &row, 1, product);
        add_pick(sum, product[0], a->Weights[pick], count);
    }
    memcpy(a->Out + (size_t)y * n + first, sum, count * sizeof *sum);
}

static inline void expert_down_picks(const atlas_ExpertDown *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    const int n = a->W.Rows, first = x * kSpan, count = least(kSpan, n - first), total = a->Rows * a->TopK;
    const size_t pitch = activation_pitch(a->W.Cols);
    const picks of = picks_of(a->Starts, y, total);
    for (int s = of.begin, tile; s < of.end; s += tile) {
        tile = tile_rows(of.end - s);
        const activation *row[kTileRows];
        int pick[kTileRows];
        for (int j = 0; j < tile; j++) {
            pick[j] = a->Order[s + j];
            if (pick[j] < 0 || pick[j] >= total) pick[j] = -1;
            row[j] = down_rows(a, scratch) + (pick[j] < 0 ? 0 : pick[j] * pitch);
        }
        float product[kTileRows][kSpan];
        multiply_span(&a->W, y, first, count, row, tile, product);
        for (int j = 0; j < tile; j++)
            if (pick[j] >= 0) memcpy(down_products(scratch) + (size_t)pick[j] * n + first, product[j], count * sizeof(float));
    }
}

static inline void expert_down_sum(const atlas_ExpertDown *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int n = a->W.Rows;
    float *out = a->Out + (size_t)x * n;
    memset(out, 0, n * sizeof *out);
    for (int k = 0; k < a->TopK; k++) {
        const int pick = x * a->TopK + k;
        if (pick_expert(a, pick) >= 0) add_pick(out, down_products(scratch) + (size_t)pick * n, a->Weights[pick], n);
    }
}

#if kForm == 0 && kFew
static inline void expert_down(const atlas_ExpertDown *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    expert_down_row(a, 0, x, y);
}
#elif kFew
static inline void expert_down(const atlas_ExpertDown *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    expert_down_row(a, scratch, x, y);
}
#endif

#if kForm
static inline void expert_down_rows(const atlas_ExpertDown *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    prepare_rows(a->In, (activation *)down_rows(a, scratch), x, a->Rows * a->TopK, a->W.Cols);
}
#endif
