// PagedAttention for few sequences of few rows, in the order of attention_order.cuh, in one launch.
//
// attention_cluster<kDim, kColumns, kBlocks, kSlots>: a cluster of kBlocks blocks has a key head of a sequence. In a round each block
// multiplies a tile, by the four warps of attention_ring.cuh, and sends each block of the cluster the columns of values that this one
// folds, tile after tile, by two warps more. Two warps bring tiles.
// Grid: kBlocks·KVHeads, Seqs; block: kFewThreads; dynamic shared memory: 2·kSlots·kKeys·kDim bytes.
#pragma once
#include "lib/cuda/op/attention_ring.cuh"
#include "lib/cuda/ptx/peer.cuh"

namespace atlas::attention {

// A block's tiles of its sequence.
template <int kBlocks>
struct turns {
    share of;
    int seq, key_head, rank, tile;
    __device__ int head(const atlas_PagedAttention &) const { return key_head; }
    __device__ void next(const atlas_PagedAttention &) {
        if ((tile += kBlocks) >= of.tiles) tile = rank;
    }
};

// What the blocks of a cluster send to one of them: a round's sums of its columns, and of weights, and the greatest ones. Rounds
// take turns at places. Barriers for each: posted, where bytes count, and folded, by the folding warps.
template <int kDim, int kColumns, int kBlocks>
struct mailbox {
    static constexpr int kWidth = (kDim + kBlocks - 1) / kBlocks, kPlaces = kBlocks > 8 ? 4 : 2;
    float values[kPlaces][kBlocks][kWidth][kColumns];
    float2 sums[kPlaces][kBlocks][kColumns];
    uint64_t posted[kPlaces], folded[kPlaces];
};

constexpr int kBringWarps = 2, kFoldWarps = 2;

// A cluster's key head of a sequence, for a block of it.
template <int kDim, int kColumns, int kBlocks>
struct post {
    using box = mailbox<kDim, kColumns, kBlocks>;
    static constexpr int kWidth = box::kWidth, kPlaces = box::kPlaces, kThreads = kFoldWarps * 32, kEach = (kColumns * kWidth + kThreads - 1) / kThreads;
    const atlas_PagedAttention &a;
    box &mail;
    share of;
    int seq, head, rank;

    __device__ uint32_t at(const void *x) const { return __cvta_generic_to_shared(x); }
    __device__ uint32_t at(const void *x, int block) const { return address_in(at(x), block); }

    // Waits until a round's place is free in all blocks: they send a round after they have folded the one half of the places
    // before, for which all had sent theirs, so that all have folded what was in this place.
    __device__ void take_place(int n) const {
        if (const int before = n - kPlaces / 2; before >= 0) wait_barrier(at(&mail.folded[before % kPlaces]), before / kPlaces % 2);
    }
    // A warp that multiplies sends its part of a round. Maxima and sums are sent where there is no part too, so that all take part.
    __device__ void send(int n, int count, bool there, const few_part<kDim, kColumns> &part) const {
        const int l = lane(), place = n % kPlaces;
        const uint32_t posted = at(&mail.posted[place]);
        if (there)
            part.each_pair(count, [&](int q, int d, float2 x) {
                store_counted(at(&mail.values[place][rank][d % kWidth][q], d / kWidth), x, address_in(posted, d / kWidth));
            });
        if (warp() == 0)
#pragma unroll
            for (int b = l / 4; b < kBlocks; b += 8)  // lanes of eight hold the same
#pragma unroll
                for (int i = 0; i < kColumns / 4; i++) {
                    const running &x = part.state[i / 2][i % 2];
                    store_counted(at(&mail.sums[place][rank][i / 2 * 8 + l % 4 * 2 + i % 2], b), float2{x.max, x.sum}, address_in(posted, b));
                }
    }

