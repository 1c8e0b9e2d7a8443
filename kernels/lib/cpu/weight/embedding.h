// Embedding: one row per block, its columns gathered from the row's lane and made f32. An id outside gives zeros.
#pragma once
#include "codes.h"

// The scale (0) or minimum (1) of group g of Q4_K, of the block's words in one lane.
static inline int six_bits_of(const uint32_t *word, int g, int which) {
    const uint32_t first = word[which * kLanes], last = word[2 * kLanes];
    if (g < 4) return first >> 8 * g & 63;
    return (last >> (8 * (g - 4) + 4 * which) & 15) | (first >> (8 * (g - 4) + 6) & 3) << 4;
}

static inline float e4m3_of(uint8_t byte) { return half_to_f32((byte & 0x80) << 8 | (byte & 0x7f) << 7) * 256; }

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
        if (kIsBF16) {
            out[2 * b] = bf16_to_f32(word[0]) * factor;
            if (2 * b + 1 < cols) out[2 * b + 1] = bf16_to_f32(word[0] >> 16) * factor;
            continue;
        }
        if (kIsF8) {
            const float d = kIsF8Block ? *span_scale(&p, 2 * b / kF8Cols) * factor : factor;
            const uint16_t pair = pairs_at(&p, b)[lane];
            out[2 * b] = e4m3_of(pair) * d;
            if (2 * b + 1 < cols) out[2 * b + 1] = e4m3_of(pair >> 8) * d;
            continue;
        }
        for (int i = 0; i < least(kBlock, cols - kBlock * b); i++) {
            const place of = place_of(i);
            if (kIsNVFP4) {
                const int code = kTwiceFP4[word[of.low * kLanes] >> of.low_bit & 15] - kOffset;
                out[b * kBlock + i] = e4m3_of(((const uint8_t *)scales_at(&p, b))[i / 16 * kLanes + lane]) * code * 0.5f * factor;
                continue;
            }
            float d = half_to_f32(scales[0]), m = 0;
            if (kIsQ4_1) m = half_to_f32(scales[kLanes]);
            if (kIsQ4_K) {
                d *= six_bits_of(word, i / 32, 0);
                m = -half_to_f32(scales[kLanes]) * six_bits_of(word, i / 32, 1);
            }
            if (kIsQ6_K) d *= (int8_t)(word[(48 + i / 64) * kLanes] >> i / 16 % 4 * 8);
            const uint32_t low = word[of.low * kLanes] >> of.low_bit, high = word[of.high * kLanes] >> of.high_bit & kHighMask;
            const int q = kIsQ8_0 ? (int8_t)low : (int)((low & 15) | high << 4) - kOffset;
            out[b * kBlock + i] = (d * q + m) * factor;
        }
    }
}
