// ExpertUp and ExpertDown for one row and at most eight picks, any scheme. Little lies between the router and the last byte of
// weights: what can be worked out before is, and all copies begin as soon as the picks are known. expert_up_one lets the next
// kernel start only then; expert_down_one, started so early, has its weights when the kernel before it ends, if there is room for
// both on a multiprocessor. The bits of a pick are those of expert_tiles.cuh.
//
// Any grid along x. W.Cols%8 == 0, and the rows that are multiplied, 128·⌈Cols/64⌉ bytes each, fit kPool: one in ExpertUp, TopK in
// ExpertDown. expert_up_one: kTeams·256/kJoin threads, W.Rows%32 == 0. expert_down_one: 512/kJoin threads. Dynamic shared memory:
// the shape's kShared.
#pragma once
#include "lib/cuda/weight/ring.cuh"

namespace atlas {

constexpr int kOnePicks = 8;

// A warp's share of a sum is kJoin parts of the columns, of kParts. Pieces do not cross parts.
template <atlas_Scheme kScheme, int kStrips, int kParts, int kJoin, int kUnits, int kStages>
struct one_walk {
    using ring_t = strip_ring<kScheme, 1, kStrips, kUnits, kStages>;
    ring_t ring;
    int units, first;  // units of a strip; the first part of this warp
    int part = 0, u;   // of the next piece to copy

    __device__ one_walk(uint8_t *memory, uint8_t *barriers, int cols, int member) : ring(memory, barriers), units((cols + 63) / 64), first(member * kJoin), u(begin(0)) {}
    __device__ int begin(int p) const { return units * (first + p) / kParts; }
    __device__ int end(int p) const { return units * (first + p + 1) / kParts; }
    __device__ bool empty() const { return begin(0) == end(kJoin - 1); }

    // Copies the next piece; from: unit 0 of the strip that this lane copies. Tells whether it was the last one of the strips.
    __device__ bool fill(const atlas_Weight &w, const uint8_t *from) {
        if (kJoin > 1)
            while (u == end(part)) part++;
        const int n = min(kUnits, end(part) - u);
        ring.fill(w, from + size_t(u) * unit<kScheme>::kPitch, kStrips, u, n);
        if ((u += n) < end(kJoin - 1)) return false;
        part = 0, u = begin(0);
        return true;
    }
    // c = products of a part with the row at x; fill copies what comes after a piece.
    template <typename Fill, typename Block>
    __device__ void multiply(int p, uint32_t x, int cols, const Block &block, const Fill &fill, float (&c)[kStrips][1][4]) {
        const uint32_t lanes[1] = {uint32_t(lane() / 8 * 16)};
        for (int at = begin(p); at < end(p); at += kUnits) {
            const uint32_t slot = shared_address(ring.wait()), codes = slot + lane() * 16, scales = slot + unit<kScheme>::scales_at();
#pragma unroll
            for (int i = 0; i < kUnits; i++) {
                if (at + i >= end(p)) break;
                unit_product<kScheme, 1, kStrips> product;
                float factor[kStrips];
#pragma unroll
                for (int s = 0; s < kStrips; s++) factor[s] = block(s, at + i);
                product.load(codes + i * unit<kScheme>::kBytes, scales + i * unit<kScheme>::kBytes, ring_t::kStrip, x + (at + i) * 128, lanes);
                product.multiply(x + (at + i) * 128, lanes, cols - (at + i) * 64, factor, c);
            }
            ring.drop();
            fill();
        }
    }
};

template <atlas_Scheme kScheme, int kTeams, int kUnits, int kPieces, int kStages, int kPool>
struct expert_up_one_shape {
    using unit_t = unit<kScheme>;
    static constexpr int kWarps = kTeams * 8, kStrip = kUnits * unit_t::kBytes, kSlot = (2 * kStrip + 127) / 128 * 128, kRing = kStages * kSlot;
    static constexpr int kCopies = unit_t::kPitch == unit_t::kBytes ? 1 : kUnits;  // of a strip's part of a piece
    static constexpr int kRowAt = kWarps * kRing, kSumsAt = kRowAt + kPool, kTableAt = kSumsAt + kTeams * 2 * 8 * 32 * 4;
    static constexpr int kBarriersAt = kTableAt + (2 * kOnePicks + 4) * 4, kShared = (kBarriersAt + (kWarps * kStages + 1) * 8 + 127) / 128 * 128;
    static_assert(kPieces % kStages == 0 && 2 * kCopies <= 32, "slots are used alike; a lane per copy");
};

template <atlas_Scheme kScheme, int kJoin, int kUnits, int kStages, int kPool>
struct expert_down_one_shape {
    using walk = one_walk<kScheme, 1, 2, kJoin, kUnits, kStages>;
    static constexpr int kWarps = 2 * kOnePicks / kJoin;
    static constexpr int kRowsAt = kWarps * walk::ring_t::kBytes, kProductsAt = kRowsAt + kPool, kScalesAt = kProductsAt + 2 * kOnePicks * 16 * 4;
    static constexpr int kTableAt = kScalesAt + kOnePicks * 16 * 4, kBarriersAt = kTableAt + 2 * kOnePicks * 4;
    static constexpr int kShared = (kBarriersAt + (kWarps * kStages + 1) * 8 + 127) / 128 * 128;
};

// Zeros what follows the last column in rows of 64·units columns.
template <int kThreads>
__device__ void clear_tails(uint32_t rows_at, int rows, int units, int cols) {
    const int tail = units * 8 - cols / 8;
    for (int i = threadIdx.x; i < rows * tail; i += kThreads) store_shared(rows_at + i / tail * units * 128 + cols * 2 + i % tail * 16, uint4{});
}

}  // namespace atlas

