// A row's logits from the largest down: one by one for the few that most draws need, by halving for the rest.
#pragma once
#include "lib/cpu/vector.h"

enum {
    kChunk = 4096,  // logits per block of sample_scan
    kRun = 64,      // logits that share a maximum
    kRuns = kChunk / kRun,
    kFew = 256,     // tokens that are faster taken than halved
};

// A chunk of one row in scratch. A logit that is ruled out or not finite is -∞, and so is all past the vocabulary.
typedef struct {
    _Alignas(64) float logits[kChunk];  // of rows that draw; the largest logit needs none
    float maxima[kRuns];
    double mass;  // Σ e^((z-max)/T), where a draw needs it
    double count, sum, squares;  // Σ 1, Σ (z-max) and Σ (z-max)², where TopNSigma asks for them
    double heat, moment;         // Σ e^(z-max) and Σ (z-max)·e^(z-max), where MinEntropy does
    float max;
    float pad_[3];
} sample_chunk;
static_assert(sizeof(sample_chunk) == 16704, "the manifest's scratch");

typedef struct {
    float z;
    int32_t id;
} sample_token;

// A row that draws.
typedef struct {
    const sample_chunk *chunk;
    int32_t chunks;
    float max;                  // the largest logit
    float inverse_temperature;
    sample_token *memory;       // room for a token per run
} sample_row;

INLINE int before(sample_token x, sample_token y) { return x.z > y.z || (x.z == y.z && x.id < y.id); }
INLINE float logit(const sample_row *r, int32_t id) { return r->chunk[id / kChunk].logits[id % kChunk]; }
INLINE f32x8 mass8(f32x8 z, float max, float inverse_temperature) { return exp8(mul8(sub8(z, set8(max)), set8(inverse_temperature))); }

// The first token of a run that comes after t; z is -∞ if there is none.
INLINE sample_token next_in_run(const sample_row *r, int32_t run, sample_token t) {
    const float *z = r->chunk[run / kRuns].logits + run % kRuns * kRun;
    const f32x8 after = set8(t.z);
    f32x8 left[kRun / kWidth], max = set8(-INFINITY);
    for (int i = 0; i < kRun / kWidth; i++) {
        const f32x8 v = load8(z + i * kWidth);
        left[i] = pick8(or8(less8(v, after), and8(equal8(v, after), beyond8(run * kRun + i * kWidth, t.id))), set8(-INFINITY), v);
        max = max8(left[i], max);
    }
    const float m = largest(max);
    for (int i = 0; i < kRun / kWidth; i++) {
        const int equal = bits_of8(equal8(left[i], set8(m)));
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

INLINE void build(run_heap *h) {
    for (int32_t i = h->count / 2 - 1; i >= 0; i--) sift(h, i);
}

// All tokens.
INLINE run_heap all_tokens(const sample_row *r) {
    run_heap h = {r->memory, 0};
    for (int32_t run = 0; run < r->chunks * kRuns; run++) {
        const float m = r->chunk[run / kRuns].maxima[run % kRuns];
        if (m > -INFINITY) h.top[h.count++] = (sample_token){m, run * kRun};
    }
    build(&h);
    return h;
}

// Tokens of less than z, down to least and some of less than that.
INLINE run_heap tokens_below(const sample_row *r, float z, float least) {
    run_heap h = {r->memory, 0};
    for (int32_t run = 0; run < r->chunks * kRuns; run++) {
        if (r->chunk[run / kRuns].maxima[run % kRuns] < least) continue;
        const sample_token t = next_in_run(r, run, (sample_token){z, INT32_MAX});
        if (t.z >= least) h.top[h.count++] = t;
    }
    build(&h);
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

// How many tokens, and how likely they are together (in units of the largest).
typedef struct {
    double count, mass;
} sample_share;

INLINE double mass_of(const sample_row *r, float z) { return first_of8(mass8(set8(z), r->max, r->inverse_temperature)); }

// The share of logits that are at least from and less than below.
static inline sample_share share_of(const sample_row *r, float from, float below) {
    sample_share s = {0};
    for (int32_t run = 0; run < r->chunks * kRuns; run++) {
        if (r->chunk[run / kRuns].maxima[run % kRuns] < from) continue;
        const float *z = r->chunk[run / kRuns].logits + run % kRuns * kRun;
        f32x8 mass = set8(0);
        int count = 0;
        for (int i = 0; i < kRun; i += kWidth) {
            const f32x8 v = load8(z + i);
            const mask8 in = and8(at_least8(v, set8(from)), less8(v, set8(below)));
            const int bits = bits_of8(in);
            if (!bits) continue;
            mass = add8(mass, pick8(in, set8(0), mass8(v, r->max, r->inverse_temperature)));
            count += __builtin_popcount(bits);
        }
        s.mass += sum8(mass);
        s.count += count;
    }
    return s;
}

// A token and the share of all up to it.
typedef struct {
    sample_token last;
    sample_share share;
} sample_limit;

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

// The first token with which the count (or else the mass) reaches target, at most limit. Halves the range of logits
// that it can lie in until few are left, then takes those one by one.
static inline sample_limit limit_at(const sample_row *r, int by_count, double target, sample_limit limit) {
    int64_t low = rank_of(limit.last.z), high = (int64_t)rank_of(r->max) + 1;
    sample_share above = {0};  // of logits from high on
    double left = limit.share.count;
    while (high - low > 1 && left > kFew) {
        const int64_t middle = (low + high) >> 1;
        const sample_share s = share_of(r, of_rank(middle), of_rank(high));
        if ((by_count ? above.count + s.count : above.mass + s.mass) >= target) {
            low = middle;
            left = s.count;
        } else {
            high = middle;
            left -= s.count;
            above.count += s.count;
            above.mass += s.mass;
        }
    }
    run_heap heap = tokens_below(r, of_rank(high), of_rank(low));
    for (;;) {
        const sample_token t = take(&heap, r);
        if (t.z == -INFINITY || before(limit.last, t)) return limit;
        above.count += 1;
        above.mass += mass_of(r, t.z);
        if ((by_count ? above.count : above.mass) >= target) return (sample_limit){t, above};
    }
}
