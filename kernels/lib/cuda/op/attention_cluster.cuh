// PagedAttention for few sequences of few rows, in one launch.
//
// attention_cluster: a key head of a sequence has gridDim.z clusters of kBlocks blocks, which take its groups of kColumns query vectors in
// turn. Four warps of each block multiply as in attention_ring.cuh, kBringWarps bring tiles, and kFoldWarps fold the columns of values that are the
// block's own, which all blocks of the cluster send it.
//
// In the order of attention_order.cuh (kEven false) they send in rounds: in a round each block has a chunk, or a tile where less than a
// chunk for each block is left. Even, each block has as many tiles as the others, or one more, next to one another, and sends one sum of them.
// Grid: kBlocks·KVHeads, Seqs, any; block: 32·(kFewWarps + kBringWarps + kFoldWarps); dynamic shared memory: 2·kSlots·kKeys·kDim bytes.
#pragma once
#include "lib/cuda/op/attention_ring.cuh"
#include "lib/cuda/ptx/peer.cuh"

namespace atlas::attention {

// A block's tiles of the round that begins at base: from first on, to end. At next the next round begins.
struct turn {
    int first, end, next;
};
template <int kBlocks, bool kEven>
__device__ turn turn_at(const share &of, int rank, int base) {
    if constexpr (kEven) {
        const int each = of.tiles / kBlocks, more = of.tiles % kBlocks, first = rank * each + min(rank, more);
        return {first, first + each + (rank < more), of.tiles};
    } else {
        const int each = of.tiles - base >= kChunk * kBlocks ? kChunk : 1, first = base + rank * each;
        return {first, first < of.tiles ? first + each : first, base + kBlocks * each};
    }
}

// How many of a sequence's passes a cluster has: gridDim.z of them take turns.
__device__ inline int own_passes(const share &of) { return max(of.passes - int(blockIdx.z) + int(gridDim.z) - 1, 0) / int(gridDim.z); }

// A block's tiles of its sequence.
template <int kBlocks, bool kEven>
struct turns {
    share of;
    int seq, key_head, rank, tile;
    turn now;
    __device__ turns(const share &of, int seq, int key_head, int rank) : of(of), seq(seq), key_head(key_head), rank(rank) { begin(0); }
    __device__ void begin(int base) { now = turn_at<kBlocks, kEven>(of, rank, base), tile = now.first; }
    // Of all rounds and passes; before the first tile is done.
    __device__ int count() const {
        const int passes = own_passes(of);
        if constexpr (kEven) return passes * (now.end - now.first);
        const int rounds = of.tiles / (kChunk * kBlocks), left = of.tiles - rounds * kChunk * kBlocks;
        return passes * (rounds * kChunk + (left - rank + kBlocks - 1) / kBlocks);
    }
    __device__ int head(const atlas_PagedAttention &) const { return key_head; }
    __device__ bool next(const atlas_PagedAttention &) {
        if (++tile < now.end) return true;
        begin(now.next);
        if (tile >= of.tiles) begin(0);  // of the next pass
        return true;
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

template <int kValue>
struct constant {
    static constexpr int value = kValue;
};

constexpr int kFoldWarps = 2;

// A cluster's key head of a sequence, for a block of it.
template <int kDim, int kColumns, int kBlocks, bool kEven>
struct post {
    using box = mailbox<kDim, kColumns, kBlocks>;
    static_assert(kFoldWarps * 32 % kColumns == 0, "a thread has one query vector");
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

    // The folding warps fold what is posted to this block, part after part: a thread one query vector's.
    __device__ void fold_all() const {
        const int thread = threadIdx.x % kThreads, q = thread % kColumns, width = min(kWidth, kDim - rank * kWidth);  // columns of values of this block
        const auto column = [&](int i) { return thread / kColumns + i * (kThreads / kColumns); };
        int n = 0;
        for (int pass = blockIdx.z; pass < of.passes; pass += gridDim.z) {
            const tile t = of.group<kColumns>(a, seq, head, pass);
            float values[kEach] = {}, chunk[kEach] = {};
            running all, part_sum;  // of chunks, and of the parts of one
            const auto fold_chunk = [&] {
                const joint j = join(all, part_sum.max, part_sum.sum);
                part_sum = {};
#pragma unroll
                for (int i = 0; i < kEach; i++) values[i] = j.fold(values[i], chunk[i]), chunk[i] = 0;
            };
            // A round of chunks, tiles or whole shares; what is not there changes nothing.
            const auto fold_round = [&](const int base, const auto each) {
                const int place = n % kPlaces, count = min(of.tiles - base, kBlocks), before = kBlocks % kChunk ? base % kChunk : 0;
                if (thread == 0) arrive_expecting(at(&mail.posted[place]), 8 * (kBlocks * kColumns + count * width * ((t.count + 1) / 2)));
                wait_peers(at(&mail.posted[place]), n / kPlaces % 2);
                constexpr int kStep = kBlocks % kChunk ? kBlocks : kChunk;
#pragma unroll 1
                for (int first = 0; first < count; first += kStep) {
                    float2 sums[kStep];
                    float part[kStep][kEach];
#pragma unroll
                    for (int b = 0; b < kStep; b++) {
                        const bool there = first + b < count;
                        sums[b] = there ? mail.sums[place][first + b][q] : float2{-INFINITY, 0.0f};
#pragma unroll
                        for (int i = 0; i < kEach; i++) part[b][i] = there && column(i) < width ? mail.values[place][first + b][column(i)][q] : -0.0f;
                    }
#pragma unroll
                    for (int b = 0; b < kStep; b++) {
                        const joint j = join(part_sum, sums[b].x, sums[b].y);
#pragma unroll
                        for (int i = 0; i < kEach; i++) chunk[i] = j.fold(chunk[i], part[b][i]);
                        if ((before + (b + 1) * each.value) % kChunk == 0) fold_chunk();
                    }
                }
                arrive(at(&mail.folded[place]));
                n++;
            };
            if constexpr (kEven) {
                fold_round(0, constant<kChunk>());  // a share folds as a chunk does, whatever its tiles
            } else {
                int base = 0;
                for (; of.tiles - base >= kChunk * kBlocks; base += kChunk * kBlocks) fold_round(base, constant<kChunk>());
                for (; base < of.tiles; base += kBlocks) fold_round(base, constant<1>());
                if (kBlocks % kChunk) fold_chunk();
            }
            if (q >= t.count) continue;
            atlas_act *out = a.Out + (size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + rank * kWidth;
#pragma unroll
            for (int i = 0; i < kEach; i++)
                if (column(i) < width) out[column(i)] = __float2bfloat16_rn(values[i] * inverse(all.sum));
        }
    }
};

}  // namespace atlas::attention

template <class P>
__device__ void attention_cluster(const atlas_PagedAttention &a) {
    using namespace atlas::attention;
    constexpr int kSlots = kRingSlots<P::kDim, P::kShared>;
    static_assert(atlas::launched<P, (kFewWarps + P::kBringWarps + kFoldWarps) * 32, kSlots * ring<P::kDim, 1>::kBytes, P::kBlocks>::kFits);
    extern __shared__ __align__(128) atlas_act memory[];
    __shared__ few_shared<P::kDim, P::kColumns> s;
    __shared__ mailbox<P::kDim, P::kColumns, P::kBlocks> mail;
    __shared__ uint64_t barriers[kSlots * 2];
    ring<P::kDim, kSlots> r = {uint32_t(__cvta_generic_to_shared(memory)), uint32_t(__cvta_generic_to_shared(barriers))};
    const int seq = blockIdx.y, head = blockIdx.x / P::kBlocks, rank = blockIdx.x % P::kBlocks, w = atlas::warp();
    if (threadIdx.x == 0) {
        init_ring<P::kBringWarps>(r);
        for (int i = 0; i < mail.kPlaces; i++) {
            atlas::init_barrier(__cvta_generic_to_shared(&mail.posted[i]), 1);
            atlas::init_barrier(__cvta_generic_to_shared(&mail.folded[i]), kFoldWarps * 32);
        }
        atlas::fence_barriers();
    }
    const share of = share_of<P::kDim, P::kColumns, kAnyRows>(a, seq);
    atlas::arrive_cluster();
    atlas::wait_cluster();
    if (w >= kFewWarps && w < kFewWarps + P::kBringWarps) {
        const turns<P::kBlocks, P::kEven> mine(of, seq, head, rank);
        if (rank < of.tiles && own_passes(of) > 0) bring<P::kBringWarps>(a, r, mine, mine.count());
        return;
    }
    const post<P::kDim, P::kColumns, P::kBlocks, P::kEven> p = {a, mail, of, seq, head, rank};
    if (w >= kFewWarps) {
        atlas::wait_for_previous();
        return p.fold_all();
    }
    const float factor = a.Scale * atlas::kLog2E;
    int n = 0;  // rounds
    for (int pass = blockIdx.z; pass < of.passes; pass += gridDim.z) {
        const tile t = of.group<P::kColumns>(a, seq, head, pass);
        const few_queries<P::kDim, P::kColumns> query(a, t, s);
        for (int base = 0; base < of.tiles; base = turn_at<P::kBlocks, P::kEven>(of, rank, base).next, n++) {
            const turn now = turn_at<P::kBlocks, P::kEven>(of, rank, base);
            few_part<P::kDim, P::kColumns> part;
#pragma unroll 1
            for (int i = now.first; i < now.end; i++) {
                const auto next = attend(query, s, r, (of.first + i) * kKeysOf<P::kDim>, factor);
                if (P::kEven && i == now.first)  // which saves one sequence 1 % of a step
                    part = next;
                else
                    fold(part, next);
            }
            p.take_place(n);
            p.send(n, t.count, now.first < now.end, part);
        }
    }
}
