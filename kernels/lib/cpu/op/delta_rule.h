// DeltaRule on a CPU, in two launches. The first makes what all blocks need of each row: unit keys and queries, their products, β and α. In the
// second a block has kValues rows of one value head's state, and goes through all rows of a sequence with them: so a state is read
// and written once in a step, and a row's bits depend neither on other sequences nor on how a sequence is cut into steps.
//
// A state that a row of time has changed is multiplied with the next row's key and query while it lies in registers. The row's output follows
// from that: S·q' = α·(S'·q') + δ·(k'·q') with the state S' before the row.
//
// Scratch, in f32, for each key head and row: the unit key and query in whole lanes; their product, and β and α of the value heads that read
// them. Limit: KeyDim at most kMostKeys.
#include "lib/cpu/op/slots.h"
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");
enum { kLanes = 2 * kWidth, kTile = kTwinRegisters == 1 ? 8 : 2, kMostKeys = 256 };
static_assert(kValues % kTile == 0 && kValues % kWidth == 0, "whole tiles");

// What the first launch makes of a row for one key head.
typedef struct {
    float *key, *query;  // wide elements each: KeyDim, and zeros
    float *product;      // key·query
    float *gates;        // β and α of each value head that reads the key
} made_row;

INLINE int wide_keys(const atlas_DeltaRule *a) { return (a->KeyDim + kLanes - 1) / kLanes * kLanes; }

INLINE made_row made_of(const atlas_DeltaRule *a, void *scratch, int key, size_t row) {
    const int wide = wide_keys(a), gates = 2 * (a->ValueHeads / a->KeyHeads);
    const size_t at = (size_t)key * a->Rows + row;
    float *const keys = (float *)scratch, *const rest = keys + (size_t)a->KeyHeads * a->Rows * 2 * wide;
    return (made_row){keys + at * 2 * wide, keys + at * 2 * wide + wide, rest + at * (1 + gates), rest + at * (1 + gates) + 1};
}

// The value head that is number i of those that read a key head, and back.
INLINE int value_head(const atlas_DeltaRule *a, int key, int i) { return a->Tiled ? i * a->KeyHeads + key : key * (a->ValueHeads / a->KeyHeads) + i; }
INLINE int key_head(const atlas_DeltaRule *a, int h) { return a->Tiled ? h % a->KeyHeads : h / (a->ValueHeads / a->KeyHeads); }
INLINE int reader(const atlas_DeltaRule *a, int h) { return a->Tiled ? h / a->KeyHeads : h % (a->ValueHeads / a->KeyHeads); }

// Zeros follow to whole lanes.
INLINE void unit_head(float *out, const float *in, int n, int wide, float eps, float factor) {
    f64x8 sum = {0};
    for (int c = 0; c < n; c += kWidth) sum = add_squares8(sum, load_up_to8(in + c, n - c));
    const f32x8 scale = set8((float)(factor / sqrt(sum8_f64(sum) + (double)eps)));
    for (int c = 0; c < wide; c += kWidth) store8(out + c, c < n ? mul8(load_up_to8(in + c, n - c), scale) : set8(0));
}

// kRows rows of key head x.
static inline void delta_rows(const atlas_DeltaRule *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    const int dim = a->KeyDim, wide = wide_keys(a), values = a->ValueHeads, key = x;
    const size_t pitch = (size_t)2 * a->KeyHeads * dim + (size_t)values * a->ValueDim;
    const int64_t end = ((int64_t)y + 1) * kRows < a->Rows ? ((int64_t)y + 1) * kRows : a->Rows;
    for (int64_t r = (int64_t)y * kRows; r < end; r++) {
        const made_row made = made_of(a, scratch, key, r);
        const float *in = a->QKV + r * pitch + (size_t)key * dim, *gates = a->Gates + r * (size_t)a->GatesPitch;
        unit_head(made.query, in, dim, wide, a->Eps, 1 / sqrtf((float)dim));
        unit_head(made.key, in + (size_t)a->KeyHeads * dim, dim, wide, a->Eps, 1);
        f32x8 product = set8(0);
        for (int c = 0; c < wide; c += kWidth) product = fma8(load8(made.key + c), load8(made.query + c), product);
        *made.product = sum8(product);
        for (int i = 0; i < values / a->KeyHeads; i++) {
            const int h = value_head(a, key, i);
            const double g = (double)gates[values + h] + a->Bias[h];
            made.gates[2 * i] = (float)(1 / (1 + exp(-(double)gates[h])));
            made.gates[2 * i + 1] = (float)exp(a->Decay[h] * ((g > 0 ? g : 0) + log1p(exp(-fabs(g)))));
        }
    }
}

