// A tile of f32: n rows by p panels of 16 outputs in registers, weights made f32 on the way, one fma a column.
//
// An output is one chain of fma over the columns in order, whatever n and p are; that of FP8 is in span.h.
#pragma once
#include "activation.h"

#ifdef __AVX512BW__
enum { kTileRows = 8, kPairRows = 8 };  // rows of a tile, and of one that spans two panels
#elif defined __AVX2__ || defined __aarch64__
enum { kTileRows = 6, kPairRows = 2 };
#else
enum { kTileRows = 2, kPairRows = 1 };  // sixteen registers of four lanes
#endif

enum { kAhead = 2048 };  // bytes that a row that waits for memory fetches ahead of use

// acc[i][r] += w of panel i times column c of row r.
INLINE void tile_column(int p, int n, const f32x16 *w, const activation *const *row, int c, f32x16 (*acc)[kTileRows]) {
#pragma GCC unroll 8
    for (int r = 0; r < n; r++) {
        const f32x16 x = f32x16_set(row[r][c]);
#pragma GCC unroll 2
        for (int i = 0; i < p; i++) acc[i][r] = f32x16_fma(w[i], x, acc[i][r]);
    }
}

// Two columns of bf16, the lower half of each word first.
INLINE void tile_pair(int p, int n, const panel *at, const activation *const *row, int b, int odd, f32x16 (*acc)[kTileRows]) {
    const i32x16 upper = i32x16_set((int)0xffff0000);
    f32x16 even[2], next[2];
#pragma GCC unroll 2
    for (int i = 0; i < p; i++) {
        const i32x16 word = i32x16_load(words_at(&at[i], b, 0));
        even[i] = f32x16_bits(i32x16_left(word, 16));
        next[i] = f32x16_bits(i32x16_and(word, upper));
    }
    tile_column(p, n, even, row, 2 * b, acc);
    if (!odd) tile_column(p, n, next, row, 2 * b + 1, acc);
}

// Column c of a block of codes.
INLINE f32x16 decode_column(const panel *at, int b, int c) {
    const place of = place_of(c);
    const i32x16 word = i32x16_load(words_at(at, b, of.low));
    const uint16_t *scales = scales_at(at, b);
    f32x16 d = f32x16_halves(scales);
    if (kIsQ8_0) return f32x16_mul(d, f32x16_ints(i32x16_right_signed(i32x16_left(word, 24 - of.low_bit), 24)));
    i32x16 q = i32x16_and(i32x16_right(word, of.low_bit), i32x16_set(15));
    if (kIsQ5_0 || kIsQ6_K) {
        const i32x16 high = i32x16_right(i32x16_load(words_at(at, b, of.high)), of.high_bit);
        q = i32x16_or(q, i32x16_left(i32x16_and(high, i32x16_set(kHighMask)), 4));
    }
    if (kIsQ4_1) return f32x16_fma(d, f32x16_ints(q), f32x16_halves(scales + kLanes));
    if (kIsQ4_K) {
        const f32x16 minimum = f32x16_mul(f32x16_halves(scales + kLanes), f32x16_ints(six_bits(at, b, c / 32, 1)));
        d = f32x16_mul(d, f32x16_ints(six_bits(at, b, c / 32, 0)));
        return f32x16_fma(minimum, f32x16_set(-1), f32x16_mul(d, f32x16_ints(q)));
    }
    if (kIsQ6_K) d = f32x16_mul(d, f32x16_ints(signed_byte(at, b, c / 16)));
    return f32x16_mul(d, f32x16_ints(i32x16_add(q, i32x16_set(-kOffset))));
}

// Sixteen columns of NVFP4, which share scales: those of the low nibbles of a block, or of the high ones.
INLINE void tile_nibbles(int p, int n, const panel *at, int b, int half, const activation *const *row, f32x16 (*acc)[kTileRows]) {
    f32x16 scale[2];
#pragma GCC unroll 2
    for (int i = 0; i < p; i++)
        scale[i] = f32x16_mul(f32x16_positive_e4m3((const uint8_t *)scales_at(&at[i], b) + kLanes * half), f32x16_set(kUnit));
    for (int w = 0; w < 4; w++) {
        i32x16 code[2];
#pragma GCC unroll 2
        for (int i = 0; i < p; i++)
            code[i] = i32x16_lookup(kTwiceFP4, i32x16_and(i32x16_right(i32x16_load(words_at(&at[i], b, w)), 4 * half), i32x16_set(0x0f0f0f0f)));
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            f32x16 v[2];
#pragma GCC unroll 2
            for (int i = 0; i < p; i++)
                v[i] = f32x16_mul(scale[i], f32x16_ints(i32x16_add(i32x16_and(i32x16_right(code[i], 8 * j), i32x16_set(255)), i32x16_set(-kOffset))));
            tile_column(p, n, v, row, 32 * b + 16 * half + 4 * w + j, acc);
        }
    }
}

#include "span.h"

INLINE void tile(int p, int n, const panel *at, int cols, const activation *const *row, f32x16 (*acc)[kTileRows]) {
    if (kIsBF16) {
        for (int b = 0; b < cols / 2; b++) {
            for (int i = 0; i < p && n == 1; i++) __builtin_prefetch((const char *)words_at(&at[i], b, 0) + kAhead);
            tile_pair(p, n, at, row, b, 0, acc);
        }
        if (cols % 2) tile_pair(p, n, at, row, cols / 2, 1, acc);
        return;
    }
    if (kIsF8) {
        for (int g = 0; g < spans_of(cols); g++) tile_span(p, n, at, g, cols, row, acc);
        return;
    }
    if (kIsNVFP4) {
        for (int c = 0; c < cols; c += 16) tile_nibbles(p, n, at, c / 32, c / 16 % 2, row, acc);
        return;
    }
    for (int b = 0; b < cols / kBlock; b++) {
        for (int c = 0; c < kBlock; c++) {
            f32x16 w[2];
#pragma GCC unroll 2
            for (int i = 0; i < p; i++) w[i] = decode_column(&at[i], b, c);
            tile_column(p, n, w, row, kBlock * b + c, acc);
        }
    }
}
