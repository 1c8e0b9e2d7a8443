// ExpertUp of nvfp4 for at most kRows rows, four at most, and kTop·kRows picks, by spread.cuh, with bits of its own. A team of eight warps takes items, which
// are 16 gates and their ups of a tile of two picks; unit u of 64 columns belongs to warp u%8, and the eight sums are added in order. A ninth
// warp finds out which experts there are and keeps the team's ring full. The next kernel may start only when the first copies are asked
// for, so that its own come after these.
//
// Any grid along x; kTeams·288 threads. W.Rows%32 == 0, W.Cols%8 == 0, and kRows rows of 128·⌈Cols/64⌉+16 bytes fit kPool. Dynamic shared
// memory: the shape's kShared.
#pragma once
#include "lib/cuda/weight/few_product.cuh"
#include "lib/cuda/weight/pick_list.cuh"

namespace atlas {

template <int kRows, int kTop, int kTeams, int kUnits, int kStages, int kPool>
struct expert_up_team_shape {
    static constexpr int kWarps = 8 * kTeams, kThreads = (kWarps + kTeams) * 32, kPicks = kTop * kRows, kWidth = 2;
    using list = pick_list<kPicks, kWidth>;
    // Bytes of a unit, from a warp's unit to its next one, in a stage and among activations, and of a stage's strip and the stage.
    static constexpr int kUnit = unit<ATLAS_SCHEME_NVFP4>::kBytes, kNext = 8 * kUnit, kNextRow = 1024, kStrip = 8 * kUnits * kUnit, kStage = 2 * kStrip;
    static constexpr int kSums = 8 * kWidth * 32;  // of an item
    static constexpr int kZerosAt = kTeams * kStages * kStage, kRowsAt = kZerosAt + kUnits * 1024, kSumsAt = kRowsAt + kPool;
    static constexpr int kListAt = kSumsAt + kTeams * 2 * kSums * 4, kBarriersAt = kListAt + (int(sizeof(list)) + 15) / 16 * 16, kShared = (kBarriersAt + kTeams * kStages * 16 + 127) / 128 * 128;
    static_assert(kRows <= 4 && kStages <= 32, "a lane per stage");
};

}  // namespace atlas