// Teams of eight warps take items, which are 16 gates and their ups of a pick; a warp multiplies an eighth of the columns, in
// kPieces of kUnits units at most.
template <atlas_Scheme kScheme, int kTeams, int kUnits, int kPieces, int kStages, int kPool>
__device__ void expert_up_one(const atlas_ExpertUp &a) {
    using namespace atlas;
    using shape = expert_up_one_shape<kScheme, kTeams, kUnits, kPieces, kStages, kPool>;
    using unit_t = unit<kScheme>;
    constexpr int kThreads = shape::kWarps * 32, kTurns = kPieces / kStages;
    const atlas_Weight &w = a.W;
    const int team = warp() / 8, part = warp() % 8, half = w.Rows / 2, groups = half / 16, units = (w.Cols + 63) / 64;
    const int begin = units * part / 8, end = units * (part + 1) / 8;
    const uint32_t memory = shared_address(strip_shared), row_there = memory + shape::kBarriersAt, slots = memory + warp() * shape::kRing;
    const uint32_t barriers = row_there + 8 + warp() * kStages * 8;
    int *const experts = reinterpret_cast<int *>(strip_shared + shape::kTableAt), *const order = experts + kOnePicks, &count = order[kOnePicks];
    int pick = (team * gridDim.x + blockIdx.x) / groups, group = (team * gridDim.x + blockIdx.x) % groups;
    if (lane() == 0) {
        if (warp() == 0) init_barrier(row_there, 1);
        for (int s = 0; s < kStages; s++) init_barrier(barriers + s * 8, 1);
        fence_barriers();
    }
    if (threadIdx.x < kOnePicks) experts[threadIdx.x] = 0;
    clear_tails<kThreads>(memory + shape::kRowAt, 1, units, w.Cols);
    __syncthreads();
    wait_for_previous();
    if (warp() == 0) {
        const int sorted = lane() < a.TopK ? __ldcg(a.Order + lane()) : 0, all = __ldcg(a.Starts + w.Count);
        for (int base = 0; base < w.Count; base += 128) {
            int first[4], last[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int e = base + i * 32 + lane();
                first[i] = e < w.Count ? __ldcg(a.Starts + e) : 0, last[i] = e < w.Count ? __ldcg(a.Starts + e + 1) : 0;
            }
#pragma unroll
            for (int i = 0; i < 4; i++)  // an expert has one pick of the row at most
                if (first[i] >= 0 && first[i] < last[i] && first[i] < kOnePicks) experts[first[i]] = base + i * 32 + lane();
        }
        if (lane() < kOnePicks) order[lane()] = min(max(sorted, 0), a.TopK - 1);
        if (lane() == 0) count = min(all, min(a.TopK, kOnePicks));
    } else if (threadIdx.x == 32) {
        arrive_expecting(row_there, w.Cols * 2);
        copy_bulk(memory + shape::kRowAt, a.In, w.Cols * 2, row_there);
    }
    __syncthreads();
    for (int round = 0; pick < count; round++) {
        const int expert = experts[pick];
        const uint8_t *const from = unit_t::at(w, expert, group + lane() / shape::kCopies % 2 * groups, begin + lane() % shape::kCopies);
        const auto copy = [&](int p) {  // also nothing
            const int u = begin + p * kUnits, n = max(min(kUnits, end - u), 0), strip = n ? unit_t::bytes(w.Cols, u, n) : 0;
            const uint32_t slot = slots + p % kStages * shape::kSlot, barrier = barriers + p % kStages * 8;
            if (lane() == 0) arrive_expecting(barrier, 2 * strip);
            __syncwarp();
            if (lane() < 2 * shape::kCopies && lane() % shape::kCopies < n)
                copy_bulk(slot + lane() / shape::kCopies * shape::kStrip + lane() % shape::kCopies * unit_t::kBytes, from + size_t(p) * kUnits * unit_t::kPitch,
                          shape::kCopies == 1 ? strip : unit_t::kBytes, barrier);
        };
#pragma unroll
        for (int p = 0; p < kStages; p++) copy(p);
        if (round == 0) release_next();  // its copies come after these
        const int n = group * 16 + lane() % 16 + lane() / 16 * half;  // lanes 0 … 15 finish gates, the others ups
        const float scale = part == 0 ? row_scale(w, expert, n) * unit_t::kFactor : 0.0f;
        block_scales<kScheme> blocks[2];
#pragma unroll
        for (int s = 0; s < 2; s++) blocks[s].load(w, expert, group + s * groups, begin, end);
        if (round == 0) wait_barrier(row_there, 0);
        float c[2][1][4] = {};
        const uint32_t lanes[1] = {uint32_t(lane() / 8 * 16)};
#pragma unroll
        for (int p = 0; p < kPieces; p++) {
            const uint32_t slot = slots + p % kStages * shape::kSlot;
            wait_barrier(barriers + p % kStages * 8, (round * kTurns + p / kStages) % 2);
#pragma unroll
            for (int i = 0; i < kUnits; i++) {
                const int u = begin + p * kUnits + i;
                if (u >= end) break;
                unit_product<kScheme, 1, 2> product;
                const float factor[2] = {blocks[0].of(w, expert, group, begin, u), blocks[1].of(w, expert, group + groups, begin, u)};
                const uint32_t x = memory + shape::kRowAt + u * 128;
                product.load(slot + i * unit_t::kBytes + lane() * 16, slot + i * unit_t::kBytes + unit_t::scales_at(), shape::kStrip, x, lanes);
                product.multiply(x, lanes, w.Cols - u * 64, factor, c);
            }
            __syncwarp();
            if (p + kStages < kPieces) copy(p + kStages);
        }
        float *const sums = reinterpret_cast<float *>(strip_shared + shape::kSumsAt) + (team * 2 + round % 2) * 256;
        if (lane() % 4 == 0)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[part * 32 + i * 8 + lane() / 4] = c[i / 2][0][i % 2 * 2];
        sync_named<256>(1 + team);
        if (part == 0) {
            float sum = 0;
#pragma unroll
            for (int p = 0; p < 8; p++) sum += sums[p * 32 + lane()];
            sum *= scale;
            const float up = __shfl_down_sync(kAllLanes, sum, 16);
            if (lane() < 16) a.Out[size_t(order[pick]) * half + n] = __float2bfloat16_rn(silu(sum) * up);
        }
        group += gridDim.x * kTeams % groups, pick += gridDim.x * kTeams / groups;
        if (group >= groups) group -= groups, pick++;
    }
}

