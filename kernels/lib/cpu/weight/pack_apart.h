// Pack and Unpack of panel x where a checkpoint has all codes of a matrix and then all its scales: FP8 and NVFP4.
#pragma once
#include "panel.h"

// Bytes of a row's codes in a checkpoint.
static inline size_t code_bytes(int cols) { return kIsNVFP4 ? (size_t)cols / 2 : (size_t)cols; }

// The last of an odd number of columns is one byte.
static inline size_t pair_bytes(int cols, int b) { return 2 * b + 1 < cols ? 2 : 1; }

static inline void pack_pairs(const panel *p, int x, const char *raw, int rows, int cols) {
    for (int b = 0; b < p->blocks; b++)
        for (int lane = 0; lane < kLanes; lane++) {
            uint16_t pair = 0;
            const char *const from = raw + (size_t)(x * kLanes + lane) * cols + 2 * b;
            if (lane < p->rows && pair_bytes(cols, b) == 2)
                memcpy(&pair, from, 2);
            else if (lane < p->rows)
                memcpy(&pair, from, 1);
            pairs_at(p, b)[lane] = pair;
        }
    if (!kIsF8Block) return;
    const size_t scales = sizeof(float) * spans_of(cols);
    memcpy(span_scale(p, 0), raw + (size_t)rows * cols + x * scales, scales);
}

static inline void unpack_pairs(const panel *p, int x, char *raw, int rows, int cols) {
    for (int b = 0; b < p->blocks; b++)
        for (int lane = 0; lane < p->rows; lane++) {
            const uint16_t pair = pairs_at(p, b)[lane];
            char *const to = raw + (size_t)(x * kLanes + lane) * cols + 2 * b;
            if (pair_bytes(cols, b) == 2)
                memcpy(to, &pair, 2);
            else
                memcpy(to, &pair, 1);
        }
    if (!kIsF8Block) return;
    const size_t scales = sizeof(float) * spans_of(cols);
    memcpy(raw + (size_t)rows * cols + x * scales, span_scale(p, 0), scales);
}

// Eight nibbles to the lower halves of eight bytes, in order, and back.
static inline uint64_t spread_nibbles(uint32_t x) {
    uint64_t y = x;
    y = (y | y << 16) & 0x0000ffff0000ffff;
    y = (y | y << 8) & 0x00ff00ff00ff00ff;
    return (y | y << 4) & 0x0f0f0f0f0f0f0f0f;
}
static inline uint32_t gather_nibbles(uint64_t y) {
    y &= 0x0f0f0f0f0f0f0f0f;
    y = (y | y >> 4) & 0x00ff00ff00ff00ff;
    y = (y | y >> 8) & 0x0000ffff0000ffff;
    return (uint32_t)(y | y >> 16);
}

// Where a checkpoint's codes and scales of sixteen columns begin.
static inline size_t codes_from(int row, int cols, int group) { return row * code_bytes(cols) + 8 * group; }
static inline size_t scale_from(int rows, int cols, int row, int group) { return rows * code_bytes(cols) + (size_t)row * (cols / 16) + group; }

static inline void pack_nibbles(const panel *p, int x, const char *raw, int rows, int cols) {
    for (int b = 0; b < p->blocks; b++) {
        uint8_t *const scales = (uint8_t *)scales_at(p, b);
        for (int lane = 0; lane < kLanes; lane++) {
            uint32_t word[4] = {0};
            for (int half = 0; half < 2; half++) {
                const int row = x * kLanes + lane, group = 2 * b + half, there = lane < p->rows && group < cols / 16;
                const uint8_t scale = there ? raw[scale_from(rows, cols, row, group)] : 0;
                scales[half * kLanes + lane] = scale & 0x7f;
                if (!there) continue;
                for (int i = 0; i < 2; i++) {
                    uint32_t codes;
                    memcpy(&codes, raw + codes_from(row, cols, group) + 4 * i, sizeof codes);
                    if (scale & 0x80) codes ^= 0x88888888;
                    const uint64_t bytes = spread_nibbles(codes) << 4 * half;
                    word[2 * i] |= (uint32_t)bytes;
                    word[2 * i + 1] |= (uint32_t)(bytes >> 32);
                }
            }
            for (int w = 0; w < 4; w++) words_at(p, b, w)[lane] = word[w];
        }
    }
}

static inline void unpack_nibbles(const panel *p, int x, char *raw, int rows, int cols) {
    for (int b = 0; b < p->blocks; b++)
        for (int lane = 0; lane < p->rows; lane++)
            for (int half = 0; half < 2; half++) {
                const int row = x * kLanes + lane, group = 2 * b + half;
                if (group >= cols / 16) continue;
                raw[scale_from(rows, cols, row, group)] = ((uint8_t *)scales_at(p, b))[half * kLanes + lane];
                for (int i = 0; i < 2; i++) {
                    const uint64_t bytes = words_at(p, b, 2 * i)[lane] | (uint64_t)words_at(p, b, 2 * i + 1)[lane] << 32;
                    const uint32_t codes = gather_nibbles(bytes >> 4 * half);
                    memcpy(raw + codes_from(row, cols, group) + 4 * i, &codes, sizeof codes);
                }
            }
}

static inline void pack_apart(const panel *p, int x, const char *raw, int rows, int cols) {
    (kIsNVFP4 ? pack_nibbles : pack_pairs)(p, x, raw, rows, cols);
}
static inline void unpack_apart(const panel *p, int x, char *raw, int rows, int cols) {
    (kIsNVFP4 ? unpack_nibbles : unpack_pairs)(p, x, raw, rows, cols);
}
