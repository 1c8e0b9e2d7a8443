// Sample on a CPU. sample_scan rules out, edits and finds maxima, one chunk of a row per block; sample_draw ends a row.
//
// A draw takes tokens from the largest down until it knows enough. Where kListed do not do (flat distributions with no
// limit), it searches for the limits and for the token by halving.
#include "lib/cpu/op/sample_moments.h"
#include "lib/cpu/uniform.h"

enum { kListed = 1024 };

INLINE int32_t chunks_of(const atlas_Sample *a) { return (a->Vocab + kChunk - 1) / kChunk; }
INLINE int draws(const atlas_Sample *a, size_t row) { return a->Temperature[row] > 0; }

// Where no limit cuts a row short, a draw compares with the mass of all tokens.
INLINE int needs_mass(const atlas_Sample *a, size_t row) { return draws(a, row) && a->TopK[row] <= 0 && !(a->MinP[row] > 0) && !(a->TopNSigma[row] > 0); }
INLINE float inverse_temperature(const atlas_Sample *a, size_t row) { return 1 / fmaxf(a->Temperature[row], 1e-30f); }

// Edits the logits of a chunk, one rounding for each step.
static inline void edit(const atlas_Sample *a, size_t row, int32_t begin, int32_t n, float *z) {
    for (int32_t e = a->EditStarts[row]; e < a->EditStarts[row + 1]; e++) {
        const int64_t i = (int64_t)a->EditToken[e] - begin;
        if (i < 0 || i >= n) continue;
        const float x = z[i] + a->EditBias[e];
        z[i] = (x > 0 ? x / a->EditFactor[e] : x * a->EditFactor[e]) + a->EditOffset[e];
    }
}

// Fills z with a chunk's logits as the draw sees them, and maxima with those of its runs.
static inline void prepare(const atlas_Sample *a, size_t row, int32_t chunk, float *z, float *maxima) {
    const int32_t begin = chunk * kChunk, n = a->Vocab - begin < kChunk ? a->Vocab - begin : kChunk;
    const float *in = a->Logits + row * a->Vocab + begin;
    const int32_t ruled = a->Mask ? a->MaskRow[row] : -1;
    const uint32_t *mask = ruled >= 0 ? a->Mask + (size_t)ruled * ((a->Vocab + 31) / 32) + begin / 32 : 0;
    const f32x8 none = set8(-INFINITY);
    memcpy(z, in, n * sizeof(float));
    for (int32_t i = n; i < kChunk; i++) z[i] = -INFINITY;
    edit(a, row, begin, n, z);
    for (int32_t run = 0; run < kRuns; run++) {
        f32x8 max = none;
        for (int32_t i = run * kRun; i < (run + 1) * kRun; i += kWidth) {
            f32x8 v = add8(load8(z + i), set8(0));  // so that both zeros are one
            v = pick8(finite8(v), none, v);
            if (mask) v = pick8(mask_of8(i < n ? mask[i / 32] >> i % 32 : 0), none, v);
            store8(z + i, v);
            max = max8(v, max);
        }
        maxima[run] = largest(max);
    }
}

INLINE float largest_of(const float *maxima) {
    f32x8 max = load8(maxima);
    for (int32_t i = kWidth; i < kRuns; i += kWidth) max = max8(load8(maxima + i), max);
    return largest(max);
}

// Block (chunk, row).
static inline void sample_scan(const atlas_Sample *a, void *scratch, uint32_t chunk, uint32_t row, uint32_t z) {
    (void)z;
    sample_chunk *c = (sample_chunk *)scratch + (size_t)row * chunks_of(a) + chunk;
    _Alignas(32) float passing[kChunk];
    prepare(a, row, chunk, draws(a, row) ? c->logits : passing, c->maxima);
    c->max = largest_of(c->maxima);
    c->mass = 0;
    if (!draws(a, row) || c->max == -INFINITY) return;
    if (a->TopNSigma[row] > 0) sum_spread(c);
    if (a->MinEntropy[row] > 0) sum_heat(c);
    if (!needs_mass(a, row)) return;
    const float inverse = inverse_temperature(a, row);
    for (int32_t run = 0; run < kRuns; run++) {
        f32x8 sum = set8(0);
        for (int32_t i = run * kRun; i < (run + 1) * kRun; i += kWidth) sum = add8(sum, mass8(load8(c->logits + i), c->max, inverse));
        c->mass += sum8(sum);
    }
}

// The first token whose logit is max.
static inline int32_t first_largest(const atlas_Sample *a, size_t row, const sample_chunk *c, float max) {
    int32_t chunk = 0, i = 0;
    while (c[chunk].max != max) chunk++;
    _Alignas(32) float z[kChunk], maxima[kRuns];
    prepare(a, row, chunk, z, maxima);
    while (z[i] != max) i++;
    return chunk * kChunk + i;
}

// The smallest f32 that a limit of z lets pass.
INLINE float least_from(double z) {
    if (!(z >= -FLT_MAX)) return -FLT_MAX;
    const float least = (float)z;
    return least < z ? nextafterf(least, INFINITY) : least;
}

// The smallest f32 that MinP and TopNSigma let pass: z ≥ max + T·ln m, and z ≥ max - n·σ.
INLINE float least_logit(const sample_row *r, float temperature, float min_p, float top_n_sigma) {
    const float likely = min_p > 0 ? least_from(r->max + temperature * log(min_p)) : -FLT_MAX;
    return top_n_sigma > 0 ? fmaxf(likely, least_from(r->max - top_n_sigma * deviation(r))) : likely;
}

