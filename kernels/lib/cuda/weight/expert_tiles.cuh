// ExpertUp, ExpertDown and ExpertDownAdd for few rows of each expert, any scheme. A pick is a row with one of its experts. Picks, sorted by expert,
// come in tiles of at most 8·kTiles of one expert; an item is a strip of weights times a tile, in ExpertUp one of gates and the one of their ups. Blocks share out all
// items evenly and in order; the warps of a block take its items in turn, each with a ring of its own, while the rows of the
// block's tiles lie in a pool of kPool bytes. expert_down_tiles writes products, f32 [Rows·TopK,W.Rows], to scratch for
// expert_down_total. A pick's bits depend on the scheme alone.
//
// Any grid along x. kWarps·32 threads. At most tile_shape::kExperts experts, W.Cols%8 == 0, W.Rows%32 == 0 in ExpertUp, at most 1024·kTiles
// picks and kMostTiles tiles for a block, and a pool for the rows of a tile, of 128·⌈Cols/64⌉+16 bytes each. Dynamic shared memory: tile_shape::kShared.
#pragma once
#include "lib/cuda/weight/expert_total.cuh"
#include "lib/cuda/weight/pick_tiles.cuh"
#include "lib/cuda/weight/ring.cuh"

namespace atlas {

constexpr int kMostTiles = 32;

// Sorted picks begin … end-1, all of one expert.
struct pick_tile {
    int expert, begin, end;
};

// f8block's scales of an item of a warp, and of its next one: in shared memory, for registers that wait for memory would be spilled.
template <atlas_Scheme kScheme, int kStrips>
struct item_scales {
    static constexpr bool kThere = kScheme == ATLAS_SCHEME_F8BLOCK;
    static constexpr int kMost = 32, kItem = kStrips * kMost * 4, kBytes = kThere ? 2 * kItem : 0;  // a lane for each 128 columns
    uint32_t now, next;

    __device__ explicit item_scales(uint32_t at) : now(at), next(at + kItem) {}
    // Asks for the next item's.
    template <typename Strip>
    __device__ void ask(const atlas_Weight &w, int expert, const Strip &strip) const {
        if constexpr (kThere) {
#pragma unroll
            for (int s = 0; s < kStrips; s++)
                if (lane() < (w.Cols + 127) / 128) copy_async4(next + (s * kMost + lane()) * 4, frag<kScheme>::block_scales(w, expert, strip(s)) + lane(), true);
            commit_copies();
        }
    }
    // Goes on to the next item.
    __device__ void take() {
        if constexpr (kThere) {
            wait_copies<0>();
            __syncwarp();
            const uint32_t taken = next;
            next = now, now = taken;
        }
    }
    // Of strip s and unit u.
    __device__ float of(int s, int u) const {
        if constexpr (kThere) return __uint_as_float(load_shared1(now + (s * kMost + u / 2) * 4));
        return 0;
    }
};

// Sorted picks of a thread's experts, which follow each other: no more of them than all threads need, kEach at most.
template <int kThreads, int kEach>
struct thread_picks {
    int2 of[kEach];

    __device__ static int first(int experts) { return int(threadIdx.x) * ((experts + kThreads - 1) / kThreads); }
    // Past the first cache, which may hold what was there before.
    __device__ void read(const int32_t *starts, int experts, int total) {
        const int e = first(experts), end = min(e + (experts + kThreads - 1) / kThreads, experts);
#pragma unroll
        for (int i = 0; i < kEach; i++) of[i] = e + i < end ? int2{max(__ldcg(starts + e + i), 0), min(__ldcg(starts + e + i + 1), total)} : int2{};
    }
    __device__ bool operator!=(const thread_picks &other) const {
        bool differs = false;
#pragma unroll
        for (int i = 0; i < kEach; i++) differs |= of[i].x != other.of[i].x || of[i].y != other.of[i].y;
        return differs;
    }
    template <int kRows>
    __device__ int tiles(int i) const { return of[i].y > of[i].x ? (of[i].y - of[i].x + kRows - 1) / kRows : 0; }
};

template <atlas_Scheme kScheme, int kTiles, int kWarps, int kStrips, int kUnits, int kStages, int kPool>
struct tile_shape {
    static_assert(kPool < 8 * (128 * 65 + 16), "at most 4096 columns");
    static constexpr int kMostPicks = 1024 * kTiles, kThreads = kWarps * 32, kExperts = kTiles > 1 ? kThreads : kMaxExperts;
    using picks_t = thread_picks<kThreads, (kExperts + kThreads - 1) / kThreads>;
    using ring_t = strip_ring<kScheme, kTiles, kStrips, kUnits, kStages>;
    using scales_t = item_scales<kScheme, kStrips>;
    static constexpr int kScalesAt = kWarps * ring_t::kBytes, kPoolAt = kScalesAt + kWarps * scales_t::kBytes, kTilesAt = kPoolAt + kPool, kOrder = kTilesAt + kMostTiles * int(sizeof(pick_tile));
    static constexpr int kBarriers = kOrder + kMostPicks * 4;
    static constexpr int kShared = (kBarriers + (kWarps * kStages + 1) * 8 + 127) / 128 * 128;
};

// Quotients of numbers below 2³¹ by one that is known before the kernel before has ended: dividing takes long.
struct divisor {
    uint32_t by, inverse;

