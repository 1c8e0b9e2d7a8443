// The words of lane.h for any processor: sixteen lanes are four vectors of four.
#pragma once
#include "lib/cpu/vector.h"

typedef struct { f32x4 at[4]; } f32x16;
typedef struct { i32x4 at[4]; } i32x16;

// A value of type T whose vectors are f(0) … f(3).
#define LANES(T, f) ((T){{f(0), f(1), f(2), f(3)}})

INLINE i32x4 set4_int(int32_t x) { return (i32x4){x, x, x, x}; }
INLINE i32x4 load4_int(const uint32_t *p) {
    i32x4 x;
    memcpy(&x, p, sizeof x);
    return x;
}

INLINE f32x16 f32x16_set(float x) { return (f32x16){{set4(x), set4(x), set4(x), set4(x)}}; }
INLINE f32x16 f32x16_zero(void) { return f32x16_set(0); }
INLINE void f32x16_store(float *p, f32x16 x) {
    for (int i = 0; i < 4; i++) store4(p + 4 * i, x.at[i]);
}
INLINE i32x16 i32x16_set(int32_t x) { return (i32x16){{set4_int(x), set4_int(x), set4_int(x), set4_int(x)}}; }
INLINE i32x16 i32x16_zero(void) { return i32x16_set(0); }

#define AT(i) load4(p + 4 * i)
INLINE f32x16 f32x16_load(const float *p) { return LANES(f32x16, AT); }
#undef AT
#define AT(i) load4_f16(p + 4 * i)
INLINE f32x16 f32x16_halves(const uint16_t *p) { return LANES(f32x16, AT); }
#undef AT
#define AT(i) load4_int(p + 4 * i)
INLINE i32x16 i32x16_load(const uint32_t *p) { return LANES(i32x16, AT); }
#undef AT

#define AT(i) (x.at[i] * y.at[i])
INLINE f32x16 f32x16_mul(f32x16 x, f32x16 y) { return LANES(f32x16, AT); }
#undef AT
// Rounded twice, as fma8 is.
#define AT(i) (x.at[i] * y.at[i] + z.at[i])
INLINE f32x16 f32x16_fma(f32x16 x, f32x16 y, f32x16 z) { return LANES(f32x16, AT); }
#undef AT
#define AT(i) __builtin_convertvector(x.at[i], f32x4)
INLINE f32x16 f32x16_ints(i32x16 x) { return LANES(f32x16, AT); }
#undef AT
#define AT(i) ((f32x4)x.at[i])
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
#define AT(i) ((i32x4)((u32x4)x.at[i] >> bits))
INLINE i32x16 i32x16_right(i32x16 x, int bits) { return LANES(i32x16, AT); }
#undef AT
#define AT(i) (x.at[i] >> bits)
INLINE i32x16 i32x16_right_signed(i32x16 x, int bits) { return LANES(i32x16, AT); }
#undef AT
typedef uint8_t u8x16 __attribute__((vector_size(16)));
#define AT(i) ((i32x4)__builtin_shuffle(bytes, (u8x16)x.at[i]))
INLINE i32x16 i32x16_lookup(const uint8_t *table, i32x16 x) {
    u8x16 bytes;
    memcpy(&bytes, table, sizeof bytes);
    return LANES(i32x16, AT);
}
#undef AT

// The exponent and fraction of an e4m3 byte, moved into those of an f32 that is 2^120 times too small; subnormal ones too.
INLINE f32x4 e4m3_to_f32(u32x4 byte) { return (f32x4)((u32x4)((f32x4)((byte & 0x7f) << 20) * 0x1p112f) | (byte & 0x80) << 24); }
#define AT(i) e4m3_to_f32((u32x4){p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]})
INLINE f32x16 f32x16_positive_e4m3(const uint8_t *p) { return LANES(f32x16, AT); }
#undef AT
#define LOWER(i) e4m3_to_f32(load4_u16(p + 4 * i))
#define UPPER(i) e4m3_to_f32(load4_u16(p + 4 * i) >> 8)
INLINE void f32x16_pairs_e4m3(const uint16_t *p, f32x16 *lower, f32x16 *upper) {
    *lower = LANES(f32x16, LOWER);
    *upper = LANES(f32x16, UPPER);
}
#undef LOWER
#undef UPPER

static inline float half_to_f32(uint16_t h) {
    const uint16_t four[4] = {h, h, h, h};
    return load4_f16(four)[0];
}
