// The packed layout x16k4: panels of 16 rows (the last one padded with zeros), each one stream of blocks:
//
//   words   [words of a block][16 rows] u32: word w holds bytes 4w…4w+3 of the row's codes as checkpoints have them
//   scales  [16] f16 scale, for Q4_1 [2][16] scale and minimum, for Q4_K the same of the block's scales and minimums
//
// A block is 32 columns, or 256 for schemes that end in K; for bf16 it is 2 columns, one word, no scale, and an odd last
// column is paired with zero. A panel is padded to 64 bytes. What checkpoints have beside nibbles lies in words as well:
//
//   Q5_0  word 0: byte j holds bit 4 of column 4w+j at bit w+4 for w < 4, else at w-4; then nibbles
//   Q4_K  words 0…2: scales and minimums; then nibbles
//   Q6_K  words 0…31: nibbles; 32…47: upper bits; 48…51: scales
//
// Where checkpoints have scales in tensors of their own, blocks are
//
//   F8     2 columns: [16] pairs of bytes, an odd last column paired with zero. In blocks of 16×128, f32 scales follow the
//          panel's codes, one for each 128 columns
//   NVFP4  32 columns: low nibbles hold the first 16 and high ones the others, words as Q4_0 has them; then [2][16] scales.
//          Scales have no sign: it went to their codes. The last 16 columns may be missing: their scales are zero
//
// Bytes of e4m3 are numbers: the two that stand for none are read as 480 and -480.
#pragma once
#include "lane.h"

enum {
    kIsBF16 = kScheme == ATLAS_SCHEME_BF16,
    kIsQ8_0 = kScheme == ATLAS_SCHEME_Q8_0,
    kIsQ4_0 = kScheme == ATLAS_SCHEME_Q4_0,
    kIsQ4_1 = kScheme == ATLAS_SCHEME_Q4_1,
    kIsQ5_0 = kScheme == ATLAS_SCHEME_Q5_0,
    kIsQ4_K = kScheme == ATLAS_SCHEME_Q4_K,
    kIsQ6_K = kScheme == ATLAS_SCHEME_Q6_K,
    kIsNVFP4 = kScheme == ATLAS_SCHEME_NVFP4,
    kIsF8Block = kScheme == ATLAS_SCHEME_F8BLOCK,
    kIsF8 = kScheme == ATLAS_SCHEME_F8 || kIsF8Block,
    kIsPairs = kIsBF16 || kIsF8,
    kIsApart = kIsF8 || kIsNVFP4,                                                                    // scales are tensors of their own
    kBlock = kIsPairs ? 2 : kIsQ4_K || kIsQ6_K ? 256 : 32,                                           // columns of a block
    kWords = kIsF8 ? 0 : kIsBF16 ? 1 : kIsQ8_0 ? 8 : kIsQ5_0 ? 5 : kIsQ4_K ? 35 : kIsQ6_K ? 52 : 4,  // its words
    kScales = kIsBF16 ? 0 : kIsQ4_1 || kIsQ4_K ? 2 : 1,                                              // its f16 numbers, or pairs of bytes
    kRawBlock = 2 * kScales + 4 * kWords,                                                            // its bytes in a checkpoint row
    kRawWords = kIsQ6_K ? 0 : 2 * kScales,                                                           // where in those the words begin
    kRawScales = kIsQ6_K ? 4 * kWords : 0,                                                           // and the f16 numbers
    kPackedBlock = kLanes * kRawBlock,                                                               // and its bytes here
    kF8Cols = 128,                                                                                   // columns of a scale of F8 in blocks
};
static_assert(kIsBF16 + kIsQ8_0 + kIsQ4_0 + kIsQ4_1 + kIsQ5_0 + kIsQ4_K + kIsQ6_K + kIsNVFP4 + kIsF8 == 1, "kScheme is a scheme that panels have");

// One panel of a matrix.
typedef struct {
    uint8_t *at;
    int rows, blocks;
} panel;

static inline int panels_of(int rows) { return (rows + kLanes - 1) / kLanes; }
static inline int blocks_of(int cols) { return (cols + kBlock - 1) / kBlock; }
static inline int spans_of(int cols) { return (cols + kF8Cols - 1) / kF8Cols; }
static inline size_t used_bytes(int cols) { return (size_t)blocks_of(cols) * kPackedBlock + (kIsF8Block ? sizeof(float) * spans_of(cols) : 0); }
static inline size_t panel_bytes(int cols) { return (used_bytes(cols) + 63) / 64 * 64; }

// Panel p of a stacked matrix.
static inline panel panel_at(const atlas_Weight *w, int matrix, int p) {
    const int rows = w->Rows - p * kLanes;
    return (panel){w->Data + matrix * w->Stride + p * panel_bytes(w->Cols), rows < kLanes ? rows : kLanes, blocks_of(w->Cols)};
}

// Word w of block b in each lane, and its scales.
INLINE uint32_t *words_at(const panel *p, int b, int w) { return (uint32_t *)(p->at + (size_t)b * kPackedBlock) + w * kLanes; }
INLINE uint16_t *scales_at(const panel *p, int b) { return (uint16_t *)words_at(p, b, kWords); }

// The pairs of e4m3 bytes of block b, and the scale of columns kF8Cols·g and on.
INLINE uint16_t *pairs_at(const panel *p, int b) { return (uint16_t *)(p->at + (size_t)b * kPackedBlock); }
INLINE float *span_scale(const panel *p, int g) { return (float *)pairs_at(p, p->blocks) + g; }

// The factor of an output row besides its blocks' own.
static inline float row_scale(const atlas_Weight *w, int matrix, int row) {
    return w->Scale ? ((const float *)w->Scale)[(size_t)matrix * w->Rows + row] : 1.0f;
}
