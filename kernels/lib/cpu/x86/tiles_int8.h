// Tiles of int8: sixteen rows by a panel of 16 outputs; 32 columns are an exact integer sum in a tile.
//
// Sums are those of tile_int8.h and tile_super.h, and an output is the same chain over them: its bits are the same.
#pragma once
#include "amx.h"
#include "lib/cpu/weight/rest.h"

enum {
    kPieces = kIsQ6_K ? 2 : 1,        // sums of 32 columns: of each scale of the weights
    kPieceBytes = 32 / kPieces,       // of a row
    kPieceWords = kPieceBytes / 4,    // of an output
    kHasMinimum = kIsQ4_1 || kIsQ4_K,
    kGroups = kBlock / 32,
    kChunk = 32,                      // groups of 32 columns that are decoded at a time: they stay in the nearest cache
};
static_assert(kChunk % kGroups == 0, "blocks are decoded whole");
static_assert(kSums == 1, "a block of 32 columns has one scale");

// Sixteen prepared rows, 32 columns of them.
typedef struct {
    int8_t code[kTile][32];
    float scale[kTile], sum[kTile];
} row_tile;
static_assert(sizeof(row_tile) == 640, "manifests size the scratch by it");

// 32 columns of a panel: codes as signed bytes, and factors. For Q6_K first and second are those of its halves.
typedef struct {
    uint32_t code[kIsQ8_0 ? 1 : 8][kLanes];
    float scale[kLanes], first[kLanes], second[kLanes];
} columns;

// Rows that are not there are zeros. What comes before a tile is prepared rows, which have the rests.
static inline void prepare_tile(const activation *rows, int n, int cols, row_tile *out) {
    for (int g = 0; g < cols / 32; g++) {
        if (n < kTile) memset(&out[g], 0, sizeof out[g]);
        for (int r = 0; r < n; r++) {
            const activation *const x = &rows[r * activation_pitch(cols) + g];
            memcpy(out[g].code[r], x->code, sizeof x->code);
            out[g].scale[r] = x->scale;
            if (kHasMinimum) out[g].sum[r] = x->sum;
        }
    }
}

INLINE void store_word(columns *out, int w, i32x16 code) {
    if (kOffset) code = _mm512_sub_epi8(code, _mm512_set1_epi8(kOffset));
    _mm512_store_si512(out->code[w], code);
}

// Block b of 32 columns.
INLINE void decode_small(const panel *at, int b, columns *out) {
    const uint16_t *scales = scales_at(at, b);
    f32x16_store(out->scale, f32x16_halves(scales));
    if (kIsQ8_0) return;  // codes are multiplied where they are
    if (kIsQ4_1) f32x16_store(out->first, f32x16_halves(scales + kLanes));
    const i32x16 low = i32x16_set(0x0f0f0f0f), fifth = i32x16_set(0x10101010), top = i32x16_load(words_at(at, b, 0));
#pragma GCC unroll 8
    for (int w = 0; w < 8; w++) {
        const i32x16 word = i32x16_load(words_at(at, b, kIsQ5_0 + w % 4));
        i32x16 code = i32x16_and(w < 4 ? word : i32x16_right(word, 4), low);
        if (kIsQ5_0) code = i32x16_or(code, i32x16_and(w < 4 ? i32x16_right(top, w) : i32x16_left(top, 8 - w), fifth));
        store_word(out, w, code);
    }
}

// Block b of 256 columns.
INLINE void decode_super(const panel *at, int b, columns *out) {
    const uint16_t *scales = scales_at(at, b);
    for (int half = 0; half < 2; half++) {
        const factors of = factors_of(at, b, half);
#pragma GCC unroll 4
        for (int group = 0; group < 4; group++, out++) {
#pragma GCC unroll 8
            for (int w = 0; w < 8; w++) store_word(out, w, codes_of(at, b, half, group, w));
            f32x16 d = f32x16_halves(scales);
            if (kIsQ4_K) {
                d = f32x16_mul(d, f32x16_ints(byte_of(of.first, group)));
                f32x16_store(out->first, f32x16_mul(f32x16_halves(scales + kLanes), f32x16_ints(byte_of(of.second, group))));
            } else {
                const i32x16 both = group / 2 ? of.second : of.first;
                f32x16_store(out->first, f32x16_ints(signed_byte_of(both, group % 2 * 2)));
                f32x16_store(out->second, f32x16_ints(signed_byte_of(both, group % 2 * 2 + 1)));
            }
            f32x16_store(out->scale, d);
        }
    }
}

typedef int32_t tile_sum[kPieces][kTile][kLanes];

