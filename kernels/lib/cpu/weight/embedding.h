// Embedding: one row per block, its columns gathered from the row's lane and made f32. An id outside gives zeros.
#pragma once
#include "panel.h"

static inline void embedding(const atlas_Embedding *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int cols = a->W.Cols, id = a->IDs[x];
    float *out = a->Out + (size_t)x * cols;
    if (id < 0 || id >= a->W.Rows) {
        memset(out, 0, cols * sizeof *out);
        return;
    }
    const panel p = panel_at(&a->W, 0, id / kLanes);
    const int lane = id % kLanes;
    const float factor = row_scale(&a->W, 0, id);
    for (int b = 0; b < p.blocks; b++) {
        const uint32_t *word = words_at(&p, b, 0) + lane;
        const uint16_t *scales = scales_at(&p, b) + lane;
        if (kScheme == ATLAS_SCHEME_BF16) {
            out[2 * b] = bf16_to_f32(word[0]) * factor;
            if (2 * b + 1 < cols) out[2 * b + 1] = bf16_to_f32(word[0] >> 16) * factor;
            continue;
        }
        const float d = half_to_f32(scales[0]), m = kScheme == ATLAS_SCHEME_Q4_1 ? half_to_f32(scales[kLanes]) : 0;
        for (int i = 0; i < kBlock; i++) {
            const int shift = i % 4 * 8 + (kScheme != ATLAS_SCHEME_Q8_0 && i >= 16 ? 4 : 0);
            const uint32_t code = word[i / 4 % kWords * kLanes] >> shift;
            const int q = kScheme == ATLAS_SCHEME_Q8_0 ? (int8_t)code : (int)(code & 15) - (kScheme == ATLAS_SCHEME_Q4_0 ? 8 : 0);
            out[b * kBlock + i] = (d * q + m) * factor;
        }
    }
}
