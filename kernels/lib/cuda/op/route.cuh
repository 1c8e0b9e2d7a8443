// Route on a GPU. A warp picks for a row, by repeated search for the largest; logits that are no numbers lose. Then picks are
// put in the order of their experts. In route_one the one row's warp does that. In the others rows note in a mask per expert
// who picked it: a row picks an expert once, so a pick's place among its expert's is the number of bits below its row's. Some rows
// are one launch, route_few; more are two: route_pick leaves masks in scratch, u32 [chunks,Experts], a bit for each of a chunk's
// kRows rows, and route_place, the same grid, counts the picks of all chunks before its own. A shared expert needs none of this: it has the last
// pick of each row, and these stand at the end of the order. Grid (⌈Rows/kRows⌉), or 1; kThreads threads, 32 for route_one; at most
// 32·kPerLane experts to choose from, and for route_place kThreads of them.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas::routing {

// Experts that are chosen from, and how many a row chooses of them.
__device__ inline int routed(const atlas_Route &a) { return a.Experts - a.Shared; }
__device__ inline int choices(const atlas_Route &a) { return a.TopK - a.Shared; }

// A number's place in the order of numbers; above 0, which nothing is.
__device__ inline uint32_t sortable(float x) {
    const uint32_t u = __float_as_uint(x == x ? x : -INFINITY);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// A logit's place in their order above an expert's: the first expert is the highest.
__device__ inline uint32_t sortable(atlas_act x, int expert) {
    const uint32_t bits = __bfloat16_as_ushort(x), u = (bits & 0x7fffu) > 0x7f80u ? 0xff80u : bits;
    return (u ^ (u & 0x8000u ? 0xffffu : 0x8000u)) << 16 | (0xffffu - expert);
}

// How eager search finds picks: a lane's keys stand in order, so that the largest of all is one of the lanes' first.
template <int kPerLane>
__device__ void sort_keys(uint32_t (&key)[kPerLane]) {
    const auto order = [&](int i, int j) {
        const uint32_t high = max(key[i], key[j]), low = min(key[i], key[j]);
        key[i] = high, key[j] = low;
    };
    if constexpr (kPerLane == 4) {
        order(0, 1), order(2, 3), order(0, 2), order(1, 3), order(1, 2);
    } else {
        static_assert(kPerLane == 8 || kPerLane == 16, "a network for as many");
#pragma unroll
        for (int i = 0; i < kPerLane; i += 8) {
            const auto of = [&](int j, int k) { order(i + j, i + k); };
            of(0, 1), of(2, 3), of(4, 5), of(6, 7), of(0, 2), of(1, 3), of(4, 6), of(5, 7), of(1, 2), of(5, 6);
            of(0, 4), of(3, 7), of(1, 5), of(2, 6), of(1, 4), of(3, 6), of(2, 4), of(3, 5), of(3, 4);
        }
        if constexpr (kPerLane == 16) {  // merges two times eight
#pragma unroll
            for (int i = 0; i < 8; i++) order(i, i + 8);
            order(4, 8), order(5, 9), order(6, 10), order(7, 11), order(2, 4), order(3, 5), order(6, 8), order(7, 9), order(10, 12), order(11, 13);
#pragma unroll
            for (int i = 1; i < 15; i += 2) order(i, i + 1);
        }
    }
}

__device__ inline atlas_act shared_logit(const atlas_Route &a, int row) { return a.Logits[size_t(row + 1) * a.Experts - 1]; }

// The last pick of a row, which is the shared expert's; shared is its logit.
__device__ inline void pick_shared(const atlas_Route &a, int row, atlas_act shared) {
    if (!a.Shared || lane() > 0) return;
    const size_t last = size_t(row + 1) * a.TopK - 1;
    a.IDs[last] = a.Experts - 1;
    a.Weights[last] = __fdividef(1.0f, 1.0f + __expf(-__bfloat162float(shared)));
}

// Where in the order the shared expert's picks begin, and its part of Starts, by one thread.
__device__ inline void start_shared(const atlas_Route &a, int start) {
    a.Starts[routed(a)] = start;
    if (a.Shared) a.Starts[a.Experts] = start + a.Rows;
}

// pick for weights that depend on the picks alone, of logits of experts i*32+lane: lane k gets the k-th pick. The search for the next
// largest is on its way while the one before is weighed.
template <int kPerLane>
__device__ void pick_few(const atlas_Route &a, int row, const atlas_act (&logits)[kPerLane], int (&rank)[kPerLane]) {
    const int lane = atlas::lane();
    const bool sigmoid = a.Routing == ATLAS_ROUTE_SIGMOID;
    constexpr int kWords = kPerLane / 4;
    uint32_t key[kPerLane], mine = 0, words[kWords];  // of the latter a byte per rank
#pragma unroll
    for (int i = 0; i < kWords; i++) words[i] = ~0u;
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        const uint32_t place = sortable(logits[i], i * 32 + lane);
        key[i] = i * 32 + lane < routed(a) ? place : 0;
    }
    sort_keys(key);
    const auto logit = [](uint32_t key) { return __uint_as_float((key ^ (key & 0x80000000u ? 0x80000000u : ~0u)) & 0xffff0000u); };
    uint32_t best = __reduce_max_sync(kAllLanes, key[0]);
    const float first = logit(best);
    float score = 0, chosen = 0;
#pragma unroll 4
    for (int k = 0; k < choices(a); k++) {
        if (key[0] == best) {
            const uint32_t of = ~best >> 5 & kPerLane - 1;  // the key's place before they were sorted
#pragma unroll
            for (int i = 0; i < kWords; i++) words[i] ^= of / 4 == i ? (0xffu ^ k) << of % 4 * 8 : 0u;
#pragma unroll
            for (int i = 0; i + 1 < kPerLane; i++) key[i] = key[i + 1];
            key[kPerLane - 1] = 0;
        }
        const uint32_t next = __reduce_max_sync(kAllLanes, key[0]);
        const float x = __expf(sigmoid ? -logit(best) : logit(best) - first), weight = sigmoid ? __fdividef(1.0f, 1.0f + x) : x;
        chosen += weight;
        if (lane == k) mine = best, score = weight;
        best = next;
    }
    if (lane < choices(a)) {
        a.IDs[size_t(row) * a.TopK + lane] = 0xffff - (mine & 0xffffu);
        a.Weights[size_t(row) * a.TopK + lane] = score * (a.Normalise ? __fdividef(a.Scale, chosen) : a.Scale);
    }
#pragma unroll
    for (int i = 0; i < kPerLane; i++) rank[i] = int8_t(words[i / 4] >> i % 4 * 8);
}

