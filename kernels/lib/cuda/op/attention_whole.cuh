// PagedAttention for many sequences of few rows, in the order of attention_order.cuh.
//
// attention_whole: a block has whole groups of query vectors, one of every gridDim.x, so that nothing is left to
// merge. Four warps multiply, four bring tiles. It takes as long as the block whose sequences are longest. Grid any; block 256; dynamic
// shared memory: 2·kSlots·kKeys·kDim bytes.
#pragma once
#include "lib/cuda/op/attention_ring.cuh"

namespace atlas::attention {

// A place in a block's work: a tile of a group of query vectors of a key head of a sequence.
template <int kDim, int kColumns>
struct whole_walk {
    share of;
    int seq, key_head, unit, pass, tile;
    __device__ whole_walk(const atlas_PagedAttention &a, int unit) : pass(0), tile(0) { begin(a, unit); }
    __device__ bool ended(const atlas_PagedAttention &a) const { return seq >= a.Seqs; }
    // The first key head from this one on, by steps of the grid, whose sequence has rows.
    __device__ void begin(const atlas_PagedAttention &a, int from) {
        for (unit = from; (seq = unit / a.KVHeads) < a.Seqs; unit += gridDim.x) {
            of = share_of<kDim, kColumns, kAnyRows>(a, seq);
            if (of.rows > 0) break;
        }
        key_head = unit - seq * a.KVHeads;
    }
    __device__ void next_group(const atlas_PagedAttention &a) {
        tile = 0;
        if (++pass == of.passes) pass = 0, begin(a, unit + gridDim.x);
    }
    // Whether the block's work ends.
    __device__ bool next(const atlas_PagedAttention &a) {
        if (++tile == of.tiles) next_group(a);
        return ended(a);
    }
    __device__ int head(const atlas_PagedAttention &) const { return key_head; }
    __device__ struct tile group(const atlas_PagedAttention &a) const { return of.group<kColumns>(a, seq, key_head, pass); }
};

}  // namespace atlas::attention

template <class P>
__device__ void attention_whole(const atlas_PagedAttention &a) {
    using namespace atlas::attention;
    constexpr int kSlots = kRingSlots<P::kDim, P::kShared>;
    constexpr int kBringWarps = 4;
    static_assert(atlas::launched<P, (kFewWarps + kBringWarps) * 32, kSlots * ring<P::kDim, 1>::kBytes>::kFits);
    extern __shared__ __align__(128) atlas_act memory[];
    __shared__ few_shared<P::kDim, P::kColumns> s;
    __shared__ uint64_t barriers[kSlots * 2];
    ring<P::kDim, kSlots> r = {uint32_t(__cvta_generic_to_shared(memory)), uint32_t(__cvta_generic_to_shared(barriers))};
    if (threadIdx.x == 0) {
        init_ring<kBringWarps>(r);
        atlas::fence_barriers();
    }
    whole_walk<P::kDim, P::kColumns> w(a, blockIdx.x);
    __syncthreads();
    if (atlas::warp() >= kFewWarps) {
        if (!w.ended(a)) bring<kBringWarps>(a, r, w, 1);
        return;
    }
    if (w.ended(a)) atlas::wait_for_previous();
    const float factor = a.Scale * atlas::kLog2E;
    for (; !w.ended(a); w.next_group(a)) {
        const tile t = w.group(a);
        const few_queries<P::kDim, P::kColumns> query(a, t, s);
        few_part<P::kDim, P::kColumns> all, chunk;
#pragma unroll 1
        for (int tile = 0; tile < w.of.tiles; tile++) {
            fold(chunk, attend<P::kDim, P::kColumns, kSlots>(query, s, r, (w.of.first + tile) * kKeysOf<P::kDim>, factor));
            if ((tile + 1) % kChunk && tile + 1 < w.of.tiles) continue;
            fold(all, chunk);
            chunk = {};
        }
        store_group(a, t, all);
    }
}
