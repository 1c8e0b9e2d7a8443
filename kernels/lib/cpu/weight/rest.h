// What the rests of prepared rows add to products: a chain of its own over the blocks that have one, behind that of all blocks.
//
// Rests of many rows meet a block of columns together, so that its codes are unpacked for several at once. Few blocks have
// one: mostly those of a model's large columns.
#pragma once
#include "tile_super.h"

// Sums and multipliers of columns 32·g … 32·g+31 of p panels, for n rests.
INLINE void rest_sums(int p, int n, const panel *at, int g, const activation *const *rest, i32x16 (*sum)[kTileRows], multipliers *m) {
    if (kBlock == 256) {
        factors of[2];
        for (int i = 0; i < p; i++) of[i] = factors_of(&at[i], g / 8, g / 4 % 2);
        group_sums(p, n, at, g / 8, g / 4 % 2, g % 4, of, rest, sum);
        for (int i = 0; i < p; i++) m[i] = group_multipliers(&at[i], g / 8, g % 4, of[i]);
    } else {
        block_sums(p, n, at, g, rest, sum);
        for (int i = 0; i < p; i++) m[i] = block_multipliers(&at[i], g);
    }
}

// Adds what they make to those outputs of one panel that belong to the rests.
INLINE void add_rest(int n, const panel *at, int g, const activation *const *rest, const int *which, float (*out)[kLanes]) {
    i32x16 sum[1][kTileRows];
    multipliers m;
    rest_sums(1, n, at, g, rest, sum, &m);
#pragma GCC unroll 8
    for (int r = 0; r < n; r++) {
        float *const to = out[which[r]];
        f32x16_store(to, add_sum(f32x16_load(to), sum[0][r], m, &rest[r][g]));
    }
}

enum { kMostRests = 64 };  // rows whose rests are added together

// Finds for each block which of at most kMostRests rows have a rest: a bit for each.
static inline void find_rests(const activation *const *row, int n, int blocks, uint64_t *who) {
    memset(who, 0, blocks * sizeof *who);
    for (int r = 0; r < n; r++)
        for (int w = 0; 32 * w < blocks; w++)
            for (uint32_t bits = rests_of(row[r], blocks)[w]; bits; bits &= bits - 1) who[32 * w + __builtin_ctz(bits)] |= (uint64_t)1 << r;
}

// out[i][r] += panel i times the rest of row r, for those rows; rows of out[0] and out[1] lie pitch apart.
static __attribute__((noinline)) void add_rests(const panel *at, int panels, int blocks, const uint64_t *who, const activation *const *row,
                                                float (*out)[kLanes], int pitch) {
    for (int g = 0; g < blocks; g++) {
        const activation *rest[kMostRests];
        int which[kMostRests], n = 0;
        for (uint64_t rows = who[g]; rows; rows &= rows - 1) {
            which[n] = __builtin_ctzll(rows);
            rest[n] = row[which[n]] + blocks;
            n++;
        }
        for (int i = 0; i < panels && n; i++) {
            float(*const to)[kLanes] = out + i * pitch;
            int r = 0;
            for (; n - r >= kTileRows; r += kTileRows) add_rest(kTileRows, &at[i], g, rest + r, which + r, to);
            for (; n - r >= 4 && kTileRows > 4; r += 4) add_rest(4, &at[i], g, rest + r, which + r, to);
            for (; n - r >= 2 && kTileRows > 2; r += 2) add_rest(2, &at[i], g, rest + r, which + r, to);
            if (r < n) add_rest(1, &at[i], g, rest + r, which + r, to);
        }
    }
}

// out[i] += panel i times the rest of a row that is alone. It waits for memory: what comes two panels later, meanwhile.
INLINE void add_alone(int p, const panel *at, int cols, const activation *row, float (*out)[kTileRows][kLanes]) {
    enum { kBytes = kPackedBlock * 32 / kBlock };
    const int blocks = cols / 32;
    const activation *const rest[1] = {row + blocks};
    f32x16 acc[2];
    for (int i = 0; i < p; i++) acc[i] = f32x16_load(out[i][0]);
    for (int w = 0; 32 * w < blocks; w++)
        for (uint32_t bits = rests_of(row, blocks)[w]; bits; bits &= bits - 1) {
            const int g = 32 * w + __builtin_ctz(bits);
            i32x16 sum[2][kTileRows];
            multipliers m[2];
            rest_sums(p, 1, at, g, rest, sum, m);
            for (int i = 0; i < p; i++) {
                for (int line = 0; line < kBytes; line += 64) __builtin_prefetch(at[i].at + 2 * panel_bytes(cols) + (size_t)g * kBytes + line);
                acc[i] = add_sum(acc[i], sum[i][0], m[i], &rest[0][g]);
            }
        }
    for (int i = 0; i < p; i++) f32x16_store(out[i][0], acc[i]);
}
