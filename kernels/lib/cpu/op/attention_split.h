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
    _Alignas(32) float q[kQueryFloats];  // [count][wide], scaled
} queries;

// Sums over the keys of one split, per query vector. A vector that sees none of them is left alone.
typedef struct {
    float max[kQueries], sum[kQueries];
    _Alignas(32) float values[kQueryFloats];  // [count][wide]
} partials;

// Where the keys of a split lie, then its values, then what will be read next; and room for a tile in f32.
typedef struct {
    const void *row[2 * kSplit + kTileKeys + 4];
    const void *copied[kTileKeys + 4];
    _Alignas(32) float copy[kTileFloats];
} tile;

INLINE int32_t at_most(int32_t x, int32_t y) { return x < y ? x : y; }
INLINE int32_t at_least(int32_t x, int32_t y) { return x > y ? x : y; }

INLINE f32x8 load8_cache(const void *row, int d, int bytes) {
    return bytes == 2 ? load8_bf16((const uint16_t *)row + d) : load8((const float *)row + d);
}

// Points row at the n keys (or values) from position first on.
static inline void locate(const void **row, const queries *q, const void *cache, int32_t first, int32_t n) {
    const atlas_PagedAttention *a = q->a;
    const int32_t size = a->BlockSize;
    for (int32_t i = 0; i < n;) {
        const int32_t offset = (first + i) % size, run = at_most(n - i, size - offset);
        const size_t block = q->table[(first + i) / size];
        const char *p = (const char *)cache + ((block * a->KVHeads + q->head) * size + offset) * a->HeadDim * kKVBytes;
        for (int32_t j = 0; j < run; j++, p += (size_t)a->HeadDim * kKVBytes) row[i++] = p;
    }
}

// Copies n rows to f32 and whole lanes; the last stands for the four after it.
static inline void widen(tile *t, const queries *q, const void *const *row, int32_t n) {
    const int dim = q->a->HeadDim;
    for (int32_t i = 0; i < n; i++) {
        float *to = t->copy + i * q->wide;
        for (int d = 0; d < dim; d += kWidth)
            store8(to + d, kKVBytes == 2 ? load_up_to8_bf16((const uint16_t *)row[i] + d, dim - d) : load_up_to8((const float *)row[i] + d, dim - d));
        t->copied[i] = to;
    }
    for (int32_t i = 0; i < 4; i++) t->copied[n + i] = t->copied[n - 1];
}

// Lane pairs of two sums, interleaved: the first step of sum8 for two vectors.
INLINE f32x8 sum_pairs(f32x8 x, f32x8 y) {
    return (f32x8)_mm256_unpacklo_ps((__m256)x, (__m256)y) + (f32x8)_mm256_unpackhi_ps((__m256)x, (__m256)y);
}
// sum8 of four vectors, from sum_pairs of the first two and of the last two.
INLINE __m128 sum_four(f32x8 x, f32x8 y) {
    const f32x8 s = (f32x8)_mm256_shuffle_ps((__m256)x, (__m256)y, 0x44) + (f32x8)_mm256_shuffle_ps((__m256)x, (__m256)y, 0xee);
    return _mm_add_ps(_mm256_castps256_ps128((__m256)s), _mm256_extractf128_ps((__m256)s, 1));
}

// Asks for the lines of a few rows, as many bytes as eight elements of each take, with every call for another d: one by
// one, because a burst would hold up what computes.
INLINE void prefetch_lines(const void *const *row, int rows, int d, int bytes) {
    const int size = rows * kWidth * bytes, every = size < 64 ? 64 / size : 1, lines = size < 64 ? 1 : size / 64;
    const int step = d / kWidth / every;
    if (d / kWidth % every) return;
    for (int l = 0; l < lines; l++) __builtin_prefetch((const char *)row[step % rows] + (step / rows * lines + l) * 64);
}

