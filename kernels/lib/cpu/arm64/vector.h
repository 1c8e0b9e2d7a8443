// The words of vector.h in NEON: eight lanes are two registers of four. x86/vector.h says what they do.
#pragma once
#include <arm_neon.h>

typedef struct { float32x4_t lo, hi; } f32x8;
typedef struct { uint32x4_t lo, hi; } mask8;
typedef struct { float64x2_t at[4]; } f64x8;

INLINE f32x8 set8(float x) {
    const float32x4_t v = vdupq_n_f32(x);
    return (f32x8){v, v};
}
INLINE f32x8 load8(const float *p) { return (f32x8){vld1q_f32(p), vld1q_f32(p + 4)}; }
INLINE void store8(float *p, f32x8 x) {
    vst1q_f32(p, x.lo);
    vst1q_f32(p + 4, x.hi);
}
INLINE float first_of8(f32x8 x) { return vgetq_lane_f32(x.lo, 0); }
INLINE f32x8 neg8(f32x8 x) { return (f32x8){-x.lo, -x.hi}; }
INLINE f32x8 add8(f32x8 x, f32x8 y) { return (f32x8){x.lo + y.lo, x.hi + y.hi}; }
INLINE f32x8 sub8(f32x8 x, f32x8 y) { return (f32x8){x.lo - y.lo, x.hi - y.hi}; }
INLINE f32x8 mul8(f32x8 x, f32x8 y) { return (f32x8){x.lo * y.lo, x.hi * y.hi}; }
INLINE f32x8 div8(f32x8 x, f32x8 y) { return (f32x8){x.lo / y.lo, x.hi / y.hi}; }
INLINE f32x8 fma8(f32x8 x, f32x8 y, f32x8 z) { return (f32x8){vfmaq_f32(z.lo, x.lo, y.lo), vfmaq_f32(z.hi, x.hi, y.hi)}; }
// NEON's own minimum and maximum of a number and of what is none is the latter.
INLINE float32x4_t max4(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
INLINE f32x8 max8(f32x8 x, f32x8 y) { return (f32x8){max4(x.lo, y.lo), max4(x.hi, y.hi)}; }
INLINE f32x8 min8(f32x8 x, f32x8 y) {
    return (f32x8){vbslq_f32(vcltq_f32(x.lo, y.lo), x.lo, y.lo), vbslq_f32(vcltq_f32(x.hi, y.hi), x.hi, y.hi)};
}
INLINE f32x8 round8(f32x8 x) { return (f32x8){vrndnq_f32(x.lo), vrndnq_f32(x.hi)}; }
INLINE float32x4_t times_power4(float32x4_t x, float32x4_t n) {
    const int32x4_t whole = vcvtnq_s32_f32(n), half = whole >> 1;
    return x * (float32x4_t)((half + 127) << 23) * (float32x4_t)((whole - half + 127) << 23);
}
INLINE f32x8 times_power8(f32x8 x, f32x8 n) { return (f32x8){times_power4(x.lo, n.lo), times_power4(x.hi, n.hi)}; }

INLINE mask8 less8(f32x8 x, f32x8 y) { return (mask8){vcltq_f32(x.lo, y.lo), vcltq_f32(x.hi, y.hi)}; }
INLINE mask8 at_least8(f32x8 x, f32x8 y) { return (mask8){vcgeq_f32(x.lo, y.lo), vcgeq_f32(x.hi, y.hi)}; }
INLINE mask8 equal8(f32x8 x, f32x8 y) { return (mask8){vceqq_f32(x.lo, y.lo), vceqq_f32(x.hi, y.hi)}; }
INLINE mask8 finite8(f32x8 x) {
    const f32x8 limit = set8(INFINITY);
    return (mask8){vcaltq_f32(x.lo, limit.lo), vcaltq_f32(x.hi, limit.hi)};
}
INLINE mask8 and8(mask8 x, mask8 y) { return (mask8){x.lo & y.lo, x.hi & y.hi}; }
INLINE mask8 or8(mask8 x, mask8 y) { return (mask8){x.lo | y.lo, x.hi | y.hi}; }
INLINE f32x8 pick8(mask8 mask, f32x8 x, f32x8 y) { return (f32x8){vbslq_f32(mask.lo, y.lo, x.lo), vbslq_f32(mask.hi, y.hi, x.hi)}; }
INLINE mask8 mask_of8(uint32_t bits) {
    const uint32x4_t all = vdupq_n_u32(bits), lo = {1, 2, 4, 8}, hi = {16, 32, 64, 128};
    return (mask8){vtstq_u32(all, lo), vtstq_u32(all, hi)};
}
INLINE int bits_of8(mask8 mask) {
    const uint32x4_t lo = {1, 2, 4, 8}, hi = {16, 32, 64, 128};
    return vaddvq_u32((mask.lo & lo) | (mask.hi & hi));
}
INLINE mask8 beyond8(int32_t first, int32_t n) {
    const int32x4_t lo = {0, 1, 2, 3}, hi = {4, 5, 6, 7}, limit = vdupq_n_s32(n);
    return (mask8){vcgtq_s32(lo + first, limit), vcgtq_s32(hi + first, limit)};
}
INLINE mask8 first8(int n) {
    const int32x4_t lo = {0, 1, 2, 3}, hi = {4, 5, 6, 7}, limit = vdupq_n_s32(n);
    return (mask8){vcltq_s32(lo, limit), vcltq_s32(hi, limit)};
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
    float32x4_t m = max4(x.lo, x.hi);
    m = max4(m, vextq_f32(m, m, 2));
    return m[0] > m[1] ? m[0] : m[1];
}
INLINE float sum8(f32x8 x) { return ((x.lo[0] + x.lo[2]) + (x.lo[1] + x.lo[3])) + ((x.hi[0] + x.hi[2]) + (x.hi[1] + x.hi[3])); }
INLINE f32x8 sum_pairs(f32x8 x, f32x8 y) {
    return (f32x8){vzip1q_f32(x.lo, y.lo) + vzip2q_f32(x.lo, y.lo), vzip1q_f32(x.hi, y.hi) + vzip2q_f32(x.hi, y.hi)};
}
INLINE float32x4_t add_halves4(float32x4_t x, float32x4_t y) {
    const float64x2_t a = (float64x2_t)x, b = (float64x2_t)y;
    return (float32x4_t)vzip1q_f64(a, b) + (float32x4_t)vzip2q_f64(a, b);
}
INLINE void store_sums4(float *p, f32x8 x, f32x8 y) { vst1q_f32(p, add_halves4(x.lo, y.lo) + add_halves4(x.hi, y.hi)); }
INLINE f64x8 add_squares8(f64x8 sum, f32x8 x) {
    const float64x2_t v[4] = {vcvt_f64_f32(vget_low_f32(x.lo)), vcvt_high_f64_f32(x.lo), vcvt_f64_f32(vget_low_f32(x.hi)), vcvt_high_f64_f32(x.hi)};
    for (int i = 0; i < 4; i++) sum.at[i] += v[i] * v[i];
    return sum;
}
INLINE double sum8_f64(f64x8 x) {
    const float64x2_t lo = x.at[0] + x.at[1], hi = x.at[2] + x.at[3];
    return (lo[0] + lo[1]) + (hi[0] + hi[1]);
}

INLINE f32x8 load8_bf16(const uint16_t *p) {
    const uint16x8_t h = vld1q_u16(p);
    return (f32x8){(float32x4_t)vshll_n_u16(vget_low_u16(h), 16), (float32x4_t)vshll_high_n_u16(h, 16)};
}
INLINE uint32x4_t round_to_bf16(float32x4_t x) {
    const uint32x4_t bits = (uint32x4_t)x;
    return vbslq_u32(vceqq_f32(x, x), (bits + 0x7fff + (bits >> 16 & 1)) >> 16, bits >> 16 | 0x40);
}
INLINE void store8_bf16(uint16_t *p, f32x8 x) { vst1q_u16(p, vcombine_u16(vmovn_u32(round_to_bf16(x.lo)), vmovn_u32(round_to_bf16(x.hi)))); }
INLINE f32x8 load8_f16(const uint16_t *p) {
    const float16x8_t h = (float16x8_t)vld1q_u16(p);
    return (f32x8){vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h)};
}
INLINE void store8_f16(uint16_t *p, f32x8 x) { vst1q_u16(p, (uint16x8_t)vcombine_f16(vcvt_f16_f32(x.lo), vcvt_f16_f32(x.hi))); }
