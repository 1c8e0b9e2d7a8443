// ExpertDown and ExpertDownAdd for one row and at most eight picks, any frag scheme, where a pick's part of a strip fits the registers of two
// warps: experts are mostly known long before their activations are, so their weights are loaded, and decoded, while the kernel
// before this one runs. Each warp reads what it needs of a pick's activations itself.
//
// Sixteen warps make 16 outputs, a strip: two have a pick, half of its columns each. A block makes one strip.
//
// Grid: a block for each strip; 512 threads. W.Cols%64 == 0 and at most 128·kUnits. Static shared memory only.
#pragma once
#include "lib/cuda/ptx/grid.cuh"
#include "lib/cuda/weight/linear_held.cuh"

template <class P, typename Args>
__device__ void expert_down_held(const Args &a) {
    using namespace atlas;
    constexpr int kPicks = 8;
    __shared__ __align__(16) uint8_t rows[16][P::kUnits * 128];
    __shared__ float products[2][kPicks][16], weights[kPicks], scales[kPicks][16];
    __shared__ int experts[kPicks];
    const atlas_Weight &w = a.W;
    const int pick = warp() / 2, half = warp() % 2, units = w.Cols / 64, begin = units * half / 2, end = units * (half + 1) / 2, total = min(a.TopK, kPicks);
    const auto read = [&]() {
        const int id = pick < total ? __ldcg(a.IDs + pick) : -1;
        return id < w.Count ? id : -1;
    };
    held_units<P::kScheme, P::kUnits, P::kReady> held;
    const auto load = [&](int expert) {
        held.load(w, expert, blockIdx.x, expert >= 0 && begin < end, [&](int i) { return min(begin + i, end - 1); });
        const int n = blockIdx.x * 16 + lane() % 16;
        if (half == 0 && lane() < 16) scales[pick][lane()] = expert >= 0 && n < w.Rows ? row_scale(w, expert, n) * unit<P::kScheme>::kFactor : 0.0f;
        held.decode();
    };
    // Mostly the router has ended long before the kernel before this one has: its picks are there already. If they were not,
    // what was loaded is loaded again.
    release_next();
    const int expert = read();
    load(expert);
    wait_for_previous();
    const uint32_t at = shared_address(rows[warp()]);
    const int now = read(), chunks = (end - begin) * 8;
    const float weight = pick < total ? __ldcg(a.Weights + pick) : 0.0f;
    uint4 x[(P::kUnits + 3) / 4];
#pragma unroll
    for (int i = 0; i < (P::kUnits + 3) / 4; i++)
        if (pick < total && lane() + i * 32 < chunks) x[i] = __ldcg(reinterpret_cast<const uint4 *>(a.In + size_t(pick) * w.Cols + begin * 64) + lane() + i * 32);
    const int n = blockIdx.x * 16 + threadIdx.x;
    atlas_act there = {};
    if (kAddsTo<Args> && threadIdx.x < 16 && n < w.Rows) there = a.Out[n];
    if (now != expert) load(now);
#pragma unroll
    for (int i = 0; i < (P::kUnits + 3) / 4; i++)
        if (lane() + i * 32 < chunks) store_shared(at + (lane() + i * 32) * 16, x[i]);
    __syncwarp();
    float c[4] = {};
#pragma unroll
    for (int i = 0; i < P::kUnits; i++) {
        if (begin + i >= end || pick >= total) break;
        uint32_t x[2][4];
        load_matrices(x[0], at + i * 128 + lane() / 8 * 16), load_matrices(x[1], at + i * 128 + 64 + lane() / 8 * 16);
        held.multiply(i, x, c);
    }
    if (lane() % 4 == 0) products[half][pick][lane() / 4] = c[0], products[half][pick][lane() / 4 + 8] = c[2];
    if (half == 0 && lane() == 0) weights[pick] = weight, experts[pick] = now;
    __syncthreads();
    if (threadIdx.x >= 16 || n >= w.Rows) return;
    float sum = 0;
#pragma unroll
    for (int p = 0; p < kPicks; p++) {
        const float product = (products[0][p][threadIdx.x] + products[1][p][threadIdx.x]) * scales[p][threadIdx.x];
        sum = experts[p] >= 0 ? fmaf(weights[p], product, sum) : sum;
    }
    a.Out[n] = __float2bfloat16_rn(kAddsTo<Args> ? plus(there, sum) : sum);
}