// The integer sums of one group of columns; two groups that follow each other use different tiles and memory.
INLINE void multiply_group(int odd, const row_tile *row, const void *words, tile_sum sum) {
    if (odd) {
        _tile_zero(1);
        _tile_loadd(4, row->code, 32);
        _tile_loadd(5, words, 64);
        _tile_dpbssd(1, 4, 5);
        _tile_stored(1, sum[0], 64);
    } else {
        _tile_zero(0);
        _tile_loadd(2, row->code, 32);
        _tile_loadd(3, words, 64);
        _tile_dpbssd(0, 2, 3);
        _tile_stored(0, sum[0], 64);
    }
    if (kPieces == 1) return;
    if (odd) {
        _tile_zero(1);
        _tile_loadd(6, row->code[0] + kPieceBytes, 32);
        _tile_loadd(7, (const uint32_t *)words + kPieceWords * kLanes, 64);
        _tile_dpbssd(1, 6, 7);
        _tile_stored(1, sum[kPieces - 1], 64);
    } else {
        _tile_zero(0);
        _tile_loadd(6, row->code[0] + kPieceBytes, 32);
        _tile_loadd(7, (const uint32_t *)words + kPieceWords * kLanes, 64);
        _tile_dpbssd(0, 6, 7);
        _tile_stored(0, sum[kPieces - 1], 64);
    }
}

// Adds a group's sums to outputs. Products of Q6_K's sums and scales, and the sums of two, are whole numbers below 2^24.
INLINE void add_group(const row_tile *row, const columns *w, tile_sum sum, f32x16 *acc) {
    const f32x16 d = f32x16_load(w->scale);
#pragma GCC unroll 16
    for (int r = 0; r < kTile; r++) {
        f32x16 total = f32x16_ints(_mm512_load_si512(sum[0][r]));
        if (kIsQ6_K) {
            total = f32x16_mul(total, f32x16_load(w->first));
            total = f32x16_fma(f32x16_ints(_mm512_load_si512(sum[kPieces - 1][r])), f32x16_load(w->second), total);
        }
        acc[r] = f32x16_fma(total, f32x16_mul(d, f32x16_set(row->scale[r])), acc[r]);
        if (kHasMinimum) acc[r] = f32x16_fma(f32x16_load(w->first), f32x16_set(row->sum[r]), acc[r]);
    }
}

INLINE const void *words_of(const panel *at, const columns *w, int g) { return kIsQ8_0 ? (const void *)words_at(at, g, 0) : w->code; }

// Adds groups first … first+count-1 of columns to the outputs of one tile of rows.
static inline void add_groups(const panel *at, const columns *w, int first, int count, const row_tile *row, float (*out)[kLanes]) {
    _Alignas(64) tile_sum sum[2];
    f32x16 acc[kTile];
#pragma GCC unroll 16
    for (int r = 0; r < kTile; r++) acc[r] = f32x16_load(out[r]);
    int g = 0;
    for (; g + 1 < count; g += 2) {
        multiply_group(0, &row[g], words_of(at, &w[g], first + g), sum[0]);
        multiply_group(1, &row[g + 1], words_of(at, &w[g + 1], first + g + 1), sum[1]);
        add_group(&row[g], &w[g], sum[0], acc);
        add_group(&row[g + 1], &w[g + 1], sum[1], acc);
    }
    if (g < count) {
        multiply_group(0, &row[g], words_of(at, &w[g], first + g), sum[0]);
        add_group(&row[g], &w[g], sum[0], acc);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kTile; r++) f32x16_store(out[r], acc[r]);
}

static inline void shape(void) { shape_tiles(2, kPieceBytes); }

// out[i][r] = panel i times row r, for one or two panels and all rows of some tiles, which have steps parts each.
static inline void multiply_tiles(const panel *at, int panels, const row_tile *rows, int tiles, int steps, float (*out)[kRows][kLanes]) {
    _Alignas(64) columns w[kChunk];
    for (int i = 0; i < panels; i++) {
        memset(out[i], 0, tiles * kTile * sizeof *out[i]);
        for (int first = 0; first < steps; first += kChunk) {
            const int count = steps - first < kChunk ? steps - first : kChunk;
            for (int g = 0; g < count; g += kGroups)
                if (kBlock == 256)
                    decode_super(&at[i], (first + g) / kGroups, &w[g]);
                else
                    decode_small(&at[i], first + g, &w[g]);
            barrier();
            for (int t = 0; t < tiles; t++) add_groups(&at[i], w, first, count, &rows[t * steps + first], out[i] + t * kTile);
        }
    }
}