// Sixteen outputs at a time; a warp multiplies a pick, or half of its columns where kJoin is 1.
template <atlas_Scheme kScheme, int kJoin, int kUnits, int kStages, int kPool>
__device__ void expert_down_one(const atlas_ExpertDown &a) {
    using namespace atlas;
    using shape = expert_down_one_shape<kScheme, kJoin, kUnits, kStages, kPool>;
    using unit_t = unit<kScheme>;
    constexpr int kThreads = shape::kWarps * 32, kTeam = 2 / kJoin;
    const atlas_Weight &w = a.W;
    const int pick = warp() / kTeam, member = warp() % kTeam, strips = (w.Rows + 15) / 16, total = min(a.TopK, kOnePicks);
    const uint32_t memory = shared_address(strip_shared), rows_there = memory + shape::kBarriersAt;
    float *const products = reinterpret_cast<float *>(strip_shared + shape::kProductsAt), *const scales = reinterpret_cast<float *>(strip_shared + shape::kScalesAt);
    int *const experts = reinterpret_cast<int *>(strip_shared + shape::kTableAt);
    float *const weights = reinterpret_cast<float *>(experts + kOnePicks);
    typename shape::walk walk(strip_shared + warp() * shape::walk::ring_t::kBytes, strip_shared + shape::kBarriersAt + 8 + warp() * kStages * 8, w.Cols, member);
    const int pitch = walk.units * 128;
    if (threadIdx.x == 0) init_barrier(rows_there, 1), fence_barriers();
    clear_tails<kThreads>(memory + shape::kRowsAt, total, walk.units, w.Cols);
    const auto read_picks = [&]() {  // by the first warp; tells whether there are others than before
        bool news = false;
        if (lane() < kOnePicks) {
            const int id = lane() < total ? __ldcg(a.IDs + lane()) : -1, expert = id < w.Count ? id : -1;
            const float weight = lane() < total ? __ldcg(a.Weights + lane()) : 0.0f;
            news = experts[lane()] != expert;
            experts[lane()] = expert, weights[lane()] = weight;
        }
        return news;
    };
    int strip = 0, begun = 0;  // of the next piece to copy, and how many there were
    const auto fill = [&]() {
        if (strip >= strips) return;
        begun++;
        if (walk.fill(w, unit_t::at(w, experts[pick], strip, 0))) strip += gridDim.x;
    };
    block_scales<kScheme> blocks;
    const auto load_scales = [&](int strip) {
        if (threadIdx.x < kOnePicks * 16) {
            const int expert = experts[threadIdx.x / 16], n = strip * 16 + threadIdx.x % 16;
            scales[threadIdx.x] = expert >= 0 && n < w.Rows ? row_scale(w, expert, n) : 0.0f;
        }
        if (experts[pick] >= 0) blocks.load(w, experts[pick], strip, walk.begin(0), walk.end(kJoin - 1));
    };
    const auto start = [&]() {
        strip = walk.empty() || experts[pick] < 0 ? strips : blockIdx.x, begun = 0;
        for (int s = 0; s < kStages; s++) fill();
        if (blockIdx.x < strips) load_scales(blockIdx.x);
    };
    // Mostly the router has ended long before the kernel before this one has: its picks are there already. If they were not,
    // what was copied is thrown away.
    release_next();
    if (warp() == 0) read_picks();
    __syncthreads();
    start();
    wait_for_previous();
    if (threadIdx.x == 32) {
        arrive_expecting(rows_there, total * w.Cols * 2);
        for (int p = 0; p < total; p++) copy_bulk(memory + shape::kRowsAt + p * pitch, a.In + size_t(p) * w.Cols, w.Cols * 2, rows_there);
    }
    __syncthreads();
    const bool news = warp() == 0 && read_picks();
    if (__syncthreads_or(news)) {
        for (int s = 0; s < begun; s++) walk.ring.wait(), walk.ring.drop();
        walk.part = 0, walk.u = walk.begin(0);
        start();
    }
    wait_barrier(rows_there, 0);
    for (int at = blockIdx.x; at < strips; at += gridDim.x) {
        const int expert = experts[pick];
        if (expert >= 0) {
            const auto block = [&](int, int u) { return blocks.of(w, expert, at, walk.begin(0), u); };
#pragma unroll
            for (int p = 0; p < kJoin; p++) {
                float c[1][1][4] = {};
                walk.multiply(p, memory + shape::kRowsAt + pick * pitch, w.Cols, block, fill, c);
                if (lane() % 4 == 0)
#pragma unroll
                    for (int i = 0; i < 2; i++) products[(member * kJoin + p) * kOnePicks * 16 + pick * 16 + i * 8 + lane() / 4] = c[0][0][i * 2];
            }
        }
        __syncthreads();
        if (threadIdx.x < 16 && at * 16 + threadIdx.x < w.Rows) {
            float sum = 0;
#pragma unroll
            for (int p = 0; p < kOnePicks; p++) {
                const int i = p * 16 + threadIdx.x;
                const float product = (products[i] + products[kOnePicks * 16 + i]) * unit_t::kFactor * scales[i], with = fmaf(weights[p], product, sum);
                sum = experts[p] >= 0 ? with : sum;
            }
            a.Out[at * 16 + threadIdx.x] = __float2bfloat16_rn(sum);
        }
        if (at + int(gridDim.x) >= strips) break;
        __syncthreads();
        load_scales(at + gridDim.x);
        __syncthreads();
    }
}