// Writes IDs and Weights of a row. rank[i]: which of the picks expert i·32+lane is, below 0 if none.
template <int kPerLane>
__device__ void pick(const atlas_Route &a, int row, const atlas_act (&logits)[kPerLane], int (&rank)[kPerLane]) {
    const int lane = atlas::lane();
    const bool sigmoid = a.Routing == ATLAS_ROUTE_SIGMOID, all = !sigmoid && (a.Bias || !a.Normalise);  // all: weights are shares of all experts
    if (!a.Bias && !all && a.TopK <= 32) return pick_few(a, row, logits, rank);
    float score[kPerLane];
    uint32_t key[kPerLane];
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        const int e = i * 32 + lane;
        score[i] = __bfloat162float(logits[i]);
        key[i] = e < routed(a) ? sortable(logits[i], e) : 0;  // without a bias the order of scores is that of logits
        rank[i] = -1;
    }
    const auto scores = [&](float max) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; i++) {
            score[i] = sigmoid ? 1.0f / (1.0f + expf(-score[i])) : expf(score[i] - max);
            if (i * 32 + lane < routed(a)) sum += score[i];
        }
        if (!all) return;
        sum = warp_sum(sum);
#pragma unroll
        for (int i = 0; i < kPerLane; i++) score[i] /= sum;
    };
    if (a.Bias) {
        float max = score[0];
#pragma unroll
        for (int i = 1; i < kPerLane; i++) max = fmaxf(max, score[i]);
        scores(warp_max(max));
#pragma unroll
        for (int i = 0; i < kPerLane; i++)
            if (i * 32 + lane < routed(a)) key[i] = sortable(score[i] + a.Bias[i * 32 + lane]);
    }
    int32_t *ids = a.IDs + size_t(row) * a.TopK;
    float *weights = a.Weights + size_t(row) * a.TopK;
    uint32_t first = 0;
