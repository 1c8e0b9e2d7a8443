// The words of lane.h in NEON: sixteen lanes are four registers.
#pragma once
#include "lib/cpu/vector.h"

typedef struct { float32x4_t at[4]; } f32x16;
typedef struct { int32x4_t at[4]; } i32x16;

// A value of type T whose registers are f(0) … f(3).
#define LANES(T, f) ((T){{f(0), f(1), f(2), f(3)}})

INLINE f32x16 f32x16_set(float x) {
    const float32x4_t v = vdupq_n_f32(x);
    return (f32x16){{v, v, v, v}};
}
INLINE f32x16 f32x16_zero(void) { return f32x16_set(0); }
INLINE void f32x16_store(float *p, f32x16 x) {
    vst1q_f32(p, x.at[0]);
    vst1q_f32(p + 4, x.at[1]);
    vst1q_f32(p + 8, x.at[2]);
    vst1q_f32(p + 12, x.at[3]);
}
INLINE i32x16 i32x16_set(int32_t x) {
    const int32x4_t v = vdupq_n_s32(x);
    return (i32x16){{v, v, v, v}};
}
INLINE i32x16 i32x16_zero(void) { return i32x16_set(0); }

#define AT(i) vld1q_f32(p + 4 * i)
INLINE f32x16 f32x16_load(const float *p) { return LANES(f32x16, AT); }
#undef AT
#define AT(i) vcvt_f32_f16((float16x4_t)vld1_u16(p + 4 * i))
INLINE f32x16 f32x16_halves(const uint16_t *p) { return LANES(f32x16, AT); }
#undef AT
#define AT(i) vld1q_s32((const int32_t *)p + 4 * i)
INLINE i32x16 i32x16_load(const uint32_t *p) { return LANES(i32x16, AT); }
#undef AT

#define AT(i) (x.at[i] * y.at[i])
INLINE f32x16 f32x16_mul(f32x16 x, f32x16 y) { return LANES(f32x16, AT); }
#undef AT
#define AT(i) vfmaq_f32(z.at[i], x.at[i], y.at[i])
INLINE f32x16 f32x16_fma(f32x16 x, f32x16 y, f32x16 z) { return LANES(f32x16, AT); }
#undef AT
#define AT(i) vcvtq_f32_s32(x.at[i])
INLINE f32x16 f32x16_ints(i32x16 x) { return LANES(f32x16, AT); }
#undef AT
#define AT(i) ((float32x4_t)x.at[i])
INLINE f32x16 f32x16_bits(i32x16 x) { return LANES(f32x16, AT); }
#undef AT

#define AT(i) (x.at[i] + y.at[i])
INLINE i32x16 i32x16_add(i32x16 x, i32x16 y) { return LANES(i32x16, AT); }
#undef AT
#define AT(i) (x.at[i] & y.at[i])
INLINE i32x16 i32x16_and(i32x16 x, i32x16 y) { return LANES(i32x16, AT); }
#undef AT
#define AT(i) (x.at[i] | y.at[i])
INLINE i32x16 i32x16_or(i32x16 x, i32x16 y) { return LANES(i32x16, AT); }
#undef AT
#define AT(i) (x.at[i] << bits)
INLINE i32x16 i32x16_left(i32x16 x, int bits) { return LANES(i32x16, AT); }
#undef AT
#define AT(i) ((int32x4_t)((uint32x4_t)x.at[i] >> bits))
INLINE i32x16 i32x16_right(i32x16 x, int bits) { return LANES(i32x16, AT); }
#undef AT
#define AT(i) (x.at[i] >> bits)
INLINE i32x16 i32x16_right_signed(i32x16 x, int bits) { return LANES(i32x16, AT); }
#undef AT
#define AT(i) ((int32x4_t)vqtbl1q_u8(vld1q_u8(table), (uint8x16_t)x.at[i]))
INLINE i32x16 i32x16_lookup(const uint8_t *table, i32x16 x) { return LANES(i32x16, AT); }
#undef AT

// An e4m3 byte is a half without the upper bit of the exponent and most of the fraction.
INLINE f32x16 f32x16_of_halves(uint16x8_t lo, uint16x8_t hi) {
    const float16x8_t x = (float16x8_t)lo, y = (float16x8_t)hi;
    return (f32x16){{vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x), vcvt_f32_f16(vget_low_f16(y)), vcvt_high_f32_f16(y)}};
}
INLINE f32x16 f32x16_positive_e4m3(const uint8_t *p) {
    const uint8x16_t x = vld1q_u8(p);
    return f32x16_of_halves(vshll_n_u8(vget_low_u8(x), 7), vshll_high_n_u8(x, 7));
}
// Of pairs whose upper byte is such a byte.
INLINE f32x16 f32x16_upper_e4m3(uint16x8_t lo, uint16x8_t hi) {
    return f32x16_of_halves((uint16x8_t)((int16x8_t)lo >> 1) & 0xbf80, (uint16x8_t)((int16x8_t)hi >> 1) & 0xbf80);
}
INLINE void f32x16_pairs_e4m3(const uint16_t *p, f32x16 *lower, f32x16 *upper) {
    const uint16x8_t lo = vld1q_u16(p), hi = vld1q_u16(p + 8);
    *lower = f32x16_upper_e4m3(lo << 8, hi << 8);
    *upper = f32x16_upper_e4m3(lo, hi);
}

static inline float half_to_f32(uint16_t h) {
    __fp16 x;
    memcpy(&x, &h, sizeof x);
    return x;
}
