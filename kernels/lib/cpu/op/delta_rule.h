// DeltaRule on a CPU, in two launches. The first makes unit queries and keys, β and α of each row. In the second a block has kValues rows of one
// value head's state, eight at a time, and goes through all rows of a sequence with them: so a state is read and written once
// in a step, and a row's bits depend neither on other sequences nor on how a sequence is cut into steps.
//
// Scratch of a row, in f32: unit queries, unit keys, β and α of the value heads. Limit: KeyDim at most kMostKeys.
#include "lib/cpu/op/slots.h"
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");
enum { kTile = 8, kMostKeys = 256 };
static_assert(kValues % kTile == 0, "whole tiles");

INLINE size_t made_pitch(const atlas_DeltaRule *a) { return (size_t)2 * a->KeyHeads * a->KeyDim + 2 * a->ValueHeads; }

INLINE void unit_head(float *out, const float *in, int n, float eps, float factor) {
    f64x8 sum = {0};
    for (int c = 0; c < n; c += kWidth) sum = add_squares8(sum, load_up_to8(in + c, n - c));
    const f32x8 scale = set8((float)(factor / sqrt(sum8_f64(sum) + (double)eps)));
    for (int c = 0; c < n; c += kWidth) store_up_to8(out + c, mul8(load_up_to8(in + c, n - c), scale), n - c);
}

static inline void delta_rows(const atlas_DeltaRule *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int heads = a->KeyHeads, values = a->ValueHeads, dim = a->KeyDim;
    const size_t pitch = (size_t)2 * heads * dim + (size_t)values * a->ValueDim;
    const int64_t end = ((int64_t)x + 1) * kRows < a->Rows ? ((int64_t)x + 1) * kRows : a->Rows;
    for (int64_t r = (int64_t)x * kRows; r < end; r++) {
        const float *in = a->QKV + r * pitch, *gates = a->Gates + r * (size_t)a->GatesPitch;
        float *made = (float *)scratch + r * made_pitch(a), *beta = made + (size_t)2 * heads * dim, *alpha = beta + values;
        for (int h = 0; h < 2 * heads; h++) unit_head(made + (size_t)h * dim, in + (size_t)h * dim, dim, a->Eps, h < heads ? 1 / sqrtf((float)dim) : 1);
        for (int h = 0; h < values; h++) {
            const double g = (double)gates[values + h] + a->Bias[h];
            beta[h] = (float)(1 / (1 + exp(-(double)gates[h])));
            alpha[h] = (float)exp(a->Decay[h] * ((g > 0 ? g : 0) + log1p(exp(-fabs(g)))));
        }
    }
}

// α·s + δ·k of eight rows of a state.
INLINE void advance_rows(float s[kTile][kMostKeys], const float *k, const float delta[kTile], float alpha, int dim) {
    for (int c = 0; c < dim; c += kWidth) {
        const f32x8 key = load_up_to8(k + c, dim - c), decay = set8(alpha);
        for (int n = 0; n < kTile; n++) store8(s[n] + c, fma8(set8(delta[n]), key, mul8(decay, load8(s[n] + c))));
    }
}

static inline void delta_rule(const atlas_DeltaRule *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    sequence_rows r = SEQUENCE_ROWS(a, z);
    DRAFTED_ROWS(a, r, z);
    if (r.slot < 0 || r.rows == 0) return;
    const int heads = a->KeyHeads, values = a->ValueHeads, dim = a->KeyDim, h = x;
    const int key = a->Tiled ? h % heads : h / (values / heads), owns = a->Tiled ? h < heads : h % (values / heads) == 0;
    const size_t pitch = (size_t)2 * heads * dim + (size_t)values * a->ValueDim, entry = (size_t)heads * dim + (size_t)values * (a->ValueDim + 1);
    float *const state = a->State + ((size_t)r.slot * values + h) * a->ValueDim * dim, *const journal = a->Journal + (size_t)r.slot * (2 * a->MaxDrafts + 1) * entry;
    const int end = ((int)y + 1) * kValues < a->ValueDim ? ((int)y + 1) * kValues : a->ValueDim, kept = r.rows - r.drafts;
    for (int v = (int)y * kValues; v < end; v += kTile) {
        const int n = end - v < kTile ? end - v : kTile;
        float s[kTile][kMostKeys] = {{0}}, delta[kTile] = {0};
        if (r.position > 0)
            for (int i = 0; i < n; i++) memcpy(s[i], state + (size_t)(v + i) * dim, dim * sizeof(float));
        for (int j = 0; j < r.accepted; j++) {
            const float *line = journal + (r.position - r.accepted + j) % (2 * a->MaxDrafts + 1) * entry;
            for (int i = 0; i < n; i++) delta[i] = line[(size_t)heads * dim + (size_t)h * a->ValueDim + v + i];
            advance_rows(s, line + (size_t)key * dim, delta, line[(size_t)heads * dim + (size_t)values * a->ValueDim + h], dim);
        }
        for (int t = 0; t < r.rows; t++) {
            const size_t row = r.first + t;
            const float *made = (const float *)scratch + row * made_pitch(a), *q = made + (size_t)key * dim, *k = q + (size_t)heads * dim;
            const float *value = a->QKV + row * pitch + (size_t)2 * heads * dim + (size_t)h * a->ValueDim + v;
            const float beta = made[(size_t)2 * heads * dim + h], alpha = made[(size_t)2 * heads * dim + values + h];
            if (t == kept)
                for (int i = 0; i < n; i++) memcpy(state + (size_t)(v + i) * dim, s[i], dim * sizeof(float));
            for (int i = 0; i < n; i++) {
                f32x8 sum = set8(0);
                for (int c = 0; c < dim; c += kWidth) sum = fma8(load8(s[i] + c), load_up_to8(k + c, dim - c), sum);
                delta[i] = beta * (value[i] - alpha * sum8(sum));
            }
            if (t >= kept) {
                float *line = journal + (r.position + t) % (2 * a->MaxDrafts + 1) * entry;
                if (owns && v == 0) memcpy(line + (size_t)key * dim, k, dim * sizeof(float));
                if (v == 0) line[(size_t)heads * dim + (size_t)values * a->ValueDim + h] = alpha;
                for (int i = 0; i < n; i++) line[(size_t)heads * dim + (size_t)h * a->ValueDim + v + i] = delta[i];
            }
            advance_rows(s, k, delta, alpha, dim);
            float *out = a->Out + (row * values + h) * a->ValueDim + v;
            for (int i = 0; i < n; i++) {
                f32x8 sum = set8(0);
                for (int c = 0; c < dim; c += kWidth) sum = fma8(load8(s[i] + c), load_up_to8(q + c, dim - c), sum);
                out[i] = sum8(sum);
            }
        }
        if (r.drafts == 0)
            for (int i = 0; i < n; i++) memcpy(state + (size_t)(v + i) * dim, s[i], dim * sizeof(float));
    }
}
