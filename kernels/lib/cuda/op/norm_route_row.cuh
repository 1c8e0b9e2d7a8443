// NormRoute for one row: RMSNorm, the Linear of the router and Route in one launch, its sums in an order of its own.
//
// norm_route_row: a cluster of blocks, each of which has kStrips strips, of 16 experts each, in registers by the time when the row
// may be read. Every block normalises the row for itself. A warp multiplies the columns that it has normalised, and sends what it has of the
// logits to the first block, where warps add them and one picks. Where kCommon, threads of the first block also multiply by the gate of a
// shared expert.
// The grid is one cluster; a warp for each 256 columns. One row; bf16 weights, W.Rows-Shared at most 16·kStrips for each block and a multiple of 16,
// W.Cols%64 == 0; Shared is kCommon; as many experts to choose from as strips have at most, 32·kPerLane. Dynamic shared memory: norm_row_shape's kShared.
#pragma once
#include "lib/cuda/op/rmsnorm.cuh"
#include "lib/cuda/op/route.cuh"
#include "lib/cuda/ptx/peer.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

extern __shared__ __align__(1024) uint8_t norm_row_shared[];

template <int kBlocks, int kWarps, int kStrips, bool kCommon>
struct norm_row_shape {
    static constexpr int kUnits = 4, kExperts = 16 * kBlocks * kStrips;  // units of a warp
    static constexpr int kStrip = kWarps * kUnits * unit<ATLAS_SCHEME_BF16>::kBytes, kSlots = kBlocks * kStrips;
    static constexpr int kRowAt = kStrips * kStrip, kPartsAt = kRowAt + kWarps * kUnits * 128;
    static constexpr int kLogitsAt = kPartsAt + kWarps * kSlots * 64, kSquaresAt = kLogitsAt + kExperts * 2;
    static constexpr int kGatesAt = kSquaresAt + kWarps * 4, kBarriersAt = kGatesAt + (kCommon ? kWarps * 4 : 0), kShared = kBarriersAt + 16;
};

}  // namespace atlas

template <class P>
__device__ void norm_route_row(const atlas_NormRoute &a) {
    using namespace atlas;
    constexpr int kBlocks = P::kCluster, kWarps = P::kThreads / 32, kAdders = P::kPerLane < kWarps ? P::kPerLane : kWarps, kEach = P::kPerLane / kAdders;
    using shape = norm_row_shape<kBlocks, kWarps, P::kStrips, P::kCommon>;
    static_assert(launched<P, kWarps * 32, shape::kShared, kBlocks>::kFits && kWarps % 4 == 0 && kEach * kAdders == P::kPerLane);
    using unit_t = unit<ATLAS_SCHEME_BF16>;
    static_assert(P::kPerLane * 32 == shape::kExperts, "a lane adds its experts");
    uint8_t *const shared = norm_row_shared;
    const uint32_t memory = shared_address(shared), weights_there = memory + shape::kBarriersAt, logits_there = weights_there + 8;
    float *const squares = reinterpret_cast<float *>(shared + shape::kSquaresAt);
    const int cols = a.W.Cols, units = cols / 64, experts = a.W.Rows - P::kCommon, rank = cluster_rank(), c = threadIdx.x * 8;
    const int whole = experts / 16, first_strip = rank * P::kStrips, own = max(0, min(P::kStrips, whole - first_strip));
    const bool adds = rank == 0 && warp() < kAdders, there = c < cols, common = P::kCommon && rank == 0;
    release_next();
    if (warp() == 0) {
        if (lane() == 0) {
            init_barrier(weights_there, 1), init_barrier(logits_there, 1);
            fence_barriers();
            arrive_expecting(weights_there, own * units * unit_t::kBytes);
            if (adds) arrive_expecting(logits_there, whole * kWarps * 64);
        }
        __syncwarp();
        if (elected())
            for (int i = 0; i < own; i++)
                copy_units<ATLAS_SCHEME_BF16, 32>(memory + i * shape::kStrip, unit_t::at(a.W, 0, first_strip + i, 0), units, units * unit_t::kBytes, weights_there);
    }
    arrive_cluster();
    const f32x8 scale = there ? scales(a.Scale + c, 8, true) : f32x8{};
    const auto expert = [](int i) { return (warp() + i * kAdders) * 32 + lane(); };  // whose logits a lane adds
    float factor[kEach];
#pragma unroll
    for (int i = 0; i < kEach; i++) factor[i] = adds && expert(i) < experts ? row_scale(a.W, 0, expert(i)) * unit_t::kFactor : 0.0f;
    const float gate_factor = common ? row_scale(a.W, 0, experts) * unit_t::kFactor : 0.0f;
    const uint4 gate_row = common && there ? *reinterpret_cast<const uint4 *>(weight_row64(a.W, 0, experts).at(c)) : uint4{};
    const float part = 1.0f / cols;
    const uint32_t arrives = address_in(logits_there, 0);
    const int first = warp() * shape::kUnits;
    unit_t w[P::kStrips][shape::kUnits] = {};
    const auto load_strip = [&](unit_t (&w)[shape::kUnits], int at) {
#pragma unroll
        for (int i = 0; i < shape::kUnits; i++)
            if (first + i < units) w[i].load(shared + at * shape::kStrip + (first + i) * unit_t::kBytes);
    };
    __syncthreads();
    wait_barrier(weights_there, 0);
#pragma unroll
    for (int s = 0; s < P::kStrips; s++)
        if (s < own) load_strip(w[s], s);
    wait_cluster();
    wait_for_previous();

    uint4 x = {}, before = {};
    if (there) {
        x = __ldcg(reinterpret_cast<const uint4 *>(a.In + c));  // sooner than by the first cache
        if (a.Residual) before = __ldcg(reinterpret_cast<const uint4 *>(a.Residual + c));
    }
    f32x8 y = widen(x);
    if (a.Residual) {
        const f32x8 other = widen(before);
#pragma unroll
        for (int i = 0; i < 8; i++) y.v[i] += other.v[i];
        x = narrow(y);
        y = widen(x);
    }
    float even = 0, odd = 0;
#pragma unroll
    for (int i = 0; i < 8; i += 2) even = fmaf(y.v[i], y.v[i], even), odd = fmaf(y.v[i + 1], y.v[i + 1], odd);
    const float square = warp_sum(even + odd);
    if (lane() == 0) squares[warp()] = square;
    __syncthreads();
    float all = 0;
#pragma unroll
    for (int i = 0; i < kWarps / 4; i++) {
        const float4 four = reinterpret_cast<const float4 *>(squares)[i];
        all += (four.x + four.y) + (four.z + four.w);
    }
    const float inverse = rsqrtf(all * part + a.Eps);
#pragma unroll
    for (int i = 0; i < 8; i++) y.v[i] *= inverse * scale.v[i];
    const uint4 normed = narrow(y);
    store_shared(memory + shape::kRowAt + c * 2, normed);
    __syncwarp();
    const auto multiply = [&](const unit_t (&w)[shape::kUnits], int slot) {
        float sums[shape::kUnits][4] = {};
        const uint32_t at = memory + shape::kRowAt + first * 128 + lane() / 8 * 16;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t b[shape::kUnits][4];
#pragma unroll
            for (int i = 0; i < shape::kUnits; i++) load_matrices(b[i], at + i * 128 + half * 64);
#pragma unroll
            for (int step = 0; step < 2; step++)
#pragma unroll
                for (int i = 0; i < shape::kUnits; i++)
                    product(sums[i], w[i].steps[half * 2 + step], b[i][step * 2], b[i][step * 2 + 1]);
        }
        const float2 both = {(sums[0][0] + sums[1][0]) + (sums[2][0] + sums[3][0]), (sums[0][2] + sums[1][2]) + (sums[2][2] + sums[3][2])};
        const uint32_t to = address_in(memory + shape::kPartsAt + ((warp() * shape::kSlots + slot) * 8 + lane() / 4) * 8, 0);
        if (lane() % 4 == 0) store_counted(to, both, arrives);
    };
