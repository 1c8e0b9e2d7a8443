// Route on a GPU: route_rows picks, a warp per row, by repeated search for the largest; route_group sorts the picks by
// expert, an expert per block. Logits that are no numbers lose; limits: at most 32·kPerLane experts.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas {

// The best key and the lowest expert that has it, over the warp.
struct expert_key {
    float key;
    int expert;
};
__device__ inline expert_key better(expert_key x, expert_key y) { return y.key > x.key || (y.key == x.key && y.expert < x.expert) ? y : x; }

}  // namespace atlas

// Block: kWarps rows.
template <int kWarps, int kPerLane>
__device__ void route_rows(const atlas_Route &a) {
    constexpr int kNone = 1 << 30;
    const int row = blockIdx.x * kWarps + atlas::warp(), lane = atlas::lane();
    atlas::wait_for_previous();
    if (row >= a.Rows) return;
    const atlas_act *logits = a.Logits + size_t(row) * a.Experts;
    float score[kPerLane], key[kPerLane], max = -INFINITY, sum = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        const int e = i * 32 + lane;
        score[i] = e < a.Experts ? __bfloat162float(logits[e]) : -INFINITY;
        key[i] = score[i];
        max = fmaxf(max, score[i]);
    }
    max = atlas::warp_max(max);
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        score[i] = a.Routing == ATLAS_ROUTE_SIGMOID ? 1.0f / (1.0f + expf(-score[i])) : expf(score[i] - max);
        if (i * 32 + lane < a.Experts) sum += score[i];
    }
    sum = a.Routing == ATLAS_ROUTE_SIGMOID ? 1.0f : atlas::warp_sum(sum);
    unsigned taken = 0;  // bit i: expert i·32+lane
    static_assert(kPerLane <= 32, "a bit per expert");
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        const int e = i * 32 + lane;
        score[i] /= sum;
        if (a.Bias && e < a.Experts) key[i] = score[i] + a.Bias[e];  // without a bias the order of scores is that of logits
        if (!(key[i] == key[i])) key[i] = -INFINITY;
        if (e >= a.Experts) taken |= 1u << i;
    }
    float chosen = 0, first_weight = 0;
    for (int k = 0; k < a.TopK; k++) {
        atlas::expert_key best = {-INFINITY, kNone};
        float weight = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; i++)
            if (!(taken >> i & 1)) best = atlas::better(best, {key[i], i * 32 + lane});
        for (int d = 16; d; d /= 2)
            best = atlas::better(best, {__shfl_xor_sync(atlas::kAllLanes, best.key, d), __shfl_xor_sync(atlas::kAllLanes, best.expert, d)});
#pragma unroll
        for (int i = 0; i < kPerLane; i++)
            if (i * 32 + lane == best.expert) weight = score[i], taken |= 1u << i;
        weight = __shfl_sync(atlas::kAllLanes, weight, best.expert % 32);
        chosen += weight;
        if (k % 32 == lane) first_weight = weight;
        if (lane == 0) {
            a.IDs[size_t(row) * a.TopK + k] = best.expert;
            if (a.TopK > 32) a.Weights[size_t(row) * a.TopK + k] = weight;
        }
    }
    const float factor = a.Normalise ? a.Scale / chosen : a.Scale;
    __syncwarp();
    for (int k = lane; k < a.TopK; k += 32) {
        float &weight = a.Weights[size_t(row) * a.TopK + k];
        weight = (a.TopK > 32 ? weight : first_weight) * factor;
    }
    atlas::release_next();
}

// Block: one expert, and one more for the end.
template <int kThreads>
__device__ void route_group(const atlas_Route &a) {
    const int total = a.Rows * a.TopK, expert = blockIdx.x;
    atlas::wait_for_previous();
    int before = 0;
    for (int p = threadIdx.x; p < total; p += kThreads) before += a.IDs[p] < expert;
    int next = atlas::block_scan<kThreads>(before).total;
    if (threadIdx.x == 0) a.Starts[expert] = next;
    if (expert == a.Experts) return;
    for (int base = 0; base < total; base += kThreads) {
        const int p = base + threadIdx.x;
        const bool mine = p < total && a.IDs[p] == expert;
        const atlas::scan s = atlas::block_scan<kThreads>(mine);
        if (mine) a.Order[next + s.before] = p;
        next += s.total;
    }
    atlas::release_next();
}
