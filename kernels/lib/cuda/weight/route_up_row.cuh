// NormRouteUp of one row: RMSNorm, the Linear of the router, Route and ExpertUp in one launch. Clusters of eight blocks find the picks
// each for itself, because a second launch, or a message to all, takes longer. A block has kStrips strips of the router, 16 experts each, in
// shared memory by the time when the row may be read; it normalises the row, multiplies its strips and sends the places of its logits
// in their order to all blocks of the cluster. All threads of each find the picks (route_ranks.cuh), and the block asks at once for
// what it needs of the experts: all of that but the expert is known before the row is.
//
// Four teams of four warps have an item each at most, which is 16 gates and their ups of a pick; a warp multiplies a quarter of
// the columns. The next kernel may start when the last block has stored the picks, which it may want before it waits.
//
// Grid of whole clusters, at most 4·grid items; cluster 8; 512 threads. One row of at most 2048 columns, W.Cols%64 == 0,
// W.Rows%32 == 0; a router in bf16, Router.Rows-Shared at most 128·kStrips and a multiple of 16; Shared is kCommon; at most eight picks and a shared one. Where kSpreads, nvfp4 by
// spread.cuh, GGUF's formats by fixed.cuh with W.Cols%512 == 0. Dynamic shared memory: the shape's kShared.
#pragma once
#include "lib/cuda/op/rmsnorm.cuh"
#include "lib/cuda/op/route_ranks.cuh"
#include "lib/cuda/ptx/peer.cuh"
#include "lib/cuda/weight/few_product.cuh"

namespace atlas {

template <atlas_Scheme kScheme, int kUnits, bool kSpreads, int kStrips, bool kCommon>
struct route_up_shape {
    static constexpr bool kFixed = kSpreads && kScheme != ATLAS_SCHEME_NVFP4;
    static constexpr int kBlocks = 8, kParts = 4, kTeams = 4, kWarps = kTeams * kParts, kPicks = 8, kExperts = 16 * kBlocks * kStrips, kEach = 2;  // units of the router a warp
    static constexpr int kUnit = unit<kScheme>::kBytes, kStrip = kUnits * kUnit, kShare = 2 * kStrip;  // of a warp
    static constexpr int kRouterUnit = unit<ATLAS_SCHEME_BF16>::kBytes, kRouterStrip = kWarps * kEach * kRouterUnit, kRouter = kStrips * kRouterStrip;
    static constexpr int kRowAt = kWarps * kShare > kRouter ? kWarps * kShare : kRouter;  // experts take the router's place
    static constexpr int kZerosAt = kRowAt + kWarps * kEach * 128, kSumsAt = kZerosAt + (kSpreads ? kUnits * 128 : 0);
    static constexpr int kPartsAt = kSumsAt + kWarps * 32 * 4, kKeysAt = kPartsAt + kStrips * kWarps * 16 * 4, kRanksAt = kKeysAt + kExperts * 4;
    static constexpr int kSquaresAt = kRanksAt + kExperts, kGatesAt = kSquaresAt + kWarps * 4, kPicksAt = kGatesAt + (kCommon ? kWarps * 4 : 0), kBarriersAt = kPicksAt + kPicks * 8, kEnd = kBarriersAt + (2 + kWarps) * 8;
    static constexpr int kFixedAt = (kEnd + 127) / 128 * 128, kOwnRow = kUnits * 160, kShared = kFixed ? kFixedAt + kWarps * kOwnRow : kEnd;  // numbers of a warp's columns
    static_assert(kUnits * kParts * 64 >= 2048, "all columns");
    static_assert(unit<kScheme>::kPitch == kUnit, "units of a strip lie together");
};

}  // namespace atlas