#pragma unroll 1
    for (int k = 0; k < choices(a); k++) {
        uint32_t best = key[0];
#pragma unroll
        for (int i = 1; i < kPerLane; i++) best = key[i] > best ? key[i] : best;
        best = __reduce_max_sync(kAllLanes, best);
        if (k == 0) first = best;
        unsigned expert = 0xffffu - (best & 0xffffu);
        if (a.Bias) {
            expert = ~0u;
#pragma unroll
            for (int i = kPerLane - 1; i >= 0; i--)
                if (key[i] == best) expert = i * 32 + lane;
            expert = __reduce_min_sync(kAllLanes, expert);
        }
#pragma unroll
        for (int i = 0; i < kPerLane; i++)
            if (i * 32 + lane == expert) rank[i] = k, key[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < kPerLane; i++)
        if (rank[i] >= 0) ids[rank[i]] = i * 32 + lane;
    if (!a.Bias) {
        const uint32_t u = first >> 16;
        scores(__uint_as_float((u & 0x8000u ? u & 0x7fffu : ~u & 0xffffu) << 16));
    }
    float chosen = 0;
    if (a.Normalise) {
#pragma unroll
        for (int i = 0; i < kPerLane; i++)
            if (rank[i] >= 0) chosen += score[i];
        chosen = warp_sum(chosen);
    }
    const float factor = a.Normalise ? a.Scale / chosen : a.Scale;
#pragma unroll
    for (int i = 0; i < kPerLane; i++)
        if (rank[i] >= 0) weights[rank[i]] = score[i] * factor;
}

template <int kPerLane>
__device__ void load_logits(const atlas_Route &a, int row, atlas_act (&logits)[kPerLane]) {
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        const int e = i * 32 + lane();
        logits[i] = e < routed(a) ? a.Logits[size_t(row) * a.Experts + e] : __float2bfloat16_rn(-INFINITY);
    }
}

// The same, of a row of Logits, and the shared expert's pick.
template <int kPerLane>
__device__ void pick(const atlas_Route &a, int row, int (&rank)[kPerLane]) {
    atlas_act logits[kPerLane];
    load_logits(a, row, logits);
    pick<kPerLane>(a, row, logits, rank);
    pick_shared(a, row, shared_logit(a, row));
}

// All outputs of the one row, by one warp; shared is the logit of a shared expert.
template <int kPerLane>
__device__ void route_row(const atlas_Route &a, const atlas_act (&logits)[kPerLane], atlas_act shared) {
    int rank[kPerLane], start = 0;
    pick<kPerLane>(a, 0, logits, rank);
    pick_shared(a, 0, shared);
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        const int e = i * 32 + lane();
        const uint32_t picked = __ballot_sync(kAllLanes, rank[i] >= 0);
        const int at = start + __popc(picked & (1u << lane()) - 1);
        if (e < routed(a)) a.Starts[e] = at;
        if (rank[i] >= 0) a.Order[at] = rank[i];
        start += __popc(picked);
    }
    if (lane() > 0) return;
    start_shared(a, start);
    if (a.Shared) a.Order[start] = a.TopK - 1;
}

template <int kPerLane>
__device__ void route_row(const atlas_Route &a) {
    atlas_act logits[kPerLane];
    load_logits(a, 0, logits);
    route_row<kPerLane>(a, logits, shared_logit(a, 0));
}

// Picks for rows first … of a chunk; bit r of masks[e], which was 0: row r of the chunk picked expert e. Ends with a barrier.
template <int kThreads, int kPerLane>
__device__ void pick_rows(const atlas_Route &a, int first, int rows, uint32_t *masks) {
    for (int r = warp(); r < rows; r += kThreads / 32) {
        int rank[kPerLane];
        pick<kPerLane>(a, first + r, rank);
#pragma unroll
        for (int i = 0; i < kPerLane; i++)
            if (rank[i] >= 0) atomicOr(&masks[i * 32 + lane()], 1u << r);
    }
    __syncthreads();
}

// The block's chunk, once what is before this kernel has ended.
template <int kThreads, int kPerLane, int kRows>
__device__ void pick_chunk(const atlas_Route &a, uint32_t *masks) {
    static_assert(kRows <= 32, "a bit per row");
    const int first = blockIdx.x * kRows;
    for (int e = threadIdx.x; e < 32 * kPerLane; e += kThreads) masks[e] = 0;
    __syncthreads();
    atlas::release_next();
    atlas::wait_for_previous();
    pick_rows<kThreads, kPerLane>(a, first, min(kRows, a.Rows - first), masks);
}

// Writes the order of a chunk's picks. places[e]: where the first of the chunk's picks of expert e belongs.
template <int kThreads>
__device__ void place(const atlas_Route &a, int first, int rows, const uint32_t *masks, const int *places) {
    const int picks = rows * a.TopK;
    for (int i = threadIdx.x; i < picks; i += kThreads) {
        const int p = first * a.TopK + i, row = i / a.TopK, e = a.IDs[p];
        if (e < routed(a)) a.Order[places[e] + __popc(masks[e] & (1u << row) - 1)] = p;
        else a.Order[a.Rows * choices(a) + first + row] = p;
    }
}

