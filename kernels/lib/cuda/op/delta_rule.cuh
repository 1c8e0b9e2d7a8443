// DeltaRule on a GPU, row after row: a warp has kValues rows of one value head's state in registers, a lane every 32nd of their columns. Grid:
// ValueHeads, ⌈ValueDim/(kValues·kThreads/32)⌉, Seqs. Limit: KeyDim at most 32·kPerLane. Sequences that delta_chunks.cuh serves are left out.
#pragma once
#include "lib/cuda/op/slots.cuh"

template <class P>
__device__ void delta_rule(const atlas_DeltaRule &a, void * = nullptr) {
    constexpr int kPer = P::kPerLane, kValues = P::kValues;
    const int heads = a.KeyHeads, values = a.ValueHeads, dim = a.KeyDim, h = blockIdx.x, l = atlas::lane();
    const int key = a.Tiled ? h % heads : h / (values / heads);
    const bool owns = a.Tiled ? h < heads : h % (values / heads) == 0;
    const int first = (blockIdx.y * (P::kThreads / 32) + atlas::warp()) * kValues;
    const size_t pitch = size_t(2) * heads * dim + size_t(values) * a.ValueDim, entry = size_t(heads) * dim + size_t(values) * (a.ValueDim + 1);
    atlas::release_next();
    atlas::wait_for_previous();
    const atlas::drafted_rows r(a, blockIdx.z);
    if (r.empty() || r.in_chunks(P::kLeast) || first >= a.ValueDim) return;
    float *const state = a.State + ((size_t(r.slot) * values + h) * a.ValueDim + first) * dim;
    float *const journal = a.Journal + size_t(r.slot) * (2 * a.MaxDrafts + 1) * entry;
    float s[kValues][kPer] = {};
    const auto there = [&](int v, int p) { return first + v < a.ValueDim && l + 32 * p < dim; };
    if (r.position > 0)
        for (int v = 0; v < kValues; v++)
            for (int p = 0; p < kPer; p++)
                if (there(v, p)) s[v][p] = state[size_t(v) * dim + l + 32 * p];
    const auto keep = [&] {
        for (int v = 0; v < kValues; v++)
            for (int p = 0; p < kPer; p++)
                if (there(v, p)) state[size_t(v) * dim + l + 32 * p] = s[v][p];
    };
    const auto advance = [&](const float (&k)[kPer], const float (&delta)[kValues], float alpha) {
        for (int v = 0; v < kValues; v++)
            for (int p = 0; p < kPer; p++) s[v][p] = fmaf(delta[v], k[p], alpha * s[v][p]);
    };
    for (int j = 0; j < r.accepted; j++) {
        const float *line = journal + (r.position - r.accepted + j) % (2 * a.MaxDrafts + 1) * entry;
        float k[kPer] = {}, delta[kValues] = {};
        for (int p = 0; p < kPer; p++)
            if (there(0, p)) k[p] = line[size_t(key) * dim + l + 32 * p];
        for (int v = 0; v < kValues; v++)
            if (first + v < a.ValueDim) delta[v] = line[size_t(heads) * dim + size_t(h) * a.ValueDim + first + v];
        advance(k, delta, line[size_t(heads) * dim + size_t(values) * a.ValueDim + h]);
    }
    const int kept = r.rows - r.drafts;
    for (int t = 0; t < r.rows; t++) {
        const size_t row = r.first + t;
        const atlas_act *in = a.QKV + row * pitch, *gates = a.Gates + row * a.GatesPitch;
        float q[kPer] = {}, k[kPer] = {}, squares = 0, key_squares = 0, delta[kValues] = {};
        for (int p = 0; p < kPer; p++) {
            if (!there(0, p)) continue;
            q[p] = __bfloat162float(in[size_t(key) * dim + l + 32 * p]), k[p] = __bfloat162float(in[size_t(heads + key) * dim + l + 32 * p]);
            squares = fmaf(q[p], q[p], squares), key_squares = fmaf(k[p], k[p], key_squares);
        }
        const float unit = rsqrtf(atlas::warp_sum(squares) + a.Eps) * rsqrtf(float(dim)), key_unit = rsqrtf(atlas::warp_sum(key_squares) + a.Eps);
        for (int p = 0; p < kPer; p++) q[p] *= unit, k[p] *= key_unit;
        const float beta = atlas::sigmoid(__bfloat162float(gates[h]));
        const float alpha = __expf(a.Decay[h] * atlas::softplus(__bfloat162float(gates[values + h]) + a.Bias[h]));
        if (t == kept) keep();
        for (int v = 0; v < kValues; v++) {
            float sum = 0;
            for (int p = 0; p < kPer; p++) sum = fmaf(s[v][p], k[p], sum);
            sum = atlas::warp_sum(sum);
            if (first + v < a.ValueDim) delta[v] = beta * (__bfloat162float(in[size_t(2) * heads * dim + size_t(h) * a.ValueDim + first + v]) - alpha * sum);
        }
        if (t >= kept) {
            float *line = journal + (r.position + t) % (2 * a.MaxDrafts + 1) * entry;
            for (int p = 0; p < kPer; p++)
                if (owns && first == 0 && there(0, p)) line[size_t(key) * dim + l + 32 * p] = k[p];
            if (l == 0) {
                if (first == 0) line[size_t(heads) * dim + size_t(values) * a.ValueDim + h] = alpha;
                for (int v = 0; v < kValues; v++)
                    if (first + v < a.ValueDim) line[size_t(heads) * dim + size_t(h) * a.ValueDim + first + v] = delta[v];
            }
        }
        advance(k, delta, alpha);
        for (int v = 0; v < kValues; v++) {
            float sum = 0;
            for (int p = 0; p < kPer; p++) sum = fmaf(s[v][p], q[p], sum);
            sum = atlas::warp_sum(sum);
            if (l == 0 && first + v < a.ValueDim) a.Out[(row * values + h) * a.ValueDim + first + v] = __float2bfloat16_rn(sum);
        }
    }
    if (r.drafts == 0) keep();
}
