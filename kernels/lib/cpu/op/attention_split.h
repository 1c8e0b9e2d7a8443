// One split of keys: the softmax-weighted values of kSplit consecutive positions for a few query vectors.
//
// This file is the reduction order of attention. A score is summed over eight lanes of the head; a split has its own
// maximum; its weights are summed in eight lanes of the position, its values one position after the other. Splits
// begin at multiples of kSplit from position 0, so bits depend on positions alone, never on who shares the work.
#pragma once
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");
static_assert(kKVBytes == 2 || kKVBytes == 4, "the cache holds bf16 or f32");
static_assert(kSplit % kWidth == 0, "whole lanes of positions");

enum {
    kQueries = 48,           // query vectors at once
    kQueryFloats = 48 * 128, // and their elements at once; a longer head lowers the count
    kTileKeys = 64,          // keys at once
    kTileFloats = 64 * 64,
    kPitch = kSplit + kWidth,  // floats between the scores of two query vectors
    kFewQueries = 8,           // up to here a cache is read in place, above it is widened to f32 once
};

// Query vectors of one sequence that read the same key head. Vector i belongs to row i / group.
typedef struct {
    const atlas_PagedAttention *a;
    const int32_t *table;      // blocks of the sequence
    int32_t head;              // key head
    int32_t wide;              // HeadDim rounded up to whole lanes
    int32_t count;             // query vectors
    int32_t first[kQueries];   // first and last position that each sees
    int32_t last[kQueries];
    _Alignas(32) float q[kQueryFloats];  // scaled, packed by put_query
} queries;

// Sums over the keys of one split, per query vector. A vector that sees none of them is left alone.
typedef struct {
    float max[kQueries], sum[kQueries];
    _Alignas(32) float values[kQueryFloats];  // [count][wide]
} partials;

// Rows of a cache: byte offsets from a base.
typedef struct {
    const char *base;
    const size_t *at;
} rows;

// Where the keys and values of a split and of the tile after it lie, and room for a tile in f32.
typedef struct {
    size_t at[kSplit + kTileKeys + 4], next[kTileKeys + 4];
    _Alignas(64) float copy[2 * kTileFloats];  // eight rows of the longest head
} places;

INLINE int32_t at_most(int32_t x, int32_t y) { return x < y ? x : y; }
INLINE int32_t at_least(int32_t x, int32_t y) { return x > y ? x : y; }

INLINE const char *row_at(rows r, int32_t i) { return r.base + r.at[i]; }
INLINE rows from(rows r, int32_t i) { return (rows){r.base, r.at + i}; }
INLINE f32x8 load8_cache(const char *row, int d, int bytes) {
    return bytes == 2 ? load8_bf16((const uint16_t *)row + d) : load8((const float *)row + d);
}

// How many query vectors are scored together where rest are left: threes fill the registers of AVX2 best.
INLINE int together(int32_t rest) { return rest == 4 ? 4 : rest > 3 ? 3 : rest; }

// Packs lanes d … d+7 of query vector i: [group of vectors][wide/8][vector][8], so that one pointer serves a group.
INLINE void put_query(queries *q, int32_t i, int d, f32x8 x) {
    int32_t begin = 0, n = together(q->count);
    while (begin + n <= i) begin += n, n = together(q->count - begin);
    store8(q->q + begin * q->wide + d * n + (i - begin) * kWidth, x);
}

// Finds the n positions from first on; the last stands for all up to room.
static inline void locate(size_t *at, const queries *q, int32_t first, int32_t n, int32_t room) {
    const size_t size = q->a->BlockSize, row = (size_t)q->a->HeadDim * kKVBytes;
    const int32_t *block = q->table + first / size;
    int32_t i = 0;
    for (size_t offset = first % size; i < n; offset = 0, block++) {
        size_t p = (((size_t)*block * q->a->KVHeads + q->head) * size + offset) * row;
        for (; offset < size && i < n; offset++, p += row) at[i++] = p;
    }
    for (; i < room; i++) at[i] = at[n - 1];
}

// Copies n rows to f32 and whole lanes: one after the other, or with twins rows i and i+4 of eight side by side, eight
// lanes of each in turn.
INLINE void widen(float *copy, const queries *q, rows row, int32_t n, int twins) {
    const int dim = q->a->HeadDim;
    for (int32_t i = 0; i < n; i++) {
        const char *in = row_at(row, i);
        float *to = copy + (twins ? (i / 8 * 8 + i % 4 * 2) * q->wide + i / 4 % 2 * kWidth : i * q->wide);
        for (int d = 0; d < dim; d += kWidth)
            store8(to + d * (twins ? 2 : 1), kKVBytes == 2 ? load_up_to8_bf16((const uint16_t *)in + d, dim - d) : load_up_to8((const float *)in + d, dim - d));
    }
}

