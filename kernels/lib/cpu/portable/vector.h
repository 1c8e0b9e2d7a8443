// The words of vector.h for any processor, in vectors of four that the compiler maps to what there is. x86/vector.h says
// what they do; only fma8 differs.
#pragma once

typedef float f32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef uint16_t u16x4 __attribute__((vector_size(8)));
typedef double f64x2 __attribute__((vector_size(16)));
typedef float f32x2 __attribute__((vector_size(8)));
typedef struct { f32x4 lo, hi; } f32x8;
typedef struct { i32x4 lo, hi; } mask8;
typedef struct { f64x2 at[4]; } f64x8;

// Both halves of T by an expression over a half.
#define HALVES(T, lower, upper) ((T){(lower), (upper)})

INLINE f32x4 set4(float x) { return (f32x4){x, x, x, x}; }
INLINE f32x4 load4(const float *p) {
    f32x4 x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE void store4(float *p, f32x4 x) { memcpy(p, &x, sizeof x); }
INLINE f32x4 pick4(i32x4 mask, f32x4 x, f32x4 y) { return (f32x4)(((i32x4)x & ~mask) | ((i32x4)y & mask)); }

INLINE f32x8 set8(float x) { return HALVES(f32x8, set4(x), set4(x)); }
INLINE f32x8 load8(const float *p) { return HALVES(f32x8, load4(p), load4(p + 4)); }
INLINE void store8(float *p, f32x8 x) {
    store4(p, x.lo);
    store4(p + 4, x.hi);
}
INLINE float first_of8(f32x8 x) { return x.lo[0]; }
INLINE f32x8 neg8(f32x8 x) { return HALVES(f32x8, -x.lo, -x.hi); }
INLINE f32x8 add8(f32x8 x, f32x8 y) { return HALVES(f32x8, x.lo + y.lo, x.hi + y.hi); }
INLINE f32x8 sub8(f32x8 x, f32x8 y) { return HALVES(f32x8, x.lo - y.lo, x.hi - y.hi); }
INLINE f32x8 mul8(f32x8 x, f32x8 y) { return HALVES(f32x8, x.lo * y.lo, x.hi * y.hi); }
INLINE f32x8 div8(f32x8 x, f32x8 y) { return HALVES(f32x8, x.lo / y.lo, x.hi / y.hi); }
// x·y + z, rounded twice: fused multiplication is a function call where there is no instruction for it.
INLINE f32x8 fma8(f32x8 x, f32x8 y, f32x8 z) { return add8(mul8(x, y), z); }
INLINE f32x4 max4(f32x4 x, f32x4 y) { return pick4(x > y, y, x); }
INLINE f32x4 min4(f32x4 x, f32x4 y) { return pick4(x < y, y, x); }
INLINE f32x8 max8(f32x8 x, f32x8 y) { return HALVES(f32x8, max4(x.lo, y.lo), max4(x.hi, y.hi)); }
INLINE f32x8 min8(f32x8 x, f32x8 y) { return HALVES(f32x8, min4(x.lo, y.lo), min4(x.hi, y.hi)); }
// Where the last place is one, adding rounds; exact for numbers below 2^22, and nobody rounds larger ones.
INLINE f32x4 round4(f32x4 x) { return (x + 0x1.8p23f) - 0x1.8p23f; }
INLINE f32x8 round8(f32x8 x) { return HALVES(f32x8, round4(x.lo), round4(x.hi)); }
INLINE f32x4 times_power4(f32x4 x, f32x4 n) {
    const i32x4 whole = __builtin_convertvector(n, i32x4), half = whole >> 1;
    return x * (f32x4)((half + 127) << 23) * (f32x4)((whole - half + 127) << 23);
}
INLINE f32x8 times_power8(f32x8 x, f32x8 n) { return HALVES(f32x8, times_power4(x.lo, n.lo), times_power4(x.hi, n.hi)); }

INLINE mask8 less8(f32x8 x, f32x8 y) { return HALVES(mask8, x.lo < y.lo, x.hi < y.hi); }
INLINE mask8 at_least8(f32x8 x, f32x8 y) { return HALVES(mask8, x.lo >= y.lo, x.hi >= y.hi); }
INLINE mask8 equal8(f32x8 x, f32x8 y) { return HALVES(mask8, x.lo == y.lo, x.hi == y.hi); }
INLINE i32x4 finite4(f32x4 x) { return ((i32x4)x & 0x7fffffff) < 0x7f800000; }
INLINE mask8 finite8(f32x8 x) { return HALVES(mask8, finite4(x.lo), finite4(x.hi)); }
INLINE mask8 and8(mask8 x, mask8 y) { return HALVES(mask8, x.lo & y.lo, x.hi & y.hi); }
INLINE mask8 or8(mask8 x, mask8 y) { return HALVES(mask8, x.lo | y.lo, x.hi | y.hi); }
INLINE f32x8 pick8(mask8 mask, f32x8 x, f32x8 y) { return HALVES(f32x8, pick4(mask.lo, x.lo, y.lo), pick4(mask.hi, x.hi, y.hi)); }
INLINE mask8 mask_of8(uint32_t bits) {
    const i32x4 lo = {1, 2, 4, 8}, hi = {16, 32, 64, 128};
    return HALVES(mask8, ((int32_t)bits & lo) == lo, ((int32_t)bits & hi) == hi);
}
INLINE int bits_of8(mask8 mask) {
    const i32x4 lo = {1, 2, 4, 8}, hi = {16, 32, 64, 128};
    const i32x4 bits = (mask.lo & lo) | (mask.hi & hi);
    return (bits[0] | bits[1]) | (bits[2] | bits[3]);
}
INLINE mask8 beyond8(int32_t first, int32_t n) {
    const i32x4 lo = {0, 1, 2, 3}, hi = {4, 5, 6, 7};
    return HALVES(mask8, lo + first > n, hi + first > n);
}
INLINE mask8 first8(int n) {
    const i32x4 lo = {0, 1, 2, 3}, hi = {4, 5, 6, 7};
    return HALVES(mask8, lo < n, hi < n);
}
INLINE f32x8 load_first8(const float *p, int n) {
    float part[kWidth] = {0};
    for (int i = 0; i < n; i++) part[i] = p[i];
    return load8(part);
}
INLINE void store_first8(float *p, f32x8 x, int n) {
    float part[kWidth];
    store8(part, x);
    for (int i = 0; i < n; i++) p[i] = part[i];
}

INLINE float largest(f32x8 x) {
    const f32x4 m = max4(x.lo, x.hi);
    const float a = m[0] > m[2] ? m[0] : m[2], b = m[1] > m[3] ? m[1] : m[3];
    return a > b ? a : b;
}
INLINE float sum8(f32x8 x) { return ((x.lo[0] + x.lo[2]) + (x.lo[1] + x.lo[3])) + ((x.hi[0] + x.hi[2]) + (x.hi[1] + x.hi[3])); }
INLINE f32x4 sum_pairs4(f32x4 x, f32x4 y) { return (f32x4){x[0], y[0], x[1], y[1]} + (f32x4){x[2], y[2], x[3], y[3]}; }
INLINE f32x8 sum_pairs(f32x8 x, f32x8 y) { return HALVES(f32x8, sum_pairs4(x.lo, y.lo), sum_pairs4(x.hi, y.hi)); }
INLINE f32x4 add_halves4(f32x4 x, f32x4 y) { return (f32x4){x[0], x[1], y[0], y[1]} + (f32x4){x[2], x[3], y[2], y[3]}; }
INLINE void store_sums4(float *p, f32x8 x, f32x8 y) { store4(p, add_halves4(x.lo, y.lo) + add_halves4(x.hi, y.hi)); }
INLINE f64x8 add_squares8(f64x8 sum, f32x8 x) {
    const f64x2 v[4] = {{x.lo[0], x.lo[1]}, {x.lo[2], x.lo[3]}, {x.hi[0], x.hi[1]}, {x.hi[2], x.hi[3]}};
    for (int i = 0; i < 4; i++) sum.at[i] += v[i] * v[i];
    return sum;
}
INLINE double sum8_f64(f64x8 x) {
    const f64x2 lo = x.at[0] + x.at[1], hi = x.at[2] + x.at[3];
    return (lo[0] + lo[1]) + (hi[0] + hi[1]);
}

INLINE u32x4 load4_u16(const uint16_t *p) {
    u16x4 h;
    memcpy(&h, p, sizeof h);
    return __builtin_convertvector(h, u32x4);
}
INLINE void store4_u16(uint16_t *p, u32x4 x) {
    const u16x4 h = __builtin_convertvector(x, u16x4);
    memcpy(p, &h, sizeof h);
}
INLINE f32x8 load8_bf16(const uint16_t *p) { return HALVES(f32x8, (f32x4)(load4_u16(p) << 16), (f32x4)(load4_u16(p + 4) << 16)); }
INLINE u32x4 round_to_bf16(f32x4 x) {
    const u32x4 bits = (u32x4)x, none = (u32x4)(x != x);
    return (((bits + 0x7fff + (bits >> 16 & 1)) >> 16) & ~none) | ((bits >> 16 | 0x40) & none);
}
INLINE void store8_bf16(uint16_t *p, f32x8 x) {
    store4_u16(p, round_to_bf16(x.lo));
    store4_u16(p + 4, round_to_bf16(x.hi));
}
// A half's exponent and fraction, moved into those of an f32 that is 2^112 times too small; subnormal ones too.
INLINE f32x4 load4_f16(const uint16_t *p) {
    const u32x4 h = load4_u16(p), magnitude = (h & 0x7fff) << 13;
    const u32x4 endless = (u32x4)(magnitude >= 0x7c00 << 13) & 0x7f800000;
    return (f32x4)((u32x4)((f32x4)magnitude * 0x1p112f) | endless | (h & 0x8000) << 16);
}
INLINE f32x8 load8_f16(const uint16_t *p) { return HALVES(f32x8, load4_f16(p), load4_f16(p + 4)); }
// One rounding to nearest even: below 2^-14 by an addition after which the last place is that of a subnormal half.
INLINE uint16_t f32_to_half(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    if (a > 0x7f800000) return sign | 0x7e00 | (a >> 13 & 0x3ff);
    if (a >= 0x47800000) return sign | 0x7c00;
    if (a >= 0x38800000) return sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    const float shifted = fabsf(x) + 0.5f;
    memcpy(&bits, &shifted, sizeof bits);
    return sign | (bits - 0x3f000000);
}
INLINE void store8_f16(uint16_t *p, f32x8 x) {
    float part[kWidth];
    store8(part, x);
    for (int i = 0; i < kWidth; i++) p[i] = f32_to_half(part[i]);
}
