// Route of one row by all threads of a block: how many logits stand above an expert's is its rank among the picks. Keys are the places
// of logits in their order, in 24 bits, where the first of equal ones is the highest: no two are the same, and 0, where there is no
// expert, is the least.
#pragma once
#include "lib/cuda/op/route.cuh"

namespace atlas::routing {

__device__ inline uint32_t key_of(atlas_act logit, int expert) { return sortable(logit, 0) >> 8 & 0xffff00 | 0xff - expert; }
__device__ inline int expert_of(uint32_t key) { return 0xff - (key & 0xff); }
__device__ inline float logit_of(uint32_t key) { return __uint_as_float((key << 8 ^ (key & 0x800000 ? 0x80000000 : ~0u)) & 0xffff0000); }

// picks[r] = the key of rank r, below topK; ranks[e]: expert e's, topK or more if it is none. In shared memory.
template <int kExperts, int kThreads>
__device__ void rank_keys(const uint32_t *keys, int topK, uint32_t *picks, uint8_t *ranks) {
    constexpr int kLanes = kThreads / kExperts;  // that count for an expert
    static_assert(kThreads % kExperts == 0 && 32 % kLanes == 0 && kExperts % (4 * kLanes) == 0 && kExperts <= 256, "a rank is a byte");
    const int e = threadIdx.x / kLanes, part = threadIdx.x % kLanes;
    const uint32_t mine = keys[e];
    uint32_t above = 0;
#pragma unroll
    for (int i = 0; i < kExperts / 4 / kLanes; i++) {
        const uint4 four = reinterpret_cast<const uint4 *>(keys)[i * kLanes + part];
        above += (mine - four.x >> 31) + (mine - four.y >> 31) + (mine - four.z >> 31) + (mine - four.w >> 31);
    }
#pragma unroll
    for (int d = 1; d < kLanes; d *= 2) above += __shfl_xor_sync(kAllLanes, above, d);
    if (part > 0) return;
    ranks[e] = above;
    if (above < topK) picks[above] = mine;
}

// All outputs, by one warp: of keys and what rank_keys made of them; shared is the logit of a shared expert.
template <int kPerLane>
__device__ void write_ranked(const atlas_Route &a, const uint32_t *keys, const uint32_t *picks, const uint8_t *ranks, atlas_act shared) {
    const int lane = atlas::lane();
    int start = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; i++) {
        const int e = i * 32 + lane, rank = e < routed(a) ? ranks[e] : choices(a);
        const uint32_t picked = __ballot_sync(kAllLanes, rank < choices(a));
        const int at = start + __popc(picked & (1u << lane) - 1);
        if (e < routed(a)) a.Starts[e] = at;
        if (rank < choices(a)) a.Order[at] = rank;
        start += __popc(picked);
    }
    pick_shared(a, 0, shared);
    if (lane == 0) {
        start_shared(a, start);
        if (a.Shared) a.Order[start] = a.TopK - 1;
    }
    const bool sigmoid = a.Routing == ATLAS_ROUTE_SIGMOID;
    const float first = logit_of(picks[0]);
    const auto score_of = [&](uint32_t key) {
        const float x = __expf(sigmoid ? -logit_of(key) : logit_of(key) - first);
        return sigmoid ? __fdividef(1.0f, 1.0f + x) : x;
    };
    const uint32_t mine = lane < choices(a) ? picks[lane] : 0;
    const float score = lane < choices(a) ? score_of(mine) : 0.0f;
    float all = score;  // of the picks, or of all experts
    if (!a.Normalise && !sigmoid) {
        all = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; i++)
            if (i * 32 + lane < routed(a)) all += score_of(keys[i * 32 + lane]);
    }
    all = warp_sum(all);
    if (lane >= choices(a)) return;
    a.IDs[lane] = expert_of(mine);
    a.Weights[lane] = score * (a.Normalise || !sigmoid ? __fdividef(a.Scale, all) : a.Scale);
}

}  // namespace atlas::routing