template <class P>
__device__ void route_up_row(const atlas_NormRouteUp &a) {
    using namespace atlas;
    using shape = route_up_shape<P::kScheme, P::kUnits, P::kSpreads, P::kStrips, P::kCommon>;
    static_assert(launched<P, shape::kWarps * 32, shape::kShared, shape::kBlocks>::kFits);
    using product_t = few_product<P::kScheme, 2, P::kSpreads>;
    using router_t = unit<ATLAS_SCHEME_BF16>;
    constexpr int kWarps = shape::kWarps, kEach = shape::kEach;
    const atlas_Weight &w = a.W, &router = a.Router;
    uint8_t *const shared = strip_shared;
    const uint32_t memory = shared_address(shared), router_there = memory + shape::kBarriersAt, keys_there = router_there + 8;
    const uint32_t own = memory + warp() * shape::kShare, own_there = keys_there + 8 + warp() * 8;  // of a warp: gates, then ups
    const int rank = cluster_rank(), units = w.Cols / 64, experts = router.Rows - P::kCommon, c = threadIdx.x * 4;
    const int first = rank * P::kStrips, strips = max(0, min(P::kStrips, experts / 16 - first));  // of this block
    const bool there = c < w.Cols, last = blockIdx.x == gridDim.x - 1, common = P::kCommon && last;
    const int team = warp() / shape::kParts, part = warp() % shape::kParts, half = w.Rows / 2, groups = half / 16;
    const int item = team * gridDim.x + blockIdx.x, pick = item / groups, group = item % groups, begin = units * part / shape::kParts, end = units * (part + 1) / shape::kParts;
    const bool busy = item < a.TopK * groups;
    const int bytes = busy ? unit<P::kScheme>::bytes(w.Cols, begin, end - begin) : 0;  // of this warp's share of gates, and of ups
    const uint32_t gates = unit<P::kScheme>::at(w, 0, group, begin) - w.Data, ups = unit<P::kScheme>::at(w, 0, group + groups, begin) - w.Data;
    if (warp() == 0) {
        if (lane() == 0) {
            init_barrier(router_there, 1), init_barrier(keys_there, 1);
            fence_barriers();
            arrive_expecting(router_there, strips * units * shape::kRouterUnit), arrive_expecting(keys_there, experts * 4);
        }
        __syncwarp();
        if (elected())
            for (int i = 0; i < strips; i++)
                copy_units<ATLAS_SCHEME_BF16, 32>(memory + i * shape::kRouterStrip, router_t::at(router, 0, first + i, 0), units, units * shape::kRouterUnit, router_there);
    }
    if (lane() == 0) {
        init_barrier(own_there, 1);
        fence_barriers();
    }
    uint32_t *const keys = reinterpret_cast<uint32_t *>(shared + shape::kKeysAt);
    if (threadIdx.x >= experts && threadIdx.x < shape::kExperts) keys[threadIdx.x] = 0;
    arrive_cluster();
    const int pair = lane() % 8 * 2, expert_of = (first + warp()) * 16 + pair;  // the first of two logits that a lane sends, of a strip for each of the first warps
    const bool sends = warp() < strips;
    float2 factor = {};
    if (sends) factor = {row_scale(router, 0, expert_of), row_scale(router, 0, expert_of + 1)};
    if (product_t::kLifts) factor = {factor.x * 0x1p-64f, factor.y * 0x1p-64f};
    const float4 scale = there ? *reinterpret_cast<const float4 *>(a.Scale + c) : float4{};
    const float each = 1.0f / w.Cols;
    if constexpr (P::kSpreads)
        if (threadIdx.x < P::kUnits * 8) store_shared(memory + shape::kZerosAt + threadIdx.x * 16, {});
    const float gate_factor = common ? row_scale(router, 0, experts) : 0.0f;
    const uint2 gate_row = common && there ? *reinterpret_cast<const uint2 *>(weight_row64(router, 0, experts).at(c & ~7) + c % 8) : uint2{};
    router_t strip[P::kStrips][kEach] = {};
    const auto load_strips = [&](int i) {
#pragma unroll
        for (int s = 0; s < P::kStrips; s++)
            if (s < strips && warp() * kEach + i < units) strip[s][i].load(shared + s * shape::kRouterStrip + (warp() * kEach + i) * shape::kRouterUnit);
    };
    __syncthreads();  // of barriers too
    if (lane() == 0) arrive_expecting(own_there, 2 * bytes);
    wait_barrier(router_there, 0);
    load_strips(0);
    wait_cluster();
    wait_for_previous();

    uint2 x = {}, before = {};
    if (there) {
        x = __ldcg(reinterpret_cast<const uint2 *>(a.In + c));
        if (a.Residual) before = __ldcg(reinterpret_cast<const uint2 *>(a.Residual + c));
    }
    const auto low = [](uint32_t pair) { return __uint_as_float(pair << 16); };
    const auto high = [](uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); };
    if (a.Residual) {
        x = {narrow(low(x.x) + low(before.x), high(x.x) + high(before.x)), narrow(low(x.y) + low(before.y), high(x.y) + high(before.y))};
        if (last && there) *reinterpret_cast<uint2 *>(a.Sum + c) = x;
    }
    float *const squares = reinterpret_cast<float *>(shared + shape::kSquaresAt);
    const float square = warp_sum(fmaf(low(x.x), low(x.x), low(x.y) * low(x.y)) + fmaf(high(x.x), high(x.x), high(x.y) * high(x.y)));
    if (lane() == 0) squares[warp()] = square;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kWarps / 4; i++) {
        const float4 four = reinterpret_cast<const float4 *>(squares)[i];
        sum += (four.x + four.y) + (four.z + four.w);
    }
    const float inverse = rsqrtf(sum * each + a.Eps);
    uint2 y = {narrow(low(x.x) * (inverse * scale.x), high(x.x) * (inverse * scale.y)), narrow(low(x.y) * (inverse * scale.z), high(x.y) * (inverse * scale.w))};
    if (common) {
        const float gate = warp_sum(fmaf(low(y.x), low(gate_row.x), low(y.y) * low(gate_row.y)) + fmaf(high(y.x), high(gate_row.x), high(y.y) * high(gate_row.y)));
        if (lane() == 0) reinterpret_cast<float *>(shared + shape::kGatesAt)[warp()] = gate;
    }
    if (product_t::kLifts) y = {multiply_pair(y.x, kTwo64), multiply_pair(y.y, kTwo64)};
    *reinterpret_cast<uint2 *>(shared + shape::kRowAt + c * 2) = y;
    __syncwarp();

    float *const parts = reinterpret_cast<float *>(shared + shape::kPartsAt);
    if (strips > 0) {  // the columns that the warp has normalised
        uint32_t b[kEach][2][4];
        const uint32_t at = memory + shape::kRowAt + warp() * kEach * 128 + lane() / 8 * 16;
#pragma unroll
        for (int i = 0; i < kEach; i++) load_matrices(b[i][0], at + i * 128), load_matrices(b[i][1], at + i * 128 + 64);
        load_strips(1);
#pragma unroll
        for (int s = 0; s < P::kStrips; s++) {
            float sums[kEach][2][4] = {};
#pragma unroll
            for (int i = 0; i < kEach; i++)
#pragma unroll
                for (int step = 0; step < 4; step++) product(sums[i][step / 2], strip[s][i].steps[step], b[i][step / 2][step % 2 * 2], b[i][step / 2][step % 2 * 2 + 1]);
            const auto all = [&](int of) { return (sums[0][0][of] + sums[0][1][of]) + (sums[1][0][of] + sums[1][1][of]); };
            float *const to = parts + (s * kWarps + warp()) * 16 + lane() / 4;
            if (lane() % 4 == 0) to[0] = all(0), to[8] = all(2);
        }
    }
    __syncthreads();
    if (sends) {
        const float *const of_strip = parts + warp() * kWarps * 16;
        float2 mine = {};
#pragma unroll
        for (int p = 0; p < kWarps; p += 2) {
            const float2 even = *reinterpret_cast<const float2 *>(of_strip + p * 16 + pair), odd = *reinterpret_cast<const float2 *>(of_strip + p * 16 + 16 + pair);
            mine.x += even.x + odd.x, mine.y += even.y + odd.y;
        }
        const uint64_t even = routing::key_of(__float2bfloat16_rn(mine.x * factor.x), expert_of), odd = routing::key_of(__float2bfloat16_rn(mine.y * factor.y), expert_of + 1);
#pragma unroll
        for (int i = 0; i < 2; i++)
            store_counted(address_in(memory + shape::kKeysAt + expert_of * 4, lane() / 8 + i * 4), even | odd << 32, address_in(keys_there, lane() / 8 + i * 4));
    }
    wait_barrier(keys_there, 0);
    uint32_t *const picks = reinterpret_cast<uint32_t *>(shared + shape::kPicksAt);
    routing::rank_keys<shape::kExperts, kWarps * 32>(keys, a.TopK - P::kCommon, picks, shared + shape::kRanksAt);
    __syncthreads();

    const int expert = !busy ? 0 : P::kCommon && pick == a.TopK - 1 ? experts : routing::expert_of(picks[pick]);
    if (bytes > 0 && elected()) {
        const uint8_t *const from = w.Data + size_t(expert) * w.Stride;
        copy_bulk(own, from + gates, bytes, own_there), copy_bulk(own + shape::kStrip, from + ups, bytes, own_there);
    }
    if (last && warp() == kWarps - 1) {  // which has no item where there are as few as possible
        float gate = 0;
        if (P::kCommon)
#pragma unroll
            for (int i = 0; i < kWarps; i++) gate += reinterpret_cast<const float *>(shared + shape::kGatesAt)[i];
        routing::write_ranked<shape::kExperts / 32>({a.IDs, a.Weights, a.Order, a.Starts, nullptr, nullptr, 1, router.Rows, a.TopK, a.Shared, a.Normalise, a.Routing, a.Factor}, keys, picks,
                                                         shared + shape::kRanksAt, __float2bfloat16_rn(gate * gate_factor));
        __threadfence();
    }
    release_next();
    if (!busy) return;

    const int n = group * 16 + lane() % 16 + lane() / 16 * half;  // lanes 0 … 15 finish gates, the others ups
    const float by = part == 0 ? row_scale(w, expert, n) * product_t::kFactor : 0.0f;
    block_scales<P::kScheme> blocks[2];
