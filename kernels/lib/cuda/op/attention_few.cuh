// PagedAttention for few rows per sequence, of any lengths, in the order of attention_order.cuh. Where no order is kept, attention_shares.cuh.
//
// attention_few: kSMs blocks share all tiles of all sequences evenly, whatever their lengths. A
// block's last warps bring its tiles, a slot of the ring for keys and one for values, and run ahead of the four warps that multiply. It
// folds the chunks from a sequence's first on, and leaves every other, or every tile where single tiles are shared, in scratch. Of the
// blocks that share a group of query vectors the last to come merges what they left. kColumns query vectors (8 or 16) of a key head
// share a read; more take turns. Sequences of more than kMost rows are left out. Block: kFewThreads; dynamic shared memory:
// 2·kSlots·kKeys·kDim bytes. Scratch: f32 [slots,Heads,tiles,kDim+2] for ⌈MaxBlocks·BlockSize/kKeys⌉ tiles; slots are Rows, or with
// kMost 1 Seqs.
#pragma once
#include "lib/cuda/op/attention_merge.cuh"

template <class P>
__device__ void attention_few(const atlas_PagedAttention &a, void *scratch) {
    using namespace atlas::attention;
    constexpr int kSlots = kRingSlots<P::kDim, P::kShared>;
    static_assert(atlas::launched<P, kFewThreads, kSlots * ring<P::kDim, 1>::kBytes>::kFits);
    extern __shared__ __align__(128) atlas_act memory[];
    __shared__ few_shared<P::kDim, P::kColumns> s;
    __shared__ uint64_t barriers[kSlots * 2];
    ring<P::kDim, kSlots> r = {uint32_t(__cvta_generic_to_shared(memory)), uint32_t(__cvta_generic_to_shared(barriers))};
    shares<kSMs, true> by;
    int at = 0, left = 0;  // of the block's grains the next one, and how many there are from it on
    walk<P::kDim, P::kColumns, P::kMost> w;
    if (!begin_share(a, r, by, at, left, w)) return;
    const parts<P::kDim, P::kMost == 1> partial(a, scratch);
    const float factor = a.Scale * atlas::kLog2E;
    while (left) {
        const int from = w.tile, to = min(from + left * w.size, w.of.tiles);
        const tile t = w.group(a);
        const few_queries<P::kDim, P::kColumns> query(a, t, s);
        size_t place[P::kColumns / 8][2];  // of a thread's query vectors in scratch
#pragma unroll
        for (int i = 0; i < P::kColumns / 4; i++) {
            const int q = i / 2 * 8 + atlas::lane() % 4 * 2 + i % 2;
            if (q < t.count) place[i / 2][i % 2] = partial.place(a, t, q, w.of.first);
        }
        few_part<P::kDim, P::kColumns> all, chunk;
        const auto store = [&](int tile, const few_part<P::kDim, P::kColumns> &part) {
            part.each(t.count, [&](int n, int i, int, int d, float x) {
                if (d == 0) partial.sums[place[n][i] + tile] = {part.state[n][i].max, part.state[n][i].sum};
                partial.values[(place[n][i] + tile) * P::kDim + d] = x;
            });
        };
#pragma unroll 1
        for (int tile = from; tile < to; tile++) {
            const auto part = attend<P::kDim, P::kColumns, kSlots>(query, s, r, (w.of.first + tile) * kKeysOf<P::kDim>, factor);
            if (from > 0 && w.size == 1) {
                store(tile, part);
                continue;
            }
            fold(chunk, part);
            if ((tile + 1) % kChunk && tile + 1 < w.of.tiles) continue;
            if (from == 0)
                fold(all, chunk);
            else
                store(tile - tile % kChunk, chunk);
            chunk = {};
        }
        if (from == 0 && to == w.of.tiles) {
            store_group(a, t, all);
        } else {
            if (from == 0) {
                if (const int open = to % kChunk) store(to - open, chunk);
                if (to >= kChunk) store(0, all);
            }
            const int begin = at - from / w.size, first = by.owner(begin), others = by.owner(begin + w.of.grains(w.size) - 1) - first;
            if (come(&tickets<kSMs>[first], others, s.came) == others) merge(a, partial, w.of, t, (by.begin(first + 1) - begin) * w.size, w.size);
        }
        const int done = grains(to - from, w.size);
        at += done, left -= done;
        w.next_unit(a);
    }
}
