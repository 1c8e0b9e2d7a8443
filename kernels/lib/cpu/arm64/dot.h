// The words of dot.h: sdot adds four products of signed bytes, so bytes and nibbles are alike.
#pragma once

enum { kTileRows = 4, kPairRows = 1 };  // rows of a tile, and of one that spans two panels
// Of the loop over a block's words: gcc moves the loads of a longer stretch up until registers are short.
enum { kUnroll = kWords / 2 };

INLINE i32x16 dot_start(const activation *x) {
    (void)x;
    return i32x16_zero();
}
#define AT(i) vdotq_s32(sum.at[i], (int8x16_t)w.at[i], (int8x16_t)x.at[i])
INLINE i32x16 dot_bytes(i32x16 sum, i32x16 w, i32x16 x) { return LANES(i32x16, AT); }
#undef AT
INLINE i32x16 dot_nibbles(i32x16 sum, i32x16 w, i32x16 x) { return dot_bytes(sum, w, x); }
INLINE i32x16 dot_nibbles_end(i32x16 sum) { return sum; }