#pragma unroll
    for (int s = 0; s < P::kStrips; s++)
        if (s < own) multiply(w[s], first_strip + s);
    float *const gates = reinterpret_cast<float *>(shared + shape::kGatesAt);
    if (common) {
        const f32x8 x = widen(normed), gate = widen(gate_row);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) sum = fmaf(x.v[i], gate.v[i], sum);
        sum = warp_sum(sum);
        if (lane() == 0) gates[warp()] = sum;
        if (kAdders < kWarps) __syncthreads();
    }
    if (rank == kBlocks - 1 && there) {  // the first block has more to do
        if (a.Residual) *reinterpret_cast<uint4 *>(a.Sum + c) = x;
        *reinterpret_cast<uint4 *>(a.Normed + c) = normed;
    }
    if (!adds) return;
    wait_peers(logits_there, 0);
    atlas_act *const logits = reinterpret_cast<atlas_act *>(shared + shape::kLogitsAt);
#pragma unroll
    for (int i = 0; i < kEach; i++) {
        // What a warp has of experts g and g+8 of a strip stands together.
        const int e = expert(i);
        const float *const parts = reinterpret_cast<const float *>(shared + shape::kPartsAt) + (e / 16 * 8 + e % 8) * 2 + e / 8 % 2;
        float sum = 0;
#pragma unroll
        for (int p = 0; p < kWarps; p++) sum += parts[p * shape::kSlots * 16];
        logits[e] = __float2bfloat16_rn(e < experts ? sum * factor[i] : -INFINITY);
    }
    if (warp() > 0) return arrive_named<kAdders * 32>(1);
    sync_named<kAdders * 32>(1);
    atlas_act mine[P::kPerLane];
#pragma unroll
    for (int i = 0; i < P::kPerLane; i++) mine[i] = logits[i * 32 + lane()];
    float gate = 0;
    if (P::kCommon)
#pragma unroll
        for (int i = 0; i < kWarps; i++) gate += gates[i];
    routing::route_row<P::kPerLane>({a.IDs, a.Weights, a.Order, a.Starts, nullptr, a.Bias, 1, a.W.Rows, a.TopK, a.Shared, a.Normalise, a.Routing, a.Factor}, mine, __float2bfloat16_rn(gate * gate_factor));
}
