// The form in which rows meet the weights: kForm 0 f32 as they are, 1 int8 in blocks of 32, 2 sums of two bf16 (arm64).
//
// A row's prepared form depends on the row alone. An int8 block is code·scale with scale = largest/127; a block that
// holds an infinity or NaN gets such a scale and so gives such an output. A block that stands out of its row has a rest
// besides: what its codes leave, as codes of steps 254 times finer. So no number is off by more than √kPeak/254 of the
// root mean square of its row; with kPeak 0 all blocks have rests.
#pragma once
#include "codes.h"

#if kForm == 0
typedef float activation;
enum { kGroup = 1 };  // columns of one element of a prepared row
#elif kForm == 1
typedef struct {
    int8_t code[32];
    float scale;
    union {
        float sum;  // scale times the sum of the codes, for Q4_K times -1: a minimum is multiplied by it
        int32_t start[32 / kShared];  // what sums begin with to take the offset of a weight's codes off: see dot.h
    };
} activation;
static_assert(sizeof(activation) == (kShared == 16 ? 44 : 40), "manifests size the scratch by it");
static_assert(!kIsPairs, "int8 needs blocks of 32");
enum {
    kGroup = 32,
    kFiner = 254,       // steps of a rest in one of the block's
    kRestBlocks = 256,  // blocks of which one element of a prepared row tells who has a rest
};

// Sums of codes: of bytes 0 and 1 of each word, and of bytes 2 and 3.
typedef struct { int16_t lower, upper; } halves;

// Completes a block that has codes and scale.
static inline void finish_block(activation *x);
#endif

// How codes are made, and how two bf16 lie in a row.
#ifdef __aarch64__
#include "lib/cpu/arm64/activation.h"
#elif defined __AVX2__
#include "lib/cpu/x86/activation.h"
#else
#include "lib/cpu/portable/activation.h"
#endif

#if kForm == 1
// Blocks of a prepared row. Columns that the last one lacks are zero.
INLINE int groups_of(int cols) { return (cols + 31) / 32; }

// A prepared row has its blocks, then their rests in the same order, and then a bit for each block that has one.
static inline size_t activation_pitch(int cols) { return (size_t)groups_of(cols) * 2 + (groups_of(cols) + kRestBlocks - 1) / kRestBlocks; }
INLINE const uint32_t *rests_of(const activation *row, int blocks) { return (const uint32_t *)(row + 2 * blocks); }

static inline void prepare_row(const float *in, activation *out, int cols) {
    const int blocks = groups_of(cols);
    const float peak = sqrtf(kPeak) / inverse_rms(in, cols, 0);
    uint32_t *const has = (uint32_t *)rests_of(out, blocks);
    memset(has, 0, (activation_pitch(cols) - 2 * blocks) * sizeof *out);
    float last[32] = {0};
    if (cols % 32) memcpy(last, in + cols / 32 * 32, cols % 32 * sizeof *in);
    for (int b = 0; b < blocks; b++, in += 32) {
        activation *const x = &out[b], *const rest = x + blocks;
        if (32 * b + 32 > cols) in = last;
        const float top = make_codes(in, x->code);
        const int tiny = top < 0x1p-100f;  // 127/top would overflow: codes are zero
        x->scale = tiny ? 0 : top / 127 * kUnit;
        finish_block(x);
        if (tiny || !(top > peak)) continue;
        make_rest(in, 127 / top, rest->code);
        rest->scale = x->scale * (1.0f / kFiner);
        finish_block(rest);
        has[b / 32] |= 1u << b % 32;
    }
}
#else
static inline size_t activation_pitch(int cols) { return (cols + kGroup - 1) / kGroup; }
#endif

#if kForm
enum { kPrepare = 8 };  // rows that a block prepares

// Rows kPrepare·x and on; manifests divide the rows by kPrepare.
static inline void prepare_rows(const float *in, activation *out, uint32_t x, int rows, int cols) {
    const int end = (int)(x + 1) * kPrepare < rows ? (int)(x + 1) * kPrepare : rows;
    for (int r = x * kPrepare; r < end; r++) prepare_row(in + (size_t)r * cols, out + r * activation_pitch(cols), cols);
}
#endif
