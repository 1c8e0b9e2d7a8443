// A tile of int8 over blocks of 256: n rows by p panels of 16 outputs; 32 columns are an exact integer sum in registers.
//
// An output is one chain over 32 columns at a time in order: fma with the scales of both, and for Q4_K another with the
// minimum. In Q6_K the integer sum holds the scales of its two halves.
#pragma once
#include "tile_int8.h"

// What four groups of 32 columns need of one panel: for Q4_K their scales and minimums, a byte each, for Q6_K the scales
// of eight halves.
typedef struct { i32x16 first, second; } factors;

INLINE factors factors_of(const panel *at, int b, int half) {
    if (kIsQ6_K) return (factors){i32x16_load(words_at(at, b, 48 + 2 * half)), i32x16_load(words_at(at, b, 49 + 2 * half))};
    const i32x16 low = i32x16_set(0x0f0f0f0f), high = i32x16_set(0x30303030);
    const i32x16 scale = i32x16_load(words_at(at, b, 0)), minimum = i32x16_load(words_at(at, b, 1)), rest = i32x16_load(words_at(at, b, 2));
    if (!half) return (factors){i32x16_and(scale, i32x16_set(0x3f3f3f3f)), i32x16_and(minimum, i32x16_set(0x3f3f3f3f))};
    return (factors){i32x16_or(i32x16_and(rest, low), i32x16_and(i32x16_right(scale, 2), high)),
                     i32x16_or(i32x16_and(i32x16_right(rest, 4), low), i32x16_and(i32x16_right(minimum, 2), high))};
}

INLINE i32x16 byte_of(i32x16 word, int i) { return i32x16_and(i32x16_right(word, 8 * i), i32x16_set(255)); }
INLINE i32x16 signed_byte_of(i32x16 word, int i) { return i32x16_right_signed(i32x16_left(word, 24 - 8 * i), 24); }

// The codes of word w of group g, which is the group-th of a half.
INLINE i32x16 codes_of(const panel *at, int b, int half, int group, int w) {
    const i32x16 low = i32x16_set(0x0f0f0f0f);
    if (kIsQ4_K) {
        const i32x16 word = i32x16_load(words_at(at, b, 3 + half * 16 + group / 2 * 8 + w));
        return i32x16_and(group % 2 ? i32x16_right(word, 4) : word, low);
    }
    const i32x16 word = i32x16_load(words_at(at, b, half * 16 + group % 2 * 8 + w));
    const i32x16 upper = i32x16_load(words_at(at, b, 32 + half * 8 + w));
    const i32x16 moved = group == 3 ? i32x16_right(upper, 2) : i32x16_left(upper, 4 - 2 * group);
    return i32x16_or(i32x16_and(group / 2 ? i32x16_right(word, 4) : word, low), i32x16_and(moved, i32x16_set(0x30303030)));
}

// Adds the products of words first … last-1 of a group to sums.
INLINE void add_words(int p, int n, const panel *at, int b, int half, int group, int first, int last, const activation *const *row,
                      i32x16 (*sum)[kTileRows]) {
#pragma GCC unroll kUnroll
    for (int w = first; w < last; w++) {
        i32x16 weights[2];
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) weights[i] = codes_of(&at[i], b, half, group, w);
#pragma GCC unroll 8
        for (int r = 0; r < n; r++) {
            const i32x16 x = codes_at(&row[r][8 * b + 4 * half + group], w);
#pragma GCC unroll 2
            for (int i = 0; i < p; i++) sum[i][r] = dot_codes(sum[i][r], weights[i], x);
        }
    }
}

INLINE void start_sums(int p, int n, int g, int s, const activation *const *row, i32x16 (*sum)[kTileRows]) {
#pragma GCC unroll 8
    for (int r = 0; r < n; r++)
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) sum[i][r] = kDotOffset ? i32x16_set(row[r][g].start[s]) : i32x16_zero();
}

