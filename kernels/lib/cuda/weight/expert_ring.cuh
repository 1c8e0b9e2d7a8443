// ExpertUp and ExpertDown for few rows, any scheme and shape: what expert_few.cuh and expert_tiles.cuh do not take. Picks, rows with one of their experts, are
// grouped by expert into tiles of at most 8·kTiles, so that a tile reads its weights once; every block finds all tiles itself.
// A pick's bits are those of these files.
//
// Any grid along x; one block per multiprocessor is meant, or two. kWarps·32 threads, 256 for expert_up. Dynamic shared memory: the shape's
// kShared, then 4 bytes a pick (none where picks > 4096), then 12 bytes a tile. There are at most min(picks, W.Count + picks/(8·kTiles))
// tiles; where they do not fit, as many as do are worked on at a time.
#pragma once
#include "lib/cuda/weight/expert_total.cuh"
#include "lib/cuda/weight/ring.cuh"

namespace atlas {

// Sorted picks begin … end-1, all of one expert.
struct pick_tile {
    int expert, begin, end;
};

// Order, in shared memory where it is short, and tiles.
struct pick_tiles {
    static constexpr int kKept = 4096;
    const int32_t *order;
    int32_t *kept;
    pick_tile *tiles;
    int count = 0, all = 0, total, most;  // tiles that are found, that there are; picks; tiles that there is room for

    // used: bytes of dynamic shared memory before shared.
    __device__ pick_tiles(uint8_t *shared, int used, int total)
        : order(nullptr), kept(reinterpret_cast<int32_t *>(shared)), tiles(reinterpret_cast<pick_tile *>(kept + (total <= kKept ? total : 0))), total(total),
          most((dynamic_shared_bytes() - used - (total <= kKept ? total * 4 : 0)) / int(sizeof(pick_tile))) {}
    // Pick number i of the order; -1 where there is none.
    __device__ int pick(int i) const { return order[i] < total ? max(order[i], -1) : -1; }

    // Finds tiles from number first on, as many as there is room for. All threads; ends with a barrier.
    template <int kThreads>
    __device__ void find(const int32_t *from, const int32_t *starts, int experts, int size, int first) {
        order = total <= kKept ? kept : from;
        count = -first;
        if (first)
            __syncthreads();  // those before are not read any more
        else if (total <= kKept)
            for (int i = threadIdx.x; i < total; i += kThreads) kept[i] = from[i];
        for (int base = 0; base < experts; base += kThreads) {
            const int e = base + threadIdx.x;
            const int begin = e < experts ? starts[e] : 0, end = e < experts ? min(starts[e + 1], total) : 0;
            const int mine = begin >= 0 && end > begin ? (end - begin + size - 1) / size : 0;
            const scan s = block_scan<kThreads>(mine);
            for (int i = max(0, -count - s.before); i < mine && count + s.before + i < most; i++)
                tiles[count + s.before + i] = {e, begin + i * size, min(end, begin + (i + 1) * size)};
            count += s.total;
        }
        all = count + first;
        count = min(count, most);
        __syncthreads();
    }
};

// Asserts that a manifest launches so many threads, and says how much room behind so many bytes of shared memory picks and tiles have: kRoom, where its
// condition looks at that. Elsewhere there is room for all picks that are kept, and some tiles.
template <class P, int kThreads, int kUsed>
struct room_for_tiles {
    static constexpr int room() {
        if constexpr (requires { P::kRoom; }) return P::kRoom;
        return P::kShared - kUsed;
    }
    static constexpr int kRoom = room();
    static_assert(kRoom >= 64 * int(sizeof(pick_tile)), "some tiles at a time");
    static constexpr bool kFits = launched<P, kThreads, kUsed + kRoom>::kFits;
};

// Where row and column of a tile lie among its 128 results.
__device__ inline int strip_index(int row, int column) { return (row / 8 * 2 + column % 2) * 32 + row % 8 * 4 + column / 2; }

// kStrips: one of gates and one of ups; two of ups where these do not begin with a strip (W.Rows % 32 != 0).
template <atlas_Scheme kScheme, int kWarps, int kTiles, int kStrips, int kUnits, int kStages>
struct expert_up_shape {
    using ring_t = strip_ring<kScheme, kTiles, kStrips, kUnits, kStages, 8 * kTiles>;
    static constexpr int kSums = kStrips * kTiles * 128, kSides = kSums <= 256 ? 2 : 1;
    static constexpr int kParts = kWarps * ring_t::kBytes, kBarriers = kParts + kSides * kWarps * kSums * 4;
    static constexpr int kShared = (kBarriers + kWarps * kStages * 8 + 127) / 128 * 128;
};

// A warp makes kStrips strips of a tile's products over all columns.
template <atlas_Scheme kScheme, int kWarps, int kTiles, int kStrips, int kUnits, int kStages>
struct expert_down_shape {
    using ring_t = strip_ring<kScheme, kTiles, kStrips, kUnits, kStages, 8 * kTiles>;
    static constexpr int kBarriers = kWarps * ring_t::kBytes, kShared = (kBarriers + kWarps * kStages * 8 + 127) / 128 * 128;
};

}  // namespace atlas

