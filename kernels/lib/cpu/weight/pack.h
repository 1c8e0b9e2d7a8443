// Pack and Unpack: a panel per block, 32-bit words moved between row-major checkpoint bytes and the panel's lanes.
#pragma once
#include "pack_apart.h"

// Word i of a row from a checkpoint and back: all but the last of an odd bf16 row have four bytes. A copy whose size is not known
// here would be a call.
static inline uint32_t load_word(const char *from, int i, int cols) {
    uint32_t word = 0;
    if (kIsBF16 && 2 * i + 1 == cols)
        memcpy(&word, from, 2);
    else
        memcpy(&word, from, 4);
    return word;
}
static inline void store_word(char *to, uint32_t word, int i, int cols) {
    if (kIsBF16 && 2 * i + 1 == cols)
        memcpy(to, &word, 2);
    else
        memcpy(to, &word, 4);
}

// The fifth bits of Q5_0, of which checkpoints have that of column i at bit i, as panels have them and back.
static inline uint32_t spread_bits(uint32_t bits, int back) {
    uint32_t out = 0;
    for (int w = 0; w < 8; w++)
        for (int j = 0; j < 4; j++) {
            const int plain = 4 * w + j, spread = 8 * j + (w + 4) % 8;
            out |= (bits >> (back ? spread : plain) & 1) << (back ? plain : spread);
        }
    return out;
}

// Fills what follows a panel's blocks and scales with zeros.
static inline void pad(const panel *p, int cols) {
    const size_t used = used_bytes(cols);
    memset(p->at + used, 0, panel_bytes(cols) - used);
}

static inline void pack(const atlas_Pack *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const panel p = panel_at(&a->W, 0, x);
    if (kIsApart) {
        pack_apart(&p, x, (const char *)a->Raw, a->W.Rows, a->W.Cols);
        pad(&p, a->W.Cols);
        return;
    }
    const size_t pitch = kIsBF16 ? (size_t)a->W.Cols * 2 : (size_t)p.blocks * kRawBlock;
    const char *raw = (const char *)a->Raw + x * kLanes * pitch;
    for (int b = 0; b < p.blocks; b++) {
        for (int lane = 0; lane < kLanes; lane++) {
            const char *in = raw + lane * pitch + (size_t)b * kRawBlock;
            for (int s = 0; s < kScales; s++) {
                uint16_t scale = 0;
                if (lane < p.rows) memcpy(&scale, in + kRawScales + 2 * s, 2);
                scales_at(&p, b)[s * kLanes + lane] = scale;
            }
            for (int w = 0; w < kWords; w++) {
                const uint32_t word = lane < p.rows ? load_word(in + kRawWords + 4 * w, b, a->W.Cols) : 0;
                words_at(&p, b, w)[lane] = kIsQ5_0 && w == 0 ? spread_bits(word, 0) : word;
            }
        }
    }
    pad(&p, a->W.Cols);
}

static inline void unpack(const atlas_Unpack *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const panel p = panel_at(&a->W, 0, x);
    if (kIsApart) {
        unpack_apart(&p, x, (char *)a->Raw, a->W.Rows, a->W.Cols);
        return;
    }
    const size_t pitch = kIsBF16 ? (size_t)a->W.Cols * 2 : (size_t)p.blocks * kRawBlock;
    char *raw = (char *)a->Raw + x * kLanes * pitch;
    for (int b = 0; b < p.blocks; b++) {
        for (int lane = 0; lane < p.rows; lane++) {
            char *out = raw + lane * pitch + (size_t)b * kRawBlock;
            for (int s = 0; s < kScales; s++) memcpy(out + kRawScales + 2 * s, scales_at(&p, b) + s * kLanes + lane, 2);
            for (int w = 0; w < kWords; w++) {
                uint32_t word = words_at(&p, b, w)[lane];
                if (kIsQ5_0 && w == 0) word = spread_bits(word, 1);
                store_word(out + kRawWords + 4 * w, word, b, a->W.Cols);
            }
        }
    }
}