    __device__ explicit divisor(int by) : by(by), inverse(0xffffffffu / by) {}
    __device__ int2 of(int n) const {  // quotient and rest
        int q = __umulhi(n, inverse), rest = n - q * int(by);
        if (rest >= int(by)) q++, rest -= by;
        return {q, rest};
    }
};

// Items begin … end-1 of this block, counted from the first group of tile 0 on.
struct tile_share {
    int begin, end, tiles;
};

// All threads; ends with a barrier.
template <int kRows, int kThreads, int kEach>
__device__ tile_share share_tiles(pick_tile *tiles, const thread_picks<kThreads, kEach> &picks, int experts, const divisor &groups, const divisor &blocks) {
    int mine = 0, b = blockIdx.x;
#pragma unroll
    for (int i = 0; i < kEach; i++) mine += picks.template tiles<kRows>(i);
    const scan s = block_scan<kThreads>(mine);
    const int2 each = blocks.of(s.total * groups.by);  // items, and blocks that have one more
    const int first_item = each.x * b + min(b, each.y), items = each.x + (b < each.y);
    const int2 at = groups.of(first_item);
    const int first = at.x, count = min(groups.of(at.y + items + groups.by - 1).x, kMostTiles);
    int before = s.before;
#pragma unroll
    for (int e = 0; e < kEach; e++) {
        const int2 of = picks.of[e];
        const int n = picks.template tiles<kRows>(e);
        for (int i = max(first - before, 0); i < n && before + i < first + count; i++)
            tiles[before + i - first] = {picks.first(experts) + e, of.x + i * kRows, min(of.y, of.x + (i + 1) * kRows)};
        before += n;
    }
    __syncthreads();
    return {at.y, min(at.y + items, count * int(groups.by)), count};
}

// Strips of an item are strip(group, 0) …; row(pick) is a pick's row of activations. prepare(tile, group, order) gives what
// finish(that, group, sums) is to have loaded when the sums are there; its results lie as those of a mma. kEarly: order and starts were mostly
// written long before the kernel before this one ends, so that weights can be copied by then; if they were not, what was copied is thrown away.
template <atlas_Scheme kScheme, int kTiles, int kWarps, int kStrips, int kUnits, int kStages, int kPool, int kParts, bool kEarly, typename Strip, typename Row, typename Prepare, typename Finish>
__device__ void multiply_tiles(const atlas_Weight &w, const int32_t *order, const int32_t *starts, int total, int groups, const Strip &strip, const Row &row,
                               const Prepare &prepare, const Finish &finish) {
    using shape = tile_shape<kScheme, kTiles, kWarps, kStrips, kUnits, kStages, kPool>;
    using ring_t = typename shape::ring_t;
    const int units = (w.Cols + 63) / 64, pitch = units * 128 + 16, pool_rows = kPool / pitch;
    uint8_t *const pool = strip_shared + shape::kPoolAt;
    pick_tile *const tiles = reinterpret_cast<pick_tile *>(strip_shared + shape::kTilesAt);
    int *const kept = reinterpret_cast<int *>(strip_shared + shape::kOrder);  // the order of picks
    const uint32_t rows_there = shared_address(strip_shared + shape::kBarriers);
    ring_t ring(strip_shared + warp() * ring_t::kBytes, strip_shared + shape::kBarriers + 8 + warp() * kStages * 8);
    const ones<kScheme> one;
    if (threadIdx.x == 0) init_barrier(rows_there, kWarps * 32), fence_barriers();
    if (const int tail = pitch / 16 - 1 - w.Cols / 8)  // chunks past the last column
        for (int i = threadIdx.x; i < pool_rows * tail; i += kWarps * 32) store_shared(shared_address(pool) + i / tail * pitch + w.Cols * 2 + i % tail * 16, uint4{});
    const divisor by_groups(groups), by_blocks(gridDim.x);
    typename shape::picks_t picks = {};
    tile_share share = {};
    const auto read_picks = [&]() {
        for (int i = threadIdx.x; i < total; i += kWarps * 32) kept[i] = __ldcg(order + i);
        picks.read(starts, w.Count, total);
        share = share_tiles<8 * kTiles>(tiles, picks, w.Count, by_groups, by_blocks);
    };
#pragma unroll 1
    for (int turn = kEarly; turn < 2; turn++) {  // not kEarly, the first is in vain, but brings instructions near
        if (!kEarly && turn) wait_for_previous(), release_next();
        read_picks();
    }
    int first = 0, last = 0, base = 0, phase = 0;  // tiles whose rows are in the pool, the first of their sorted picks, and the phase of rows_there
    const auto copy_rows = [&]() {
        base = tiles[first].begin;
        for (last = first; last < share.tiles && tiles[last].end - base <= pool_rows; last++) continue;
        for (int r = warp(); first < last && r < tiles[last - 1].end - base; r += kWarps) {
            const atlas_act *from = row(min(max(kept[base + r], 0), total - 1));
            for (int k = lane() * 8; k < w.Cols; k += 256) copy_async(shared_address(pool) + r * pitch + k * 2, from + k, true);
        }
        arrive_after_copies(rows_there);
    };
    if constexpr (!kEarly) copy_rows();  // in front of the weights, which take longer

    const auto part_end = [&](int part) { return units * (part + 1) / kParts; };
    int next = share.begin + warp(), next_part = 0, next_u = 0, begun = 0;
    const uint8_t *from[kStrips] = {};  // strips that are copied
    const auto fill = [&]() {
        if (next >= share.end) return;
        if (next_u == 0) {
            const int2 at = by_groups.of(next);
#pragma unroll
            for (int s = 0; s < kStrips; s++) from[s] = unit<kScheme>::at(w, tiles[at.x].expert, strip(at.y, s), 0);
        }
        while (next_u == part_end(next_part)) next_part++;
        const int n = min(kUnits, part_end(next_part) - next_u);
        ring.fill(w, [&](int s) { return from[s] + size_t(next_u) * unit<kScheme>::kPitch; }, kStrips, next_u, n);
        if ((next_u += n) == units) next += kWarps, next_part = next_u = 0;
        begun++;
    };
    for (int s = 0; s < kStages; s++) fill();
    if constexpr (kEarly) {
        wait_for_previous();
        release_next();  // not before: expert_down_total relies on it
        copy_rows();
        typename shape::picks_t now;
        now.read(starts, w.Count, total);
        bool others = now != picks;
        for (int i = threadIdx.x; i < total; i += kWarps * 32) others |= __ldcg(order + i) != kept[i];
        if (__syncthreads_or(others)) {
            read_picks();
            for (int s = 0; s < begun; s++) ring.wait(), ring.drop();
            next = share.begin + warp(), next_part = next_u = 0;
            for (int s = 0; s < kStages; s++) fill();
            wait_barrier(rows_there, phase);
            first = last = 0, phase = 1;
            copy_rows();
        }
    }
    typename shape::scales_t scales(shared_address(strip_shared + shape::kScalesAt) + warp() * shape::scales_t::kBytes);
    const auto ask_scales = [&](int item) {
        if (item >= share.end) return;
        const int2 at = by_groups.of(item);
        scales.ask(w, tiles[at.x].expert, [&](int s) { return strip(at.y, s); });
    };
    int item = share.begin + warp();
    ask_scales(item);
    for (; first < share.tiles; phase ^= 1) {
        wait_barrier(rows_there, phase);
        for (; item < min(share.end, last * groups); item += kWarps) {
            const pick_tile tile = tiles[by_groups.of(item).x];
            const int group = by_groups.of(item).y;
            const auto prepared = prepare(tile, group, kept);
            scales.take();
            ask_scales(item + kWarps);
            const row_lanes<kTiles> lanes([&](int r) { return min(tile.begin + r, tile.end - 1) - base; }, pitch);
            float sums[kStrips][kTiles][4] = {};
            int at = 0;
#pragma unroll 1
            for (int part = 0; part < kParts; part++) {
                float c[kStrips][kTiles][4] = {};
                const int end = units * (part + 1) / kParts;
#pragma unroll 1
                for (; at < end; at += min(kUnits, end - at)) {
                    const uint8_t *slot = ring.wait();
                    const auto scale = [&](int s, int i) { return scales.of(s, at + i); };
                    multiply_piece<kScheme, kTiles, kStrips, kUnits>(one, slot, shared_address(pool) + at * 128, 128, lanes, min(kUnits, end - at), w.Cols - at * 64, scale, c);
                    ring.drop();
                    fill();
                }
#pragma unroll
                for (int s = 0; s < kStrips; s++)
#pragma unroll
                    for (int r = 0; r < 4 * kTiles; r++) sums[s][r / 4][r % 4] += c[s][r / 4][r % 4];
            }
            finish(prepared, group, sums);
        }
        if ((first = last) == share.tiles) break;
        __syncthreads();  // these rows are no longer read
        copy_rows();
    }
}

}  // namespace atlas