template <class P>
__device__ void expert_up(const atlas_ExpertUp &a) {
    using namespace atlas;
    using shape = expert_up_shape<P::kScheme, P::kWarps, P::kTiles, P::kStrips, P::kUnits, P::kStages>;
    using ring_t = typename shape::ring_t;
    static_assert(room_for_tiles<P, P::kWarps * 32, shape::kShared>::kFits);
    const atlas_Weight &w = a.W;
    const int half = w.Rows / 2, total = a.Rows * a.TopK, first_up = half / 16, strips = (w.Rows + 15) / 16, groups = (half + 15) / 16;
    const int units = (w.Cols + 63) / 64, begin = units * warp() / P::kWarps, end = units * (warp() + 1) / P::kWarps;
    ring_t ring(strip_shared + warp() * ring_t::kBytes, strip_shared + shape::kBarriers + warp() * P::kStages * 8);
    const ones<P::kScheme> one;
    pick_tiles table(strip_shared + shape::kShared, shape::kShared, total);
    const bool whole = w.Cols % 8 == 0;
    wait_for_previous();
    release_next();
    block_scales<P::kScheme> scales[P::kStrips];
    int side = 0;
    const auto there = [&](int group) { return min(P::kStrips, strips - first_up - group + 1); };  // strips of a group
    int x_slot = 0;
    for (int first = 0; first <= max(table.all - 1, 0); first += table.most) {
        table.find<P::kWarps * 32>(a.Order, a.Starts, w.Count, 8 * P::kTiles, first);
        const int items = table.count * groups;

        int item = blockIdx.x, u = begin;
        const auto fill = [&]() {
            if (item >= items || begin == end) return;
            const int expert = table.tiles[item / groups].expert, group = item % groups;
            ring.fill(w, [&](int s) { return unit<P::kScheme>::at(w, expert, s ? first_up + group + s - 1 : group, u); }, there(group), u, min(P::kUnits, end - u));
            if ((u += P::kUnits) >= end) u = begin, item += gridDim.x;
        };
        for (int s = 0; s < P::kStages; s++) fill();
        int x_item = blockIdx.x, x_u = begin;
        const auto stage_piece = [&]() {
            if (x_item < items && begin < end) {
                const pick_tile tile = table.tiles[x_item / groups];
                for (int i = lane(); i < (tile.end - tile.begin) * 8; i += 32) {
                    const int pick = table.pick(tile.begin + i / 8);
                    const atlas_act *row = pick >= 0 ? a.In + size_t(pick / a.TopK) * w.Cols : nullptr;
                    uint8_t *to = ring.slots + x_slot * ring_t::kSlot + ring_t::kWeights;
                    for (int j = 0; j < P::kUnits && x_u + j < end; j++) stage_chunk(to + j * ring_t::kRowTile, i / 8, i % 8, row, (x_u + j) * 64, w.Cols, whole);
                }
                if (++x_slot == P::kStages) x_slot = 0;
                if ((x_u += P::kUnits) >= end) x_u = begin, x_item += gridDim.x;
            }
            commit_copies();
        };
        for (int s = 0; s < P::kStages; s++) stage_piece();
        for (int mine = blockIdx.x; mine < items; mine += gridDim.x) {
            const pick_tile tile = table.tiles[mine / groups];
            const int group = mine % groups, picks = tile.end - tile.begin;
            const row_lanes<P::kTiles> lanes([&](int r) { return min(r, picks - 1); });
#pragma unroll
            for (int s = 0; s < P::kStrips; s++)
                if (s < there(group)) scales[s].load(w, tile.expert, s ? first_up + group + s - 1 : group, begin, end);
            float c[P::kStrips][P::kTiles][4] = {};
            for (int at = begin; at < end; at += P::kUnits) {
                wait_copies<P::kStages - 1>();
                const uint8_t *slot = ring.wait();
                __syncwarp();
                const auto scale = [&](int s, int i) { return scales[s].of(w, tile.expert, s ? min(first_up + group + s - 1, strips - 1) : group, begin, at + i); };
                multiply_piece<P::kScheme, P::kTiles, P::kStrips, P::kUnits>(one, slot, shared_address(slot + ring_t::kWeights), ring_t::kRowTile, lanes, min(P::kUnits, end - at),
                                                                 w.Cols - at * 64, scale, c);
                ring.drop();
                fill();
                stage_piece();
            }
            float *parts = reinterpret_cast<float *>(strip_shared + shape::kParts) + side * P::kWarps * shape::kSums;
            put_sums<P::kStrips, P::kTiles>(parts + warp() * shape::kSums, c);
            __syncthreads();
            for (int i = threadIdx.x; i < picks * 16; i += P::kWarps * 32) {
                const int n = group * 16 + i % 16, r = i / 16, pick = table.pick(tile.begin + r), up = half + n;
                if (n >= half || pick < 0) continue;
                const int at = r / 8 * 128, gate_at = at + strip_index(n % 16, r % 8);
                const int up_at = at + (up / 16 - first_up - group + 1) * P::kTiles * 128 + strip_index(up % 16, r % 8);
                float sum = 0, sum_up = 0;
#pragma unroll
                for (int p = 0; p < P::kWarps; p++) sum += parts[p * shape::kSums + gate_at], sum_up += parts[p * shape::kSums + up_at];
                const float gate = sum * unit_product<P::kScheme, P::kTiles, P::kStrips>::kFactor * row_scale(w, tile.expert, n), by = sum_up * unit_product<P::kScheme, P::kTiles, P::kStrips>::kFactor * row_scale(w, tile.expert, up);
                a.Out[size_t(pick) * half + n] = __float2bfloat16_rn(silu(gate) * by);
            }
            if constexpr (shape::kSides == 1) __syncthreads();
            side ^= shape::kSides - 1;
        }
    }
}