// Asks for the lines of a few rows, as many bytes as eight elements of each take, with every call for another d: one by
// one, because a burst would hold up what computes.
INLINE void prefetch_lines(rows row, int n, int d, int bytes) {
    const int size = n * kWidth * bytes, every = size < 64 ? 64 / size : 1, lines = size < 64 ? 1 : size / 64;
    const int step = d / kWidth / every;
    if (d / kWidth % every) return;
    for (int l = 0; l < lines; l++) __builtin_prefetch(row_at(row, step % n) + (step / n * lines + l) * 64);
}

// Scores of n query vectors (1 to 4) with the first four keys at row, four side by side or two where registers are short.
// Rows ahead will be wanted soon.
INLINE void score_four(const float *q, int wide, int n, rows row, rows ahead, int bytes, float *scores) {
    const int side = n == 4 ? 2 : 4;
    f32x8 pairs[4][2];
    for (int k = 0; k < 4; k += side) {
        f32x8 sum[4][4];
        for (int i = 0; i < n; i++)
            for (int j = 0; j < side; j++) sum[i][j] = set8(0);
        for (int d = 0; d < wide; d += kWidth) {
            if (ahead.base) prefetch_lines(from(ahead, k), side, d, bytes);
            for (int j = 0; j < side; j++) {
                const f32x8 key = load8_cache(row_at(row, k + j), d, bytes);
                for (int i = 0; i < n; i++) sum[i][j] = fma8(load8(q + d * n + i * kWidth), key, sum[i][j]);
            }
        }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < side; j += 2) pairs[i][(k + j) / 2] = sum_pairs(sum[i][j], sum[i][j + 1]);
    }
    for (int i = 0; i < n; i++) store_sums4(scores + i * kPitch, pairs[i][0], pairs[i][1]);
}

// Scores of n query vectors with eight keys that were copied as twins: the sums of score_four, two keys at a time.
INLINE void score_eight(const float *q, int wide, int n, const float *keys, float *scores) {
    const int side = kTwinRegisters == 1 ? 4 : n == 4 ? 1 : 2;
    twin sums[4][4];
    for (int k = 0; k < 4; k += side) {
        twin sum[4][4];
        for (int i = 0; i < n; i++)
            for (int j = 0; j < side; j++) sum[i][j] = twin_set(0);
        for (int d = 0; d < wide; d += kWidth)
            for (int j = 0; j < side; j++) {
                const twin key = twin_load(keys + (k + j) * 2 * wide + 2 * d);
                for (int i = 0; i < n; i++) sum[i][j] = twin_fma(twin_same(q + d * n + i * kWidth), key, sum[i][j]);
            }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < side; j++) sums[i][k + j] = sum[i][j];
    }
    for (int i = 0; i < n; i++) {
        const twin x = twin_sum_pairs(sums[i][0], sums[i][1]), y = twin_sum_pairs(sums[i][2], sums[i][3]);
        store_sums4(scores + i * kPitch, twin_first(x), twin_first(y));
        store_sums4(scores + i * kPitch + 4, twin_second(x), twin_second(y));
    }
}

// Scores with keys of a copy, or of the cache where there is none.
INLINE void score_queries(const queries *q, int32_t i, int n, const float *copy, rows row, int32_t keys, rows ahead, int bytes, float *scores) {
    if (copy) {
        for (int32_t k = 0; k < keys; k += 8) score_eight(q->q + i * q->wide, q->wide, n, copy + k * q->wide, scores + i * kPitch + k);
        return;
    }
    if (i) ahead.base = 0;
    for (int32_t k = 0; k < keys; k += 4) score_four(q->q + i * q->wide, q->wide, n, from(row, k), from(ahead, k), bytes, scores + i * kPitch + k);
}

// Scores of all query vectors with the keys of a tile.
INLINE void score_tile(const queries *q, const float *copy, rows row, int32_t keys, rows ahead, int bytes, float *scores) {
    for (int32_t i = 0; i < q->count; i += together(q->count - i)) {
        switch (together(q->count - i)) {
        case 4: score_queries(q, i, 4, copy, row, keys, ahead, bytes, scores); break;
        case 3: score_queries(q, i, 3, copy, row, keys, ahead, bytes, scores); break;
        case 2: score_queries(q, i, 2, copy, row, keys, ahead, bytes, scores); break;
        default: score_queries(q, i, 1, copy, row, keys, ahead, bytes, scores);
        }
    }
}

