// NormRoute for some rows: RMSNorm, the Linear of the router and Route in one launch, its sums in an order of its own.
//
// norm_route_columns: a cluster of eight blocks, each of which has an eighth of the columns and the weights of all
// experts for them, in registers by the time when the rows may be read. Blocks tell each other what their columns' squares add up to,
// norm their columns, multiply, and send what they have of the logits of two rows to each block, which picks for these; the first
// block then puts all picks in order. Grid 8, cluster 8, 256 threads. At most kRows rows, 8 or 16; bf16 weights of at most 128
// rows, W.Rows%16 == 0, W.Cols%64 == 0 and at most 2048; at most 32·kPerLane experts. Dynamic shared memory:
// norm_columns_shape<kRows>::kShared.
#pragma once
#include "lib/cuda/op/rmsnorm.cuh"
#include "lib/cuda/op/route.cuh"
#include "lib/cuda/ptx/peer.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

extern __shared__ __align__(1024) uint8_t norm_columns_shared[];

template <int kRows>
struct norm_columns_shape {
    static constexpr int kBlocks = 8, kWarps = 8, kUnits = 4, kEach = 2;  // units and routed rows of a block
    static constexpr int kExperts = 16 * kWarps, kTiles = kExperts / 64, kPitch = kUnits * 128 + 16;
    static constexpr int kRowsAt = kUnits * kTiles * 8192, kSquaresAt = kRowsAt + kRows * kPitch, kPartsAt = kSquaresAt + kBlocks * kRows * 4;
    static constexpr int kLogitsAt = kPartsAt + kBlocks * kExperts * kEach * 4, kRanksAt = kLogitsAt + kEach * kExperts * 2;
    static constexpr int kBarriersAt = kRanksAt + kRows * 128, kShared = kBarriersAt + 32;
    static_assert(kRows <= kBlocks * kEach && kRows % 8 == 0, "blocks route all rows");
};

// Order and Starts from the ranks of all rows: byte i of word lane of a row is the rank of expert i·32+lane among the row's picks. Each
// warp counts all picks, and puts those of its rows in their places.
template <int kRows, int kWarps>
__device__ void place_ranks(const atlas_NormRoute &a, const uint32_t *ranks) {
    constexpr int kEach = kRows / kWarps;
    uint32_t mine[kEach], before[kEach] = {}, all = 0;  // counts of picks: a byte per expert
#pragma unroll
    for (int r = 0; r < kRows; r++) {
        const uint32_t word = r < a.Rows ? ranks[r * 32 + lane()] : ~0u, picked = ~word >> 7 & 0x01010101u;
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            if (r == warp() + i * kWarps) mine[i] = word;
            if (r < warp() + i * kWarps) before[i] += picked;
        }
        all += picked;
    }
    uint32_t sum[2] = {all & 0x00ff00ffu, all >> 8 & 0x00ff00ffu};  // of the lanes up to this one
#pragma unroll
    for (int d = 1; d < 32; d *= 2)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t other = __shfl_up_sync(kAllLanes, sum[i], d);
            if (lane() >= d) sum[i] += other;
        }
    int start[4], total = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        start[i] = total + (sum[i % 2] >> i / 2 * 16 & 0xffffu) - (all >> i * 8 & 0xffu);
        total += __shfl_sync(kAllLanes, sum[i % 2], 31) >> i / 2 * 16 & 0xffffu;
    }
    if (warp() == 0) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i * 32 + lane() < a.W.Rows) a.Starts[i * 32 + lane()] = start[i];
        if (lane() == 0) a.Starts[a.W.Rows] = total;
    }
#pragma unroll
    for (int i = 0; i < kEach; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (const int rank = int8_t(mine[i] >> j * 8), r = warp() + i * kWarps; rank >= 0) a.Order[start[j] + (before[i] >> j * 8 & 0xffu)] = r * a.TopK + rank;
}

}  // namespace atlas

