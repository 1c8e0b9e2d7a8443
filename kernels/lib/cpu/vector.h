// Eight lanes of f32: the words that the bodies in op/ are written in.
//
// Lanes and the order of every sum are written out, so bits depend on neither the compiler nor the width of a
// register. A tail of fewer than eight elements goes through the same arithmetic with zeros in the unused lanes.
#pragma once
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { kWidth = 8 };

#define INLINE static inline __attribute__((always_inline))

// What registers decide: f32x8, mask8 (all ones or zero in each lane) and f64x8, and the words on them.
#ifdef __aarch64__
#include "lib/cpu/arm64/vector.h"
#elif defined __AVX2__
#include "lib/cpu/x86/vector.h"
#else
#include "lib/cpu/portable/vector.h"
#endif

// Twins are two f32x8 side by side.
#ifndef HAS_TWINS
enum { kTwinRegisters = 2 };
typedef struct { f32x8 first, second; } twin;

INLINE twin twin_load(const float *p) { return (twin){load8(p), load8(p + kWidth)}; }
INLINE twin twin_same(const float *p) { return (twin){load8(p), load8(p)}; }
INLINE twin twin_set(float x) { return (twin){set8(x), set8(x)}; }
INLINE void twin_store(float *p, twin x) {
    store8(p, x.first);
    store8(p + kWidth, x.second);
}
INLINE twin twin_fma(twin x, twin y, twin z) { return (twin){fma8(x.first, y.first, z.first), fma8(x.second, y.second, z.second)}; }
INLINE f32x8 twin_first(twin x) { return x.first; }
INLINE f32x8 twin_second(twin x) { return x.second; }
INLINE twin twin_sum_pairs(twin x, twin y) { return (twin){sum_pairs(x.first, y.first), sum_pairs(x.second, y.second)}; }
#endif

// Up to eight elements: all lanes where n allows, else the first n and zeros.
INLINE f32x8 load_up_to8(const float *p, int n) { return n >= kWidth ? load8(p) : load_first8(p, n); }
INLINE void store_up_to8(float *p, f32x8 x, int n) {
    if (n >= kWidth)
        store8(p, x);
    else
        store_first8(p, x, n);
}

// e to the power of each lane, within two units in the last place; infinity above the range of f32 and zero where the result
// would be subnormal: processors make those more than a hundred times slower than any other.
// The polynomial is the minimax one of degree 6 on [-ln2/2, ln2/2] whose two lowest coefficients are 1.
INLINE f32x8 exp8(f32x8 x) {
    const f32x8 lowest = set8(-87.33f);
    const mask8 tiny = less8(x, lowest);
    x = max8(lowest, min8(set8(89.0f), x));
    const f32x8 n = round8(mul8(x, set8(1.44269504f)));
    f32x8 r = fma8(n, set8(-0.693359375f), x);
    r = fma8(n, set8(2.12194440e-4f), r);
    f32x8 p = set8(1.38145986e-3f);
    p = fma8(p, r, set8(8.36871688e-3f));
    p = fma8(p, r, set8(4.16683880e-2f));
    p = fma8(p, r, set8(1.66665206e-1f));
    p = fma8(p, r, set8(4.99999934e-1f));
    p = add8(fma8(p, mul8(r, r), r), set8(1));
    return pick8(tiny, times_power8(p, n), set8(0));
}

INLINE f32x8 sigmoid8(f32x8 x) { return div8(set8(1), add8(set8(1), exp8(neg8(x)))); }

INLINE f32x8 load_up_to8_bf16(const uint16_t *p, int n) {
    if (n >= kWidth) return load8_bf16(p);
    uint16_t part[kWidth] = {0};
    for (int i = 0; i < n; i++) part[i] = p[i];
    return load8_bf16(part);
}
INLINE void store_up_to8_bf16(uint16_t *p, f32x8 x, int n) {
    if (n >= kWidth) {
        store8_bf16(p, x);
        return;
    }
    uint16_t part[kWidth];
    store8_bf16(part, x);
    for (int i = 0; i < n; i++) p[i] = part[i];
}

// 1/√(mean of squares + eps), summed in f64: eight lanes, the lower four and the upper four apart, then as sum8.
INLINE float inverse_rms(const float *x, int n, float eps) {
    f64x8 sum = {0};
    for (int c = 0; c < n; c += kWidth) sum = add_squares8(sum, load_up_to8(x + c, n - c));
    return (float)(1 / sqrt(sum8_f64(sum) / n + (double)eps));
}
