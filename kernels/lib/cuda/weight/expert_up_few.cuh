// ExpertUp for at most kRows rows and kPicks picks, any scheme. An expert has one pick of a row at most, so its picks are one tile.
// What does not depend on picks is worked out before they are known; the copies of weights begin as soon as they are, and no more
// of them than memory needs to be busy: what is asked for at once comes at once, and late. The next kernel may start only then,
// so that its copies come after these. The bits of a pick are those of expert_tiles.cuh.
//
// Any grid along x; kTeams·256 threads. W.Rows%32 == 0, W.Cols%8 == 0, at most kUnits·kPieces·8 units of 64 columns, and kRows rows of
// 128·⌈Cols/64⌉+16 bytes fit kPool. Dynamic shared memory: the shape's kShared.
#pragma once
#include "lib/cuda/weight/expert_few.cuh"

namespace atlas {

template <atlas_Scheme kScheme, int kRows, int kPicks, int kTeams, int kUnits, int kPieces, int kStages, int kPool>
struct expert_up_few_shape {
    using unit_t = unit<kScheme>;
    static constexpr int kWarps = kTeams * 8, kStrip = kUnits * unit_t::kBytes, kSlot = (2 * kStrip + 127) / 128 * 128, kRing = kStages * kSlot;
    static constexpr int kSums = 8 * 32 * kRows;  // of an item
    static constexpr int kRowsAt = kWarps * kRing, kSumsAt = kRowsAt + kPool, kTableAt = kSumsAt + kTeams * 2 * kSums * 4;
    static constexpr int kBarriersAt = kTableAt + int(sizeof(picked_table<kRows, kPicks>) + 15) / 16 * 16, kShared = (kBarriersAt + (kWarps * kStages + 1) * 8 + 127) / 128 * 128;
    static_assert(kPieces % kStages == 0 && kRows <= 8, "slots are used alike; a warp finishes a pick");
};

}  // namespace atlas