template <class P>
__device__ void norm_route_columns(const atlas_NormRoute &a) {
    using namespace atlas;
    using shape = norm_columns_shape<P::kRows>;
    static_assert(launched<P, shape::kWarps * 32, shape::kShared, shape::kBlocks>::kFits);
    using unit_t = unit<ATLAS_SCHEME_BF16>;
    static_assert(P::kPerLane == 4 && P::kPerLane * 32 == shape::kExperts, "a byte of a word per rank");
    constexpr int kTurns = P::kRows / shape::kWarps;
    uint8_t *const shared = norm_columns_shared;
    const uint32_t memory = shared_address(shared), weights_there = memory + shape::kBarriersAt;
    const uint32_t squares_there = weights_there + 8, logits_there = weights_there + 16, ranks_there = weights_there + 24;
    const int cols = a.W.Cols, experts = a.W.Rows, strips = experts / 16, rows = a.Rows, block = cluster_rank();
    const int first = cols / 64 * block / shape::kBlocks, units = cols / 64 * (block + 1) / shape::kBlocks - first;
    const int routed = min(rows - block * shape::kEach, shape::kEach);  // rows that this block picks for, if above zero
    release_next();
    if (warp() == 0) {
        if (lane() == 0) {
            for (int i = 0; i < 4; i++) init_barrier(weights_there + i * 8, 1);
            fence_barriers();
            arrive_expecting(weights_there, units * strips * unit_t::kBytes);
            arrive_expecting(squares_there, shape::kBlocks * rows * 4);
            if (routed > 0) arrive_expecting(logits_there, shape::kBlocks * experts * shape::kEach * 4);
            if (block == 0) arrive_expecting(ranks_there, rows * 128);
        }
        __syncwarp();
        const int u = lane() / shape::kTiles, tile = lane() % shape::kTiles;
        if (u < units && tile * 4 < strips)
            copy_bulk(memory + lane() * 8192, tile64(a.W, 0, tile, first + u), min(strips - tile * 4, 4) * unit_t::kBytes, weights_there);
    }
    arrive_cluster();
    const int c = first * 64 + lane() * 8;
    const bool there = lane() * 8 < units * 64;
    const f32x8 scale = there ? scales(a.Scale + c, 8, true) : f32x8{};
    const int expert = threadIdx.x % shape::kExperts, routed_row = threadIdx.x / shape::kExperts;  // of the logit that a thread finishes
    const float factor = expert < experts ? row_scale(a.W, 0, expert) * unit_t::kFactor : 0.0f;
    unit_t w[shape::kUnits] = {};
    const float share = 1.0f / cols;
    __syncthreads();
    wait_barrier(weights_there, 0);
#pragma unroll
    for (int i = 0; i < shape::kUnits; i++)
        if (i < units && warp() < strips) w[i].load(shared + (i * shape::kTiles + warp() / 4) * 8192 + warp() % 4 * unit_t::kBytes);
    wait_cluster();
    wait_for_previous();

    uint4 x[kTurns] = {}, before[kTurns] = {};
#pragma unroll
    for (int i = 0; i < kTurns; i++) {
        const int r = warp() + i * shape::kWarps;
        if (r >= rows || !there) continue;
        x[i] = __ldcg(reinterpret_cast<const uint4 *>(a.In + size_t(r) * cols + c));
        if (a.Residual) before[i] = __ldcg(reinterpret_cast<const uint4 *>(a.Residual + size_t(r) * cols + c));
    }
#pragma unroll
    for (int i = 0; i < kTurns; i++) {
        const int r = warp() + i * shape::kWarps;
        if (a.Residual) {
            f32x8 sum = widen(x[i]);
            const f32x8 y = widen(before[i]);
#pragma unroll
            for (int j = 0; j < 8; j++) sum.v[j] += y.v[j];
            x[i] = narrow(sum);
            if (r < rows && there) *reinterpret_cast<uint4 *>(a.Sum + size_t(r) * cols + c) = x[i];
        }
        const f32x8 y = widen(x[i]);
        float square = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) square = fmaf(y.v[j], y.v[j], square);
        square = warp_sum(square);
        if (r < rows && lane() < shape::kBlocks)
            store_counted(address_in(memory + shape::kSquaresAt + (block * P::kRows + r) * 4, lane()), __float_as_uint(square), address_in(squares_there, lane()));
    }
    wait_peers(squares_there, 0);
