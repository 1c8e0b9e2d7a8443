// ExpertUp and ExpertDown for some picks of each expert, any scheme. Picks, sorted by expert, come in tiles of at most eight of
// one expert; an item is two strips of weights times a tile. Blocks share out all items evenly and in order; the warps of a
// block take its items in turn, each with a ring of its own, while the rows of the block's tiles lie in a pool of kPool bytes.
// expert_down_tiles writes products, f32 [Rows·TopK,W.Rows], to scratch for expert_down_total. A pick's bits depend on the scheme alone.
//
// Any grid along x. kWarps·32 threads, at least W.Count of them. W.Cols%8 == 0, W.Rows%32 == 0 in ExpertUp, at most
// kMostTiles tiles for a block, and a pool for eight rows of 128·⌈Cols/64⌉+16 bytes. Dynamic shared memory: tile_shape::kShared.
#pragma once
#include "lib/cuda/weight/expert_total.cuh"
#include "lib/cuda/weight/ring.cuh"

namespace atlas {

constexpr int kMostTiles = 32;

// Sorted picks begin … end-1, all of one expert.
struct pick_tile {
    int expert, begin, end;
};

template <atlas_Scheme kScheme, int kWarps, int kUnits, int kStages, int kPool>
struct tile_shape {
    using ring_t = strip_ring<kScheme, 1, 2, kUnits, kStages>;
    static constexpr int kPoolAt = kWarps * ring_t::kBytes, kTilesAt = kPoolAt + kPool, kBarriers = kTilesAt + kMostTiles * int(sizeof(pick_tile));
    static constexpr int kShared = (kBarriers + (kWarps * kStages + 1) * 8 + 127) / 128 * 128;
};

// Items begin … end-1 of this block, counted from the first group of tile 0 on.
struct tile_share {
    int begin, end, tiles;
};

// All threads; ends with a barrier.
template <int kThreads>
__device__ tile_share share_tiles(pick_tile *tiles, const int32_t *starts, int experts, int total, int groups) {
    const int e = threadIdx.x;
    const int begin = e < experts ? max(starts[e], 0) : 0, end = e < experts ? min(starts[e + 1], total) : 0;
    const int mine = end > begin ? (end - begin + 7) / 8 : 0;
    const scan s = block_scan<kThreads>(mine);
    const int items = s.total * groups, first_item = int(int64_t(items) * blockIdx.x / gridDim.x), last_item = int(int64_t(items) * (blockIdx.x + 1) / gridDim.x);
    const int first = first_item / groups, count = min((last_item + groups - 1) / groups - first, kMostTiles);
    for (int i = max(first - s.before, 0); i < mine && s.before + i < first + count; i++)
        tiles[s.before + i - first] = {e, begin + i * 8, min(end, begin + (i + 1) * 8)};
    __syncthreads();
    return {first_item - first * groups, min(last_item - first * groups, count * groups), count};
}

// Strips of an item are strip(group, 0) and strip(group, 1); row(pick) is a pick's row of activations. prepare(tile, group) gives
// what finish(that, tile, group, sums) is to have loaded when the sums are there; its results lie as those of a mma.
template <atlas_Scheme kScheme, int kWarps, int kUnits, int kStages, int kPool, int kParts, typename Strip, typename Row, typename Prepare, typename Finish>
__device__ void multiply_tiles(const atlas_Weight &w, const int32_t *order, const int32_t *starts, int total, int groups, const Strip &strip, const Row &row,
                               const Prepare &prepare, const Finish &finish) {
    using shape = tile_shape<kScheme, kWarps, kUnits, kStages, kPool>;
    using ring_t = typename shape::ring_t;
    const int units = (w.Cols + 63) / 64, pitch = units * 128 + 16, pool_rows = kPool / pitch;
    uint8_t *const pool = strip_shared + shape::kPoolAt;
    pick_tile *const tiles = reinterpret_cast<pick_tile *>(strip_shared + shape::kTilesAt);
    const uint32_t rows_there = shared_address(strip_shared + shape::kBarriers);
    ring_t ring(strip_shared + warp() * ring_t::kBytes, strip_shared + shape::kBarriers + 8 + warp() * kStages * 8);
    if (threadIdx.x == 0) init_barrier(rows_there, kWarps * 32), fence_barriers();
    if (const int tail = pitch / 16 - 1 - w.Cols / 8)  // chunks past the last column
        for (int i = threadIdx.x; i < pool_rows * tail; i += kWarps * 32) store_shared(shared_address(pool) + i / tail * pitch + w.Cols * 2 + i % tail * 16, uint4{});
    release_next();
    wait_for_previous();
    const tile_share share = share_tiles<kWarps * 32>(tiles, starts, w.Count, total, groups);

    const auto part_end = [&](int part) { return units * (part + 1) / kParts; };
    int next = share.begin + warp(), next_part = 0, next_u = 0;
    const uint8_t *from = nullptr;  // the strip that this lane copies
    const auto fill = [&]() {
        if (next >= share.end) return;
        if (next_u == 0) from = unit<kScheme>::at(w, tiles[next / groups].expert, strip(next % groups, ring.strip() % 2), 0);
        while (next_u == part_end(next_part)) next_part++;
        const int n = min(kUnits, part_end(next_part) - next_u);
        ring.fill(w, from + size_t(next_u) * unit<kScheme>::kPitch, 2, next_u, n);
        if ((next_u += n) == units) next += kWarps, next_part = next_u = 0;
    };
    for (int s = 0; s < kStages; s++) fill();

    block_scales<kScheme> scales[2];
    const auto load_scales = [&](int item) {
        if (item >= share.end) return;
#pragma unroll
        for (int s = 0; s < 2; s++) scales[s].load(w, tiles[item / groups].expert, strip(item % groups, s), 0, units);
    };
    int item = share.begin + warp(), phase = 0;
    load_scales(item);
    for (int first = 0, last; first < share.tiles; first = last, phase ^= 1) {
        const int base = tiles[first].begin;
        for (last = first; last < share.tiles && tiles[last].end - base <= pool_rows; last++) continue;
        if (first) __syncthreads();  // the rows before these are no longer read
        for (int i = threadIdx.x, chunks = w.Cols / 8; i < (tiles[last - 1].end - base) * chunks; i += kWarps * 32) {
            const atlas_act *from = row(min(max(order[base + i / chunks], 0), total - 1));
            copy_async(shared_address(pool) + i / chunks * pitch + i % chunks * 16, from + i % chunks * 8, true);
        }
        arrive_after_copies(rows_there);
        wait_barrier(rows_there, phase);
        for (; item < min(share.end, last * groups); item += kWarps) {
            const pick_tile tile = tiles[item / groups];
            const int group = item % groups;
            const auto prepared = prepare(tile, group);
            const block_scales<kScheme> now[2] = {scales[0], scales[1]};
            load_scales(item + kWarps);
            const row_lanes<1> lanes([&](int r) { return min(tile.begin + r, tile.end - 1) - base; }, pitch);
            float sums[2][4] = {};
            int at = 0;
#pragma unroll 1
            for (int part = 0; part < kParts; part++) {
                float c[2][1][4] = {};
                const int end = units * (part + 1) / kParts;
#pragma unroll 1
                for (; at < end; at += min(kUnits, end - at)) {
                    const uint8_t *slot = ring.wait();
                    const auto scale = [&](int s, int i) { return now[s].of(w, tile.expert, strip(group, s), 0, at + i); };
                    multiply_piece<kScheme, 1, 2, kUnits>(slot, shared_address(pool) + at * 128, 128, lanes, min(kUnits, end - at), w.Cols - at * 64, scale, c);
                    ring.drop();
                    fill();
                }
#pragma unroll
                for (int s = 0; s < 2; s++)
#pragma unroll
                    for (int r = 0; r < 4; r++) sums[s][r] += c[s][0][r];
            }
            finish(prepared, tile, group, sums);
        }
    }
}

}  // namespace atlas