// Turns the scores of positions first … last of a split into weights, with zeros up to whole lanes on both sides.
INLINE void weigh(float *scores, int32_t first, int32_t last, float *max, float *sum) {
    const int32_t begin = first & -kWidth;
    for (int32_t t = begin; t < first; t++) scores[t] = -INFINITY;
    for (int32_t t = last + 1; t % kWidth; t++) scores[t] = -INFINITY;
    f32x8 m = set8(-INFINITY), s = set8(0);
    for (int32_t t = begin; t <= last; t += kWidth) m = max8(m, load8(scores + t));
    *max = largest(m);
    m = set8(*max);
    for (int32_t t = begin; t <= last; t += kWidth) {
        const f32x8 w = exp8(sub8(load8(scores + t), m));
        store8(scores + t, w);
        s = add8(s, w);
    }
    *sum = sum8(s);
}

// Adds keys first … last-1 to n times v lanes of values.
INLINE void add_lanes(float *values, int wide, int n, int v, const float *weights, rows row, int32_t first, int32_t last, rows ahead, int d, int bytes) {
    f32x8 sum[4][8];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < v; j++) sum[i][j] = load8(values + i * wide + d + j * kWidth);
    for (int32_t t = first; t < last; t++) {
        const char *x_at = row_at(row, t);
        if (ahead.base)
            for (int b = 0; b < v * kWidth * bytes; b += 64) __builtin_prefetch(row_at(ahead, t) + d * bytes + b);
        for (int j = 0; j < v; j++) {
            const f32x8 x = load8_cache(x_at, d + j * kWidth, bytes);
            for (int i = 0; i < n; i++) sum[i][j] = fma8(set8(weights[i * kPitch + t]), x, sum[i][j]);
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < v; j++) store8(values + i * wide + d + j * kWidth, sum[i][j]);
}

// Adds copied keys first … last-1 to the values of n query vectors.
INLINE void add_copied(float *values, int wide, int n, const float *weights, const float *copy, int32_t first, int32_t last) {
    const int v = kTwinRegisters == 1 || n == 1 ? 4 : n == 4 ? 1 : 2, step = v * 2 * kWidth;
    int d = 0;
    for (; d + step <= wide; d += step) {
        twin sum[4][4];
        for (int i = 0; i < n; i++)
            for (int j = 0; j < v; j++) sum[i][j] = twin_load(values + i * wide + d + j * 2 * kWidth);
        for (int32_t t = first; t < last; t++)
            for (int j = 0; j < v; j++) {
                const twin x = twin_load(copy + t * wide + d + j * 2 * kWidth);
                for (int i = 0; i < n; i++) sum[i][j] = twin_fma(twin_set(weights[i * kPitch + t]), x, sum[i][j]);
            }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < v; j++) twin_store(values + i * wide + d + j * 2 * kWidth, sum[i][j]);
    }
    for (; d < wide; d += kWidth)
        for (int i = 0; i < n; i++) {
            f32x8 sum = load8(values + i * wide + d);
            for (int32_t t = first; t < last; t++) sum = fma8(set8(weights[i * kPitch + t]), load8(copy + t * wide + d), sum);
            store8(values + i * wide + d, sum);
        }
}

// Adds keys first … last-1 to the values of n query vectors, v lanes of the head at a time.
INLINE void add_values(float *values, int wide, int n, int v, const float *weights, rows row, int32_t first, int32_t last, rows ahead, int bytes) {
    int d = 0;
    for (; d + v * kWidth <= wide; d += v * kWidth) add_lanes(values, wide, n, v, weights, row, first, last, ahead, d, bytes);
    for (; d < wide; d += kWidth) add_lanes(values, wide, n, 1, weights, row, first, last, ahead, d, bytes);
}

