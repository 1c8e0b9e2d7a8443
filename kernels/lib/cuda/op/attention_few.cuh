// PagedAttention for few rows per sequence, in the order of attention_order.cuh: attention_few and then attention_merge.
//
// attention_few<kDim, kColumns, kMost, kBlocks, kSlots>: kBlocks blocks share all tiles of all sequences evenly, whatever their lengths. A
// block's last warps bring its tiles, a slot of the ring for keys and one for values, and run ahead of the four warps that multiply. It
// folds the tiles from a sequence's first on, and leaves every other tile in scratch for the merge. kColumns query vectors (8 or 16)
// of a key head share a read; more take turns. Block: kFewThreads; dynamic shared memory: 2·kSlots·kKeys·kDim bytes. Sequences
// of more than kMost rows are left out.
// attention_merge: block (cut between two blocks of attention_few, 32 columns) folds what is left, a warp every fourth query vector.
// Scratch: f32 [slots,Heads,tiles,kDim+2] for ⌈MaxBlocks·BlockSize/kKeys⌉ tiles; slots are Rows, or with kMost 1 Seqs.
#pragma once
#include "lib/cuda/op/attention_ring.cuh"

namespace atlas::attention {

__device__ inline int lanes_before(int x) {
    int sum = x;
    for (int d = 1; d < 32; d *= 2) {
        const int y = __shfl_up_sync(kAllLanes, sum, d);
        if (lane() >= d) sum += y;
    }
    return sum - x;
}

// How blocks share tiles: block b takes those from begin(b) up to begin(b + 1). Evenly; or, where all groups have equally many tiles
// and it takes a block hardly longer, in whole groups, so that nothing is left to merge.
struct shares {
    int blocks, each, more, total;  // the first more blocks take one more than each
    __device__ shares(int most, int total, int group)
        : blocks(min(most, total)), each(total / max(blocks, 1)), more(total - each * blocks), total(total) {
        if (group == 0) return;
        const int whole = (total / group + most - 1) / most * group;
        if (whole <= each + 2) blocks = (total + whole - 1) / whole, each = whole, more = 0;
    }
    __device__ int begin(int b) const { return min(b * each + min(b, more), total); }
};

// A place in the work of all sequences, the same in every lane: a tile of a group of query vectors of a sequence.
template <int kDim, int kColumns, int kMost>
struct walk {
    share of;
    int seq, unit, tile;  // tiles count from the sequence's first
    __device__ void next_unit(const atlas_PagedAttention &a) {
        tile = 0;
        if (++unit < a.KVHeads * of.passes) return;
        unit = 0;
        do of = share_of<kDim, kColumns, kMost>(a, ++seq);
        while (of.rows <= 0 && seq < a.Seqs);
    }
    __device__ void next(const atlas_PagedAttention &a) {
        if (++tile == of.tiles) next_unit(a);
    }
    __device__ int head(const atlas_PagedAttention &) const { return of.passes == 1 ? unit : unit / of.passes; }
    __device__ struct tile group(const atlas_PagedAttention &a) const { return of.group<kColumns>(a, seq, head(a), unit - head(a) * of.passes); }
};

// A walk from number at(tiles of all sequences, tiles of each group or 0 where they differ) on. All lanes of a warp call it.
template <int kDim, int kColumns, int kMost, typename F>
__device__ walk<kDim, kColumns, kMost> walk_from(const atlas_PagedAttention &a, F at) {
    const int l = lane();
    share mine = share_of<kDim, kColumns, kMost>(a, l);
    int own = mine.work(a), all = __reduce_add_sync(kAllLanes, own), total = own, least = own ? mine.tiles : 1 << 30, most = mine.tiles, base = 0;
    for (int i = 32; i < a.Seqs; i += 32) {
        const share other = share_of<kDim, kColumns, kMost>(a, i + l);
        total += other.work(a);
        if (other.rows > 0) least = min(least, other.tiles), most = max(most, other.tiles);
    }
    total = __reduce_add_sync(kAllLanes, total), least = __reduce_min_sync(kAllLanes, least), most = __reduce_max_sync(kAllLanes, most);
    int left = at(total, least == most ? most : 0);
    while (left >= all) {
        if (base >= a.Seqs) return {{}, a.Seqs, 0, 0};
        left -= all, base += 32;
        mine = share_of<kDim, kColumns, kMost>(a, base + l);
        own = mine.work(a), all = __reduce_add_sync(kAllLanes, own);
    }
    const int off = left - lanes_before(own), holder = __ffs(__ballot_sync(kAllLanes, off >= 0 && off < own)) - 1;
    const auto take = [&](int x) { return __shfl_sync(kAllLanes, x, holder); };
    walk<kDim, kColumns, kMost> w = {
        {take(mine.row), take(mine.rows), take(mine.end), take(mine.old), take(mine.last), take(mine.first), take(mine.tiles), take(mine.passes)}, base + holder, 0, take(off)};
    w.unit = w.tile / w.of.tiles, w.tile -= w.unit * w.of.tiles;
    return w;
}

__device__ inline size_t tiles_of(const atlas_PagedAttention &a, int keys) { return (size_t(a.MaxBlocks) * a.BlockSize + keys - 1) / keys; }

// Scratch: what was summed, and the maximum and sum of the weights, for each slot, head and tile.
template <int kDim>
struct parts {
    float *values;
    float2 *sums;
    size_t tiles;
    __device__ parts(const atlas_PagedAttention &a, void *scratch, int slots)
        : values(static_cast<float *>(scratch)), tiles(tiles_of(a, kKeysOf<kDim>)) {
        sums = reinterpret_cast<float2 *>(values + size_t(slots) * a.Heads * tiles * kDim);
    }
};

}  // namespace atlas::attention