// Products of picks, f32, in scratch [Rows·TopK,W.Rows].
template <class P>
__device__ void expert_down_picks(const atlas_ExpertDown &a, void *scratch) {
    using namespace atlas;
    using shape = expert_down_shape<P::kScheme, P::kWarps, P::kTiles, P::kStrips, P::kUnits, P::kStages>;
    using ring_t = typename shape::ring_t;
    static_assert(room_for_tiles<P, P::kWarps * 32, shape::kShared>::kFits);
    const atlas_Weight &w = a.W;
    const int total = a.Rows * a.TopK, strips = (w.Rows + 15) / 16, groups = (strips + P::kStrips - 1) / P::kStrips, units = (w.Cols + 63) / 64;
    ring_t ring(strip_shared + warp() * ring_t::kBytes, strip_shared + shape::kBarriers + warp() * P::kStages * 8);
    const ones<P::kScheme> one;
    pick_tiles table(strip_shared + shape::kShared, shape::kShared, total);
    const bool whole = w.Cols % 8 == 0;
    float *products = static_cast<float *>(scratch);
    wait_for_previous();
    release_next();
    block_scales<P::kScheme> scales[P::kStrips];
    const int step = gridDim.x * P::kWarps, start = warp() * gridDim.x + blockIdx.x;
    const auto part_end = [&](int u) { return u < units / 2 ? units / 2 : units; };  // columns are summed in two parts
    int slot_now = 0;
    for (int first = 0; first <= max(table.all - 1, 0); first += table.most) {
        table.find<P::kWarps * 32>(a.Order, a.Starts, w.Count, 8 * P::kTiles, first);
        const int items = table.count * groups;

        int item = start, u = 0;
        const auto fill = [&]() {
            if (item < items) {
                const pick_tile tile = table.tiles[item / groups];
                const int group = item % groups * P::kStrips, n = min(P::kUnits, part_end(u) - u);
                ring.fill(w, [&](int s) { return unit<P::kScheme>::at(w, tile.expert, group + s, u); }, min(P::kStrips, strips - group), u, n);
                for (int i = lane(); i < (tile.end - tile.begin) * 8; i += 32) {
                    const int pick = table.pick(tile.begin + i / 8);
                    const atlas_act *row = pick >= 0 ? a.In + size_t(pick) * w.Cols : nullptr;
                    uint8_t *to = ring.slots + slot_now * ring_t::kSlot + ring_t::kWeights;
                    for (int j = 0; j < n; j++) stage_chunk(to + j * ring_t::kRowTile, i / 8, i % 8, row, (u + j) * 64, w.Cols, whole);
                }
                if (++slot_now == P::kStages) slot_now = 0;
                if ((u += n) >= units) u = 0, item += step;
            }
            commit_copies();
        };
        for (int s = 0; s < P::kStages; s++) fill();
        for (int mine = start; mine < items; mine += step) {
            const pick_tile tile = table.tiles[mine / groups];
            const int group = mine % groups * P::kStrips, picks = tile.end - tile.begin, there = min(P::kStrips, strips - group);
            const row_lanes<P::kTiles> lanes([&](int r) { return min(r, picks - 1); });
#pragma unroll
            for (int s = 0; s < P::kStrips; s++)
                if (s < there) scales[s].load(w, tile.expert, group + s, 0, units);
            float sums[P::kStrips][P::kTiles][4] = {}, c[P::kStrips][P::kTiles][4] = {};
            for (int at = 0, n; at < units; at += n) {
                n = min(P::kUnits, part_end(at) - at);
                wait_copies<P::kStages - 1>();
                const uint8_t *slot = ring.wait();
                __syncwarp();
                const auto scale = [&](int s, int i) { return scales[s].of(w, tile.expert, min(group + s, strips - 1), 0, at + i); };
                multiply_piece<P::kScheme, P::kTiles, P::kStrips, P::kUnits>(one, slot, shared_address(slot + ring_t::kWeights), ring_t::kRowTile, lanes, n, w.Cols - at * 64, scale, c);
                ring.drop();
                fill();
                if (at + n < part_end(at)) continue;
#pragma unroll
                for (int i = 0; i < P::kStrips * P::kTiles * 4; i++) (&sums[0][0][0])[i] += (&c[0][0][0])[i], (&c[0][0][0])[i] = 0;
            }
#pragma unroll
            for (int s = 0; s < P::kStrips; s++)
#pragma unroll
                for (int j = 0; j < P::kTiles; j++)
#pragma unroll
                    for (int r = 0; r < 4; r++) {
                        const int i = r * 32 + lane(), out = (group + s) * 16 + strip_row(i), column = j * 8 + strip_column(i);
                        if (out >= w.Rows || column >= picks) continue;
                        const int pick = table.pick(tile.begin + column);
                        if (pick >= 0) products[size_t(pick) * w.Rows + out] = sums[s][j][r] * unit_product<P::kScheme, P::kTiles, P::kStrips>::kFactor * row_scale(w, tile.expert, out);
                    }
        }
    }
}
