// Route on a GPU. A chunk is up to 32 rows, a block: its warps pick for a row each, by repeated search for the largest, and
// note in a mask per expert which rows picked it. A row picks an expert once, so a pick's place among its expert's is the
// number of bits below its row's. One chunk is one launch, route_few; more are two: route_pick leaves masks in scratch, u32
// [chunks,Experts], and route_place, the same grid, counts the picks of all chunks before its own. Logits that are no numbers
// lose. Grid (⌈Rows/kRows⌉), kThreads threads; at most 32·kPerLane experts, and for route_place kThreads of them.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas::routing {

// A number's place in the order of numbers; above 0, which nothing is.
__device__ inline uint32_t sortable(float x) {
    const uint32_t u = __float_as_uint(x == x ? x : -INFINITY);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// Writes IDs and Weights of a row, and calls picked(expert) for each, in one lane.
template <int kPerLane, typename Picked>
__device__ void pick(const atlas_Route &a, int row, const Picked &picked) {
    const int lane = atlas::lane();
    const bool sigmoid = a.Routing == ATLAS_ROUTE_SIGMOID;
    const atlas_act *logits = a.Logits + size_t(row) * a.Experts;
    float score[kPerLane], max = -INFINITY, sum = 0;
    uint32_t key[kPerLane];
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        const int e = i * 32 + lane;
        score[i] = e < a.Experts ? __bfloat162float(logits[e]) : -INFINITY;
        key[i] = e < a.Experts ? sortable(score[i]) : 0;  // without a bias the order of scores is that of logits
        max = fmaxf(max, score[i]);
    }
    max = warp_max(max);
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        score[i] = sigmoid ? 1.0f / (1.0f + expf(-score[i])) : expf(score[i] - max);
        if (i * 32 + lane < a.Experts) sum += score[i];
    }
    sum = sigmoid ? 1.0f : warp_sum(sum);
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        const int e = i * 32 + lane;
        score[i] /= sum;
        if (a.Bias && e < a.Experts) key[i] = sortable(score[i] + a.Bias[e]);
    }
    int32_t *ids = a.IDs + size_t(row) * a.TopK;
    float *weights = a.Weights + size_t(row) * a.TopK;
    float chosen = 0, kept = 0;  // kept: weight number lane
    for (int k = 0; k < a.TopK; k++) {
        uint32_t best = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; i++) best = key[i] > best ? key[i] : best;
        best = __reduce_max_sync(kAllLanes, best);
        unsigned expert = ~0u;
#pragma unroll
        for (int i = kPerLane - 1; i >= 0; i--)
            if (key[i] == best) expert = i * 32 + lane;
        expert = __reduce_min_sync(kAllLanes, expert);
        float weight = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; i++)
            if (i * 32 + lane == expert) weight = score[i], key[i] = 0;
        weight = __shfl_sync(kAllLanes, weight, expert % 32);
        chosen += weight;
        if (k % 32 == lane) kept = weight;
        if (lane == 0) {
            ids[k] = expert;
            if (a.TopK > 32) weights[k] = weight;
            picked(expert);
        }
    }
    const float factor = a.Normalise ? a.Scale / chosen : a.Scale;
    __syncwarp();
    for (int k = lane; k < a.TopK; k += 32) weights[k] = (a.TopK > 32 ? weights[k] : kept) * factor;
}

// Picks for a chunk's rows; bit r of masks[e]: row r of the chunk picked expert e.
template <int kThreads, int kPerLane, int kRows>
__device__ void pick_chunk(const atlas_Route &a, uint32_t *masks) {
    static_assert(kRows <= 32, "a bit per row");
    for (int e = threadIdx.x; e < a.Experts; e += kThreads) masks[e] = 0;
    __syncthreads();
    const int first = blockIdx.x * kRows, rows = min(kRows, a.Rows - first);
    for (int r = warp(); r < rows; r += kThreads / 32)
        pick<kPerLane>(a, first + r, [&](int expert) { atomicOr(&masks[expert], 1u << r); });
    __syncthreads();
}

