// The words of dot.h: sdot adds four products of signed bytes, so bytes and nibbles are alike.
#pragma once

enum { kTileRows = 4, kPairRows = 1 };  // rows of a tile, and of one that spans two panels
// Of the loop over a block's words: gcc moves the loads of a longer stretch up until registers are short.
enum { kUnroll = kIsQ8_0 ? 4 : 2 };
enum { kInPairs = 0, kDotOffset = kOffset };

#define AT(i) vdotq_s32(sum.at[i], (int8x16_t)w.at[i], (int8x16_t)x.at[i])
INLINE i32x16 dot_bytes(i32x16 sum, i32x16 w, i32x16 x) { return LANES(i32x16, AT); }
#undef AT
INLINE i32x16 dot_codes(i32x16 sum, i32x16 w, i32x16 x) { return dot_bytes(sum, w, x); }
INLINE i32x16 dot_end(i32x16 sum) { return sum; }
INLINE i32x16 dot_factor(i32x16 x) { return x; }
#define AT(i) (sum.at[i] * factor.at[i])
INLINE i32x16 dot_end_times(i32x16 sum, i32x16 factor) { return LANES(i32x16, AT); }
#undef AT