template <int kDim, int kColumns, int kMost, int kBlocks, int kSlots = atlas::attention::kLongRingSlots<kDim>>
__device__ void attention_few(const atlas_PagedAttention &a, void *scratch) {
    using namespace atlas::attention;
    extern __shared__ __align__(128) atlas_act memory[];
    __shared__ few_shared<kDim, kColumns> s;
    __shared__ uint64_t barriers[kSlots * 2];
    ring<kDim, kSlots> r = {uint32_t(__cvta_generic_to_shared(memory)), uint32_t(__cvta_generic_to_shared(barriers))};
    atlas::release_next();
    if (threadIdx.x == 0) {
        init_ring<kFewThreads / 32 - kFewWarps>(r);
        atlas::fence_barriers();
    }
    int left = 0;
    auto w = walk_from<kDim, kColumns, kMost>(a, [&](int total, int group) {
        const shares by(kBlocks, total, group);
        left = int(blockIdx.x) < by.blocks ? by.begin(blockIdx.x + 1) - by.begin(blockIdx.x) : 0;
        return int(blockIdx.x) < by.blocks ? by.begin(blockIdx.x) : total;
    });
    __syncthreads();
    if (threadIdx.x >= kFewWarps * 32) {
        if (left) bring<kFewThreads / 32 - kFewWarps>(a, r, w, left);
        return;
    }
    if (!left) atlas::wait_for_previous();
    const parts<kDim> partial(a, scratch, kMost == 1 ? a.Seqs : a.Rows);
    const float factor = a.Scale * atlas::kLog2E;
    while (left) {
        const int from = w.tile, count = min(w.of.tiles - from, left);
        const tile t = w.group(a);
        const few_queries<kDim, kColumns> query(a, t, s);
        few_part<kDim, kColumns> all;
        const auto store = [&](int tile, const few_part<kDim, kColumns> &part) {
            part.each(t.count, [&](int n, int i, int q, int d, float x) {
                const size_t at = (size_t(kMost == 1 ? t.seq : t.query_row(q)) * a.Heads + t.query_head(q)) * partial.tiles + w.of.first + tile;
                if (d == 0) partial.sums[at] = {part.state[n][i].max, part.state[n][i].sum};
                partial.values[at * kDim + d] = x;
            });
        };
        for (int tile = from; tile < from + count; tile++) {
            const auto part = attend<kDim, kColumns, kSlots>(query, s, r, (w.of.first + tile) * kKeysOf<kDim>, factor);
            if (from == 0)
                fold(all, part);
            else
                store(tile, part);
        }
        if (from == 0 && count < w.of.tiles) store(0, all);
        if (count == w.of.tiles)
            all.each(t.count, [&](int n, int i, int q, int d, float x) {
                a.Out[(size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + d] = __float2bfloat16_rn(x * inverse(all.state[n][i].sum));
            });
        left -= count;
        w.next_unit(a);
    }
}

template <int kDim, int kColumns, int kMost, int kBlocks>
__device__ void attention_merge(const atlas_PagedAttention &a, void *scratch) {
    using namespace atlas::attention;
    constexpr int kAtOnce = 16;
    const int l = atlas::lane(), d = blockIdx.y * 32 + l;
    atlas::release_next();
    int before = 0;
    const auto w = walk_from<kDim, kColumns, kMost>(a, [&](int total, int group) {
        const shares by(kBlocks, total, group);
        const int cut = blockIdx.x + 1;
        before = cut < by.blocks ? by.begin(cut) - by.begin(cut - 1) : 0;
        return cut < by.blocks ? by.begin(cut) : total;
    });
    // The first cut of a sequence's tiles merges them.
    const int folded = w.tile;
    const bool merges = folded > 0 && folded <= before;
    atlas::wait_for_previous();
    if (!merges) return;
    const tile t = w.group(a);
    const parts<kDim> partial(a, scratch, kMost == 1 ? a.Seqs : a.Rows);
    const int entries = 1 + w.of.tiles - folded;
    const auto tile_of = [&](int e) { return w.of.first + (e == 0 ? 0 : folded + e - 1); };
    for (int q = atlas::warp(); q < t.count; q += 4) {
        const size_t at = (size_t(kMost == 1 ? t.seq : t.query_row(q)) * a.Heads + t.query_head(q)) * partial.tiles;
        float value = 0;
        running all;
        for (int base = 0; base < entries; base += kAtOnce) {
            const float2 part = l < kAtOnce && base + l < entries ? partial.sums[at + tile_of(base + l)] : float2{-INFINITY, 0};
            float x[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; i++) x[i] = base + i < entries ? partial.values[(at + tile_of(base + i)) * kDim + d] : 0;
            float top = part.x;  // over the tiles up to this one
#pragma unroll
            for (int d = 1; d < kAtOnce; d *= 2) {
                const float y = __shfl_up_sync(atlas::kAllLanes, top, d);
                if (l >= d) top = fmaxf(top, y);
            }
            const float before = __shfl_up_sync(atlas::kAllLanes, top, 1);
            running r = {fmaxf(l ? before : -INFINITY, all.max), 0};
            const joint mine = join(r, part.x, part.y);
            all.max = fmaxf(__shfl_sync(atlas::kAllLanes, top, kAtOnce - 1), all.max);
#pragma unroll
            for (int i = 0; i < kAtOnce; i++) {
                if (base + i >= entries) break;
                const joint j = {__shfl_sync(atlas::kAllLanes, mine.keep, i), __shfl_sync(atlas::kAllLanes, mine.add, i)};
                all.sum = j.fold(all.sum, __shfl_sync(atlas::kAllLanes, part.y, i));
                value = j.fold(value, x[i]);
            }
        }
        a.Out[(size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + d] = __float2bfloat16_rn(value * inverse(all.sum));
    }
}