// What a row that draws is cut to and where it is drawn.
typedef struct {
    int32_t top_k;
    float top_p;
    float least;    // the smallest logit that MinP, TopNSigma and f32 let pass
    float exclude;  // the share of the mass from which on tokens are excluded but for the last of them; infinity where none are
    float u;
} sample_cut;

// Draws where the tokens that decide are many.
static inline int32_t draw_far(const sample_row *r, const sample_cut *cut) {
    sample_limit kept = {{cut->least, INT32_MAX}, share_of(r, cut->least, INFINITY)};
    if (cut->top_k > 0) kept = limit_at(r, 1, cut->top_k, kept);
    if (cut->top_p < 1) kept = limit_at(r, 0, cut->top_p * kept.share.mass, kept);
    sample_token first = {INFINITY, -1};
    double excluded = 0;
    const double each = cut->exclude * kept.share.mass;
    if (each <= 1) {
        const double count = fmin(share_of(r, least_from(r->max + log(each) / r->inverse_temperature), INFINITY).count, kept.share.count);
        if (count > 1) {
            const sample_limit last = limit_at(r, 1, count, kept);
            first = last.last;
            excluded = last.share.mass - mass_of(r, first.z);
        }
    }
    const sample_token t = limit_at(r, 0, nextafter(excluded + cut->u * (kept.share.mass - excluded), INFINITY), kept).last;
    return before(t, first) ? first.id : t.id;  // sums of many are rounded
}

// The mass of the tokens that are excluded, of n that are left, each of at least a mass.
INLINE double excluded_of(const double *sums, int32_t n, double each) {
    int32_t top = 0;
    while (top < n && sums[top] - (top ? sums[top - 1] : 0) >= each) top++;
    return top > 1 ? sums[top - 2] : 0;
}

// Draws from the largest tokens, or from afar where they do not settle it. all is the mass of an unlimited row, or 0.
static inline int32_t draw(const sample_row *r, double all, const sample_cut *cut) {
    int32_t ids[kListed], n = 0;
    double sums[kListed], sum = 0, excluded = 0;
    run_heap heap = all_tokens(r);
    // An unlimited row ends at its share of the mass; a limited one at its last token, whose sum is the mass.
    const int whole = all > 0 && !(cut->top_p < 1);
    const double enough = all > 0 ? cut->top_p * all : INFINITY;
    for (;; n++) {
        const sample_token t = n == cut->top_k && cut->top_k > 0 ? (sample_token){-INFINITY, 0} : take(&heap, r);
        if (!(t.z >= cut->least)) break;
        if (n == kListed) return draw_far(r, cut);
        const double mass = mass_of(r, t.z);
        const int top = whole && mass >= cut->exclude * all;
        if (top) excluded = sum;  // all before it, unless it is the last
        sum += mass;
        ids[n] = t.id, sums[n] = sum;
        if (whole ? !top && sum > excluded + cut->u * (all - excluded) : sum >= enough) {
            n++;
            break;
        }
    }
    if (cut->top_p < 1) {
        const double limit = cut->top_p * (all > 0 ? all : sum);
        int32_t kept = 0;
        while (kept < n - 1 && sums[kept] < limit) kept++;
        n = n ? kept + 1 : 0;
        sum = n ? sums[n - 1] : 0;
    } else if (all > 0) {
        sum = all;
    }
    excluded = excluded_of(sums, n, cut->exclude * sum);
    const double target = excluded + cut->u * (sum - excluded);
    for (int32_t i = 0; i < n; i++)
        if (sums[i] > target || i == n - 1) return ids[i];
    return -1;
}

// Block (row).
static inline void sample_draw(const atlas_Sample *a, void *scratch, uint32_t row, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int32_t chunks = chunks_of(a);
    const sample_chunk *c = (sample_chunk *)scratch + (size_t)row * chunks;
    sample_token *memory = (sample_token *)((sample_chunk *)scratch + (size_t)a->Rows * chunks) + (size_t)row * chunks * kRuns;
    sample_row r = {c, chunks, -INFINITY, inverse_temperature(a, row), memory};
    for (int32_t i = 0; i < chunks; i++) r.max = fmaxf(r.max, c[i].max);
    if (r.max == -INFINITY) {
        a->Out[row] = -1;
        return;
    }
    if (!draws(a, row) || (a->MinEntropy[row] > 0 && entropy(&r) < a->MinEntropy[row])) {
        a->Out[row] = first_largest(a, row, c, r.max);
        return;
    }
    double all = 0;
    for (int32_t i = 0; i < chunks; i++) all += c[i].mass * mass_of(&r, c[i].max);
    const int excludes = coin(a->Seed[row], a->Position[row]) < a->XTCProbability[row];
    const sample_cut cut = {
        .top_k = a->TopK[row],
        .top_p = a->TopP[row],
        .least = least_logit(&r, a->Temperature[row], a->MinP[row], a->TopNSigma[row]),
        .exclude = excludes ? a->XTCThreshold[row] : INFINITY,
        .u = uniform(a->Seed[row], a->Position[row]),
    };
    a->Out[row] = draw(&r, all, &cut);
}
