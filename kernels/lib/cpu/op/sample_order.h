// A row's logits from the largest down: one by one for the few that most draws need, by bisection for the rest.
#pragma once
#include "lib/cpu/vector.h"

enum {
    kChunk = 4096,  // logits per block of sample_scan
    kRun = 64,      // logits that share a maximum
    kRuns = kChunk / kRun,
};

// A chunk of one row in scratch. A logit that is ruled out or not finite is -∞, and so is all past the vocabulary.
typedef struct {
    _Alignas(64) float logits[kChunk];  // of rows that draw; the largest logit needs none
    float maxima[kRuns];
    double mass;  // Σ e^((z-max)/T), where a draw needs it
    float max;
    float pad_[13];
} sample_chunk;
static_assert(sizeof(sample_chunk) == 16704, "the manifest's scratch");

// A row that draws: its chunks, its largest logit and 1/T.
typedef struct {
    const sample_chunk *chunk;
    int32_t chunks;
    float max, inverse_temperature;
} sample_row;

typedef struct {
    float z;
    int32_t id;
} sample_token;

INLINE int before(sample_token x, sample_token y) { return x.z > y.z || (x.z == y.z && x.id < y.id); }
INLINE float logit(const sample_row *r, int32_t id) { return r->chunk[id / kChunk].logits[id % kChunk]; }
INLINE f32x8 mass8(f32x8 z, float max, float inverse_temperature) { return exp8((z - max) * inverse_temperature); }

// The first token of a run that comes after t; z is -∞ if there is none.
INLINE sample_token next_in_run(const sample_row *r, int32_t run, sample_token t) {
    const float *z = r->chunk[run / kRuns].logits + run % kRuns * kRun;
    const i32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    f32x8 left[kRun / kWidth], max = set8(-INFINITY);
    for (int i = 0; i < kRun / kWidth; i++) {
        const f32x8 v = load8(z + i * kWidth);
        left[i] = pick8((v < t.z) | ((v == t.z) & (lane + (run * kRun + i * kWidth) > t.id)), set8(-INFINITY), v);
        max = max8(left[i], max);
    }
    const float m = largest(max);
    for (int i = 0; i < kRun / kWidth; i++) {
        const int equal = _mm256_movemask_ps((__m256)(left[i] == m));
        if (equal) return (sample_token){m, run * kRun + i * kWidth + __builtin_ctz(equal)};
    }
    return (sample_token){-INFINITY, run * kRun};
}

// Runs as a heap, the one with the next token on top. A run that was never on top stands there with its maximum and its
// first id, which come before any token of it.
typedef struct {
    sample_token *top;
    int32_t count;
} run_heap;

INLINE void sift(run_heap *h, int32_t i) {
    const sample_token t = h->top[i];
    for (int32_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && before(h->top[child + 1], h->top[child])) child++;
        if (!before(h->top[child], t)) break;
        h->top[i] = h->top[child];
    }
    h->top[i] = t;
}

// memory holds a token per run.
INLINE run_heap heap_of(const sample_row *r, sample_token *memory) {
    run_heap h = {memory, 0};
    for (int32_t run = 0; run < r->chunks * kRuns; run++) {
        const float m = r->chunk[run / kRuns].maxima[run % kRuns];
        if (m > -INFINITY) h.top[h.count++] = (sample_token){m, run * kRun};
    }
    for (int32_t i = h.count / 2 - 1; i >= 0; i--) sift(&h, i);
    return h;
}

// Takes the next token; z is -∞ when all are taken.
INLINE sample_token take(run_heap *h, const sample_row *r) {
    while (h->count) {
        const sample_token t = h->top[0];
        const int exact = logit(r, t.id) == t.z;
        h->top[0] = next_in_run(r, t.id / kRun, exact ? t : (sample_token){INFINITY, -1});
        if (h->top[0].z == -INFINITY) h->top[0] = h->top[--h->count];
        if (h->count) sift(h, 0);
        if (exact) return t;
    }
    return (sample_token){-INFINITY, 0};
}

// How many tokens come no later than last, and how likely they are together (in units of the largest).
typedef struct {
    double count, mass;
} sample_share;

static inline sample_share share_up_to(const sample_row *r, sample_token last) {
    const i32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    sample_share s = {0};
    for (int32_t run = 0; run < r->chunks * kRuns; run++) {
        if (r->chunk[run / kRuns].maxima[run % kRuns] < last.z) continue;
        const float *z = r->chunk[run / kRuns].logits + run % kRuns * kRun;
        f32x8 mass = {0};
        int count = 0;
        for (int i = 0; i < kRun; i += kWidth) {
            const f32x8 v = load8(z + i);
            const i32x8 in = (v > last.z) | ((v == last.z) & (lane + (run * kRun + i) <= last.id));
            mass += pick8(in, set8(0), mass8(v, r->max, r->inverse_temperature));
            count += __builtin_popcount(_mm256_movemask_ps((__m256)in));
        }
        s.mass += sum8(mass);
        s.count += count;
    }
    return s;
}

// Finite floats in the order of their integers, and back.
INLINE int32_t rank_of(float z) {
    int32_t i;
    memcpy(&i, &z, sizeof i);
    return i < 0 ? i ^ INT32_MAX : i;
}
INLINE float of_rank(int32_t i) {
    float z;
    i = i < 0 ? i ^ INT32_MAX : i;
    memcpy(&z, &i, sizeof z);
    return z;
}

// The first token at which the count (or else the mass) reaches target; last if none before it does.
static inline sample_token token_at(const sample_row *r, int by_count, double target, sample_token last) {
    // The token's logit first: the largest z such that tokens of z and more reach the target.
    int64_t low = rank_of(last.z), high = (int64_t)rank_of(r->max) + 1;
    while (high - low > 1) {
        const int64_t middle = (low + high) >> 1;
        const sample_share s = share_up_to(r, (sample_token){of_rank(middle), INT32_MAX});
        if ((by_count ? s.count : s.mass) >= target)
            low = middle;
        else
            high = middle;
    }
    const float z = of_rank(low);
    const sample_share above = share_up_to(r, (sample_token){z, -1});
    const double each = by_count ? 1 : mass8(set8(z), r->max, r->inverse_temperature)[0];
    double sum = by_count ? above.count : above.mass;
    sample_token t = last;
    for (int32_t run = 0; run < r->chunks * kRuns; run++) {
        if (r->chunk[run / kRuns].maxima[run % kRuns] < z) continue;
        for (int32_t id = run * kRun; id < (run + 1) * kRun; id++) {
            if (logit(r, id) != z) continue;
            if (z == last.z && id > last.id) return t;
            t = (sample_token){z, id};
            sum += each;
            if (sum >= target) return t;
        }
    }
    return t;
}
