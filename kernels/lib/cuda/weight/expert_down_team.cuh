// ExpertDown and ExpertDownAdd for at most kRows rows, four at most, of at most kTop picks each, any scheme but bf16. The copying warp
// asks for weights as soon as the block is there, kAhead tiles at a time: rows that are read meanwhile wait behind what is on its way.
// kSpreads: nvfp4 by spread.cuh, with bits of its own; otherwise the bits of a pick are those of expert_tiles.cuh.
//
// Any grid along x; 576 threads. W.Cols%8 == 0, the picks' rows of 128·⌈Cols/64⌉+16 bytes fit kPool, and one strip fits kRing. Dynamic
// shared memory: the shape's kShared.
#pragma once
#include "lib/cuda/weight/add.cuh"
#include "lib/cuda/weight/few_product.cuh"
#include "lib/cuda/weight/pick_list.cuh"

namespace atlas {

template <atlas_Scheme kScheme, int kRows, int kTop, int kUnits, int kRing, int kAhead, int kPool, bool kSpreads = false>
struct expert_down_team_shape {
    static constexpr int kWarps = 16, kThreads = kWarps * 32 + 64, kPicks = kTop * kRows, kWidth = kSpreads ? 2 : kRows, kMostSlots = 32;
    static constexpr int kEach = pick_list<kPicks, kWidth>::kEach, kProducts = kPicks * 16;  // picks of a lane; products of a half
    struct table {
        pick_list<kPicks, kWidth> list;
        int experts[kEach * 32], flip;  // flip: the phase that slots begin with
        float weights[kEach * 32];
    };
    static constexpr int kZerosAt = kRing, kRowsAt = kZerosAt + (kSpreads ? kUnits * 128 : 0), kProductsAt = kRowsAt + kPool, kTableAt = kProductsAt + 3 * kProducts * 4;
    static constexpr int kBarriersAt = kTableAt + int(sizeof(table) + 15) / 16 * 16, kShared = (kBarriersAt + kMostSlots * 16 + 8 + 127) / 128 * 128;
    static_assert(kRows <= 4 && kProducts >= kWarps * 32 && kProducts <= 2 * kWarps * 32 && kRing % 1024 == 0, "one or two products of a thread");
    // Barriers: a first list of picks is there, and rows are; another list is; products are.
    enum { kListed = 1, kReady, kListedAgain, kMade };
};

}  // namespace atlas

