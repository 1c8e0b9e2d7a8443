// ExpertDown and ExpertDownAdd for at most kRows rows and kTop·kRows picks, any scheme. An expert has one pick of a row at most, so its picks are one
// tile. Where picks lie is read by one warp of a block: hundreds that read the same words wait for one another. The bits of a pick
// are those of expert_tiles.cuh.
//
// Any grid along x; 512 threads. W.Cols%8 == 0, and the picks' rows of 128·⌈Cols/64⌉+16 bytes fit kPool. Dynamic shared memory: the
// shape's kShared.
#pragma once
#include "lib/cuda/weight/add.cuh"
#include "lib/cuda/weight/ring.cuh"

namespace atlas {

// Sorted picks begin … end-1, all of one expert.
struct picked {
    int expert, begin, end;
};

// What a block knows of all picks, in shared memory. One warp reads it, in front of a barrier; past the first cache, which may
// hold what was there before.
template <int kRows, int kMost>
struct picked_table {
    static_assert(kMost <= 64, "two picks of a lane");
    static constexpr int kEach = (kMost + 31) / 32;  // picks of a lane
    picked list[kMost];
    int order[kMost], experts[kMost];
    float weights[kMost];
    int count;

    // Reads all; tells whether the list is another one than before. Experts are below 0 where there is none. Loads come first, so that
    // they take no longer than one. ids and from may be null.
    __device__ bool read(const int32_t *starts, const int32_t *sorted, const int32_t *ids, const float *from, int all, int total) {
        int pick[kEach], expert[kEach];
        float weight[kEach];
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            const int p = i * 32 + lane();
            pick[i] = p < total ? __ldcg(sorted + p) : 0, expert[i] = p < total && ids ? __ldcg(ids + p) : -1;
            weight[i] = p < total && from ? __ldcg(from + p) : 0.0f;
        }
        bool news = false;
        int n = 0;
        for (int base = 0; base < all; base += 128) {
            picked p[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int e = base + i * 32 + lane();
                p[i] = {e, e < all ? __ldcg(starts + e) : 0, e < all ? __ldcg(starts + e + 1) : 0};
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const bool there = p[i].begin >= 0 && p[i].begin < p[i].end && p[i].end <= total;
                const uint32_t which = __ballot_sync(kAllLanes, there);
                const int at = n + __popc(which & (1u << lane()) - 1);
                p[i].end = min(p[i].end, p[i].begin + kRows);
                if (there && at < kMost) {
                    news |= list[at].expert != p[i].expert || list[at].begin != p[i].begin || list[at].end != p[i].end;
                    list[at] = p[i];
                }
                n += __popc(which);
            }
        }
        news |= n != count;
        __syncwarp();
        if (lane() == 0) count = min(n, kMost);
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            const int p = i * 32 + lane();
            if (p < total) order[p] = min(max(pick[i], 0), total - 1), experts[p] = expert[i] < all ? expert[i] : -1, weights[p] = weight[i];
        }
        return news;
    }
};

template <atlas_Scheme kScheme, int kRows, int kTop, int kUnits, int kStages, int kPool>
struct expert_down_few_shape {
    using ring_t = strip_ring<kScheme, 1, 1, kUnits, kStages>;
    using table = picked_table<kRows, kTop * kRows>;
    static constexpr int kWarps = 16, kPicks = kTop * kRows, kProducts = kPicks * 16;  // of a part
    static constexpr int kPoolAt = kWarps * ring_t::kBytes, kProductsAt = kPoolAt + kPool, kTables = kProductsAt + 2 * kProducts * 4;
    static constexpr int kBarriers = kTables + int(sizeof(table) + 15) / 16 * 16, kShared = (kBarriers + (kWarps * kStages + 1) * 8 + 127) / 128 * 128;
    static_assert(kRows <= 8 && kProducts <= 2 * kWarps * 32, "two products of a thread");
};