// Teams of eight warps take items, which are 16 gates and their ups of an expert; a warp multiplies an eighth of the columns, in
// kPieces of kUnits units at most.
template <class P>
__device__ void expert_up_few(const atlas_ExpertUp &a) {
    using namespace atlas;
    using shape = expert_up_few_shape<P::kScheme, P::kRows, P::kPicks, P::kTeams, P::kUnits, P::kPieces, P::kStages, P::kPool>;
    using unit_t = unit<P::kScheme>;
    constexpr int kThreads = shape::kWarps * 32, kTurns = P::kPieces / P::kStages;
    static_assert(launched<P, kThreads, shape::kShared>::kFits);
    const atlas_Weight &w = a.W;
    const int team = warp() / 8, part = warp() % 8, half = w.Rows / 2, groups = half / 16, units = (w.Cols + 63) / 64, pitch = units * 128 + 16;
    const int begin = units * part / 8, end = units * (part + 1) / 8, total = min(a.Rows * a.TopK, P::kPicks);
    const uint32_t memory = shared_address(strip_shared), rows_at = memory + shape::kRowsAt, rows_there = memory + shape::kBarriersAt;
    const uint32_t slots = memory + warp() * shape::kRing, barriers = rows_there + 8 + warp() * P::kStages * 8;
    picked_table<P::kRows, P::kPicks> &table = *reinterpret_cast<picked_table<P::kRows, P::kPicks> *>(strip_shared + shape::kTableAt);
    const int start = team * gridDim.x + blockIdx.x, step = gridDim.x * P::kTeams, tiles_on = step / groups, groups_on = step % groups;
    struct place {
        int tile, group;
    } next = {start / groups, start % groups};
    if (lane() == 0) {
        if (warp() == 0) init_barrier(rows_there, 1);
        for (int s = 0; s < P::kStages; s++) init_barrier(barriers + s * 8, 1);
        fence_barriers();
    }
    zero_tails<kThreads>(rows_at, a.Rows, pitch, w.Cols);
    __syncthreads();
    wait_for_previous();
    if (warp() == 1 && elected()) {  // all blocks read the same rows at the same time, so each begins elsewhere
        arrive_expecting(rows_there, a.Rows * w.Cols * 2);
        const int turn = w.Cols / 8 * (blockIdx.x % 8) / 8 * 8;
#pragma unroll
        for (int r = 0; r < P::kRows; r++) {
            if (r >= a.Rows) break;
            const atlas_act *const from = a.In + size_t(r) * w.Cols;
            copy_bulk(rows_at + r * pitch + turn * 2, from + turn, (w.Cols - turn) * 2, rows_there);
            if (turn) copy_bulk(rows_at + r * pitch, from, turn * 2, rows_there);
        }
    }
    if (warp() == 0) table.read(a.Starts, a.Order, nullptr, nullptr, w.Count, total);
    __syncthreads();

    const uint8_t *from[2];  // of the next item, the first of this warp's units of gates and of ups
    block_scales<P::kScheme> next_blocks[2];
    const auto find = [&]() {
        if (next.tile >= table.count) return;
        const int expert = table.list[next.tile].expert;
#pragma unroll
        for (int s = 0; s < 2; s++) from[s] = unit_t::at(w, expert, next.group + s * groups, begin);
#pragma unroll
        for (int s = 0; s < 2; s++) next_blocks[s].load(w, expert, next.group + s * groups, begin, end);  // in front of the weights, which take longer
    };
    const auto copy = [&](int p) {  // piece p of the next item; may be nothing
        if (next.tile >= table.count) return;
        const int u = begin + p * P::kUnits, n = max(min(P::kUnits, end - u), 0), strip = n ? unit_t::bytes(w.Cols, u, n) : 0;
        const uint32_t slot = slots + p % P::kStages * shape::kSlot, barrier = barriers + p % P::kStages * 8;
        if (!elected()) return;
        arrive_expecting(barrier, 2 * strip);
        if (n == 0) return;
#pragma unroll
        for (int s = 0; s < 2; s++) copy_units<P::kScheme, P::kUnits>(slot + s * shape::kStrip, from[s] + size_t(p) * P::kUnits * unit_t::kPitch, n, strip, barrier);
    };
    find();
#pragma unroll
    for (int p = 0; p < P::kStages; p++) copy(p);
    release_next();
    const ones<P::kScheme> one;
    wait_barrier(rows_there, 0);
    for (int round = 0; next.tile < table.count; round++) {
        const picked tile = table.list[next.tile];
        const int group = next.group, n = group * 16 + lane() % 16 + lane() / 16 * half;  // lanes 0 … 15 finish gates, the others ups
        const bool finishes = part < tile.end - tile.begin;
        const float scale = finishes ? row_scale(w, tile.expert, n) * unit_product<P::kScheme, 1, 2>::kFactor : 0.0f;
        const block_scales<P::kScheme> blocks[2] = {next_blocks[0], next_blocks[1]};
        const row_lanes<1> lanes([&](int r) { return P::kRows == 1 ? 0 : table.order[min(tile.begin + r, tile.end - 1)] / a.TopK; }, pitch);
        float c[2][1][4] = {};
#pragma unroll
        for (int p = 0; p < P::kPieces; p++) {
            const uint32_t slot = slots + p % P::kStages * shape::kSlot;
            wait_barrier(barriers + p % P::kStages * 8, (round * kTurns + p / P::kStages) % 2);
#pragma unroll
            for (int i = 0; i < P::kUnits; i++) {
                const int u = begin + p * P::kUnits + i;
                if (u >= end) break;
                unit_product<P::kScheme, 1, 2> product;
                const float factor[2] = {blocks[0].of(w, tile.expert, group, begin, u), blocks[1].of(w, tile.expert, group + groups, begin, u)};
                const uint32_t x = rows_at + u * 128;
                product.load(slot + i * unit_t::kBytes + unit_t::codes_at(), slot + i * unit_t::kBytes + unit_t::scales_at(), shape::kStrip, x, lanes.at);
                product.multiply(one, x, lanes.at, w.Cols - u * 64, factor, c);
            }
            __syncwarp();
            if (p + P::kStages == P::kPieces) {
                next.tile += tiles_on, next.group += groups_on;
                if (next.group >= groups) next.group -= groups, next.tile++;
                find();
            }
            copy((p + P::kStages) % P::kPieces);
        }
        float *const sums = reinterpret_cast<float *>(strip_shared + shape::kSumsAt) + (team * 2 + round % 2) * shape::kSums;
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (lane() % 4 * 2 + i % 2 < P::kRows) sums[(part * P::kRows + lane() % 4 * 2 + i % 2) * 32 + i / 2 * 8 + lane() / 4] = c[i / 4][0][i % 4];
        sync_named<256>(1 + team);
        if (!finishes) continue;
        float sum = 0;
#pragma unroll
        for (int p = 0; p < 8; p++) sum += sums[(p * P::kRows + part) * 32 + lane()];
        sum *= scale;
        const float up = __shfl_down_sync(kAllLanes, sum, 16);
        if (lane() < 16) a.Out[size_t(table.order[tile.begin + part]) * half + n] = __float2bfloat16_rn(silu(sum) * up);
    }
}
