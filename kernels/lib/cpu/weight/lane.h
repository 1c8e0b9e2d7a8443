// Sixteen 32-bit lanes, one per output row of a panel, in as many registers as they take.
//
// Every body is written once in these words. Lanes never mix, so an output's bits depend on its own row alone. All of them
// mean what they are called but:
//
//   i32x16_lookup         each byte, 0 … 15, is replaced by that byte of an aligned table
//   f32x16_positive_e4m3  sixteen e4m3 bytes that have no sign, times 2^-8
//   f32x16_pairs_e4m3     sixteen pairs of e4m3 bytes, the lower and the upper ones, times 2^-8
#pragma once
#include "lib/cpu/vector.h"

enum { kLanes = 16 };

INLINE int least(int x, int y) { return x < y ? x : y; }

#ifdef __aarch64__
#include "lib/cpu/arm64/lane.h"
#elif defined __AVX2__
#include "lib/cpu/x86/lane.h"
#else
#include "lib/cpu/portable/lane.h"
#endif

static inline float bf16_to_f32(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