template <class P>
__device__ void expert_up_team(const atlas_ExpertUp &a) {
    using namespace atlas;
    using shape = expert_up_team_shape<P::kRows, P::kTop, P::kTeams, P::kUnits, P::kStages, P::kPool>;
    static_assert(launched<P, shape::kThreads, shape::kShared>::kFits);
    using unit_t = unit<ATLAS_SCHEME_NVFP4>;
    using product_t = few_product<ATLAS_SCHEME_NVFP4, 2, true>;
    const atlas_Weight &w = a.W;
    const int half = w.Rows / 2, groups = half / 16, units = (w.Cols + 63) / 64, pitch = units * 128 + 16, stages = (units + 8 * P::kUnits - 1) / (8 * P::kUnits);
    const int total = min(a.Rows * a.TopK, shape::kPicks), team = warp() < shape::kWarps ? warp() / 8 : warp() - shape::kWarps;
    const uint32_t memory = shared_address(strip_shared), rows_at = memory + shape::kRowsAt;
    const uint32_t ring_at = memory + team * P::kStages * shape::kStage, full_at = memory + shape::kBarriersAt + team * P::kStages * 16, empty_at = full_at + P::kStages * 8;
    typename shape::list &list = *reinterpret_cast<typename shape::list *>(strip_shared + shape::kListAt);
    const int start = team * gridDim.x + blockIdx.x, step = gridDim.x * P::kTeams, tiles_on = step / groups, groups_on = step % groups;
    int tile = start / groups, group = start % groups, slot = 0, phase = 0;
    const auto next_item = [&]() {
        tile += tiles_on, group += groups_on;
        if (group >= groups) group -= groups, tile++;
    };
    const auto next_slot = [&]() {
        if (++slot == P::kStages) slot = 0, phase ^= 1;
    };
    if (warp() >= shape::kWarps) {  // copies
        if (lane() < P::kStages) init_barrier(full_at + lane() * 8, 1), init_barrier(empty_at + lane() * 8, 256);
        fence_barriers();
        wait_for_previous();
        if (team == 0) {  // who else reads the picks only stands in the way
            int expert[shape::list::kEach], line[shape::list::kEach];
#pragma unroll
            for (int i = 0; i < shape::list::kEach; i++) {
                const int pick = i * 32 + lane(), id = pick < total ? __ldcg(a.IDs + pick) : -1;
                expert[i] = id < w.Count ? id : -1, line[i] = pick / a.TopK * pitch;
            }
            list.make(expert, line);
        }
        sync_named<P::kTeams * 32>(1 + P::kTeams);
        const int count = list.count;
        int begun = 0;
        const auto tell = [&]() {  // once
            release_next();
            __syncthreads();
        };
#pragma unroll 1
        for (; tile < count; next_item()) {
            const int expert = list.tiles[tile].expert;
#pragma unroll 1
            for (int stage = 0; stage < stages; stage++, begun++) {
                if (begun == P::kStages) tell();
                if (begun >= P::kStages) wait_barrier(empty_at + slot * 8, phase ^ 1);
                if (elected()) {
                    const uint32_t to = ring_at + slot * shape::kStage, full = full_at + slot * 8;
                    const int u = stage * 8 * P::kUnits, bytes = unit_t::bytes(w.Cols, u, min(8 * P::kUnits, units - u));
                    arrive_expecting(full, 2 * bytes);
#pragma unroll
                    for (int s = 0; s < 2; s++) copy_bulk(to + s * shape::kStrip, unit_t::at(w, expert, group + s * groups, u), bytes, full);
                }
                next_slot();
            }
        }
        __syncwarp();
        if (begun <= P::kStages) tell();
        return;
    }
    const int part = warp() % 8, turn = uint32_t(w.Cols / 8) * blockIdx.x / gridDim.x;
    const int mine = (units - part + 7) / 8;  // units of this warp
    const uint32_t zeros = memory + shape::kZerosAt, own = ring_at + part * shape::kUnit, codes_at = held(own + product_t::codes_at()), scales_at = held(own + product_t::scales_at());
    const typename product_t::lines lines(rows_at + part * 128, zeros);
    for (int i = threadIdx.x; i < P::kUnits * 64; i += shape::kWarps * 32) store_shared(zeros + i * 16, {});
    zero_tails<shape::kWarps * 32>(rows_at, a.Rows, pitch, w.Cols);
    wait_for_previous();
    keep_lines<P::kRows, 1, shape::kWarps * 32, product_t::kLifts>(rows_at, pitch, a.In, 0, 1, a.Rows, w.Cols, threadIdx.x, turn);
    __syncthreads();
    const int count = list.count, n = lane() % 16 + lane() / 16 * half;  // lanes 0 … 15 finish gates, the others ups
    float *const sums = reinterpret_cast<float *>(strip_shared + shape::kSumsAt) + team * 2 * shape::kSums;
    const auto no_blocks = [](int, int) { return 0.0f; };
    for (int side = 0; tile < count; side ^= shape::kSums) {
        const auto &now = list.tiles[tile];
        const int expert = now.expert, pick = part < shape::kWidth ? now.pick[part] : -1, out = group * 16 + n;
        const float scale = pick >= 0 ? row_scale(w, expert, out) : 0.0f;  // not yet times anything, which would wait for it
        const typename product_t::lines item = lines.with(now.line[lane() % 8 % shape::kWidth]);
        next_item();
        float c[2][1][4] = {};
#pragma unroll 1
        for (int at = 0; at < stages * P::kUnits; at += P::kUnits) {
            const uint32_t codes = codes_at + slot * shape::kStage, scales = scales_at + slot * shape::kStage;
            const typename product_t::lines x = item.moved(at * shape::kNextRow);
            wait_barrier(full_at + slot * 8, phase);
            product_t p[P::kUnits];
            if (at + P::kUnits <= mine) {
#pragma unroll
                for (int i = 0; i < P::kUnits; i++) p[i].load(codes + i * shape::kNext, scales + i * shape::kNext, shape::kStrip, x, i * shape::kNextRow);
                product_t::template multiply<P::kUnits>(p, x, 0, 0, no_blocks, c);
            } else {
#pragma unroll 1
                for (int i = 0; at + i < mine; i++) {
                    p[0].load(codes + i * shape::kNext, scales + i * shape::kNext, shape::kStrip, x, i * shape::kNextRow);
                    product_t::template multiply<1>(p, x.moved(i * shape::kNextRow), 0, 0, no_blocks, c);
                }
            }
            arrive(empty_at + slot * 8);
            next_slot();
        }
#pragma unroll
        for (int s = 0; s < 2; s++)
            product_t::each(c[s][0], [&](int column, int row, float sum) {
                if (column < shape::kWidth) sums[side + (part * shape::kWidth + column) * 32 + s * 16 + row] = sum;
            });
        sync_named<256>(1 + team);
        if (pick < 0) continue;
        float sum = 0;
#pragma unroll
        for (int p = 0; p < 8; p++) sum += sums[side + (p * shape::kWidth + part) * 32 + lane()];
        sum *= product_t::kFactor * scale;
        const float up = __shfl_down_sync(kAllLanes, sum, 16);
        if (lane() < 16) a.Out[size_t(pick) * half + out] = __float2bfloat16_rn(silu(sum) * up);
    }
}
