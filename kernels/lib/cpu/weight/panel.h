// The packed layout x16k4: panels of 16 rows (the last one padded with zeros), each one stream of blocks:
//
//   words   [words of a block][16 rows] u32: word w holds bytes 4w…4w+3 of the row's codes as checkpoints have them
//   scales  [16] f16 scale, for Q4_1 [2][16] scale and minimum
//
// A block is 32 columns; for bf16 it is 2 columns, one word, no scale, and an odd last column is paired with zero.
// A panel is padded to 64 bytes.
#pragma once
#include "lane.h"

static_assert(kScheme >= ATLAS_SCHEME_BF16 && kScheme <= ATLAS_SCHEME_Q4_1, "kScheme is an op.Scheme");

enum {
    kBlock = kScheme == ATLAS_SCHEME_BF16 ? 2 : 32,                                     // columns that share a scale
    kWords = kScheme == ATLAS_SCHEME_BF16 ? 1 : kScheme == ATLAS_SCHEME_Q8_0 ? 8 : 4,   // words of a block
    kScales = kScheme == ATLAS_SCHEME_BF16 ? 0 : kScheme == ATLAS_SCHEME_Q4_1 ? 2 : 1,  // f16 numbers of a block
    kRawBlock = 2 * kScales + 4 * kWords,                                               // its bytes in a checkpoint row
    kPackedBlock = kLanes * kRawBlock,                                                  // and here
};

// One panel of a matrix.
typedef struct {
    uint8_t *at;
    int rows, blocks;
} panel;

static inline int panels_of(int rows) { return (rows + kLanes - 1) / kLanes; }
static inline int blocks_of(int cols) { return (cols + kBlock - 1) / kBlock; }
static inline size_t panel_bytes(int cols) { return ((size_t)blocks_of(cols) * kPackedBlock + 63) / 64 * 64; }

// Panel p of a stacked matrix.
static inline panel panel_at(const atlas_Weight *w, int matrix, int p) {
    const int rows = w->Rows - p * kLanes;
    return (panel){w->Data + matrix * w->Stride + p * panel_bytes(w->Cols), rows < kLanes ? rows : kLanes, blocks_of(w->Cols)};
}

// Word w of block b in each lane, and its scales.
INLINE uint32_t *words_at(const panel *p, int b, int w) { return (uint32_t *)(p->at + (size_t)b * kPackedBlock) + w * kLanes; }
INLINE uint16_t *scales_at(const panel *p, int b) { return (uint16_t *)words_at(p, b, kWords); }

// The factor of an output row besides its blocks' own.
static inline float row_scale(const atlas_Weight *w, int matrix, int row) {
    return w->Scale ? ((const float *)w->Scale)[(size_t)matrix * w->Rows + row] : 1.0f;
}
