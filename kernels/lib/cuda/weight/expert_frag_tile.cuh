// ExpertUp and ExpertDown for any number of picks and weights in a frag layout, without wgmma: picks, sorted by expert, in the tiles of
// frag_tile.cuh. A pick's bits are those of expert_few.cuh and expert_tiles.cuh.
//
// 256 threads. Any grid along x; at most ceil(W.Rows/96)·min(Rows·TopK, W.Count+Rows·TopK/64) blocks have work. At most kMaxExperts
// experts. expert_down_frag_tile writes products, f32 [Rows·TopK,W.Rows], to scratch for expert_down_total.
#pragma once
#include "lib/cuda/weight/expert_total.cuh"
#include "lib/cuda/weight/frag_tile.cuh"
#include "lib/cuda/weight/pick_tiles.cuh"

// Four strips of gates and the four of their ups; where ups do not begin with a strip, three and the four that they lie in.
template <class P>
__device__ void expert_up_frag_tile(const atlas_ExpertUp &a) {
    using tile_t = atlas::frag_tile<P::kScheme, 8, 8, false, P::kStages>;
    static_assert(atlas::launched<P, tile_t::kThreads, tile_t::kShared>::kFits);
    __shared__ atlas::pick_tiles tiles;
    __shared__ atlas::picks at;  // of this tile; registers are scarce
    const int half = a.W.Rows / 2, total = a.Rows * a.TopK, gates = half % 16 ? 3 : 4, outs = gates * 16, out_tiles = (half + outs - 1) / outs;
    atlas::wait_for_previous();
    atlas::count_tiles<64>(tiles, a.Starts, a.W.Count, total);
    __syncthreads();
    const int work = tiles.first[a.W.Count] * out_tiles;
    for (int i = blockIdx.x; i < work; i += gridDim.x) {
        __syncthreads();
        if (threadIdx.x == 0) at = atlas::find_tile<64>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
        __syncthreads();
        const int first = i % out_tiles * outs;
        const auto pick_of = [&](int r) {
            const int pick = a.Order[at.begin + r];
            return pick < total ? pick : -1;
        };
        tile_t::multiply(
            a.W, at.expert, at.end - at.begin, [&](int s) { return s < gates ? first / 16 + s : s < gates + 4 ? (half + first) / 16 + s - gates : -1; },
            [&](int r) {
                const int pick = pick_of(r);
                return pick >= 0 ? a.In + size_t(pick / a.TopK) * a.W.Cols : nullptr;
            });
        const int n = first + threadIdx.x % 64;
        if (n >= half || n >= first + outs) continue;
        const float gate_scale = atlas::row_scale(a.W, at.expert, n), up_scale = atlas::row_scale(a.W, at.expert, half + n);
        for (int r = threadIdx.x / 64; r < at.end - at.begin; r += 4) {
            const int pick = pick_of(r);
            const float *sums = tile_t::sums(r) + (n - first);
            const float gate = sums[0] * atlas::unit<P::kScheme>::kLiftedFactor * gate_scale, up = sums[outs + half % 16] * atlas::unit<P::kScheme>::kLiftedFactor * up_scale;
            if (pick >= 0) a.Out[size_t(pick) * half + n] = __float2bfloat16_rn(atlas::silu(gate) * up);
        }
    }
    atlas::release_next();
}

template <class P>
__device__ void expert_down_frag_tile(const atlas_ExpertDown &a, void *scratch) {
    using tile_t = atlas::frag_tile<P::kScheme, 8, 2, false, P::kStages>;
    static_assert(atlas::launched<P, tile_t::kThreads, tile_t::kShared>::kFits);
    __shared__ atlas::pick_tiles tiles;
    __shared__ atlas::picks at;  // of this tile; registers are scarce
    const int total = a.Rows * a.TopK, out_tiles = (a.W.Rows + tile_t::kOut - 1) / tile_t::kOut;
    float *const products = static_cast<float *>(scratch);
    atlas::wait_for_previous();
    atlas::release_next();
    atlas::count_tiles<64>(tiles, a.Starts, a.W.Count, total);
    __syncthreads();
    const int work = tiles.first[a.W.Count] * out_tiles;
    for (int i = blockIdx.x; i < work; i += gridDim.x) {
        __syncthreads();
        if (threadIdx.x == 0) at = atlas::find_tile<64>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
        __syncthreads();
        const int first = i % out_tiles * tile_t::kOut;
        const auto pick_of = [&](int r) {
            const int pick = a.Order[at.begin + r];
            return pick < total ? pick : -1;
        };
        tile_t::multiply(
            a.W, at.expert, at.end - at.begin, [&](int s) { return first / 16 + s; },
            [&](int r) {
                const int pick = pick_of(r);
                return pick >= 0 ? a.In + size_t(pick) * a.W.Cols : nullptr;
            });
        const int n = first + threadIdx.x % tile_t::kOut;
        if (n >= a.W.Rows) continue;
        const float scale = atlas::row_scale(a.W, at.expert, n);
        for (int r = threadIdx.x / tile_t::kOut; r < at.end - at.begin; r += tile_t::kThreads / tile_t::kOut) {
            const int pick = pick_of(r);
            if (pick >= 0) products[size_t(pick) * a.W.Rows + n] = tile_t::sums(r)[n - first] * atlas::unit<P::kScheme>::kLiftedFactor * scale;
        }
    }
}
