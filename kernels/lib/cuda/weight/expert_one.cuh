// ExpertDown and ExpertDownAdd for one row and at most kPicks picks, any scheme. What does not depend on the activations is done, and weights are asked
// for, before the kernel before this one has ended, if there is room for both on a multiprocessor. The bits of a pick are those of
// expert_tiles.cuh.
//
// Any grid along x; 64·kPicks/kJoin threads. W.Cols%8 == 0, and TopK rows of 128·⌈Cols/64⌉ bytes fit kPool. Dynamic shared memory: the shape's
// kShared.
#pragma once
#include "lib/cuda/weight/add.cuh"
#include "lib/cuda/weight/ring.cuh"

namespace atlas {

// A warp's share of a sum is kJoin parts of the columns, of kParts. Pieces do not cross parts.
template <atlas_Scheme kScheme, int kParts, int kJoin, int kUnits, int kStages>
struct one_walk {
    using ring_t = strip_ring<kScheme, 1, 1, kUnits, kStages>;
    ring_t ring;
    ones<kScheme> one;
    int units, first;  // units of a strip; the first part of this warp
    int part = 0, u;   // of the next piece to copy

    __device__ one_walk(uint8_t *memory, uint8_t *barriers, int cols, int member) : ring(memory, barriers), units((cols + 63) / 64), first(member * kJoin), u(begin(0)) {}
    __device__ int begin(int p) const { return units * (first + p) / kParts; }
    __device__ int end(int p) const { return units * (first + p + 1) / kParts; }
    __device__ bool empty() const { return begin(0) == end(kJoin - 1); }

    // Copies the next piece; from: unit 0 of the strip. Tells whether it was the last one.
    __device__ bool fill(const atlas_Weight &w, const uint8_t *from) {
        if (kJoin > 1)
            while (u == end(part)) part++;
        const int n = min(kUnits, end(part) - u);
        ring.fill(w, [&](int) { return from + size_t(u) * unit<kScheme>::kPitch; }, 1, u, n);
        if ((u += n) < end(kJoin - 1)) return false;
        part = 0, u = begin(0);
        return true;
    }
    // c = products of a part with the row at x; fill copies what comes after a piece.
    template <typename Fill, typename Block>
    __device__ void multiply(int p, uint32_t x, int cols, const Block &block, const Fill &fill, float (&c)[1][1][4]) {
        const uint32_t lanes[1] = {uint32_t(lane() / 8 * 16)};
        for (int at = begin(p); at < end(p); at += kUnits) {
            const uint32_t slot = shared_address(ring.wait()), codes = slot + unit<kScheme>::codes_at(), scales = slot + unit<kScheme>::scales_at();
#pragma unroll
            for (int i = 0; i < kUnits; i++) {
                if (at + i >= end(p)) break;
                unit_product<kScheme, 1, 1, kExact> product;
                const float factor[1] = {block(at + i)};
                product.load(codes + i * unit<kScheme>::kBytes, scales + i * unit<kScheme>::kBytes, ring_t::kStrip, x + (at + i) * 128, lanes);
                product.multiply(one, x + (at + i) * 128, lanes, cols - (at + i) * 64, factor, c);
            }
            ring.drop();
            fill();
        }
    }
};

template <atlas_Scheme kScheme, int kPicks, int kJoin, int kUnits, int kStages, int kPool>
struct expert_down_one_shape {
    using walk = one_walk<kScheme, 2, kJoin, kUnits, kStages>;
    static constexpr int kWarps = 2 * kPicks / kJoin;
    static constexpr int kRowsAt = kWarps * walk::ring_t::kBytes, kProductsAt = kRowsAt + kPool, kScalesAt = kProductsAt + 2 * kPicks * 16 * 4;
    static constexpr int kTableAt = kScalesAt + kPicks * 16 * 4, kBarriersAt = kTableAt + 2 * kPicks * 4;
    static constexpr int kShared = (kBarriersAt + kWarps * kStages * 8 + 127) / 128 * 128;
};

// Zeros what follows the last column in rows of 64·units columns.
template <int kThreads>
__device__ void clear_tails(uint32_t rows_at, int rows, int units, int cols) {
    const int tail = units * 8 - cols / 8;
    for (int i = threadIdx.x; i < rows * tail; i += kThreads) store_shared(rows_at + i / tail * units * 128 + cols * 2 + i % tail * 16, uint4{});
}

}  // namespace atlas

