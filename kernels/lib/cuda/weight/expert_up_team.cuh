// ExpertUp for at most kRows rows, four at most, and 8·kRows picks, any scheme. A team of eight warps takes items, which are 16 gates and their
// ups of a tile of picks; a warp multiplies its share of the columns, and the eight sums are added in order. A ninth warp finds out which
// experts there are and keeps the team's ring full. The next kernel may start only when the first copies are asked for, so that its own come
// after these. kSpreads: nvfp4 by spread.cuh, with bits of its own, and unit u of 64 columns belongs to warp u%8; otherwise a warp has an
// eighth of the columns, and the bits of a pick are those of expert_tiles.cuh.
//
// Any grid along x; kTeams·288 threads. W.Rows%32 == 0, W.Cols%8 == 0, and kRows rows of 128·⌈Cols/64⌉+16 bytes fit kPool. Dynamic shared
// memory: the shape's kShared.
#pragma once
#include "lib/cuda/weight/few_product.cuh"
#include "lib/cuda/weight/pick_list.cuh"

namespace atlas {

template <atlas_Scheme kScheme, int kRows, int kTeams, int kUnits, int kStages, int kPool, bool kSpreads = false>
struct expert_up_team_shape {
    static constexpr int kWarps = 8 * kTeams, kThreads = (kWarps + kTeams) * 32, kPicks = 8 * kRows, kWidth = kSpreads ? 2 : kRows;
    using list = pick_list<kPicks, kWidth>;
    // Bytes from a warp's unit to its next one, in a stage and among activations, from warp to warp, and of a stage's strip and the stage.
    static constexpr int kUnit = unit<kScheme>::kBytes, kNext = kSpreads ? 8 * kUnit : kUnit, kNextRow = kSpreads ? 1024 : 128;
    static constexpr int kShare = kSpreads ? kUnit : kUnits * kUnit, kStrip = 8 * kUnits * kUnit, kStage = 2 * kStrip;
    static constexpr int kCopiers = kSpreads ? 2 : 16;  // lanes that copy a stage
    static constexpr int kSums = 8 * kWidth * 32;       // of an item
    static constexpr int kZerosAt = kTeams * kStages * kStage, kRowsAt = kZerosAt + (kSpreads ? kUnits * 1024 : 0), kSumsAt = kRowsAt + kPool;
    static constexpr int kListAt = kSumsAt + kTeams * 2 * kSums * 4, kBarriersAt = kListAt + (int(sizeof(list)) + 15) / 16 * 16, kShared = (kBarriersAt + kTeams * kStages * 16 + 127) / 128 * 128;
    static_assert(kRows <= 4 && kStages <= 32, "a lane per pick and per stage");
};

}  // namespace atlas