// Scores of n query vectors (1 to 4) with the four keys at row: keys go two by two where registers are short. Rows that
// lie ahead by some will be wanted soon.
INLINE void score_four(const float *q, int wide, int n, const void *const *row, int32_t ahead, int bytes, float *scores) {
    const int together = n == 4 ? 2 : 4;
    f32x8 pairs[4][2];
    for (int k = 0; k < 4; k += together) {
        f32x8 sum[4][4] = {0};
        for (int d = 0; d < wide; d += kWidth) {
            if (ahead) prefetch_lines(row + ahead + k, together, d, bytes);
            for (int j = 0; j < together; j++) {
                const f32x8 key = load8_cache(row[k + j], d, bytes);
                for (int i = 0; i < n; i++) sum[i][j] = fma8(load8(q + i * wide + d), key, sum[i][j]);
            }
        }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < together; j += 2) pairs[i][(k + j) / 2] = sum_pairs(sum[i][j], sum[i][j + 1]);
    }
    for (int i = 0; i < n; i++) _mm_storeu_ps(scores + i * kPitch, sum_four(pairs[i][0], pairs[i][1]));
}

INLINE void score_queries(const queries *q, int32_t i, int n, const void *const *row, int32_t keys, int32_t ahead, int bytes, float *scores) {
    for (int32_t k = 0; k < keys; k += 4) score_four(q->q + i * q->wide, q->wide, n, row + k, i ? 0 : ahead, bytes, scores + i * kPitch + k);
}

// Scores of all query vectors with the keys of a tile.
INLINE void score_tile(const queries *q, const void *const *row, int32_t keys, int32_t ahead, int bytes, float *scores) {
    for (int32_t i = 0; i < q->count;) {
        const int32_t rest = q->count - i;
        if (rest == 4 || rest >= 7) {
            score_queries(q, i, 4, row, keys, ahead, bytes, scores), i += 4;
        } else if (rest >= 3) {
            score_queries(q, i, 3, row, keys, ahead, bytes, scores), i += 3;
        } else if (rest == 2) {
            score_queries(q, i, 2, row, keys, ahead, bytes, scores), i += 2;
        } else {
            score_queries(q, i, 1, row, keys, ahead, bytes, scores), i += 1;
        }
    }
}

// Turns the scores of positions first … last of a split into weights, with zeros up to whole lanes on both sides.
INLINE void weigh(float *scores, int32_t first, int32_t last, float *max, float *sum) {
    const int32_t begin = first & -kWidth;
    for (int32_t t = begin; t < first; t++) scores[t] = -INFINITY;
    for (int32_t t = last + 1; t % kWidth; t++) scores[t] = -INFINITY;
    f32x8 m = set8(-INFINITY), s = {0};
    for (int32_t t = begin; t <= last; t += kWidth) m = max8(m, load8(scores + t));
    *max = largest(m);
    m = set8(*max);
    for (int32_t t = begin; t <= last; t += kWidth) {
        const f32x8 w = exp8(load8(scores + t) - m);
        store8(scores + t, w);
        s += w;
    }
    *sum = sum8(s);
}

// Adds keys first … last-1 to n times v lanes of values.
INLINE void add_lanes(float *values, int wide, int n, int v, const float *weights, const void *const *row, int32_t first, int32_t last, int32_t ahead, int d, int bytes) {
    f32x8 sum[4][8];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < v; j++) sum[i][j] = load8(values + i * wide + d + j * kWidth);
    for (int32_t t = first; t < last; t++) {
        if (ahead)
            for (int b = 0; b < v * kWidth * bytes; b += 64) __builtin_prefetch((const char *)row[t + ahead] + d * bytes + b);
        for (int j = 0; j < v; j++) {
            const f32x8 x = load8_cache(row[t], d + j * kWidth, bytes);
            for (int i = 0; i < n; i++) sum[i][j] = fma8(set8(weights[i * kPitch + t]), x, sum[i][j]);
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < v; j++) store8(values + i * wide + d + j * kWidth, sum[i][j]);
}

// Adds keys first … last-1 to the values of n query vectors, v lanes of the head at a time.
INLINE void add_values(float *values, int wide, int n, int v, const float *weights, const void *const *row, int32_t first, int32_t last, int32_t ahead, int bytes) {
    int d = 0;
    for (; d + v * kWidth <= wide; d += v * kWidth) add_lanes(values, wide, n, v, weights, row, first, last, ahead, d, bytes);
    for (; d < wide; d += kWidth) add_lanes(values, wide, n, 1, weights, row, first, last, ahead, d, bytes);
}