// The products of kTile rows of a state with a key and a query. With advance the rows first become α·s + δ·k.
INLINE void step_tile(float *s, int wide, int advance, float alpha, const float *delta, const float *k, const made_row *next, float *with_key, float *with_query) {
    const twin decay = twin_set(alpha), zero = twin_set(0);
    twin sum_key[kTile], sum_query[kTile], change[kTile];
    for (int i = 0; i < kTile; i++) {
        sum_key[i] = sum_query[i] = zero;
        if (advance) change[i] = twin_set(delta[i]);
    }
    for (int c = 0; c < wide; c += kLanes) {
        twin key, next_key, next_query;
        if (advance) key = twin_load(k + c);
        if (next) next_key = twin_load(next->key + c), next_query = twin_load(next->query + c);
        for (int i = 0; i < kTile; i++) {
            twin x = twin_load(s + i * wide + c);
            if (advance) {
                x = twin_fma(change[i], key, twin_fma(decay, x, zero));
                twin_store(s + i * wide + c, x);
            }
            if (!next) continue;
            sum_key[i] = twin_fma(x, next_key, sum_key[i]);
            sum_query[i] = twin_fma(x, next_query, sum_query[i]);
        }
    }
    if (!next) return;
    f32x8 halves[2 * kTile];  // the two products of a row side by side
    for (int i = 0; i < kTile; i++) {
        halves[2 * i] = add8(twin_first(sum_key[i]), twin_second(sum_key[i]));
        halves[2 * i + 1] = add8(twin_first(sum_query[i]), twin_second(sum_query[i]));
    }
    for (int i = 0; i < kTile; i += 2) {
        float sums[4];
        store_sums4(sums, sum_pairs(halves[2 * i], halves[2 * i + 1]), sum_pairs(halves[2 * i + 2], halves[2 * i + 3]));
        with_key[i] = sums[0], with_query[i] = sums[1], with_key[i + 1] = sums[2], with_query[i + 1] = sums[3];
    }
}

// kValues rows of a state, each in whole lanes, and what the latest row of time gave.
typedef struct {
    float s[kValues * kMostKeys], delta[kValues], with_key[kValues], with_query[kValues];
} __attribute__((aligned(64))) state_rows;

INLINE void step_rows(state_rows *x, int wide, int n, int advance, float alpha, const float *k, const made_row *next) {
    for (int i = 0; i < n; i += kTile) step_tile(x->s + i * wide, wide, advance, alpha, x->delta + i, k, next, x->with_key + i, x->with_query + i);
}

INLINE void store_state(float *state, const state_rows *x, int n, int dim, int wide) {
    for (int i = 0; i < n; i++) memcpy(state + (size_t)i * dim, x->s + i * wide, dim * sizeof(float));
}

static inline void delta_rule(const atlas_DeltaRule *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    sequence_rows r = SEQUENCE_ROWS(a, z);
    DRAFTED_ROWS(a, r, z);
    if (r.slot < 0 || r.rows == 0) return;
    const int heads = a->KeyHeads, values = a->ValueHeads, dim = a->KeyDim, wide = wide_keys(a), h = x, key = key_head(a, h), own = reader(a, h);
    const int begin = (int)y * kValues, n = a->ValueDim - begin < kValues ? a->ValueDim - begin : kValues, kept = r.rows - r.drafts;
    const size_t pitch = (size_t)2 * heads * dim + (size_t)values * a->ValueDim, entry = (size_t)heads * dim + (size_t)values * (a->ValueDim + 1);
    const size_t value = (size_t)h * a->ValueDim + begin;  // of the value heads' elements
    float *const state = a->State + ((size_t)r.slot * values * a->ValueDim + value) * dim;
    float *const journal = a->Journal + (size_t)r.slot * (2 * a->MaxDrafts + 1) * entry;
    state_rows b;
    memset(b.delta, 0, 3 * sizeof b.delta);
    if (r.position == 0 || wide > dim || n < kValues) memset(b.s, 0, (size_t)kValues * wide * sizeof(float));
    for (int i = 0; i < n && r.position > 0; i++) memcpy(b.s + i * wide, state + (size_t)i * dim, dim * sizeof(float));
    for (int j = 0; j < r.accepted; j++) {
        const float *line = journal + (r.position - r.accepted + j) % (2 * a->MaxDrafts + 1) * entry;
        float k[kMostKeys] = {0};
        memcpy(k, line + (size_t)key * dim, dim * sizeof(float));
        memcpy(b.delta, line + (size_t)heads * dim + value, n * sizeof(float));
        step_rows(&b, wide, n, 1, line[(size_t)heads * dim + (size_t)values * a->ValueDim + h], k, NULL);
    }
    made_row made = made_of(a, scratch, key, r.first);
    step_rows(&b, wide, n, 0, 0, NULL, &made);
    for (int t = 0; t < r.rows; t++) {
        const size_t row = r.first + t;
        const float *v = a->QKV + row * pitch + (size_t)2 * heads * dim + value;
        float *out = a->Out + row * values * a->ValueDim + value;
        const float beta = made.gates[2 * own], alpha = made.gates[2 * own + 1];
        for (int i = 0; i < n; i += kWidth) {
            const f32x8 decayed = mul8(set8(alpha), load8(b.with_key + i)), delta = mul8(set8(beta), sub8(load_up_to8(v + i, n - i), decayed));
            store_up_to8(b.delta + i, delta, n - i);
            store_up_to8(out + i, fma8(delta, set8(*made.product), mul8(set8(alpha), load8(b.with_query + i))), n - i);
        }
        if (t >= kept) {
            float *line = journal + (r.position + t) % (2 * a->MaxDrafts + 1) * entry;
            if (own == 0 && y == 0) memcpy(line + (size_t)key * dim, made.key, dim * sizeof(float));
            if (y == 0) line[(size_t)heads * dim + (size_t)values * a->ValueDim + h] = alpha;
            memcpy(line + (size_t)heads * dim + value, b.delta, n * sizeof(float));
        }
        if (t + 1 < r.rows) {
            const made_row next = made_of(a, scratch, key, row + 1);
            __builtin_prefetch(v + 2 * pitch);
            step_rows(&b, wide, n, 1, alpha, made.key, &next);
            if (t + 1 == kept) store_state(state, &b, n, dim, wide);  // the rest are drafts
            made = next;
        } else if (r.drafts == 0) {
            step_rows(&b, wide, n, 1, alpha, made.key, NULL);
            store_state(state, &b, n, dim, wide);
        }
    }
}
