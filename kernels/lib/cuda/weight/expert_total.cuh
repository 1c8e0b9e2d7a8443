// The second half of ExpertDown, ExpertDownAdd and ExpertDownNorm: the weighted sum of each row's products, f32 [Rows*TopK,W.Rows] in
// scratch, in the order of its picks. The kernel that makes the products lets this one start after it has waited itself: so picks,
// weights, and what Out holds, which are older, can be read at once.
//
// expert_down_total: kThreads threads, grid (ceil(W.Rows/(4*kThreads)), Rows).
// expert_down_total_norm: kThreads threads, grid Rows; W.Rows%8 == 0, at most 8*kThreads. A norm has the bits of rmsnorm.cuh.
#pragma once
#include "lib/cuda/op/rmsnorm.cuh"
#include "lib/cuda/weight/add.cuh"

namespace atlas {

// Some of a row's picks.
template <typename Args>
struct row_picks {
    static constexpr int kAtOnce = 8;
    float weight[kAtOnce];
    bool there[kAtOnce];

    __device__ void read(const Args &a, size_t row, int from) {
#pragma unroll
        for (int k = 0; k < kAtOnce; k++) {
            const size_t pick = row * a.TopK + from + k;
            const int expert = from + k < a.TopK ? __ldcg(a.IDs + pick) : -1;
            there[k] = expert >= 0 && expert < a.W.Count;
            weight[k] = from + k < a.TopK ? __ldcg(a.Weights + pick) : 0.0f;
        }
    }
};

// The sums of columns n …, of which left are there, by a thread that has read the row's first picks.
template <int kColumns, typename Args>
__device__ void sum_picks(const Args &a, const float *products, row_picks<Args> &picks, size_t row, int n, int left, float (&sum)[kColumns]) {
    constexpr int kAtOnce = row_picks<Args>::kAtOnce;
    for (int from = 0; from < a.TopK; from += kAtOnce) {
        if (from) picks.read(a, row, from);
        float x[kAtOnce][kColumns] = {};
#pragma unroll
        for (int k = 0; k < kAtOnce; k++) {
            if (!picks.there[k]) continue;
            const float *at = products + (row * a.TopK + from + k) * a.W.Rows + n;
#pragma unroll
            for (int i = 0; i < kColumns; i += 4)
                if (a.W.Rows % 4 == 0) {
                    const float4 v = *reinterpret_cast<const float4 *>(at + i);
                    x[k][i] = v.x, x[k][i + 1] = v.y, x[k][i + 2] = v.z, x[k][i + 3] = v.w;
                } else {
#pragma unroll
                    for (int j = i; j < i + 4; j++)
                        if (j < left) x[k][j] = at[j];
                }
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; k++)
#pragma unroll
            for (int i = 0; i < kColumns; i++)
                if (picks.there[k]) sum[i] = fmaf(picks.weight[k], x[k][i], sum[i]);
    }
}

}  // namespace atlas

template <class P, typename Args>
__device__ void expert_down_total(const Args &a, const void *scratch) {
    const int n = (blockIdx.x * P::kThreads + threadIdx.x) * 4, left = a.W.Rows - n;
    const size_t row = blockIdx.y;
    const bool whole = a.W.Rows % 4 == 0;
    atlas_act *out = a.Out + row * a.W.Rows + n;
    atlas::row_picks<Args> picks;
    picks.read(a, row, 0);
    uint2 before = {};
    if (atlas::kAddsTo<Args> && left > 0) {
        const uint16_t *at = reinterpret_cast<const uint16_t *>(out);
        if (whole)
            before = __ldcg(reinterpret_cast<const uint2 *>(out));
        else
            before = {__ldcg(at) | (left > 1 ? __ldcg(at + 1) : 0u) << 16, (left > 2 ? __ldcg(at + 2) : 0u) | (left > 3 ? __ldcg(at + 3) : 0u) << 16};
    }
    atlas::release_next();
    atlas::wait_for_previous();
    if (left <= 0) return;
    float sum[4] = {};
    atlas::sum_picks(a, static_cast<const float *>(scratch), picks, row, n, left, sum);
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

template <class P>
__device__ void expert_down_total_norm(const atlas_ExpertDownNorm &a, const void *scratch) {
    using namespace atlas;
    const int n = threadIdx.x * 8, left = a.W.Rows - n;
    const size_t row = blockIdx.x, at = row * a.W.Rows + n;
    row_picks<atlas_ExpertDownNorm> picks;
    picks.read(a, row, 0);
    const uint4 before = left > 0 ? __ldcg(reinterpret_cast<const uint4 *>(a.Out + at)) : uint4{};
    const f32x8 scale = left > 0 ? scales(a.Scale + n, 8, true) : f32x8{};
    release_next();
    wait_for_previous();
    f32x8 sum = {};
    if (left > 0) sum_picks(a, static_cast<const float *>(scratch), picks, row, n, 8, sum.v);
    uint4 total = narrow(sum);
    total = {plus(before.x, total.x), plus(before.y, total.y), plus(before.z, total.z), plus(before.w, total.w)};
    if (left > 0) *reinterpret_cast<uint4 *>(a.Out + at) = total;
    f32x8 y = widen(total);
    float squares = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) squares = fmaf(y.v[i], y.v[i], squares);
    const float inverse = rsqrtf(block_sum<P::kThreads>(squares) / a.W.Rows + a.Eps);
#pragma unroll
    for (int i = 0; i < 8; i++) y.v[i] *= inverse * scale.v[i];
    if (left > 0) store8(a.Normed + at, y, 8, true);
}
