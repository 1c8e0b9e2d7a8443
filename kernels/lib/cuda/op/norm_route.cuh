// NormRoute for few rows: RMSNorm, the Linear of the router and Route in one launch, with the bits of each of them (norms of
// rmsnorm.cuh, logits of linear_eight.cuh, picks of route.cuh).
//
// norm_route: a cluster of eight blocks, each of which has a strip, 16 experts. Every block makes all normalised
// rows for itself; its weights are in registers by the time when the rows may be read. Logits meet in the first block, which routes.
// Grid 8, cluster 8, 256 threads. At most kRows rows, eight at most; bf16 weights of at most 128 rows, W.Rows%16 == 0, W.Cols%64 == 0
// and at most 2048; at most 32·kPerLane experts. Dynamic shared memory: norm_route_shape<kRows>::kShared.
#pragma once
#include "lib/cuda/op/rmsnorm.cuh"
#include "lib/cuda/op/route.cuh"
#include "lib/cuda/ptx/peer.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

extern __shared__ __align__(1024) uint8_t norm_route_shared[];

template <int kRows>
struct norm_route_shape {
    static constexpr int kBlocks = 8, kWarps = 8, kUnits = 4, kExperts = 16 * kBlocks;  // units of a warp
    static constexpr int kCols = kWarps * kUnits * 64, kPitch = kCols * 2 + 16;
    static constexpr int kRowsAt = kWarps * kUnits * unit<ATLAS_SCHEME_BF16>::kBytes, kSumsAt = kRowsAt + kRows * kPitch;
    static constexpr int kLogitsAt = kSumsAt + kWarps * 512, kSquaresAt = kLogitsAt + kRows * kExperts * 2;
    static constexpr int kTablesAt = kSquaresAt + kRows * kWarps * 4, kBarriersAt = kTablesAt + 2 * kExperts * 4, kShared = kBarriersAt + 16;
};

}  // namespace atlas

