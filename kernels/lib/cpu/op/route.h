// Route on a CPU: a row's experts by repeated search for the largest, the groups by a counting sort.
//
// route_all does both in one block. route_rows picks for kRows rows per block; route_group sorts afterwards.
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");

// What the scores of a row need besides its logits.
typedef struct {
    float max, sum;
} softmax_terms;

INLINE softmax_terms softmax_of(const float *logits, int n) {
    f32x8 max = set8(-INFINITY), sum = set8(0);
    for (int e = 0; e < n; e += kWidth) max = max8(pick8(first8(n - e), max, load_up_to8(logits + e, n - e)), max);
    const f32x8 m = set8(largest(max));
    for (int e = 0; e < n; e += kWidth) sum = add8(sum, pick8(first8(n - e), set8(0), exp8(sub8(load_up_to8(logits + e, n - e), m))));
    return (softmax_terms){first_of8(m), sum8(sum)};
}

INLINE f32x8 scores8(const atlas_Route *a, f32x8 logits, softmax_terms s) {
    return a->Routing == ATLAS_ROUTE_SIGMOID ? sigmoid8(logits) : div8(exp8(sub8(logits, set8(s.max))), set8(s.sum));
}

// Takes the largest out of n keys (whole lanes, NaN where there is none or it was taken), the first where several tie.
INLINE int take_largest(float *keys, int n) {
    f32x8 max = set8(-INFINITY);
    for (int e = 0; e < n; e += kWidth) max = max8(load8(keys + e), max);
    const f32x8 m = set8(largest(max));
    for (int e = 0; e < n; e += kWidth) {
        const int equal = bits_of8(equal8(load8(keys + e), m));
        if (!equal) continue;
        e += __builtin_ctz(equal);
        keys[e] = NAN;
        return e;
    }
    return -1;
}

// The lowest expert that is not among the first k picks: the choice of a row whose logits are not numbers.
INLINE int lowest_free(const int32_t *ids, int k) {
    for (int e = 0;; e++) {
        int taken = 0;
        for (int i = 0; i < k; i++) taken |= ids[i] == e;
        if (!taken) return e;
    }
}

// Without a bias the order of scores is that of logits. A shared expert takes no part in the choice. keys holds Experts floats, rounded up to whole lanes.
static inline void route_row(const atlas_Route *a, float *keys, size_t row) {
    const int n = a->Experts - a->Shared, top = a->TopK - a->Shared, wide = (n + kWidth - 1) / kWidth * kWidth;
    const float *logits = a->Logits + row * a->Experts;
    int32_t *ids = a->IDs + row * a->TopK;
    float *weights = a->Weights + row * a->TopK;
    const softmax_terms terms = a->Routing == ATLAS_ROUTE_SIGMOID ? (softmax_terms){0, 1} : softmax_of(logits, n);
    for (int e = 0; e < wide; e += kWidth) {
        f32x8 key = load_up_to8(logits + e, n - e);
        if (a->Bias) key = add8(scores8(a, key, terms), load_up_to8(a->Bias + e, n - e));
        store8(keys + e, pick8(first8(n - e), set8(NAN), key));
    }
    float sum = 0;
    for (int k = 0; k < top; k++) {
        const int e = take_largest(keys, wide);
        ids[k] = e < 0 ? lowest_free(ids, k) : e;
        weights[k] = first_of8(scores8(a, set8(logits[ids[k]]), terms));
        sum += weights[k];
    }
    const float factor = a->Normalise ? a->Scale / sum : a->Scale;
    for (int k = 0; k < top; k++) weights[k] *= factor;
    if (a->Shared) {
        ids[top] = n;
        weights[top] = first_of8(sigmoid8(set8(logits[n])));
    }
}

// Starts[e] first counts the picks of experts 0 … e; filling each group from its end leaves the start there.
static inline void group_picks(const atlas_Route *a) {
    const int64_t picks = (int64_t)a->Rows * a->TopK;
    memset(a->Starts, 0, ((size_t)a->Experts + 1) * sizeof(int32_t));
    for (int64_t p = 0; p < picks; p++) a->Starts[a->IDs[p]]++;
    for (int e = 1; e <= a->Experts; e++) a->Starts[e] += a->Starts[e - 1];
    for (int64_t p = picks - 1; p >= 0; p--) a->Order[--a->Starts[a->IDs[p]]] = p;
}

INLINE float *row_keys(const atlas_Route *a, void *scratch, size_t row) {
    return (float *)scratch + row * ((a->Experts + kWidth - 1) / kWidth * kWidth);
}

static inline void route_all(const atlas_Route *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)x, (void)y, (void)z;
    for (int32_t row = 0; row < a->Rows; row++) route_row(a, row_keys(a, scratch, row), row);
    group_picks(a);
}

static inline void route_rows(const atlas_Route *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int64_t begin = (int64_t)x * kRows, end = begin + kRows < a->Rows ? begin + kRows : a->Rows;
    for (int64_t row = begin; row < end; row++) route_row(a, row_keys(a, scratch, row), row);
}

static inline void route_group(const atlas_Route *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)scratch, (void)x, (void)y, (void)z;
    group_picks(a);
}