// Ends sums: times the scale of their columns where that is a whole number.
INLINE void end_sums(int p, int n, const i32x16 *factor, i32x16 (*sum)[kTileRows]) {
#pragma GCC unroll 2
    for (int i = 0; i < p; i++)
#pragma GCC unroll 8
        for (int r = 0; r < n; r++) sum[i][r] = kIsQ6_K ? dot_end_times(sum[i][r], factor[i]) : dot_end(sum[i][r]);
}

// Sums of a group, the group-th of a half.
INLINE void group_sums(int p, int n, const panel *at, int b, int half, int group, const factors *of, const activation *const *row,
                       i32x16 (*sum)[kTileRows]) {
    const int g = 8 * b + 4 * half + group;
    i32x16 factor[2];
    if (kIsQ4_K) {
        start_sums(p, n, g, 0, row, sum);
        add_words(p, n, at, b, half, group, 0, 8, row, sum);
        end_sums(p, n, factor, sum);
    } else {
        i32x16 before[2][kTileRows];
#pragma GCC unroll 2
        for (int s = 0; s < 2; s++) {
            start_sums(p, n, g, s, row, sum);
            add_words(p, n, at, b, half, group, 4 * s, 4 * s + 4, row, sum);
#pragma GCC unroll 2
            for (int i = 0; i < p; i++) factor[i] = dot_factor(signed_byte_of(group / 2 ? of[i].second : of[i].first, group % 2 * 2 + s));
            end_sums(p, n, factor, sum);
#pragma GCC unroll 2
            for (int i = 0; i < p; i++)
#pragma GCC unroll 8
                for (int r = 0; r < n; r++)
                    if (s)
                        sum[i][r] = i32x16_add(sum[i][r], before[i][r]);
                    else
                        before[i][r] = sum[i][r];
            if (n * p > 2) __asm__ volatile("" ::"r"(before) : "memory");
        }
    }
}

INLINE multipliers group_multipliers(const panel *at, int b, int group, factors of) {
    const uint16_t *scales = scales_at(at, b);
    multipliers m = {f32x16_halves(scales), f32x16_zero()};
    if (kIsQ4_K) {
        m.scale = f32x16_mul(m.scale, f32x16_ints(byte_of(of.first, group)));
        m.minimum = f32x16_mul(f32x16_halves(scales + kLanes), f32x16_ints(byte_of(of.second, group)));
    }
    return m;
}

INLINE void tile_group(int p, int n, const panel *at, int b, int half, int group, const factors *of, const activation *const *row,
                       f32x16 (*acc)[kTileRows]) {
    i32x16 sum[2][kTileRows];
    if (n * p > 2) __asm__ volatile("" ::"r"(acc) : "memory");  // keeps acc in memory, so that sum has the registers
    group_sums(p, n, at, b, half, group, of, row, sum);
#pragma GCC unroll 2
    for (int i = 0; i < p; i++) {
        const multipliers m = group_multipliers(&at[i], b, group, of[i]);
#pragma GCC unroll 8
        for (int r = 0; r < n; r++) acc[i][r] = add_sum(acc[i][r], sum[i][r], m, &row[r][8 * b + 4 * half + group]);
    }
}

INLINE void tile_super_blocks(int p, int n, const panel *at, int cols, const activation *const *row, f32x16 (*acc)[kTileRows]) {
    for (int b = 0; b < cols / 256; b++)
        for (int half = 0; half < 2; half++) {
            if (n == 1) prefetch_ahead(p, at, b, half * (kPackedBlock / 2), (half + 1) * (kPackedBlock / 2));
            factors of[2];
#pragma GCC unroll 2
            for (int i = 0; i < p; i++) of[i] = factors_of(&at[i], b, half);
#pragma GCC unroll 4
            for (int group = 0; group < 4; group++) tile_group(p, n, at, b, half, group, of, row, acc);
        }
}