template <atlas_Scheme kScheme, int kWarps, int kUnits, int kStages, int kPool>
__device__ void expert_up_tiles(const atlas_ExpertUp &a) {
    using namespace atlas;
    struct prepared {
        int pick[2];          // of this lane's columns
        float gate[2], up[2];  // scales of its rows
    };
    const atlas_Weight &w = a.W;
    const int half = w.Rows / 2, groups = half / 16, total = a.Rows * a.TopK;
    const int t = lane() % 4, g = lane() / 4;
    multiply_tiles<kScheme, kWarps, kUnits, kStages, kPool, 8>(
        w, a.Order, a.Starts, total, groups, [&](int group, int s) { return group + s * groups; }, [&](int pick) { return a.In + size_t(pick / a.TopK) * w.Cols; },
        [&](const pick_tile &tile, int group) {
            prepared p;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int column = tile.begin + 2 * t + i, n = group * 16 + g + i * 8;
                p.pick[i] = column < tile.end ? a.Order[column] : -1;
                p.gate[i] = row_scale(w, tile.expert, n), p.up[i] = row_scale(w, tile.expert, half + n);
            }
            return p;
        },
        [&](const prepared &p, const pick_tile &, int group, const float (&sums)[2][4]) {
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int pick = p.pick[r % 2];
                const float gate = sums[0][r] * unit<kScheme>::kFactor * p.gate[r / 2], up = sums[1][r] * unit<kScheme>::kFactor * p.up[r / 2];
                if (pick >= 0 && pick < total) a.Out[size_t(pick) * half + group * 16 + g + r / 2 * 8] = __float2bfloat16_rn(silu(gate) * up);
            }
        });
}

template <atlas_Scheme kScheme, int kWarps, int kUnits, int kStages, int kPool>
__device__ void expert_down_tiles(const atlas_ExpertDown &a, void *scratch) {
    using namespace atlas;
    struct prepared {
        int pick[2];
        float scale[2][2];  // of this lane's rows of both strips
    };
    const atlas_Weight &w = a.W;
    const int strips = (w.Rows + 15) / 16, groups = (strips + 1) / 2, total = a.Rows * a.TopK;
    const int t = lane() % 4, g = lane() / 4;
    float *products = static_cast<float *>(scratch);
    multiply_tiles<kScheme, kWarps, kUnits, kStages, kPool, 1>(
        w, a.Order, a.Starts, total, groups, [&](int group, int s) { return min(group * 2 + s, strips - 1); }, [&](int pick) { return a.In + size_t(pick) * w.Cols; },
        [&](const pick_tile &tile, int group) {
            prepared p;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int column = tile.begin + 2 * t + i;
                p.pick[i] = column < tile.end ? a.Order[column] : -1;
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int n = group * 32 + i * 16 + h * 8 + g;
                    p.scale[i][h] = n < w.Rows ? row_scale(w, tile.expert, n) : 0.0f;
                }
            }
            return p;
        },
        [&](const prepared &p, const pick_tile &, int group, const float (&sums)[2][4]) {
#pragma unroll
            for (int s = 0; s < 2; s++)
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const int pick = p.pick[r % 2], n = group * 32 + s * 16 + r / 2 * 8 + g;
                    if (pick >= 0 && pick < total && n < w.Rows) products[size_t(pick) * w.Rows + n] = sums[s][r] * unit<kScheme>::kFactor * p.scale[s][r / 2];
                }
        });
}