template <class P>
__device__ void norm_route(const atlas_NormRoute &a) {
    using namespace atlas;
    using shape = norm_route_shape<P::kRows>;
    static_assert(launched<P, shape::kWarps * 32, shape::kShared, shape::kBlocks>::kFits);
    using unit_t = unit<ATLAS_SCHEME_BF16>;
    static_assert(P::kRows <= 8 && P::kPerLane * 32 <= shape::kExperts, "columns of a product; masks");
    const uint32_t memory = shared_address(norm_route_shared), weights_there = memory + shape::kBarriersAt, logits_there = weights_there + 8;
    float *const squares = reinterpret_cast<float *>(norm_route_shared + shape::kSquaresAt), *const sums = reinterpret_cast<float *>(norm_route_shared + shape::kSumsAt);
    uint32_t *const masks = reinterpret_cast<uint32_t *>(norm_route_shared + shape::kTablesAt);
    const int cols = a.W.Cols, units = cols / 64, strips = a.W.Rows / 16, strip = cluster_rank(), c = threadIdx.x * 8, rows = a.Rows;
    const bool routes = strip == 0, there = c < cols, mine = strip < strips;
    release_next();
    if (warp() == 0) {
        if (lane() == 0) {
            init_barrier(weights_there, 1), init_barrier(logits_there, 1);
            fence_barriers();
            if (mine) arrive_expecting(weights_there, units * unit_t::kBytes);
            if (routes) arrive_expecting(logits_there, strips * rows * 32);
        }
        __syncwarp();
        if (mine && elected()) copy_units<ATLAS_SCHEME_BF16, 32>(memory, unit_t::at(a.W, 0, strip, 0), units, units * unit_t::kBytes, weights_there);
    }
    arrive_cluster();
    const f32x8 scale = there ? scales(a.Scale + c, 8, true) : f32x8{};
    if (threadIdx.x < shape::kExperts) masks[threadIdx.x] = 0;
    const int pair = threadIdx.x % 8, row = threadIdx.x / 8;  // of the logits that a thread finishes
    float factor[2];
#pragma unroll
    for (int i = 0; i < 2; i++) factor[i] = mine ? row_scale(a.W, 0, strip * 16 + pair * 2 + i) * unit_t::kFactor : 0.0f;
    unit_t w[shape::kUnits];
    const auto load_weights = [&]() {
#pragma unroll
        for (int i = 0; i < shape::kUnits; i++)
            if (warp() + i * 8 < units) w[i].load(norm_route_shared + (warp() + i * 8) * unit_t::kBytes);
    };
    __syncthreads();
    if (mine) wait_barrier(weights_there, 0);
    if (mine && P::kRows == 1) load_weights();  // more rows need the registers
    wait_cluster();
    wait_for_previous();

    uint4 x[P::kRows] = {}, before[P::kRows] = {};
#pragma unroll
    for (int r = 0; r < P::kRows; r++)
        if (r < rows && there) {
            x[r] = *reinterpret_cast<const uint4 *>(a.In + size_t(r) * cols + c);
            if (a.Residual) before[r] = *reinterpret_cast<const uint4 *>(a.Residual + size_t(r) * cols + c);
        }
    const auto stores = [&](int r) { return (r + 1) % shape::kBlocks == strip && r < rows && there; };  // the first block has more to do
#pragma unroll
    for (int r = 0; r < P::kRows; r++) {
        if (r >= rows) break;
        if (a.Residual) {
            f32x8 sum = widen(x[r]);
            const f32x8 y = widen(before[r]);
#pragma unroll
            for (int i = 0; i < 8; i++) sum.v[i] += y.v[i];
            x[r] = narrow(sum);
            if (stores(r)) *reinterpret_cast<uint4 *>(a.Sum + size_t(r) * cols + c) = x[r];
        }
        const f32x8 y = widen(x[r]);
        float square = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) square = fmaf(y.v[i], y.v[i], square);
        square = warp_sum(square);
        if (lane() == 0) squares[r * shape::kWarps + warp()] = square;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < P::kRows; r++) {
        if (r >= rows) break;
        float sum = 0;
#pragma unroll
        for (int i = 0; i < shape::kWarps; i++) sum += squares[r * shape::kWarps + i];
        const float inverse = rsqrtf(sum / cols + a.Eps);
        f32x8 y = widen(x[r]);
#pragma unroll
        for (int i = 0; i < 8; i++) y.v[i] *= inverse * scale.v[i];
        x[r] = narrow(y);
        if (stores(r)) *reinterpret_cast<uint4 *>(a.Normed + size_t(r) * cols + c) = x[r];
        store_shared(memory + shape::kRowsAt + r * shape::kPitch + c * 2, x[r]);
    }
    __syncthreads();

    if (mine) {
        float part[4] = {};
        if (P::kRows > 1) load_weights();
        const uint32_t at = memory + shape::kRowsAt + min(lane() % 8, rows - 1) * shape::kPitch + lane() / 8 * 16 + warp() * 128;
#pragma unroll
        for (int i = 0; i < shape::kUnits; i++) {
            if (warp() + i * 8 >= units) break;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                uint32_t b[4];
                load_matrices(b, at + i * 1024 + half * 64);
                product(part, w[i].steps[half * 2], b[0], b[1]);
                product(part, w[i].steps[half * 2 + 1], b[2], b[3]);
            }
        }
        reinterpret_cast<float4 *>(sums)[threadIdx.x] = {part[0], part[1], part[2], part[3]};
        __syncthreads();
        if (row < rows) {
            float logit[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int n = pair * 2 + i;
                const float *from = sums + (n % 8 * 4 + row / 2) * 4 + n / 8 * 2 + row % 2;
                float sum = 0;
#pragma unroll
                for (int p = 0; p < shape::kWarps; p++) sum += from[p * 128];
                logit[i] = sum * factor[i];
            }
            const uint32_t to = memory + shape::kLogitsAt + (row * a.W.Rows + strip * 16 + pair * 2) * 2;
            store_counted(address_in(to, 0), narrow(logit[0], logit[1]), address_in(logits_there, 0));
        }
    }
    if (!routes) return;
    const atlas_Route route = {a.IDs, a.Weights, a.Order, a.Starts, reinterpret_cast<const atlas_act *>(norm_route_shared + shape::kLogitsAt), a.Bias, rows,
                               a.W.Rows, a.TopK, 0, a.Normalise, a.Routing, a.Factor};
    if (P::kRows == 1 && warp() > 0) return;
    wait_peers(logits_there, 0);
    if constexpr (P::kRows == 1) {
        routing::route_row<P::kPerLane>(route);
    } else {
        routing::route_rows<256, P::kPerLane>(route, masks, reinterpret_cast<int *>(masks) + shape::kExperts);
    }
}
