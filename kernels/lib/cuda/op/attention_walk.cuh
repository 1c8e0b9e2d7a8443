// How blocks share the tiles of all sequences evenly, and each finds its own.
#pragma once
#include "lib/cuda/op/attention_ring.cuh"

constexpr int kFewThreads = 256;

namespace atlas::attention {

__device__ inline int lanes_before(int x) {
    int sum = x;
    for (int d = 1; d < 32; d *= 2) {
        const int y = __shfl_up_sync(kAllLanes, sum, d);
        if (lane() >= d) sum += y;
    }
    return sum - x;
}

// How kBlocks blocks share tiles: block b has the grains, of size tiles each, from begin(b) up to begin(b + 1). A grain is a tile. Or, where
// all groups have equally many tiles and it takes a block hardly longer, blocks take whole groups, so that nothing is left to merge, or
// each an equal part of one, which is then a grain. Where the order of sums is to be kept, a grain may be a chunk instead.
template <int kBlocks, bool kOrdered>
struct shares {
    int size = 1, each = 0, more = 0, total = 0;  // in grains; the first more blocks take one more than each
    shares() = default;
    // Of groups groups, with most tiles each or, where most is 0, not equally many.
    __device__ shares(int tiles, int chunks, int groups, int most) : each(tiles / kBlocks), total(tiles) {
        const int whole = (groups + kBlocks - 1) / kBlocks * most, per = (chunks + kBlocks - 1) / kBlocks;
        const int part = most && groups <= kBlocks ? grains(most, kBlocks / groups) : 1 << 30;
        if (most && whole <= each + 2)
            each = whole;
        else if (!kOrdered && part <= each + 2)
            size = part, each = 1, total = groups * grains(most, part);
        else if (kOrdered && per * kChunk <= each + 1 + each / 8)
            size = kChunk, each = per, total = chunks;
        else
            more = tiles - each * kBlocks;
    }
    __device__ int begin(int b) const { return min(b * each + min(b, more), total); }
    __device__ int owner(int grain) const {
        const int larger = more * (each + 1);
        return grain < larger ? grain / (each + 1) : more + (grain - larger) / each;
    }
};

// A place in the work of all sequences, the same in every lane: a tile of a group of query vectors of a sequence.
template <int kDim, int kColumns, int kMost>
struct walk {
    share of;
    int seq, unit, tile, size;  // tiles count from the sequence's first
    __device__ void next_unit(const atlas_PagedAttention &a) {
        tile = 0;
        if (++unit < a.KVHeads * of.passes) return;
        unit = 0;
        do of = share_of<kDim, kColumns, kMost>(a, ++seq);
        while (of.rows <= 0 && seq < a.Seqs);
    }
    // Whether a grain ends.
    __device__ bool next(const atlas_PagedAttention &a) {
        const bool last = ++tile == of.tiles, end = last || tile % size == 0;
        if (last) next_unit(a);
        return end;
    }
    __device__ int head(const atlas_PagedAttention &) const { return of.passes == 1 ? unit : unit / of.passes; }
    __device__ struct tile group(const atlas_PagedAttention &a) const { return of.group<kColumns>(a, seq, head(a), unit - head(a) * of.passes); }
};

// A walk from grain at(shares) on. All lanes of a warp call it.
template <int kDim, int kColumns, int kMost, int kBlocks, bool kOrdered, typename F>
__device__ walk<kDim, kColumns, kMost> walk_from(const atlas_PagedAttention &a, F at) {
    const int l = lane();
    share mine = share_of<kDim, kColumns, kMost>(a, l);
    int tiles = 0, chunks = 0, groups = 0, least = 1 << 30, most = 0;
    const auto count = [&](const share &of) {
        if (of.rows <= 0) return;
        const int n = a.KVHeads * of.passes;
        groups += n, tiles += n * of.tiles, chunks += n * of.grains(kChunk), least = min(least, of.tiles), most = max(most, of.tiles);
    };
    count(mine);
    for (int i = 32; i < a.Seqs; i += 32) count(share_of<kDim, kColumns, kMost>(a, i + l));
    for (int *x : {&tiles, &chunks, &groups}) *x = __reduce_add_sync(kAllLanes, *x);
    least = __reduce_min_sync(kAllLanes, least), most = __reduce_max_sync(kAllLanes, most);
    const shares<kBlocks, kOrdered> by(tiles, chunks, groups, least == most ? most : 0);
    int left = at(by), own = mine.work(a, by.size), all = __reduce_add_sync(kAllLanes, own), base = 0;
    while (left >= all) {
        if (base >= a.Seqs) return {{}, a.Seqs, 0, 0, 0};
        left -= all, base += 32;
        mine = share_of<kDim, kColumns, kMost>(a, base + l);
        own = mine.work(a, by.size), all = __reduce_add_sync(kAllLanes, own);
    }
    const int off = left - lanes_before(own), holder = __ffs(__ballot_sync(kAllLanes, off >= 0 && off < own)) - 1;
    const auto take = [&](int x) { return __shfl_sync(kAllLanes, x, holder); };
    const share of = {take(mine.row), take(mine.rows), take(mine.end), take(mine.old), take(mine.seen), take(mine.last), take(mine.first), take(mine.tiles), take(mine.passes)};
    const int grain = take(off), each = of.grains(by.size), unit = grain / each;
    return {of, base + holder, unit, (grain - unit * each) * by.size, by.size};
}

// How many of the blocks that share a group have come, by the block that has its first tile; zero between launches.
template <int kBlocks>
__device__ unsigned tickets[kBlocks];

// How many have, whose stores are then seen.
__device__ inline int came(const unsigned *ticket) {
    unsigned x;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(x) : "l"(ticket) : "memory");
    return int(x);
}

// How many others came before; the last of them gives the ticket back. The threads of the four warps call it.
__device__ inline int come(unsigned *ticket, int others, int &came) {
    sync_named<kFewWarps * 32>(1);
    if (threadIdx.x == 0) {
        __threadfence();
        came = int(atomicAdd(ticket, 1));
        if (came == others) *ticket = 0;
        __threadfence();
    }
    sync_named<kFewWarps * 32>(2);
    return came;
}

// Finds a block's share of the work: a walk from its first grain, which is at at, and left grains. Brings its tiles by the warps after the
// four that multiply, which alone are to go on. All threads call it.
template <int kDim, int kColumns, int kMost, int kBlocks, bool kOrdered, int kSlots>
__device__ __forceinline__ bool begin_share(const atlas_PagedAttention &a, const ring<kDim, kSlots> &r, shares<kBlocks, kOrdered> &by, int &at, int &left,
                                            walk<kDim, kColumns, kMost> &w) {
    if (threadIdx.x == 0) {
        init_ring<kFewThreads / 32 - kFewWarps>(r);
        fence_barriers();
    }
    w = walk_from<kDim, kColumns, kMost, kBlocks, kOrdered>(a, [&](const shares<kBlocks, kOrdered> &of_all) {
        by = of_all, at = by.begin(blockIdx.x), left = by.begin(blockIdx.x + 1) - at;
        return at;
    });
    __syncthreads();
    if (threadIdx.x >= kFewWarps * 32) {
        if (left) bring<kFewThreads / 32 - kFewWarps>(a, r, w, left);
        return false;
    }
    if (!left) wait_for_previous();
    return true;
}

}  // namespace atlas::attention