// Adds the values of a tile, which begins at position begin of the split, to all query vectors: from a copy, or from the
// cache where there is none. The vectors of one row see the same positions and go together.
INLINE void add_tile(const queries *q, const float *copy, rows row, int32_t split, int32_t begin, int32_t keys, rows ahead, int bytes, const float *scores, float *values) {
    for (int32_t i = 0; i < q->count;) {
        const int32_t first = at_least(q->first[i] - split - begin, 0), last = at_most(q->last[i] - split - begin + 1, keys);
        int32_t n = 1;
        while (n < 4 && i + n < q->count && q->last[i + n] == q->last[i]) n++;
        float *v = values + i * q->wide;
        const float *w = scores + i * kPitch + begin;
        if (i) ahead.base = 0;
        if (first < last && copy) {
            switch (n) {
            case 4: add_copied(v, q->wide, 4, w, copy, first, last); break;
            case 3: add_copied(v, q->wide, 3, w, copy, first, last); break;
            case 2: add_copied(v, q->wide, 2, w, copy, first, last); break;
            default: add_copied(v, q->wide, 1, w, copy, first, last);
            }
        } else if (first < last) {
            if (n == 4)
                add_values(v, q->wide, 4, 2, w, row, first, last, ahead, bytes);
            else if (n == 3)
                add_values(v, q->wide, 3, 4, w, row, first, last, ahead, bytes);
            else if (n == 2)
                add_values(v, q->wide, 2, 4, w, row, first, last, ahead, bytes);
            else
                add_values(v, q->wide, 1, 8, w, row, first, last, ahead, bytes);
        }
        i += n;
    }
}

INLINE int sees(const queries *q, int32_t i, int32_t split) { return q->first[i] < split + kSplit && q->last[i] >= split; }

// Attends over the split that begins at position split; next is the split to come, if the caller knows it.
static inline void attend(const queries *q, int32_t split, int32_t next, partials *p) {
    _Alignas(32) float scores[kQueries * kPitch];
    places at;
    int32_t begin = kSplit, end = 0;
    for (int32_t i = 0; i < q->count; i++) {
        if (!sees(q, i, split)) continue;
        begin = at_most(begin, at_least(q->first[i] - split, 0));
        end = at_least(end, at_most(q->last[i] - split + 1, kSplit));
    }
    const int copied = q->a->HeadDim % kWidth != 0 || (kKVBytes == 2 && q->count > kFewQueries);
    const int32_t step = at_least(at_most(kTileFloats / q->wide, kTileKeys) & -8, 8), count = end - begin;
    locate(at.at, q, split + begin, count, count + step + 4);
    // What will be read after the last tile.
    const int32_t known = next > split ? at_most(step, q->last[q->count - 1] + 1 - next) : 0;
    if (known > 0) locate(at.next, q, next, known, step + 4);
    const rows key = {q->a->K, at.at}, value = {q->a->V, at.at}, none = {0, at.at};
    const rows after = known > 0 ? (rows){q->a->K, at.next} : none;

    for (int32_t k = 0; k < count; k += step) {
        const int32_t keys = at_most(step, count - k);
        if (copied) {
            widen(at.copy, q, from(key, k), keys, 1);
            score_tile(q, at.copy, none, keys, none, 4, scores + begin + k);
        } else {
            score_tile(q, 0, from(key, k), keys, k + step < count ? from(key, k + step) : value, kKVBytes, scores + begin + k);
        }
    }
    for (int32_t i = 0; i < q->count; i++)
        if (sees(q, i, split))
            weigh(scores + i * kPitch, at_least(q->first[i] - split, 0), at_most(q->last[i] - split, kSplit - 1), &p->max[i], &p->sum[i]);
    memset(p->values, 0, (size_t)q->count * q->wide * sizeof(float));
    for (int32_t k = 0; k < count; k += step) {
        const int32_t keys = at_most(step, count - k);
        if (copied) {
            widen(at.copy, q, from(value, k), keys, 0);
            add_tile(q, at.copy, none, split, begin + k, keys, none, 4, scores, p->values);
        } else {
            add_tile(q, 0, from(value, k), split, begin + k, keys, k + step < count ? from(value, k + step) : after, kKVBytes, scores, p->values);
        }
    }
}

// The running result of one query vector over its splits so far; max starts at -∞, sum and values at zero.
INLINE void merge(float *max, float *sum, float *values, float split_max, float split_sum, const float *split_values, int wide) {
    const float m = *max > split_max ? *max : split_max;
    const f32x8 old = exp8(set8(*max - m)), new = exp8(set8(split_max - m));
    *sum = fmaf(split_sum, first_of8(new), *sum * first_of8(old));
    *max = m;
    for (int d = 0; d < wide; d += kWidth) store8(values + d, fma8(load8(split_values + d), new, mul8(load8(values + d), old)));
}

// Writes the result of one query vector; zeros where it saw nothing.
INLINE void finish(float *out, int dim, const float *values, float sum) {
    const float inverse = sum == 0 ? 0 : 1 / sum;
    for (int d = 0; d < dim; d++) out[d] = values[d] * inverse;
}