// Zeros the chunks of rows past the last column.
template <int kThreads>
__device__ void zero_tails(uint32_t pool, int rows, int pitch, int cols) {
    const int tail = pitch / 16 - 1 - cols / 8;
    for (int i = threadIdx.x; i < rows * tail; i += kThreads) store_shared(pool + i / tail * pitch + cols * 2 + i % tail * 16, uint4{});
}

// Copies rows of activations; all threads, each of which arrives at the barrier. All blocks read the same rows at the same time, so
// each begins elsewhere: memory serves one block after the other where they ask for the same bytes.
template <int kThreads>
__device__ void copy_rows(uint32_t pool, int pitch, const atlas_act *from, int rows, int cols, uint32_t barrier) {
    const int chunks = cols / 8, all = rows * chunks, first = int(int64_t(all) * blockIdx.x / gridDim.x);
    for (int i = threadIdx.x; i < all; i += kThreads) {
        const int j = i + first < all ? i + first : i + first - all;
        copy_async(pool + j / chunks * pitch + j % chunks * 16, from + size_t(j) * 8, true);
    }
    arrive_after_copies(barrier);
}

}  // namespace atlas

// Sixteen outputs at a time; a warp multiplies half of an expert's columns.
template <class P, typename Args>
__device__ void expert_down_few(const Args &a) {
    using namespace atlas;
    using shape = expert_down_few_shape<P::kScheme, P::kRows, P::kTop, P::kUnits, P::kStages, P::kPool>;
    using ring_t = typename shape::ring_t;
    static_assert(launched<P, shape::kWarps * 32, shape::kShared>::kFits);
    constexpr int kWarps = shape::kWarps, kThreads = kWarps * 32;
    const atlas_Weight &w = a.W;
    const int total = min(a.Rows * a.TopK, shape::kPicks), strips = (w.Rows + 15) / 16, units = (w.Cols + 63) / 64, pitch = units * 128 + 16;
    const uint32_t pool = shared_address(strip_shared + shape::kPoolAt), rows_there = shared_address(strip_shared + shape::kBarriers);
    float *const products = reinterpret_cast<float *>(strip_shared + shape::kProductsAt);
    ring_t ring(strip_shared + warp() * ring_t::kBytes, strip_shared + shape::kBarriers + 8 + warp() * P::kStages * 8);
    const ones<P::kScheme> one;
    typename shape::table &table = *reinterpret_cast<typename shape::table *>(strip_shared + shape::kTables);
    const auto part_begin = [&](int item) { return units * (item % 2) / 2; };
    const auto part_end = [&](int item) { return units * (item % 2 + 1) / 2; };

    // Items are the halves of the experts, for one strip after the other.
    struct place {
        int strip, item, u;
    };
    place next = {};
    int begun = 0;
    const auto settle = [&]() {  // to the first place from here on that is there
        while (next.strip < strips && (next.item >= table.count * 2 || part_begin(next.item) == part_end(next.item))) {
            next.item += kWarps;
            if (next.item >= table.count * 2) next.item = warp(), next.strip += gridDim.x;
            if (warp() >= table.count * 2) next.strip = strips;
        }
        next.u = part_begin(next.item);
    };
    const auto fill = [&]() {
        if (next.strip >= strips) return;
        const int end = part_end(next.item);
        ring.fill(w, [&](int) { return unit<P::kScheme>::at(w, table.list[next.item / 2].expert, next.strip, next.u); }, 1, next.u, min(P::kUnits, end - next.u));
        if ((next.u += P::kUnits) >= end) next.item += kWarps, settle();
        begun++;
    };
    block_scales<P::kScheme> scales;
    const auto load_scales = [&](int strip, int item) {
        if (item < table.count * 2 && strip < strips) scales.load(w, table.list[item / 2].expert, strip, part_begin(item), part_end(item));
    };
    const auto start = [&]() {
        next = {int(blockIdx.x), warp(), 0}, begun = 0;
        settle();
        for (int s = 0; s < P::kStages; s++) fill();
        load_scales(blockIdx.x, warp());
    };
    // Mostly the router has ended long before the kernel before this one has: its picks are there already. If they were not,
    // what was copied is thrown away.
    release_next();
    if (threadIdx.x == 0) init_barrier(rows_there, kWarps * 32), fence_barriers();
    zero_tails<kWarps * 32>(pool, total, pitch, w.Cols);
    if (warp() == 0) table.read(a.Starts, a.Order, a.IDs, a.Weights, w.Count, total);
    __syncthreads();
    start();
    __syncthreads();
    wait_for_previous();
    copy_rows<kWarps * 32>(pool, pitch, a.In, total, w.Cols, rows_there);
    const bool news = warp() == 0 && table.read(a.Starts, a.Order, a.IDs, a.Weights, w.Count, total);
    if (__syncthreads_or(news)) {
        for (int s = 0; s < begun; s++) ring.wait(), ring.drop();
        start();
    }
    // A thread finishes one or two products of a pick and an output.
    constexpr int kEach = (shape::kProducts + kThreads - 1) / kThreads;
    const int row = threadIdx.x / 16, n = threadIdx.x % 16;
    int experts[kEach];
#pragma unroll
    for (int i = 0; i < kEach; i++) {
        const int pick = i * (kThreads / 16) + row;
        experts[i] = pick < total ? table.experts[pick] : -1;
    }
    wait_barrier(rows_there, 0);
    for (int strip = blockIdx.x; strip < strips; strip += gridDim.x) {
        float scale[kEach];
#pragma unroll
        for (int i = 0; i < kEach; i++) scale[i] = experts[i] >= 0 && strip * 16 + n < w.Rows ? row_scale(w, experts[i], strip * 16 + n) : 0.0f;
        atlas_act *const out = a.Out + size_t(row) * w.Rows + strip * 16 + n;
        const bool mine = row < a.Rows && strip * 16 + n < w.Rows;
        const atlas_act there = kAddsTo<Args> && mine ? *out : atlas_act{};
        for (int item = warp(); item < table.count * 2; item += kWarps) {
            const picked tile = table.list[item / 2];
            const int begin = part_begin(item), end = part_end(item);
            const block_scales<P::kScheme> now = scales;
            load_scales(item + kWarps < table.count * 2 ? strip : strip + gridDim.x, item + kWarps < table.count * 2 ? item + kWarps : warp());
            const row_lanes<1> lanes([&](int r) { return table.order[min(tile.begin + r, tile.end - 1)]; }, pitch);
            float c[1][1][4] = {};
            for (int at = begin; at < end; at += P::kUnits) {
                const uint8_t *slot = ring.wait();
                const auto block = [&](int, int i) { return now.of(w, tile.expert, strip, begin, at + i); };
                multiply_piece<P::kScheme, 1, 1, P::kUnits>(one, slot, pool + at * 128, 128, lanes, min(P::kUnits, end - at), w.Cols - at * 64, block, c);
                ring.drop();
                fill();
            }
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int column = tile.begin + lane() % 4 * 2 + r % 2;
                if (column < tile.end) products[item % 2 * shape::kProducts + table.order[column] * 16 + lane() / 4 + r / 2 * 8] = c[0][0][r];
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            const int at = i * kThreads + threadIdx.x;
            if (at / 16 < total) products[at] = (products[at] + products[shape::kProducts + at]) * unit_product<P::kScheme, 1, 1>::kFactor * scale[i];
        }
        __syncthreads();
        if (mine) {
            float sum = 0;
            for (int p = row * a.TopK; p < (row + 1) * a.TopK; p++)
                if (table.experts[p] >= 0) sum = fmaf(table.weights[p], products[p * 16 + n], sum);
            *out = __float2bfloat16_rn(kAddsTo<Args> ? plus(there, sum) : sum);
        }
        __syncthreads();
    }
}