#pragma unroll
    for (int i = 0; i < kTurns; i++) {
        const int r = warp() + i * shape::kWarps;
        const float *from = reinterpret_cast<const float *>(shared + shape::kSquaresAt) + r;
        float sum = 0;
#pragma unroll
        for (int b = 0; b < shape::kBlocks; b++) sum += from[b * P::kRows];
        const float inverse = rsqrtf(sum * share + a.Eps);
        f32x8 y = widen(x[i]);
#pragma unroll
        for (int j = 0; j < 8; j++) y.v[j] *= inverse * scale.v[j];
        x[i] = narrow(y);
        if (r < rows && there) *reinterpret_cast<uint4 *>(a.Normed + size_t(r) * cols + c) = x[i];
        store_shared(memory + shape::kRowsAt + r * shape::kPitch + lane() * 16, x[i]);
    }
    __syncthreads();
    if (warp() < strips) {
        float part[kTurns][4], sums[kTurns][2][4] = {};  // of the steps of each half of the units
        const uint32_t at = memory + shape::kRowsAt + lane() % 8 * shape::kPitch + lane() / 8 * 16;
#pragma unroll
        for (int i = 0; i < shape::kUnits; i++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int n = 0; n < kTurns; n++) {
                    uint32_t b[4];
                    load_matrices(b, at + n * 8 * shape::kPitch + i * 128 + half * 64);
                    product(sums[n][half], w[i].steps[half * 2], b[0], b[1]);
                    product(sums[n][half], w[i].steps[half * 2 + 1], b[2], b[3]);
                }
#pragma unroll
        for (int n = 0; n < kTurns; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) part[n][i] = sums[n][0][i] + sums[n][1][i];
#pragma unroll
        for (int n = 0; n < kTurns; n++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int to = n * 4 + lane() % 4, e = warp() * 16 + half * 8 + lane() / 4;
                if (to * shape::kEach < rows)
                    store_counted(address_in(memory + shape::kPartsAt + (block * shape::kExperts + e) * 8, to), float2{part[n][half * 2], part[n][half * 2 + 1]},
                                  address_in(logits_there, to));
            }
    }
    if (routed > 0) {
        const float *parts = reinterpret_cast<const float *>(shared + shape::kPartsAt) + expert * shape::kEach + routed_row;
        atlas_act *const logits = reinterpret_cast<atlas_act *>(shared + shape::kLogitsAt);
        wait_peers(logits_there, 0);
        float sum = 0;
#pragma unroll
        for (int b = 0; b < shape::kBlocks; b++) sum += parts[b * shape::kExperts * shape::kEach];
        logits[routed_row * shape::kExperts + expert] = __float2bfloat16_rn(expert < experts ? sum * factor : -INFINITY);
        __syncthreads();
        if (warp() < routed) {
            const int row = block * shape::kEach;
            const atlas_Route route = {a.IDs + size_t(row) * a.TopK, a.Weights + size_t(row) * a.TopK, nullptr, nullptr, nullptr, a.Bias, routed,
                                       experts, a.TopK, 0, a.Normalise, a.Routing, a.Factor};
            atlas_act mine[P::kPerLane];
#pragma unroll
            for (int i = 0; i < P::kPerLane; i++) mine[i] = logits[warp() * shape::kExperts + i * 32 + lane()];
            int rank[P::kPerLane];
            routing::pick<P::kPerLane>(route, warp(), mine, rank);
            uint32_t word = 0;
#pragma unroll
            for (int i = 0; i < P::kPerLane; i++) word |= uint32_t(rank[i] & 0xff) << i * 8;
            store_counted(address_in(memory + shape::kRanksAt + ((row + warp()) * 32 + lane()) * 4, 0), word, address_in(ranks_there, 0));
        }
    }
    if (block > 0) return;
    wait_peers(ranks_there, 0);
    place_ranks<P::kRows, shape::kWarps>(a, reinterpret_cast<const uint32_t *>(shared + shape::kRanksAt));
}
