// PagedAttention for few rows per sequence, of any lengths, in an order of its own.
//
// attention_shares: as attention_few.cuh, but a block folds all its tiles of a group of query vectors, and
// so leaves one part of it for the last of the blocks that share it, which folds them one after another. Block: kFewThreads; dynamic shared
// memory: 2·kSlots·kKeys·kDim bytes. Scratch: 2·kSMs·few_parts<kDim, kColumns>::kBytes.
#pragma once
#include "lib/cuda/op/attention_walk.cuh"

namespace atlas::attention {

// Parts in scratch as the threads of the four warps hold them. A block has at most two: of a group that it begins, and of one that others began.
template <int kDim, int kColumns>
struct few_parts {
    using part_t = few_part<kDim, kColumns>;
    static constexpr int kSets = part_t::kSets, kVectors = kSets * (part_t::kValueTiles + 1), kThreads = kFewWarps * 32, kBytes = kVectors * kThreads * 16;
    float4 *memory;
    __device__ float4 *place(int block, bool begins) const { return memory + size_t(2 * block + begins) * (kVectors * kThreads) + threadIdx.x; }
    __device__ void store(int block, bool begins, const part_t &part) const {
        float4 *to = place(block, begins);
#pragma unroll
        for (int n = 0; n < kSets; n++) {
#pragma unroll
            for (int m = 0; m < part.kValueTiles; m++, to += kThreads) *to = {part.values[n][m][0], part.values[n][m][1], part.values[n][m][2], part.values[n][m][3]};
            *to = {part.state[n][0].max, part.state[n][0].sum, part.state[n][1].max, part.state[n][1].sum};
            to += kThreads;
        }
    }
    __device__ part_t load(int block, bool begins) const {
        const float4 *from = place(block, begins);
        part_t part;
#pragma unroll
        for (int n = 0; n < kSets; n++) {
#pragma unroll
            for (int m = 0; m < part.kValueTiles; m++, from += kThreads) {
                const float4 x = __ldcg(from);
                part.values[n][m][0] = x.x, part.values[n][m][1] = x.y, part.values[n][m][2] = x.z, part.values[n][m][3] = x.w;
            }
            const float4 x = __ldcg(from);
            part.state[n][0] = {x.x, x.y}, part.state[n][1] = {x.z, x.w};
            from += kThreads;
        }
        return part;
    }
};

}  // namespace atlas::attention

template <class P>
__device__ void attention_shares(const atlas_PagedAttention &a, void *scratch) {
    using namespace atlas::attention;
    constexpr int kSlots = kRingSlots<P::kDim, P::kShared>;
    static_assert(atlas::launched<P, kFewThreads, kSlots * ring<P::kDim, 1>::kBytes>::kFits);
    extern __shared__ __align__(128) atlas_act memory[];
    __shared__ few_shared<P::kDim, P::kColumns> s;
    __shared__ uint64_t barriers[kSlots * 2];
    ring<P::kDim, kSlots> r = {uint32_t(__cvta_generic_to_shared(memory)), uint32_t(__cvta_generic_to_shared(barriers))};
    shares<kSMs, false> by;
    int at = 0, left = 0;  // of the block's grains the next one, and how many there are from it on
    walk<P::kDim, P::kColumns, P::kMost> w;
    if (!begin_share(a, r, by, at, left, w)) return;
    const few_parts<P::kDim, P::kColumns> parts = {static_cast<float4 *>(scratch)};
    const float factor = a.Scale * atlas::kLog2E;
    while (left) {
        const int from = w.tile, to = min(from + left * w.size, w.of.tiles), done = grains(to - from, w.size);
        const tile t = w.group(a);
        const few_queries<P::kDim, P::kColumns> query(a, t, s);
        // The blocks that share the group.
        const int begin = at - from / w.size, first = by.owner(begin), others = by.owner(begin + w.of.grains(w.size) - 1) - first;
        few_part<P::kDim, P::kColumns> all;
#pragma unroll 1
        for (int tile = from; tile < to; tile++) {
            if (others && tile + 1 == to && threadIdx.x == 0) s.came = came(&tickets<kSMs>[first]);
            fold(all, attend<P::kDim, P::kColumns, kSlots>(query, s, r, (w.of.first + tile) * kKeysOf<P::kDim>, factor));
        }
        bool last = true;
        if (others) {
            last = s.came == others;
            if (last) {
                if (threadIdx.x == 0) tickets<kSMs>[first] = 0;
            } else {
                parts.store(blockIdx.x, from == 0, all);
                last = come(&tickets<kSMs>[first], others, s.came) == others;
            }
            if (last) {
                few_part<P::kDim, P::kColumns> sum;
#pragma unroll 4
                for (int block = first; block <= first + others; block++) fold(sum, block == int(blockIdx.x) ? all : parts.load(block, block == first));
                all = sum;
            }
        }
        if (last) store_group(a, t, all);
        at += done, left -= done;
        w.next_unit(a);
    }
}
