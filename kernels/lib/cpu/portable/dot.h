// The words of dot.h in products of 16 bits: two of bytes fit, and so do sixteen of a nibble and a byte.
#pragma once

enum { kTileRows = 2, kPairRows = 0 };  // rows of a tile, and of one that spans two panels
enum { kUnroll = 1 };                   // of the loop over a block's words
enum { kInPairs = 1, kDotOffset = kOffset };

typedef int16_t i16x8 __attribute__((vector_size(16)));

// Products of the even bytes and of the odd ones, added in pairs; bytes are signed.
INLINE i16x8 products_of_bytes(i32x4 w, i32x4 x) {
    const i16x8 a = (i16x8)w, b = (i16x8)x;
    return ((a << 8) >> 8) * ((b << 8) >> 8) + (a >> 8) * (b >> 8);
}
// The two halves of each lane, added.
INLINE i32x4 add_halves(i16x8 x) {
    const i32x4 both = (i32x4)x;
    return ((both << 16) >> 16) + (both >> 16);
}

#define AT(i) (sum.at[i] + add_halves(products_of_bytes(w.at[i], x.at[i])))
INLINE i32x16 dot_bytes(i32x16 sum, i32x16 w, i32x16 x) { return LANES(i32x16, AT); }
#undef AT
#define AT(i) ((i32x4)((i16x8)sum.at[i] + products_of_bytes(w.at[i], x.at[i])))
INLINE i32x16 dot_codes(i32x16 sum, i32x16 w, i32x16 x) { return LANES(i32x16, AT); }
#undef AT
#define AT(i) add_halves((i16x8)sum.at[i])
INLINE i32x16 dot_end(i32x16 sum) { return LANES(i32x16, AT); }
#undef AT
INLINE i32x16 dot_factor(i32x16 x) { return x; }
#define AT(i) (add_halves((i16x8)sum.at[i]) * factor.at[i])
INLINE i32x16 dot_end_times(i32x16 sum, i32x16 factor) { return LANES(i32x16, AT); }
#undef AT