template <class P>
__device__ void expert_up_tiles(const atlas_ExpertUp &a) {
    using namespace atlas;
    static_assert(launched<P, P::kWarps * 32, tile_shape<P::kScheme, P::kTiles, P::kWarps, 2, P::kUnits, P::kStages, P::kPool>::kShared>::kFits);
    struct prepared {
        int pick[2 * P::kTiles];  // of this lane's columns
        float gate[2], up[2];   // scales of its rows
    };
    const atlas_Weight &w = a.W;
    const int half = w.Rows / 2, groups = half / 16, total = a.Rows * a.TopK;
    const int t = lane() % 4, g = lane() / 4;
    const divisor by_picks(a.TopK);
    multiply_tiles<P::kScheme, P::kTiles, P::kWarps, 2, P::kUnits, P::kStages, P::kPool, 8, false>(
        w, a.Order, a.Starts, total, groups, [&](int group, int s) { return group + s * groups; }, [&](int pick) { return a.In + size_t(by_picks.of(pick).x) * w.Cols; },
        [&](const pick_tile &tile, int group, const int *order) {
            prepared p;
#pragma unroll
            for (int i = 0; i < 2 * P::kTiles; i++) {
                const int column = tile.begin + i / 2 * 8 + 2 * t + i % 2;
                p.pick[i] = column < tile.end ? order[column] : -1;
            }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int n = group * 16 + g + i * 8;
                p.gate[i] = row_scale(w, tile.expert, n), p.up[i] = row_scale(w, tile.expert, half + n);
            }
            return p;
        },
        [&](const prepared &p, int group, const float (&sums)[2][P::kTiles][4]) {
            constexpr float kFactor = unit_product<P::kScheme, P::kTiles, 2>::kFactor;
#pragma unroll
            for (int i = 0; i < 4 * P::kTiles; i++) {
                const int j = i / 4, r = i % 4, pick = p.pick[2 * j + r % 2];
                const float gate = sums[0][j][r] * kFactor * p.gate[r / 2], up = sums[1][j][r] * kFactor * p.up[r / 2];
                if (pick >= 0 && pick < total) a.Out[size_t(pick) * half + group * 16 + g + r / 2 * 8] = __float2bfloat16_rn(silu(gate) * up);
            }
        });
}

