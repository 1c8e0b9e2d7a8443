// PagedAttention for few rows per sequence, in the order of attention_order.cuh: attention_few and then attention_merge.
//
// attention_few<kDim, kColumns, kMost, kBlocks, kSlots>: kBlocks blocks share all tiles of all sequences evenly, whatever their lengths. A
// block's last warps bring its tiles, a slot of the ring for keys and one for values, and run ahead of the four warps that multiply. It
// folds the chunks from a sequence's first on, and leaves every other, or every tile where single tiles are shared, in scratch for
// the merge. kColumns query vectors (8 or 16) of a key head share a read; more take turns. Sequences of more than kMost rows are
// left out. Block: kFewThreads; dynamic shared memory: 2·kSlots·kKeys·kDim bytes.
// attention_merge: block (cut between two blocks of attention_few, 32 columns of values) folds what is left of the cut's group of query
// vectors, whose cuts take turns at them: a warp has one at a time. Grid: kBlocks-1, kDim/32; block 128.
// Scratch: f32 [slots,Heads,tiles,kDim+2] for ⌈MaxBlocks·BlockSize/kKeys⌉ tiles; slots are Rows, or with kMost 1 Seqs.
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

// How kBlocks blocks share tiles: block b has the grains, of 1 << shift tiles each, from begin(b) up to begin(b + 1). A grain is a tile;
// or, where it takes a block hardly longer, a chunk; or, where all groups have equally many tiles, blocks take whole groups and
// nothing is left to merge.
template <int kBlocks>
struct shares {
    int shift = 0, each = 0, more = 0, total = 0;  // in grains; the first more blocks take one more than each
    shares() = default;
    // Of groups groups, with most tiles each or, where most is 0, not equally many.
    __device__ shares(int tiles, int chunks, int groups, int most) : each(tiles / kBlocks), total(tiles) {
        const int whole = (groups + kBlocks - 1) / kBlocks * most, per = (chunks + kBlocks - 1) / kBlocks;
        if (most && whole <= each + 2)
            each = whole;
        else if (per * kChunk <= each + 1 + each / 8)
            shift = kChunkShift, each = per, total = chunks;
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
    int seq, unit, tile, shift;  // tiles count from the sequence's first
    __device__ void next_unit(const atlas_PagedAttention &a) {
        tile = 0;
        if (++unit < a.KVHeads * of.passes) return;
        unit = 0;
        do of = share_of<kDim, kColumns, kMost>(a, ++seq);
        while (of.rows <= 0 && seq < a.Seqs);
    }
    // Whether a grain ends.
    __device__ bool next(const atlas_PagedAttention &a) {
        const bool last = ++tile == of.tiles, end = last || (tile & ((1 << shift) - 1)) == 0;
        if (last) next_unit(a);
        return end;
    }
    __device__ int head(const atlas_PagedAttention &) const { return of.passes == 1 ? unit : unit / of.passes; }
    __device__ struct tile group(const atlas_PagedAttention &a) const { return of.group<kColumns>(a, seq, head(a), unit - head(a) * of.passes); }
};

// A walk from grain at(shares) on. All lanes of a warp call it.
template <int kDim, int kColumns, int kMost, int kBlocks, typename F>
__device__ walk<kDim, kColumns, kMost> walk_from(const atlas_PagedAttention &a, F at) {
    const int l = lane();
    share mine = share_of<kDim, kColumns, kMost>(a, l);
    int tiles = 0, chunks = 0, groups = 0, least = 1 << 30, most = 0;
    const auto count = [&](const share &of) {
        if (of.rows <= 0) return;
        const int n = a.KVHeads * of.passes;
        groups += n, tiles += n * of.tiles, chunks += n * of.grains(kChunkShift), least = min(least, of.tiles), most = max(most, of.tiles);
    };
    count(mine);
    for (int i = 32; i < a.Seqs; i += 32) count(share_of<kDim, kColumns, kMost>(a, i + l));
    for (int *x : {&tiles, &chunks, &groups}) *x = __reduce_add_sync(kAllLanes, *x);
    least = __reduce_min_sync(kAllLanes, least), most = __reduce_max_sync(kAllLanes, most);
    const shares<kBlocks> by(tiles, chunks, groups, least == most ? most : 0);
    int left = at(by), own = mine.work(a, by.shift), all = __reduce_add_sync(kAllLanes, own), base = 0;
    while (left >= all) {
        if (base >= a.Seqs) return {{}, a.Seqs, 0, 0, 0};
        left -= all, base += 32;
        mine = share_of<kDim, kColumns, kMost>(a, base + l);
        own = mine.work(a, by.shift), all = __reduce_add_sync(kAllLanes, own);
    }
    const int off = left - lanes_before(own), holder = __ffs(__ballot_sync(kAllLanes, off >= 0 && off < own)) - 1;
    const auto take = [&](int x) { return __shfl_sync(kAllLanes, x, holder); };
    const share of = {take(mine.row), take(mine.rows), take(mine.end), take(mine.old), take(mine.seen), take(mine.last), take(mine.first), take(mine.tiles), take(mine.passes)};
    const int grain = take(off), each = of.grains(by.shift), unit = grain / each;
    return {of, base + holder, unit, (grain - unit * each) << by.shift, by.shift};
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
    if (threadIdx.x == 0) {
        init_ring<kFewThreads / 32 - kFewWarps>(r);
        atlas::fence_barriers();
    }
    int left = 0;
    auto w = walk_from<kDim, kColumns, kMost, kBlocks>(a, [&](const shares<kBlocks> &by) {
        left = by.begin(blockIdx.x + 1) - by.begin(blockIdx.x);
        return by.begin(blockIdx.x);
    });
    __syncthreads();
    atlas::release_next();  // not sooner: the merge finds its place as well, and would slow this down
    if (threadIdx.x >= kFewWarps * 32) {
        if (left) bring<kFewThreads / 32 - kFewWarps>(a, r, w, left);
        return;
    }
    if (!left) atlas::wait_for_previous();
    const parts<kDim> partial(a, scratch, kMost == 1 ? a.Seqs : a.Rows);
    const float factor = a.Scale * atlas::kLog2E;
    while (left) {
        const int from = w.tile, to = min(from + (left << w.shift), w.of.tiles);
        const tile t = w.group(a);
        const few_queries<kDim, kColumns> query(a, t, s);
        size_t at[kColumns / 8][2];  // of a thread's query vectors in scratch
#pragma unroll
        for (int i = 0; i < kColumns / 4; i++) {
            const int q = i / 2 * 8 + atlas::lane() % 4 * 2 + i % 2;
            if (q < t.count) at[i / 2][i % 2] = (size_t(kMost == 1 ? t.seq : t.query_row(q)) * a.Heads + t.query_head(q)) * partial.tiles + w.of.first;
        }
        few_part<kDim, kColumns> all, chunk;
        const auto store = [&](int tile, const few_part<kDim, kColumns> &part) {
            part.each(t.count, [&](int n, int i, int, int d, float x) {
                if (d == 0) partial.sums[at[n][i] + tile] = {part.state[n][i].max, part.state[n][i].sum};
                partial.values[(at[n][i] + tile) * kDim + d] = x;
            });
        };
#pragma unroll 1
        for (int tile = from; tile < to; tile++) {
            const auto part = attend<kDim, kColumns, kSlots>(query, s, r, (w.of.first + tile) * kKeysOf<kDim>, factor);
            if (from > 0 && w.shift == 0) {
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
        if (from == 0 && to < w.of.tiles) {
            if (const int open = to % kChunk) store(to - open, chunk);
            if (to >= kChunk) store(0, all);
        }
        if (from == 0 && to == w.of.tiles)
            all.each(t.count, [&](int n, int i, int q, int d, float x) {
                a.Out[(size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + d] = __float2bfloat16_rn(x * inverse(all.state[n][i].sum));
            });
        left -= grains(to - from, w.shift);
        w.next_unit(a);
    }
}

template <int kDim, int kColumns, int kMost, int kBlocks>
__device__ void attention_merge(const atlas_PagedAttention &a, void *scratch) {
    using namespace atlas::attention;
    constexpr int kAtOnce = 16, kWarps = 4;
    const int l = atlas::lane(), d = blockIdx.y * 32 + l, cut = blockIdx.x + 1;
    atlas::release_next();
    // A cut's place in the work, the first cut of its group, and whose turns they are. One warp finds them: attention_few needs issue slots.
    __shared__ struct {
        walk<kDim, kColumns, kMost> at;
        int first, turn, turns;
    } s;
    if (atlas::warp() == 0) {
        shares<kBlocks> by;
        const auto w = walk_from<kDim, kColumns, kMost, kBlocks>(a, [&](const shares<kBlocks> &x) { return by = x, x.begin(cut); });
        if (l == 0) {
            s = {w, 0, 0, 0};
            if (w.tile > 0) {
                const int begin = by.begin(cut) - (w.tile >> w.shift), owner = by.owner(begin);
                s.first = (by.begin(owner + 1) - begin) << w.shift, s.turn = cut - owner - 1;
                s.turns = by.owner(begin + w.of.grains(w.shift) - 1) - owner;
            }
        }
    }
    __syncthreads();
    const walk<kDim, kColumns, kMost> w = s.at;
    const int first = s.first, turn = s.turn, turns = s.turns;
    atlas::wait_for_previous();
    if (turns == 0) return;
    const tile t = w.group(a);
    const parts<kDim> partial(a, scratch, kMost == 1 ? a.Seqs : a.Rows);
    // Entries are grains, own of them a chunk: those of a chunk for what is at tile 0, where the first cut is not in the first
    // chunk, and then those from its chunk on, of which the ones before the cut are there as one.
    const int own = kChunk >> w.shift, from = first - first % kChunk, entries = own + grains(w.of.tiles - from, w.shift);
    const auto tile_of = [&](int e) { return e < own ? 0 : from + ((e - own) << w.shift); };
    const auto there = [&](int e) { return e < own ? e == 0 && from > 0 : e < entries && (e == own || tile_of(e) >= first); };
    for (int q = turn * kWarps + atlas::warp(); q < t.count; q += turns * kWarps) {
        const size_t at = (size_t(kMost == 1 ? t.seq : t.query_row(q)) * a.Heads + t.query_head(q)) * partial.tiles + w.of.first;
        float value = 0;
        running all;
        for (int base = 0; base < entries; base += kAtOnce) {
            const float2 part = l < kAtOnce && there(base + l) ? partial.sums[at + tile_of(base + l)] : float2{-INFINITY, 0};
            float x[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; i++) x[i] = there(base + i) ? partial.values[(at + tile_of(base + i)) * kDim + d] : 0;
            // The greatest so far in a chunk, and in all chunks up to this one.
            float inner = part.x;
            const int of_chunk = l & (own - 1);
            for (int d = 1; d < own; d *= 2) {
                const float y = __shfl_up_sync(atlas::kAllLanes, inner, d);
                if (of_chunk >= d) inner = fmaxf(inner, y);
            }
            float outer = inner;
#pragma unroll
            for (int d = 1; d < kAtOnce; d *= 2) {
                const float y = __shfl_up_sync(atlas::kAllLanes, outer, d);
                if (l >= d) outer = fmaxf(outer, y);
            }
            const float in_chunk = __shfl_up_sync(atlas::kAllLanes, inner, 1), chunks = __shfl_sync(atlas::kAllLanes, outer, max(l - of_chunk - 1, 0));
            running mine = {of_chunk ? in_chunk : -INFINITY, 0}, total = {l < own ? all.max : fmaxf(chunks, all.max), 0};
            const joint to_chunk = join(mine, part.x, 0), to_all = join(total, inner, 0);
            all.max = fmaxf(__shfl_sync(atlas::kAllLanes, outer, kAtOnce - 1), all.max);
            float chunk = 0, sum = 0;
#pragma unroll
            for (int i = 0; i < kAtOnce; i++) {
                if (base + i >= entries) break;
                const auto of_lane = [&](const joint &j) { return joint{__shfl_sync(atlas::kAllLanes, j.keep, i), __shfl_sync(atlas::kAllLanes, j.add, i)}; };
                const joint j = of_lane(to_chunk), k = of_lane(to_all);
                sum = j.fold(sum, __shfl_sync(atlas::kAllLanes, part.y, i));
                chunk = j.fold(chunk, x[i]);
                if (((i + 1) & (own - 1)) && base + i + 1 < entries) continue;
                all.sum = k.fold(all.sum, sum), value = k.fold(value, chunk);
                sum = chunk = 0;
            }
        }
        a.Out[(size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + d] = __float2bfloat16_rn(value * inverse(all.sum));
    }
}
