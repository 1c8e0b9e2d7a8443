// Pack and Unpack: a panel per block, 32-bit words moved between row-major checkpoint bytes and the panel's lanes.
#pragma once
#include "panel.h"

// Bytes that word i of a row has in the checkpoint: all but the last of an odd bf16 row have four.
static inline size_t word_bytes(int i, int cols) { return kScheme == ATLAS_SCHEME_BF16 && 2 * i + 1 == cols ? 2 : 4; }

static inline void pack(const atlas_Pack *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const panel p = panel_at(&a->W, 0, x);
    const size_t pitch = kScheme == ATLAS_SCHEME_BF16 ? (size_t)a->W.Cols * 2 : (size_t)p.blocks * kRawBlock;
    const char *raw = (const char *)a->Raw + x * kLanes * pitch;
    for (int b = 0; b < p.blocks; b++) {
        for (int lane = 0; lane < kLanes; lane++) {
            const char *in = raw + lane * pitch + (size_t)b * kRawBlock;
            for (int s = 0; s < kScales; s++) {
                uint16_t scale = 0;
                if (lane < p.rows) memcpy(&scale, in + 2 * s, 2);
                scales_at(&p, b)[s * kLanes + lane] = scale;
            }
            for (int w = 0; w < kWords; w++) {
                uint32_t word = 0;
                if (lane < p.rows) memcpy(&word, in + 2 * kScales + 4 * w, word_bytes(b, a->W.Cols));
                words_at(&p, b, w)[lane] = word;
            }
        }
    }
    const size_t used = (size_t)p.blocks * kPackedBlock;
    memset(p.at + used, 0, panel_bytes(a->W.Cols) - used);
}

static inline void unpack(const atlas_Unpack *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const panel p = panel_at(&a->W, 0, x);
    const size_t pitch = kScheme == ATLAS_SCHEME_BF16 ? (size_t)a->W.Cols * 2 : (size_t)p.blocks * kRawBlock;
    char *raw = (char *)a->Raw + x * kLanes * pitch;
    for (int b = 0; b < p.blocks; b++) {
        for (int lane = 0; lane < p.rows; lane++) {
            char *out = raw + lane * pitch + (size_t)b * kRawBlock;
            for (int s = 0; s < kScales; s++) memcpy(out + 2 * s, scales_at(&p, b) + s * kLanes + lane, 2);
            for (int w = 0; w < kWords; w++)
                memcpy(out + 2 * kScales + 4 * w, words_at(&p, b, w) + lane, word_bytes(b, a->W.Cols));
        }
    }
}