// All outputs of at most kThreads/32·kEach rows, 32 at most, whose picks stay in registers. Masks are 0 before, and there is room for as
// many places.
template <int kThreads, int kPerLane, int kEach = 1>
__device__ void route_rows(const atlas_Route &a, uint32_t *masks, int *places) {
    int rank[kEach][kPerLane];
#pragma unroll
    for (int j = 0; j < kEach; j++) {
        const int r = warp() + j * (kThreads / 32);
        if (r >= a.Rows) break;
        pick<kPerLane>(a, r, rank[j]);
#pragma unroll
        for (int i = 0; i < kPerLane; i++)
            if (rank[j][i] >= 0) atomicOr(&masks[i * 32 + lane()], 1u << r);
    }
    __syncthreads();
    if (warp() == 0) {
        int count[kPerLane], sum[kPerLane], start = 0;  // sums are of the lanes up to this one
#pragma unroll
        for (int i = 0; i < kPerLane; i++) sum[i] = count[i] = __popc(masks[i * 32 + lane()]);
#pragma unroll
        for (int d = 1; d < 32; d *= 2)
#pragma unroll
            for (int i = 0; i < kPerLane; i++) {
                const int before = __shfl_up_sync(kAllLanes, sum[i], d);
                if (lane() >= d) sum[i] += before;
            }
#pragma unroll
        for (int i = 0; i < kPerLane; i++) {
            const int e = i * 32 + lane();
            places[e] = start + sum[i] - count[i];
            if (e < routed(a)) a.Starts[e] = places[e];
            start += __shfl_sync(kAllLanes, sum[i], 31);
        }
        if (lane() == 0) start_shared(a, start);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kEach; j++) {
        const int r = warp() + j * (kThreads / 32);
        if (r >= a.Rows) break;
#pragma unroll
        for (int i = 0; i < kPerLane; i++) {
            const int e = i * 32 + lane();
            if (rank[j][i] >= 0) a.Order[places[e] + __popc(masks[e] & (1u << r) - 1)] = r * a.TopK + rank[j][i];
        }
        if (a.Shared && lane() == 0) a.Order[a.Rows * choices(a) + r] = (r + 1) * a.TopK - 1;
    }
}

}  // namespace atlas::routing

// One row.
template <class P>
__device__ void route_one(const atlas_Route &a) {
    atlas::release_next();
    atlas::wait_for_previous();
    atlas::routing::route_row<P::kPerLane>(a);
}

// At most kThreads/32·kEach rows, and 32.
template <class P>
__device__ void route_few(const atlas_Route &a) {
    __shared__ uint32_t masks[32 * P::kPerLane];
    __shared__ int places[32 * P::kPerLane];
    for (int e = threadIdx.x; e < 32 * P::kPerLane; e += P::kThreads) masks[e] = 0;
    __syncthreads();
    atlas::release_next();
    atlas::wait_for_previous();
    atlas::routing::route_rows<P::kThreads, P::kPerLane, P::kEach>(a, masks, places);
}

template <class P>
__device__ void route_pick(const atlas_Route &a, void *scratch) {
    __shared__ uint32_t masks[32 * P::kPerLane];
    atlas::routing::pick_chunk<P::kThreads, P::kPerLane, P::kRows>(a, masks);
    uint32_t *out = static_cast<uint32_t *>(scratch) + size_t(blockIdx.x) * a.Experts;
    for (int e = threadIdx.x; e < atlas::routing::routed(a); e += P::kThreads) out[e] = masks[e];
}

template <class P>
__device__ void route_place(const atlas_Route &a, const void *scratch) {
    using namespace atlas::routing;
    constexpr int kExperts = 32 * P::kPerLane, kParts = P::kThreads / kExperts;
    static_assert(P::kThreads % kExperts == 0, "a thread per expert");
    __shared__ uint32_t masks[kExperts];
    __shared__ int before[kExperts], total[kExperts];
    const int e = threadIdx.x % kExperts, part = threadIdx.x / kExperts, chunks = gridDim.x;
    if (part == 0) before[e] = total[e] = 0;
    __syncthreads();
    atlas::release_next();
    atlas::wait_for_previous();
    const uint32_t *all = static_cast<const uint32_t *>(scratch);
    int mine = 0, sum = 0;
    if (e < routed(a))
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
    const atlas::scan s = atlas::block_scan<P::kThreads>(part == 0 ? total[e] : 0);
    if (part == 0 && e < routed(a)) {
        before[e] += s.before;
        if (blockIdx.x == 0) a.Starts[e] = s.before;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) start_shared(a, s.total);
    __syncthreads();
    place<P::kThreads>(a, blockIdx.x * P::kRows, min(P::kRows, a.Rows - int(blockIdx.x) * P::kRows), masks, before);
}