// Adds the values of a tile, which begins at position begin of the split, to all query vectors. The vectors of one row
// see the same positions and go together.
INLINE void add_tile(const queries *q, const void *const *row, int32_t split, int32_t begin, int32_t keys, int32_t ahead, int bytes, const float *scores, float *values) {
    for (int32_t i = 0; i < q->count;) {
        const int32_t first = at_least(q->first[i] - split - begin, 0), last = at_most(q->last[i] - split - begin + 1, keys);
        int32_t n = 1;
        while (n < 4 && i + n < q->count && q->last[i + n] == q->last[i]) n++;
        float *v = values + i * q->wide;
        const float *w = scores + i * kPitch + begin;
        if (first < last) {
            if (n == 4)
                add_values(v, q->wide, 4, 2, w, row, first, last, i ? 0 : ahead, bytes);
            else if (n == 3)
                add_values(v, q->wide, 3, 4, w, row, first, last, i ? 0 : ahead, bytes);
            else if (n == 2)
                add_values(v, q->wide, 2, 4, w, row, first, last, i ? 0 : ahead, bytes);
            else
                add_values(v, q->wide, 1, 8, w, row, first, last, i ? 0 : ahead, bytes);
        }
        i += n;
    }
}

INLINE int sees(const queries *q, int32_t i, int32_t split) { return q->first[i] < split + kSplit && q->last[i] >= split; }

// Attends over the split that begins at position split; next is the split to come, if the caller knows it.
static inline void attend(const queries *q, int32_t split, int32_t next, partials *p) {
    _Alignas(32) float scores[kQueries * kPitch];
    tile t;
    int32_t begin = kSplit, end = 0;
    for (int32_t i = 0; i < q->count; i++) {
        if (!sees(q, i, split)) continue;
        begin = at_most(begin, at_least(q->first[i] - split, 0));
        end = at_least(end, at_most(q->last[i] - split + 1, kSplit));
    }
    const int copied = q->a->HeadDim % kWidth != 0 || (kKVBytes == 2 && q->count > kFewQueries);
    const int32_t step = at_most(kTileFloats / q->wide, kTileKeys), count = end - begin;
    const void **key = t.row, **value = key + count, **after = value + count;
    locate(key, q, q->a->K, split + begin, count);
    locate(value, q, q->a->V, split + begin, count);
    const int32_t known = next > split ? at_most(step, q->last[q->count - 1] + 1 - next) : 0;
    if (known > 0) locate(after, q, q->a->K, next, known);
    for (int32_t i = at_least(known, 0); i < step + 4; i++) after[i] = value[count - 1];
    for (int32_t k = 0; k < count; k += step) {
        const int32_t keys = at_most(step, count - k);
        if (copied) {
            widen(&t, q, key + k, keys);
            score_tile(q, t.copied, keys, 0, 4, scores + begin + k);
        } else {
            score_tile(q, key + k, keys, step, kKVBytes, scores + begin + k);
        }
    }
    for (int32_t i = 0; i < q->count; i++)
        if (sees(q, i, split))
            weigh(scores + i * kPitch, at_least(q->first[i] - split, 0), at_most(q->last[i] - split, kSplit - 1), &p->max[i], &p->sum[i]);
    memset(p->values, 0, (size_t)q->count * q->wide * sizeof(float));
    for (int32_t k = 0; k < count; k += step) {
        const int32_t keys = at_most(step, count - k);
        if (copied) {
            widen(&t, q, value + k, keys);
            add_tile(q, t.copied, split, begin + k, keys, 0, 4, scores, p->values);
        } else {
            add_tile(q, value + k, split, begin + k, keys, step, kKVBytes, scores, p->values);
        }
    }
}

// The running result of one query vector over its splits so far; max starts at -∞, sum and values at zero.
INLINE void merge(float *max, float *sum, float *values, float split_max, float split_sum, const float *split_values, int wide) {
    const float m = *max > split_max ? *max : split_max;
    const f32x8 old = exp8(set8(*max - m)), new = exp8(set8(split_max - m));
    *sum = fmaf(split_sum, new[0], *sum * old[0]);
    *max = m;
    for (int d = 0; d < wide; d += kWidth) store8(values + d, fma8(load8(split_values + d), new, load8(values + d) * old));
}

// Writes the result of one query vector; zeros where it saw nothing.
INLINE void finish(float *out, int dim, const float *values, float sum) {
    const float inverse = sum == 0 ? 0 : 1 / sum;
    for (int d = 0; d < dim; d++) out[d] = values[d] * inverse;
}