// Sixteen outputs at a time; a warp multiplies a pick, or half of its columns where kJoin is 1.
template <class P, typename Args>
__device__ void expert_down_one(const Args &a) {
    using namespace atlas;
    using shape = expert_down_one_shape<P::kScheme, P::kPicks, P::kJoin, P::kUnits, P::kStages, P::kPool>;
    using unit_t = unit<P::kScheme>;
    constexpr int kThreads = shape::kWarps * 32, kTeam = 2 / P::kJoin;
    static_assert(launched<P, kThreads, shape::kShared>::kFits);
    const atlas_Weight &w = a.W;
    const int pick = warp() / kTeam, member = warp() % kTeam, strips = (w.Rows + 15) / 16, total = min(a.TopK, P::kPicks);
    const uint32_t memory = shared_address(strip_shared);
    float *const products = reinterpret_cast<float *>(strip_shared + shape::kProductsAt), *const scales = reinterpret_cast<float *>(strip_shared + shape::kScalesAt);
    int *const experts = reinterpret_cast<int *>(strip_shared + shape::kTableAt);
    float *const weights = reinterpret_cast<float *>(experts + P::kPicks);
    typename shape::walk walk(strip_shared + warp() * shape::walk::ring_t::kBytes, strip_shared + shape::kBarriersAt + warp() * P::kStages * 8, w.Cols, member);
    const int pitch = walk.units * 128;
    clear_tails<kThreads>(memory + shape::kRowsAt, total, walk.units, w.Cols);
    struct choice {
        int expert;
        float weight;
    };
    const auto read_pick = [&]() {  // of a lane of the first warp
        const bool there = lane() < total;
        const int id = there ? __ldcg(a.IDs + lane()) : -1;
        return choice{id < w.Count ? id : -1, there ? __ldcg(a.Weights + lane()) : 0.0f};
    };
    int strip = 0, begun = 0;  // of the next piece to copy, and how many there were
    const auto fill = [&]() {
        if (strip >= strips) return;
        begun++;
        if (walk.fill(w, unit_t::at(w, experts[pick], strip, 0))) strip += gridDim.x;
    };
    block_scales<P::kScheme> blocks;
    const auto load_scales = [&](int strip) {
        if (threadIdx.x < P::kPicks * 16) {
            const int expert = experts[threadIdx.x / 16], n = strip * 16 + threadIdx.x % 16;
            scales[threadIdx.x] = expert >= 0 && n < w.Rows ? row_scale(w, expert, n) : 0.0f;
        }
        if (experts[pick] >= 0) blocks.load(w, experts[pick], strip, walk.begin(0), walk.end(P::kJoin - 1));
    };
    atlas_act there = {};  // of a thread's output, before
    const auto load_there = [&](int n) {
        if (kAddsTo<Args> && threadIdx.x < 16 && n < w.Rows) there = a.Out[n];
    };
    const auto start = [&]() {
        strip = walk.empty() || experts[pick] < 0 ? strips : blockIdx.x, begun = 0;
        for (int s = 0; s < P::kStages; s++) fill();
        if (blockIdx.x < strips) load_scales(blockIdx.x);
    };
    // Mostly the router has ended long before the kernel before this one has: its picks are there already. If they were not,
    // what was copied is thrown away.
    release_next();
    if (warp() == 0 && lane() < P::kPicks) experts[lane()] = read_pick().expert;
    __syncthreads();
    start();
    wait_for_previous();
    if (pick < total) {  // all blocks read the same rows at the same time, so each begins elsewhere
        const int chunks = w.Cols / 8, turn = int(int64_t(chunks) * blockIdx.x / gridDim.x);
        for (int i = member * 32 + lane(); i < chunks; i += kTeam * 32) {
            const int c = i + turn < chunks ? i + turn : i + turn - chunks;
            copy_async(memory + shape::kRowsAt + pick * pitch + c * 16, a.In + size_t(pick) * w.Cols + c * 8, true);
        }
    }
    commit_copies();
    load_there(blockIdx.x * 16 + threadIdx.x);
    choice now = {};
    bool news = false;
    if (warp() == 0 && lane() < P::kPicks) {
        now = read_pick();
        news = experts[lane()] != now.expert, weights[lane()] = now.weight;
    }
    wait_copies<0>();
    if (__syncthreads_or(news)) {
        if (warp() == 0 && lane() < P::kPicks) experts[lane()] = now.expert;
        __syncthreads();
        for (int s = 0; s < begun; s++) walk.ring.wait(), walk.ring.drop();
        walk.part = 0, walk.u = walk.begin(0);
        start();
    }
    for (int at = blockIdx.x; at < strips; at += gridDim.x) {
        const int expert = experts[pick];
        if (expert >= 0) {
            const auto block = [&](int u) { return blocks.of(w, expert, at, walk.begin(0), u); };
#pragma unroll
            for (int p = 0; p < P::kJoin; p++) {
                float c[1][1][4] = {};
                walk.multiply(p, memory + shape::kRowsAt + pick * pitch, w.Cols, block, fill, c);
                if (lane() % 4 == 0)
#pragma unroll
                    for (int i = 0; i < 2; i++) products[(member * P::kJoin + p) * P::kPicks * 16 + pick * 16 + i * 8 + lane() / 4] = c[0][0][i * 2];
            }
        }
        __syncthreads();
        if (threadIdx.x < 16 && at * 16 + threadIdx.x < w.Rows) {
            float sum = 0;
#pragma unroll
            for (int p = 0; p < P::kPicks; p++) {
                const int i = p * 16 + threadIdx.x;
                const float product = (products[i] + products[P::kPicks * 16 + i]) * unit_product<P::kScheme, 1, 1, kExact>::kFactor * scales[i], with = fmaf(weights[p], product, sum);
                sum = experts[p] >= 0 ? with : sum;
            }
            a.Out[at * 16 + threadIdx.x] = __float2bfloat16_rn(kAddsTo<Args> ? plus(there, sum) : sum);
        }
        if (at + int(gridDim.x) >= strips) break;
        __syncthreads();
        load_scales(at + gridDim.x), load_there((at + gridDim.x) * 16 + threadIdx.x);
        __syncthreads();
    }
}