// Sixteen outputs at a time; a warp multiplies half of the columns of every eighth tile.
template <class P, typename Args>
__device__ void expert_down_team(const Args &a) {
    using namespace atlas;
    using shape = expert_down_team_shape<P::kScheme, P::kRows, P::kTop, P::kUnits, P::kRing, P::kAhead, P::kPool, P::kSpreads>;
    static_assert(launched<P, shape::kThreads, shape::kShared>::kFits);
    using unit_t = unit<P::kScheme>;
    using product_t = few_product<P::kScheme, 1, P::kSpreads>;
    constexpr int kThreads = shape::kWarps * 32, kStep = shape::kWarps / 2, kUnit = unit_t::kBytes, kEach = shape::kEach;
    constexpr bool kBlocks = P::kScheme == ATLAS_SCHEME_F8BLOCK;  // scales are wanted early
    constexpr bool kMore = shape::kProducts > kThreads;
    static_assert(unit_t::kPitch == kUnit, "a strip is one piece");
    constexpr int kCheckers = 64 + (kBlocks ? kThreads : 0);
    const atlas_Weight &w = a.W;
    const int total = min(a.Rows * a.TopK, shape::kPicks), strips = (w.Rows + 15) / 16, units = (w.Cols + 63) / 64, pitch = units * 128 + 16;
    const int slot_bytes = units * kUnit, slots = min(P::kRing / slot_bytes, shape::kMostSlots);
    const uint32_t memory = shared_address(strip_shared), rows_at = memory + shape::kRowsAt, full_at = memory + shape::kBarriersAt, empty_at = full_at + shape::kMostSlots * 8;
    const uint32_t checked_at = empty_at + shape::kMostSlots * 8;  // whether the first list was right
    typename shape::table &table = *reinterpret_cast<typename shape::table *>(strip_shared + shape::kTableAt);
    // Past the first cache, which may hold what was there before.
    const auto read = [&](int (&expert)[kEach]) {
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            const int pick = i * 32 + lane(), id = pick < total ? __ldcg(a.IDs + pick) : -1;
            expert[i] = id < w.Count ? id : -1;
        }
    };
    release_next();
    if (warp() == shape::kWarps + 1) {  // finds out whether picks that were read too early are the right ones: mostly the router had ended long before
        wait_for_previous();
        int now[kEach];
        float weight[kEach];
        read(now);
#pragma unroll
        for (int i = 0; i < kEach; i++) weight[i] = i * 32 + lane() < total ? __ldcg(a.Weights + i * 32 + lane()) : 0.0f;
        sync_named<kCheckers>(shape::kListed);
        bool news = false;
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            news |= now[i] != table.experts[i * 32 + lane()];
            table.weights[i * 32 + lane()] = weight[i], table.experts[i * 32 + lane()] = now[i];
        }
        news = __any_sync(kAllLanes, news);
        if (lane() == 0) table.flip = news;
        __syncwarp();
        arrive(checked_at);
        return;
    }
    if (warp() == shape::kWarps) {  // copies
        int experts[kEach], lines[kEach];
        read(experts);
#pragma unroll
        for (int i = 0; i < kEach; i++) lines[i] = (i * 32 + lane()) * pitch;
        init_barrier(full_at + lane() * 8, 1), init_barrier(empty_at + lane() * 8, 64);
        if (lane() == 0) init_barrier(checked_at, kCheckers - 32);
        fence_barriers();
        const auto copy = [&](int tile, int strip, int slot) {
            const uint8_t *from = unit_t::at(w, table.list.tiles[tile].expert, strip, 0);
            const int bytes = unit_t::bytes(w.Cols, 0, units);
            arrive_expecting(full_at + slot * 8, bytes);
            copy_bulk(memory + slot * slot_bytes, from, bytes, full_at + slot * 8);
        };
        int strip = blockIdx.x;
        // The first tiles, one in each slot; returns how many.
        const auto begin = [&](int phase) {
            table.list.make(experts, lines);
            __syncwarp();
            const int count = strip < strips ? min(slots, table.list.count) : 0, first = min(P::kAhead, count);
            if (lane() < first) copy(lane(), strip, lane());
            if (phase == 0)
#pragma unroll
                for (int i = 0; i < kEach; i++) table.experts[i * 32 + lane()] = experts[i];
            __syncwarp();
            if (phase == 0)
                arrive_named<kCheckers>(shape::kListed), arrive_named<kThreads + 32>(shape::kReady);
            else
                arrive_named<kThreads + 32>(shape::kListedAgain);
#pragma unroll 1
            for (int tile = first; tile < count; tile++) {
                wait_barrier(full_at + (tile - P::kAhead) * 8, phase);
                if (elected()) copy(tile, strip, tile);
            }
            return count;
        };
        int first = begin(0);
        wait_barrier(checked_at, 0);
        if (table.flip) {  // what was copied is thrown away
            if (lane() >= first) arrive(full_at + lane() * 8);
            wait_barrier(full_at + lane() * 8, 0);
            __syncwarp();
#pragma unroll
            for (int i = 0; i < kEach; i++) experts[i] = table.experts[i * 32 + lane()];
            first = begin(1);
        }
        const int count = table.list.count;
        if (count == 0) return;
        int slot = first % slots, tile = first;
        int phase = slot > 0;  // of the slot's emptying
#pragma unroll 1
        for (;; tile++) {
            if (tile >= count) tile = 0, strip += gridDim.x;
            if (strip >= strips) break;
            wait_barrier(empty_at + slot * 8, phase);
            if (elected()) copy(tile, strip, slot);
            if (++slot == slots) slot = 0, phase ^= 1;
        }
        return;
    }
    const int turn = uint32_t(w.Cols / 8) * blockIdx.x / gridDim.x;
    const uint32_t zeros = memory + shape::kZerosAt;
    const int part = warp() % 2, begin = units * part / 2, end = units * (part + 1) / 2, left = warp() / 2;
    const typename product_t::lines lines(rows_at + begin * 128, zeros);
    const uint32_t own = memory + begin * kUnit, codes_at = held(own + product_t::codes_at()), scales_at = held(own + product_t::scales_at());
    float *const products = reinterpret_cast<float *>(strip_shared + shape::kProductsAt), *const factors = products + 2 * shape::kProducts;
    block_scales<P::kScheme> scales;
    const auto load_scales = [&](int strip, int tile) {
        if constexpr (kBlocks)
            if (strip < strips && tile < table.list.count) scales.load(w, table.list.tiles[tile].expert, strip, begin, end);
    };
    if (P::kSpreads && threadIdx.x < P::kUnits * 8) store_shared(zeros + threadIdx.x * 16, {});
    zero_tails<kThreads>(rows_at, total, pitch, w.Cols);
    if constexpr (kBlocks) {
        sync_named<kCheckers>(shape::kListed);
        load_scales(blockIdx.x, left);
        arrive(checked_at);
    }
    wait_for_previous();
    constexpr int kLines = (shape::kPicks + shape::kWarps - 1) / shape::kWarps;
    keep_lines<kLines, 6 / kLines, 32, product_t::kLifts>(rows_at, pitch, a.In, warp(), shape::kWarps, total, w.Cols, lane(), turn);
    sync_named<kThreads + 32>(shape::kReady);
    wait_barrier(checked_at, 0);
    if (table.flip) sync_named<kThreads + 32>(shape::kListedAgain);
    // A thread knows the scale of one product of a pick and an output, and some finish an output of a row. Scales of further products come to
    // shared memory: they would take registers of all threads.
    const int row = threadIdx.x / 16, n = threadIdx.x % 16, expert = row < total ? table.experts[row] : -1, count = table.list.count;
    const auto copy_scale = [&](int strip) {
        const int at = kThreads + threadIdx.x, of = at / 16 < total ? table.experts[at / 16] : -1, out = strip * 16 + n;
        if (of < 0 || out >= w.Rows) return;
        if (w.Scale) copy_async4(shared_address(factors + at), w.Scale + size_t(of) * w.Rows + out, true);
        else factors[at] = 1.0f;
    };
    int slot = 0, phase = table.flip, tile = 0;
    if (phase) load_scales(blockIdx.x, left);
    const auto skip = [&](int tiles) {
        tile += tiles, slot += tiles;
        while (slot >= slots) slot -= slots, phase ^= 1;
        if (slot < 0) slot += slots, phase ^= 1;
    };
    for (int strip = blockIdx.x; strip < strips; strip += gridDim.x) {
        const float scale = expert >= 0 && strip * 16 + n < w.Rows ? row_scale(w, expert, strip * 16 + n) : 0.0f;
        if constexpr (kMore) copy_scale(strip);
        atlas_act *const out = a.Out + size_t(row) * w.Rows + strip * 16 + n;
        const bool mine = row < a.Rows && strip * 16 + n < w.Rows;
        const atlas_act there = kAddsTo<Args> && mine ? *out : atlas_act{};
        skip(left);
#pragma unroll 1
        for (; tile < count; skip(kStep)) {
            const auto &now = table.list.tiles[tile];
            const block_scales<P::kScheme> blocks = scales;
            const int of = now.expert;
            load_scales(tile + kStep < count ? strip : strip + gridDim.x, tile + kStep < count ? tile + kStep : left);
            const uint32_t codes = codes_at + slot * slot_bytes, weight_scales = scales_at + slot * slot_bytes;
            typename product_t::lines x = lines.with(now.line[lane() % 8 % shape::kWidth]);
            float c[1][1][4] = {};
            // The tile before in this slot is of other warps: where it has not come yet, its phase looks like the one after this tile.
            wait_barrier(empty_at + slot * 8, phase ^ table.flip ^ 1);
            wait_barrier(full_at + slot * 8, phase);
#pragma unroll 1
            for (int at = 0; at < end - begin; at += P::kUnits, x = x.moved(P::kUnits * 128)) {
                const auto block = [&](int, int i) { return blocks.of(w, of, strip, begin, begin + at + i); };
                const int columns = w.Cols - (begin + at) * 64;
                product_t p[P::kUnits];
                if (at + P::kUnits <= end - begin) {
#pragma unroll
                    for (int i = 0; i < P::kUnits; i++) p[i].load(codes + (at + i) * kUnit, weight_scales + (at + i) * kUnit, 0, x, i * 128);
                    product_t::template multiply<P::kUnits>(p, x, 128, columns, block, c);
                } else {
#pragma unroll 1
                    for (int i = 0; at + i < end - begin; i++) {
                        p[0].load(codes + (at + i) * kUnit, weight_scales + (at + i) * kUnit, 0, x, i * 128);
                        product_t::template multiply<1>(p, x.moved(i * 128), 0, columns - i * 64, [&](int s, int) { return block(s, i); }, c);
                    }
                }
            }
            arrive(empty_at + slot * 8);
            product_t::each(c[0][0], [&](int column, int row, float sum) {
                const int pick = column < shape::kWidth ? now.pick[column] : -1;
                if (pick >= 0) products[part * shape::kProducts + pick * 16 + row] = sum;
            });
        }
        skip(count - tile), tile = 0;
        factors[threadIdx.x] = scale;
        if constexpr (kMore) commit_copies(), wait_copies<0>();
        sync_named<kThreads>(shape::kMade);
        if (mine) {
            float sum = 0;
#pragma unroll
            for (int k = 0; k < P::kTop; k++) {
                const int p = min(row * a.TopK + k, shape::kPicks - 1), at = p * 16 + n;
                const float product = (products[at] + products[shape::kProducts + at]) * product_t::kFactor * factors[at], more = fmaf(table.weights[p], product, sum);
                sum = k < a.TopK && table.experts[p] >= 0 ? more : sum;
            }
            *out = __float2bfloat16_rn(kAddsTo<Args> ? plus(there, sum) : sum);
        }
        if (strip + int(gridDim.x) < strips) sync_named<kThreads>(shape::kMade);
    }
}