// Writes the order of the chunk's picks. places[e]: where the first of the chunk's picks of expert e belongs.
template <int kThreads, int kRows>
__device__ void place(const atlas_Route &a, const uint32_t *masks, const int *places) {
    const int first = blockIdx.x * kRows, picks = min(kRows, a.Rows - first) * a.TopK;
    for (int i = threadIdx.x; i < picks; i += kThreads) {
        const int p = first * a.TopK + i, e = a.IDs[p];
        a.Order[places[e] + __popc(masks[e] & (1u << i / a.TopK) - 1)] = p;
    }
}

}  // namespace atlas::routing

// At most 32 rows.
template <int kThreads, int kPerLane>
__device__ void route_few(const atlas_Route &a) {
    using namespace atlas::routing;
    __shared__ uint32_t masks[32 * kPerLane];
    __shared__ int places[32 * kPerLane];
    atlas::release_next();
    atlas::wait_for_previous();
    pick_chunk<kThreads, kPerLane, 32>(a, masks);
    int start = 0;
    for (int base = 0; base < a.Experts; base += kThreads) {
        const int e = base + threadIdx.x;
        const atlas::scan s = atlas::block_scan<kThreads>(e < a.Experts ? __popc(masks[e]) : 0);
        if (e < a.Experts) a.Starts[e] = places[e] = start + s.before;
        start += s.total;
    }
    if (threadIdx.x == 0) a.Starts[a.Experts] = start;
    __syncthreads();
    place<kThreads, 32>(a, masks, places);
}

template <int kThreads, int kPerLane, int kRows>
__device__ void route_pick(const atlas_Route &a, void *scratch) {
    using namespace atlas::routing;
    __shared__ uint32_t masks[32 * kPerLane];
    atlas::release_next();
    atlas::wait_for_previous();
    pick_chunk<kThreads, kPerLane, kRows>(a, masks);
    uint32_t *out = static_cast<uint32_t *>(scratch) + size_t(blockIdx.x) * a.Experts;
    for (int e = threadIdx.x; e < a.Experts; e += kThreads) out[e] = masks[e];
}

template <int kThreads, int kPerLane, int kRows>
__device__ void route_place(const atlas_Route &a, const void *scratch) {
    using namespace atlas::routing;
    constexpr int kExperts = 32 * kPerLane, kParts = kThreads / kExperts;
    static_assert(kThreads % kExperts == 0, "a thread per expert");
    __shared__ uint32_t masks[kExperts];
    __shared__ int before[kExperts], total[kExperts];
    const int e = threadIdx.x % kExperts, part = threadIdx.x / kExperts, chunks = gridDim.x;
    if (part == 0) before[e] = total[e] = 0;
    __syncthreads();
    atlas::release_next();
    atlas::wait_for_previous();
    const uint32_t *all = static_cast<const uint32_t *>(scratch);
    int mine = 0, sum = 0;
    if (e < a.Experts)
#pragma unroll 8
        for (int c = part; c < chunks; c += kParts) {
            const uint32_t mask = all[size_t(c) * a.Experts + e];
            const int n = __popc(mask);
            sum += n;
            if (c < blockIdx.x) mine += n;
            if (c == blockIdx.x) masks[e] = mask;
        }
    atomicAdd(&before[e], mine), atomicAdd(&total[e], sum);
    __syncthreads();
    const atlas::scan s = atlas::block_scan<kThreads>(part == 0 ? total[e] : 0);
    if (part == 0 && e < a.Experts) {
        before[e] += s.before;
        if (blockIdx.x == 0) a.Starts[e] = s.before;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) a.Starts[a.Experts] = s.total;
    __syncthreads();
    place<kThreads, kRows>(a, masks, before);
}
