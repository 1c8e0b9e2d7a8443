// What the rests of prepared rows add to products: a chain of its own over the blocks that have one, and then its end to that of
// all blocks.
//
// A row that is alone meets a block together with its rest. Rests of many rows meet one behind the rows, so that its codes
// are unpacked for several at once: few blocks have a rest, mostly those of a model's large columns.
#pragma once
#include "tile_super.h"

// Sums of block g of 32 columns, for the row and, where it has one, its rest; adds them to acc, which has both.
INLINE void add_alone(int p, const panel *at, int g, const factors *of, const activation *const *both, f32x16 (*acc)[kTileRows]) {
    const int n = rests_of(both[0], (int)(both[1] - both[0]))[g / 32] >> g % 32 & 1 ? 2 : 1;
#define CASE(n)                                                                                    \
    if (kBlock == 256) {                                                                           \
        i32x16 sum[2][kTileRows];                                                                  \
        group_sums(p, n, at, g / 8, g / 4 % 2, g % 4, of, both, sum);                              \
        for (int i = 0; i < p; i++) {                                                              \
            const multipliers m = group_multipliers(&at[i], g / 8, g % 4, of[i]);                  \
            for (int r = 0; r < n; r++) acc[i][r] = add_sum(acc[i][r], sum[i][r], m, &both[r][g]); \
        }                                                                                          \
    } else {                                                                                       \
        add_block(p, n, 0, at, g, both, acc);                                                      \
    }
    if (n == 1) {
        CASE(1)
    } else {
        CASE(2)
    }
#undef CASE
}

// A tile of a row that is alone, and its rests.
INLINE void tile_alone(int p, const panel *at, int cols, const activation *row, f32x16 (*acc)[kTileRows]) {
    const int groups = groups_of(cols);
    const activation *const both[2] = {row, row + groups};
    factors of[2];
    for (int i = 0; i < p; i++) acc[i][1] = f32x16_zero();
    for (int g = 0; g < groups; g += kBlock == 256 ? 4 : 1) {
        if (kBlock == 256) {
            prefetch_ahead(p, at, g / 8, g / 4 % 2 * (kPackedBlock / 2), (g / 4 % 2 + 1) * (kPackedBlock / 2));
            for (int i = 0; i < p; i++) of[i] = factors_of(&at[i], g / 8, g / 4 % 2);
#pragma GCC unroll 4
            for (int group = 0; group < 4; group++) add_alone(p, at, g + group, of, both, acc);
        } else {
            prefetch_ahead(p, at, g, 0, kPackedBlock);
            add_alone(p, at, g, of, both, acc);
        }
    }
    for (int i = 0; i < p; i++) acc[i][0] = f32x16_fma(acc[i][1], f32x16_set(1), acc[i][0]);
}

// Sum s and multipliers of columns 32·g … 32·g+31 of p panels, for n rests.
INLINE void rest_sums(int p, int n, const panel *at, int g, int s, const activation *const *rest, i32x16 (*sum)[kTileRows], multipliers *m) {
    if (kBlock == 256) {
        factors of[2];
        for (int i = 0; i < p; i++) of[i] = factors_of(&at[i], g / 8, g / 4 % 2);
        group_sums(p, n, at, g / 8, g / 4 % 2, g % 4, of, rest, sum);
        for (int i = 0; i < p; i++) m[i] = group_multipliers(&at[i], g / 8, g % 4, of[i]);
    } else {
        block_sums(p, n, at, g, s, rest, sum);
        for (int i = 0; i < p; i++) m[i] = block_multipliers(&at[i], g, s);
    }
}

// Adds what they make to those outputs of one panel that belong to the rests.
INLINE void add_rest(int n, const panel *at, int g, const activation *const *rest, const int *which, float (*out)[kLanes]) {
#pragma GCC unroll 2
    for (int s = 0; s < kSums; s++) {
        i32x16 sum[1][kTileRows];
        multipliers m;
        rest_sums(1, n, at, g, s, rest, sum, &m);
#pragma GCC unroll 8
        for (int r = 0; r < n; r++) {
            float *const to = out[which[r]];
            f32x16_store(to, add_sum(f32x16_load(to), sum[0][r], m, &rest[r][g]));
        }
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
static __attribute__((noinline)) void add_rests(const panel *at, int panels, int blocks, const uint64_t *who, const activation *const *row, int rows,
                                                float (*out)[kLanes], int pitch) {
    float sums[2][kMostRests][kLanes];
    uint64_t any = 0;
    for (int i = 0; i < panels; i++) memset(sums[i], 0, rows * sizeof *sums[i]);
    for (int g = 0; g < blocks; g++) {
        const activation *rest[kMostRests];
        int which[kMostRests], n = 0;
        any |= who[g];
        for (uint64_t left = who[g]; left; left &= left - 1) {
            which[n] = __builtin_ctzll(left);
            rest[n] = row[which[n]] + blocks;
            n++;
        }
        for (int i = 0; i < panels && n; i++) {
            int r = 0;
            for (; n - r >= kTileRows; r += kTileRows) add_rest(kTileRows, &at[i], g, rest + r, which + r, sums[i]);
            for (; n - r >= 4 && kTileRows > 4; r += 4) add_rest(4, &at[i], g, rest + r, which + r, sums[i]);
            for (; n - r >= 2 && kTileRows > 2; r += 2) add_rest(2, &at[i], g, rest + r, which + r, sums[i]);
            if (r < n) add_rest(1, &at[i], g, rest + r, which + r, sums[i]);
        }
    }
    for (int i = 0; i < panels && any; i++)
        for (int r = 0; r < rows; r++) f32x16_store(out[i * pitch + r], f32x16_fma(f32x16_load(sums[i][r]), f32x16_set(1), f32x16_load(out[i * pitch + r])));
}
