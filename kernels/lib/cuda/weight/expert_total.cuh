// The second half of ExpertDown: the weighted sum of each row's products, f32 [Rows*TopK,W.Rows] in scratch, in the order of its
// picks. kThreads threads, grid (ceil(W.Rows/(4*kThreads)), Rows).
#pragma once
#include "lib/cuda/atlas.cuh"

template <int kThreads>
__device__ void expert_down_total(const atlas_ExpertDown &a, const void *scratch) {
    const int n = (blockIdx.x * kThreads + threadIdx.x) * 4, left = a.W.Rows - n;
    const size_t row = blockIdx.y;
    const float *products = static_cast<const float *>(scratch);
    const bool whole = a.W.Rows % 4 == 0;
    atlas::release_next();
    atlas::wait_for_previous();
    if (left <= 0) return;
    float sum[4] = {};
#pragma unroll 8
    for (int k = 0; k < a.TopK; k++) {
        const size_t pick = row * a.TopK + k;
        const int expert = a.IDs[pick];
        if (expert < 0 || expert >= a.W.Count) continue;
        const float weight = a.Weights[pick], *from = products + pick * a.W.Rows + n;
        float x[4] = {};
        if (whole) {
            const float4 v = *reinterpret_cast<const float4 *>(from);
            x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (i < left) x[i] = from[i];
        }
#pragma unroll
        for (int i = 0; i < 4; i++) sum[i] = fmaf(weight, x[i], sum[i]);
    }
    atlas_act *out = a.Out + row * a.W.Rows + n;
    if (whole) {
        *reinterpret_cast<uint2 *>(out) = {atlas::narrow(sum[0], sum[1]), atlas::narrow(sum[2], sum[3])};
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left) out[i] = __float2bfloat16_rn(sum[i]);
    }
}
