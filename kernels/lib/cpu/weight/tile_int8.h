// A tile of int8: n rows by p panels of 16 outputs; a block of 32 columns is an exact integer sum in registers.
//
// An output is one chain over the blocks in order: fma with the two scales, and for Q4_1 another with the minimum. Blocks of
// NVFP4 have two sums, one after the other.
#pragma once
#include "dot.h"

enum { kAhead = kBlock == 256 ? 4096 : 2048 };  // bytes to fetch ahead of use

enum { kSums = kIsNVFP4 ? 2 : 1 };  // sums of a block

// Integer sum s of block b, for all rows of the tile.
INLINE void tile_sums(int p, int n, const panel *at, int b, int s, const activation *const *row, i32x16 (*sum)[kTileRows]) {
    const i32x16 low = i32x16_set(0x0f0f0f0f), fifth = i32x16_set(0x10101010);
#pragma GCC unroll 8
    for (int r = 0; r < n; r++)
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) sum[i][r] = kDotOffset ? i32x16_set(row[r][b].start[kSums == 2 ? s : 0]) : i32x16_zero();
#pragma GCC unroll 2
    for (int half = kSums == 2 ? s : 0; half < (kIsQ8_0 || kSums == 2 ? s + 1 : 2); half++) {
        i32x16 high[2];  // Q5_0: the fifth bits of the next word are those at bit 4 of each byte
#pragma GCC unroll 2
        for (int i = 0; i < p && kIsQ5_0; i++) {
            high[i] = i32x16_load(words_at(&at[i], b, 0));
            if (half) high[i] = i32x16_left(high[i], 4);
        }
#pragma GCC unroll kUnroll
        for (int w = 0; w < (kIsQ8_0 ? 8 : 4); w++) {
            i32x16 weights[2];
#pragma GCC unroll 2
            for (int i = 0; i < p; i++) {
                weights[i] = i32x16_load(words_at(&at[i], b, kIsQ5_0 + w));
                if (half) weights[i] = i32x16_right(weights[i], 4);
                if (!kIsQ8_0) weights[i] = i32x16_and(weights[i], low);
                if (kIsNVFP4) weights[i] = i32x16_lookup(kTwiceFP4, weights[i]);
                if (!kIsQ5_0) continue;
                weights[i] = i32x16_or(weights[i], i32x16_and(high[i], fifth));
                high[i] = i32x16_right(high[i], 1);
            }
#pragma GCC unroll 8
            for (int r = 0; r < n; r++) {
                const i32x16 x = codes_at(&row[r][b], half * 4 + w);
#pragma GCC unroll 2
                for (int i = 0; i < p; i++) sum[i][r] = (kIsQ8_0 ? dot_bytes : dot_codes)(sum[i][r], weights[i], x);
            }
        }
    }
}

#ifdef __ARM_FEATURE_MATMUL_INT8
#include "lib/cpu/arm64/sums_in_pairs.h"
#endif

// Sum s of block b, by whatever makes it fastest.
INLINE void block_sums(int p, int n, const panel *at, int b, int s, const activation *const *row, i32x16 (*sum)[kTileRows]) {
#ifdef __ARM_FEATURE_MATMUL_INT8
    if (n > 1) {
        for (int i = 0; i < p; i++) tile_sums_in_pairs(n, &at[i], b, row, sum[i]);
        return;
    }
#endif
    tile_sums(p, n, at, b, s, row, sum);
#pragma GCC unroll 2
    for (int i = 0; i < p; i++)
#pragma GCC unroll 8
        for (int r = 0; r < n && !kIsQ8_0; r++) sum[i][r] = dot_end(sum[i][r]);
}

// What the columns of a sum are multiplied by.
typedef struct { f32x16 scale, minimum; } multipliers;

INLINE multipliers block_multipliers(const panel *at, int b, int s) {
    const uint16_t *scales = scales_at(at, b);
    if (kIsNVFP4) return (multipliers){f32x16_positive_e4m3((const uint8_t *)scales + kLanes * s), f32x16_zero()};
    return (multipliers){f32x16_halves(scales), kIsQ4_1 ? f32x16_halves(scales + kLanes) : f32x16_zero()};
}

// One link of an output's chain.
INLINE f32x16 add_sum(f32x16 out, i32x16 sum, multipliers m, const activation *x) {
    out = f32x16_fma(f32x16_ints(sum), f32x16_mul(m.scale, f32x16_set(x->scale)), out);
    return kIsQ4_1 || kIsQ4_K ? f32x16_fma(m.minimum, f32x16_set(x->sum), out) : out;
}

// Where a row that waits for memory will be.
INLINE void prefetch_ahead(int p, const panel *at, int b, int from, int to) {
    for (int i = 0; i < p; i++)
        for (int line = from; line < to; line += 64) __builtin_prefetch((const char *)words_at(&at[i], b, 0) + kAhead + line);
}

// Adds block b to outputs, which stay in memory where that leaves the registers to sums.
INLINE void add_block(int p, int n, int in_memory, const panel *at, int b, const activation *const *row, f32x16 (*acc)[kTileRows]) {
#pragma GCC unroll 2
    for (int s = 0; s < kSums; s++) {
        i32x16 sum[2][kTileRows];
        if (in_memory) __asm__ volatile("" ::"r"(acc) : "memory");
        block_sums(p, n, at, b, s, row, sum);
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) {
            const multipliers m = block_multipliers(&at[i], b, s);
#pragma GCC unroll 8
            for (int r = 0; r < n; r++) acc[i][r] = add_sum(acc[i][r], sum[i][r], m, &row[r][b]);
        }
    }
}

INLINE void tile_blocks(int p, int n, const panel *at, int cols, const activation *const *row, f32x16 (*acc)[kTileRows]) {
    for (int b = 0; b < groups_of(cols); b++) {
        if (n == 1) prefetch_ahead(p, at, b, 0, kPackedBlock);
        add_block(p, n, n * p > 2, at, b, row, acc);
    }
}
