// The second half of ExpertDown and ExpertDownAdd: the weighted sum of each row's products, f32 [Rows*TopK,W.Rows] in scratch, in the order of its
// picks. kThreads threads, grid (ceil(W.Rows/(4*kThreads)), Rows). The kernel that makes the products lets this one start after it
// has waited itself: so picks and weights, which are older, can be read at once.
#pragma once
#include "lib/cuda/weight/add.cuh"

template <int kThreads, typename Args>
__device__ void expert_down_total(const Args &a, const void *scratch) {
    constexpr int kAtOnce = 8;
    const int n = (blockIdx.x * kThreads + threadIdx.x) * 4, left = a.W.Rows - n;
    const size_t row = blockIdx.y;
    const float *products = static_cast<const float *>(scratch);
    const bool whole = a.W.Rows % 4 == 0;
    float weight[kAtOnce], sum[4] = {};
    bool there[kAtOnce];
    const auto read_picks = [&](int from) {
#pragma unroll
        for (int k = 0; k < kAtOnce; k++) {
            const size_t pick = row * a.TopK + from + k;
            const int expert = from + k < a.TopK ? __ldcg(a.IDs + pick) : -1;
            there[k] = expert >= 0 && expert < a.W.Count;
            weight[k] = from + k < a.TopK ? __ldcg(a.Weights + pick) : 0.0f;
        }
    };
    read_picks(0);
    atlas::release_next();
    atlas::wait_for_previous();
    if (left <= 0) return;
    atlas_act *out = a.Out + row * a.W.Rows + n;
    uint2 before = {};
    if constexpr (atlas::kAddsTo<Args>) {
        const uint16_t *at = reinterpret_cast<const uint16_t *>(out);
        if (whole)
            before = *reinterpret_cast<const uint2 *>(out);
        else
            before = {at[0] | (left > 1 ? at[1] : 0u) << 16, (left > 2 ? at[2] : 0u) | (left > 3 ? at[3] : 0u) << 16};
    }
    for (int from = 0; from < a.TopK; from += kAtOnce) {
        if (from) read_picks(from);
        float x[kAtOnce][4] = {};
#pragma unroll
        for (int k = 0; k < kAtOnce; k++) {
            if (!there[k]) continue;
            const float *at = products + (row * a.TopK + from + k) * a.W.Rows + n;
            if (whole) {
                const float4 v = *reinterpret_cast<const float4 *>(at);
                x[k][0] = v.x, x[k][1] = v.y, x[k][2] = v.z, x[k][3] = v.w;
            } else {
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (i < left) x[k][i] = at[i];
            }
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (there[k]) sum[i] = fmaf(weight[k], x[k][i], sum[i]);
    }
    uint2 total = {atlas::narrow(sum[0], sum[1]), atlas::narrow(sum[2], sum[3])};
    if (atlas::kAddsTo<Args>) total = {atlas::plus(before.x, total.x), atlas::plus(before.y, total.y)};
    if (whole) {
        *reinterpret_cast<uint2 *>(out) = total;
    } else {
        uint16_t *to = reinterpret_cast<uint16_t *>(out);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left) to[i] = uint16_t((i < 2 ? total.x : total.y) >> i % 2 * 16);
    }
}