    // The folding warps fold what is posted to this block, tile after tile.
    __device__ void fold_all() const {
        const int thread = threadIdx.x % kThreads, width = min(kWidth, kDim - rank * kWidth);  // columns of values that this block folds
        int n = 0;
        for (int pass = 0; pass < of.passes; pass++) {
            const tile t = of.group<kColumns>(a, seq, head, pass);
            float values[kEach] = {};
            running state[kEach];
            atlas_act *out[kEach];
#pragma unroll
            for (int i = 0; i < kEach; i++) {
                const int e = i * kThreads + thread, q = e % kColumns, d = e / kColumns;
                out[i] = d < width && q < t.count ? a.Out + (size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + rank * kWidth + d : nullptr;
            }
            for (int base = 0; base < of.tiles; base += kBlocks, n++) {
                const int place = n % kPlaces, count = min(of.tiles - base, kBlocks);
                if (thread == 0) arrive_expecting(at(&mail.posted[place]), 8 * (kBlocks * kColumns + count * width * ((t.count + 1) / 2)));
                wait_peers(at(&mail.posted[place]), n / kPlaces % 2);
#pragma unroll
                for (int i = 0; i < kEach; i++) {
                    const int e = i * kThreads + thread, q = e % kColumns, d = e / kColumns;
                    if (d >= width) break;
                    // What is not there changes nothing.
                    float2 part[kBlocks];
                    float value[kBlocks];
#pragma unroll
                    for (int b = 0; b < kBlocks; b++) {
                        part[b] = b < count ? mail.sums[place][b][q] : float2{-INFINITY, 0.0f};
                        value[b] = b < count ? mail.values[place][b][d][q] : -0.0f;
                    }
#pragma unroll
                    for (int b = 0; b < kBlocks; b++) values[i] = join(state[i], part[b].x, part[b].y).fold(values[i], value[b]);
                }
                arrive(at(&mail.folded[place]));
            }
#pragma unroll
            for (int i = 0; i < kEach; i++)
                if (out[i]) *out[i] = __float2bfloat16_rn(values[i] * inverse(state[i].sum));
        }
    }
};

}  // namespace atlas::attention

template <int kDim, int kColumns, int kBlocks, int kSlots = atlas::attention::kRingSlots<kDim>>
__device__ void attention_cluster(const atlas_PagedAttention &a) {
    using namespace atlas::attention;
    static_assert(kFewWarps + kBringWarps + kFoldWarps == kFewThreads / 32, "each warp has its work");
    extern __shared__ __align__(128) atlas_act memory[];
    __shared__ few_shared<kDim, kColumns> s;
    __shared__ mailbox<kDim, kColumns, kBlocks> mail;
    __shared__ uint64_t barriers[kSlots * 2];
    ring<kDim, kSlots> r = {uint32_t(__cvta_generic_to_shared(memory)), uint32_t(__cvta_generic_to_shared(barriers))};
    const int seq = blockIdx.y, head = blockIdx.x / kBlocks, rank = blockIdx.x % kBlocks, w = atlas::warp();
    if (threadIdx.x == 0) {
        init_ring<kBringWarps>(r);
        for (int i = 0; i < mail.kPlaces; i++) {
            atlas::init_barrier(__cvta_generic_to_shared(&mail.posted[i]), 1);
            atlas::init_barrier(__cvta_generic_to_shared(&mail.folded[i]), kFoldWarps * 32);
        }
        atlas::fence_barriers();
    }
    const share of = share_of<kDim, kColumns, kAnyRows>(a, seq);
    atlas::arrive_cluster();
    atlas::wait_cluster();
    if (w >= kFewWarps && w < kFewWarps + kBringWarps) {
        if (rank < of.tiles) bring<kBringWarps>(a, r, turns<kBlocks>{of, seq, head, rank, rank}, of.passes * ((of.tiles - rank - 1) / kBlocks + 1));
        return;
    }
    const post<kDim, kColumns, kBlocks> p = {a, mail, of, seq, head, rank};
    if (w >= kFewWarps) {
        atlas::wait_for_previous();
        return p.fold_all();
    }
    const float factor = a.Scale * atlas::kLog2E;
    int n = 0;  // rounds
    for (int pass = 0; pass < of.passes; pass++) {
        const tile t = of.group<kColumns>(a, seq, head, pass);
        const few_queries<kDim, kColumns> query(a, t, s);
        for (int base = 0; base < of.tiles; base += kBlocks, n++) {
            const bool mine = base + rank < of.tiles;
            few_part<kDim, kColumns> part;
            if (mine) part = attend(query, s, r, (of.first + base + rank) * kKeysOf<kDim>, factor);
            p.take_place(n);
            p.send(n, t.count, mine, part);
        }
    }
}