template <atlas_Scheme kScheme, int kRows, int kTeams, int kUnits, int kStages, int kPool, bool kSpreads = false>
__device__ void expert_up_team(const atlas_ExpertUp &a) {
    using namespace atlas;
    using shape = expert_up_team_shape<kScheme, kRows, kTeams, kUnits, kStages, kPool, kSpreads>;
    using unit_t = unit<kScheme>;
    using product_t = few_product<kScheme, 2, kSpreads>;
    const atlas_Weight &w = a.W;
    const int half = w.Rows / 2, groups = half / 16, units = (w.Cols + 63) / 64, pitch = units * 128 + 16, stages = (units + 8 * kUnits - 1) / (8 * kUnits);
    const int total = min(a.Rows * a.TopK, shape::kPicks), team = warp() < shape::kWarps ? warp() / 8 : warp() - shape::kWarps;
    const uint32_t memory = shared_address(strip_shared), rows_at = memory + shape::kRowsAt;
    const uint32_t ring_at = memory + team * kStages * shape::kStage, full_at = memory + shape::kBarriersAt + team * kStages * 16, empty_at = full_at + kStages * 8;
    typename shape::list &list = *reinterpret_cast<typename shape::list *>(strip_shared + shape::kListAt);
    const int start = team * gridDim.x + blockIdx.x, step = gridDim.x * kTeams, tiles_on = step / groups, groups_on = step % groups;
    int tile = start / groups, group = start % groups, slot = 0, phase = 0;
    const auto next_item = [&]() {
        tile += tiles_on, group += groups_on;
        if (group >= groups) group -= groups, tile++;
    };
    const auto next_slot = [&]() {
        if (++slot == kStages) slot = 0, phase ^= 1;
    };
    if (warp() >= shape::kWarps) {  // copies
        if (lane() < kStages) init_barrier(full_at + lane() * 8, shape::kCopiers), init_barrier(empty_at + lane() * 8, 256);
        fence_barriers();
        wait_for_previous();
        if (team == 0) {  // who else reads the picks only stands in the way
            const int id = lane() < total ? __ldcg(a.IDs + lane()) : -1;
            list.make(id < w.Count ? id : -1, lane(), lane() / a.TopK * pitch);
        }
        sync_named<kTeams * 32>(1 + kTeams);
        // A lane copies one warp's share of a strip, or a strip.
        const int strip = lane() / (shape::kCopiers / 2) % 2, part = lane() % (shape::kCopiers / 2);
        const int begin = kSpreads ? 0 : units * part / 8, end = kSpreads ? units : units * (part + 1) / 8;
        constexpr int kMost = kSpreads ? 8 * kUnits : kUnits;
        const uint32_t to = ring_at + strip * shape::kStrip + part * shape::kShare;
        const int count = list.count;
        int begun = 0;
        const auto tell = [&]() {  // once
            release_next();
            __syncthreads();
        };
#pragma unroll 1
        for (; tile < count; next_item()) {
            const uint8_t *from = unit_t::at(w, list.tiles[tile].expert, group + strip * groups, begin);
#pragma unroll 1
            for (int u = begin, stage = 0; stage < stages; stage++, begun++, u += kMost) {
                if (begun == kStages) tell();
                if (begun >= kStages) wait_barrier(empty_at + slot * 8, phase ^ 1);
                if (lane() < shape::kCopiers) {
                    const int n = max(min(kMost, end - u), 0), bytes = n > 0 ? unit_t::bytes(w.Cols, u, n) : 0;
                    const uint32_t at = to + slot * shape::kStage, full = full_at + slot * 8;
                    arrive_expecting(full, bytes);
                    if constexpr (unit_t::kPitch == unit_t::kBytes) {
                        if (n > 0) copy_bulk(at, from + size_t(u - begin) * shape::kUnit, bytes, full);
                    } else {
                        for (int i = 0; i < n; i++) copy_bulk(at + i * shape::kUnit, from + size_t(u - begin + i) * unit_t::kPitch, shape::kUnit, full);
                    }
                }
                __syncwarp();
                next_slot();
            }
        }
        if (begun <= kStages) tell();
        return;
    }
    const int part = warp() % 8, turn = uint32_t(w.Cols / 8) * blockIdx.x / gridDim.x;
    const int begin = units * part / 8, end = units * (part + 1) / 8, mine = kSpreads ? (units - part + 7) / 8 : end - begin;  // units of this warp
    const uint32_t zeros = memory + shape::kZerosAt, own = ring_at + part * shape::kShare, codes_at = held(own + product_t::codes_at()), scales_at = held(own + product_t::scales_at());
    const typename product_t::lines lines(rows_at + (kSpreads ? part : begin) * 128, zeros);
    if constexpr (kSpreads)
        for (int i = threadIdx.x; i < kUnits * 64; i += shape::kWarps * 32) store_shared(zeros + i * 16, {});
    zero_tails<shape::kWarps * 32>(rows_at, a.Rows, pitch, w.Cols);
    wait_for_previous();
    keep_lines<kRows, 1, shape::kWarps * 32, product_t::kLifts>(rows_at, pitch, a.In, 0, 1, a.Rows, w.Cols, threadIdx.x, turn);
    __syncthreads();
    const int count = list.count, n = lane() % 16 + lane() / 16 * half;  // lanes 0 … 15 finish gates, the others ups
    float *const sums = reinterpret_cast<float *>(strip_shared + shape::kSumsAt) + team * 2 * shape::kSums;
    block_scales<kScheme> next_blocks[2];
    const auto load_blocks = [&]() {
        if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK)
            if (tile < count)
                for (int s = 0; s < 2; s++) next_blocks[s].load(w, list.tiles[tile].expert, group + s * groups, begin, end);
    };
    load_blocks();
    for (int side = 0; tile < count; side ^= shape::kSums) {
        const auto &now = list.tiles[tile];
        const int expert = now.expert, pick = part < shape::kWidth ? now.pick[part] : -1, out = group * 16 + n, low = group;
        const float scale = pick >= 0 ? row_scale(w, expert, out) : 0.0f;  // not yet times anything, which would wait for it
        const typename product_t::lines item = lines.with(now.line[lane() % 8 % shape::kWidth]);
        const block_scales<kScheme> blocks[2] = {next_blocks[0], next_blocks[1]};
        next_item();
        load_blocks();
        float c[2][1][4] = {};
#pragma unroll 1
        for (int at = 0; at < stages * kUnits; at += kUnits) {
            const uint32_t codes = codes_at + slot * shape::kStage, scales = scales_at + slot * shape::kStage;
            const typename product_t::lines x = item.moved(at * shape::kNextRow);
            const auto block = [&](int s, int i) { return blocks[s].of(w, expert, low + s * groups, begin, begin + at + i); };
            const int left = w.Cols - (begin + at) * 64;
            wait_barrier(full_at + slot * 8, phase);
            product_t p[kUnits];
            if (at + kUnits <= mine) {
#pragma unroll
                for (int i = 0; i < kUnits; i++) p[i].load(codes + i * shape::kNext, scales + i * shape::kNext, shape::kStrip, x, i * shape::kNextRow);
                product_t::template multiply<kUnits>(p, x, shape::kNextRow, left, block, c);
            } else {
#pragma unroll 1
                for (int i = 0; at + i < mine; i++) {
                    p[0].load(codes + i * shape::kNext, scales + i * shape::kNext, shape::kStrip, x, i * shape::kNextRow);
                    product_t::template multiply<1>(p, x.moved(i * shape::kNextRow), 0, left - i * 64, [&](int s, int) { return block(s, i); }, c);
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
