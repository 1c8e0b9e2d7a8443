// Where a panel keeps the code of a column, and the six-bit numbers of Q4_K.
#pragma once
#include "panel.h"

// The lower bits of a column's code lie in word `low` from bit `low_bit` on; of those above them (kHighMask) the first is
// bit `high_bit` of word `high`.
typedef struct { int low, low_bit, high, high_bit; } place;

enum {
    kHighMask = kIsQ5_0 ? 1 : kIsQ6_K ? 3 : 0,
    kOffset = kIsQ4_0 ? 8 : kIsQ5_0 ? 16 : kIsQ6_K ? 32 : kIsNVFP4 ? 12 : 0,  // is taken off a code
    kShared = kIsQ6_K || kIsNVFP4 ? 16 : 32,                                  // columns that share the finest scale
    kUnit = kIsF8 ? 256 : kIsNVFP4 ? 128 : 1,                                 // weights are so many times what decoding makes of them
};

// Column c of a block.
INLINE place place_of(int c) {
    const int byte = c % 4 * 8, w = c / 4 % 8, group = c / 32;
    if (kIsQ8_0) return (place){w, byte, 0, 0};
    if (kIsQ5_0) return (place){1 + w % 4, byte + w / 4 * 4, 0, byte + (w + 4) % 8};
    if (kIsQ4_K) return (place){3 + group / 2 * 8 + w, byte + group % 2 * 4, 0, 0};
    if (kIsQ6_K) return (place){group / 4 * 16 + group % 2 * 8 + w, byte + group % 4 / 2 * 4, 32 + group / 4 * 8 + w, byte + group % 4 * 2};
    return (place){w % 4, byte + w / 4 * 4, 0, 0};
}

// The scale (0) or minimum (1) of group g of Q4_K, of a checkpoint's words.
INLINE i32x16 six_bits(const panel *at, int b, int g, int which) {
    const i32x16 first = i32x16_load(words_at(at, b, which));
    if (g < 4) return i32x16_and(i32x16_right(first, 8 * g), i32x16_set(63));
    const i32x16 low = i32x16_right(i32x16_load(words_at(at, b, 2)), 8 * (g - 4) + 4 * which);
    const i32x16 high = i32x16_and(i32x16_right(first, 8 * (g - 4) + 6), i32x16_set(3));
    return i32x16_add(i32x16_and(low, i32x16_set(15)), i32x16_left(high, 4));
}

// The sixteen-column group s of Q6_K: its scale.
INLINE i32x16 signed_byte(const panel *at, int b, int s) {
    return i32x16_right_signed(i32x16_left(i32x16_load(words_at(at, b, 48 + s / 4)), 24 - s % 4 * 8), 24);
}

// What the sixteen codes of NVFP4 stand for, twice that and kOffset more.
static const uint8_t kTwiceFP4[16] __attribute__((aligned(16))) = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