template <class P, typename Args>
__device__ void expert_down_tiles(const Args &a, void *scratch) {
    using namespace atlas;
    static_assert(launched<P, P::kWarps * 32, tile_shape<P::kScheme, P::kTiles, P::kWarps, P::kStrips, P::kUnits, P::kStages, P::kPool>::kShared>::kFits);
    struct prepared {
        int pick[2 * P::kTiles];
        float scale[P::kStrips][2];  // of this lane's rows
    };
    const atlas_Weight &w = a.W;
    const int strips = (w.Rows + 15) / 16, groups = (strips + P::kStrips - 1) / P::kStrips, total = a.Rows * a.TopK;
    const int t = lane() % 4, g = lane() / 4;
    float *products = static_cast<float *>(scratch);
    multiply_tiles<P::kScheme, P::kTiles, P::kWarps, P::kStrips, P::kUnits, P::kStages, P::kPool, 2, true>(
        w, a.Order, a.Starts, total, groups, [&](int group, int s) { return min(group * P::kStrips + s, strips - 1); }, [&](int pick) { return a.In + size_t(pick) * w.Cols; },
        [&](const pick_tile &tile, int group, const int *order) {
            prepared p;
#pragma unroll
            for (int i = 0; i < 2 * P::kTiles; i++) {
                const int column = tile.begin + i / 2 * 8 + 2 * t + i % 2;
                p.pick[i] = column < tile.end ? order[column] : -1;
            }
#pragma unroll
            for (int s = 0; s < P::kStrips; s++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int n = (group * P::kStrips + s) * 16 + i * 8 + g;
                    p.scale[s][i] = n < w.Rows ? row_scale(w, tile.expert, n) : 0.0f;
                }
            return p;
        },
        [&](const prepared &p, int group, const float (&sums)[P::kStrips][P::kTiles][4]) {
#pragma unroll
            for (int s = 0; s < P::kStrips; s++)
#pragma unroll
                for (int i = 0; i < 4 * P::kTiles; i++) {
                    const int j = i / 4, r = i % 4, pick = p.pick[2 * j + r % 2], n = (group * P::kStrips + s) * 16 + r / 2 * 8 + g;
                    if (pick >= 0 && pick < total && n < w.Rows)
                        products[size_t(pick) * w.Rows + n] = sums[s][j][r] * unit_product<P::kScheme, P::kTiles, P::kStrips>::kFactor * p.scale[s][r / 2];
                }
        });
}