#pragma unroll
    for (int s = 0; s < 2; s++) blocks[s].load(w, expert, group + s * groups, begin, end);
    uint32_t row_at = memory + shape::kRowAt + begin * 128;
    if constexpr (shape::kFixed) {  // while weights are on their way
        const uint4 *const from = reinterpret_cast<const uint4 *>(shared + shape::kRowAt + begin * 128) + lane() * 2;
        row_at = memory + shape::kFixedAt + warp() * shape::kOwnRow;
        using form = fixed_form<P::kScheme>;
        form::put(form::at(row_at, lane() * 16), form::factors_at(row_at + P::kUnits * 128, lane() * 16), lane() < (end - begin) * 4, widen(from[0]), widen(from[1]));
        __syncwarp();
    }
    const auto row = [&] {
        if constexpr (shape::kFixed) return typename product_t::lines(row_at, row_at + P::kUnits * 128, memory + shape::kZerosAt);
        else return typename product_t::lines(row_at, memory + shape::kZerosAt);
    }();
    float sums[2][1][4] = {};
    const uint32_t codes = own + product_t::codes_at(), scales = own + product_t::scales_at();
    wait_barrier(own_there, 0);
#pragma unroll
    for (int i = 0; i < P::kUnits; i += product_t::kAtOnce) {
        if (begin + i >= end) break;
        product_t product[product_t::kAtOnce];
#pragma unroll
        for (int u = 0; u < product_t::kAtOnce; u++) product[u].load(codes + (i + u) * shape::kUnit, scales + (i + u) * shape::kUnit, shape::kStrip, row, (i + u) * 128);
        product_t::template multiply<product_t::kAtOnce>(product, row.moved(i * 128), 128, w.Cols - (begin + i) * 64, [&](int s, int) { return blocks[s].of(w, expert, group + s * groups, begin, begin + i); }, sums);
    }
    float *const all = reinterpret_cast<float *>(shared + shape::kSumsAt) + team * shape::kParts * 32;
#pragma unroll
    for (int s = 0; s < 2; s++)
        product_t::each(sums[s][0], [&](int column, int row, float sum) {
            if (column == 0) all[part * 32 + s * 16 + row] = sum;
        });
    sync_named<shape::kParts * 32>(1 + team);
    if (part > 0) return;
    float total = 0;
#pragma unroll
    for (int p = 0; p < shape::kParts; p++) total += all[p * 32 + lane()];
    total *= by;
    const float up = __shfl_down_sync(kAllLanes, total, 16);
    if (lane() < 16) a.Out[size_t(pick) * half + n] = __float2bfloat16_rn(silu(total) * up);
}
