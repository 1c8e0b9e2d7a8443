// ExpertUp and ExpertDown for many rows and bf16 weights (layout tile64) with wgmma: picks, sorted by expert, in tiles of kRows
// by kOut outputs, of which expert_up_wide has kOut/2 gates and the ups that belong to them.
//
// Block: kRows*2+128 threads; no cluster; dynamic shared memory kStages*((kRows+kOut)*128+16)+1024. Grid: any number of
// blocks, at most ceil(W.Rows/kOut)*min(Rows*TopK, W.Count+Rows*TopK/kRows). expert_up_wide wants W.Rows%128 == 0. At most
// kMaxExperts experts. Any Cols and alignment; fast where Cols%8 == 0. expert_down_wide writes products, f32 [Rows*TopK,W.Rows], to
// scratch, for expert_down_total. Bits of a pick do not depend on its tile.
#pragma once
#include "lib/cuda/weight/expert_total.cuh"
#include "lib/cuda/weight/pick_tiles.cuh"
#include "lib/cuda/weight/wide.cuh"

template <class P>
__device__ void expert_up_wide(const atlas_ExpertUp &a) {
    using pipe_t = atlas::wide<P::kRows / 64, P::kRows, P::kOut * 128, P::kStages, 1, false>;
    static_assert(atlas::launched<P, pipe_t::kThreads, pipe_t::kShared>::kFits);
    static_assert(P::kOut % 128 == 0, "whole tiles of gates");
    __shared__ atlas::pick_tiles tiles;
    const int half = a.W.Rows / 2, total = a.Rows * a.TopK, steps = atlas::tiles64(a.W.Cols), half_tiles = half / 64;
    const int out_tiles = (half + P::kOut / 2 - 1) / (P::kOut / 2);
    atlas::release_next();
    atlas::wait_for_previous();
    atlas::count_tiles<P::kRows>(tiles, a.Starts, a.W.Count, total);
    const pipe_t pipe;
    const int work = tiles.first[a.W.Count] * out_tiles;
    if (pipe_t::copies()) {
        atlas::stage<P::kStages> now;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            const int gate = i % out_tiles * (P::kOut / 128);
            const atlas_act *gates = atlas::tile64(a.W, at.expert, gate, 0), *ups = atlas::tile64(a.W, at.expert, half_tiles + gate, 0);
            const auto weights = atlas::tiles_copied<P::kOut>([&](int j) {
                const int n = j % (P::kOut / 128);
                return gate + n < half_tiles ? (j < P::kOut / 128 ? gates : ups) + size_t(n) * steps * atlas::kTile64 : nullptr;
            });
            const atlas_act *row[P::kRows / 16];
#pragma unroll
            for (int j = 0; j < P::kRows / 16; j++) {
                const int s = at.begin + threadIdx.x % 128 / 8 + j * 16, pick = s < at.end ? a.Order[s] : -1;
                row[j] = pick >= 0 && pick < total ? a.In + size_t(pick / a.TopK) * a.W.Cols : nullptr;
            }
            atlas::gather_tile<P::kRows>(pipe, now, steps, a.W.Cols, a.In, weights, [&](int j) { return row[j]; });
        }
    } else {
        atlas::stage<P::kStages> now;
        const bool whole = half % 8 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 16 == 0;
        const int t = atlas::lane() % 4;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            if (at.begin + pipe_t::team() * 64 >= at.end) {
                pipe.skip(now, steps);
                continue;
            }
            float c[P::kOut / 2];
            atlas::multiply_tile<P::kOut>(pipe, now, steps, c);
            const int s = at.begin + atlas::warp() * 16 + atlas::lane() / 4;
            const int low_pick = s < at.end ? a.Order[s] : -1, high_pick = s + 8 < at.end ? a.Order[s + 8] : -1;
#pragma unroll
            for (int j = 0; j < P::kOut / 16; j += 4) {
                const int n = i % out_tiles * (P::kOut / 2) + j * 8;
                uint32_t low[4], high[4];
#pragma unroll
                for (int l = 0; l < 4; l++) {
                    const int m = n + l * 8 + t * 2;
                    float *gate = c + (j + l) * 4, *up = gate + P::kOut / 4;
                    if (a.W.Scale && m < half) {
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            gate[e] *= atlas::row_scale(a.W, at.expert, m + e % 2);
                            up[e] *= atlas::row_scale(a.W, at.expert, half + m + e % 2);
                        }
                    }
                    low[l] = atlas::narrow(atlas::silu(gate[0]) * up[0], atlas::silu(gate[1]) * up[1]);
                    high[l] = atlas::narrow(atlas::silu(gate[2]) * up[2], atlas::silu(gate[3]) * up[3]);
                }
                atlas::transpose_quad(low);
                atlas::transpose_quad(high);
                const int left = half - n - t * 8;
                if (low_pick >= 0 && low_pick < total) atlas::store_outputs(a.Out + size_t(low_pick) * half + n + t * 8, low, left, whole);
                if (high_pick >= 0 && high_pick < total) atlas::store_outputs(a.Out + size_t(high_pick) * half + n + t * 8, high, left, whole);
            }
        }
    }
}

template <class P>
__device__ void expert_down_wide(const atlas_ExpertDown &a, void *scratch) {
    using pipe_t = atlas::wide<P::kRows / 64, P::kRows, P::kOut * 128, P::kStages, 1, false>;
    static_assert(atlas::launched<P, pipe_t::kThreads, pipe_t::kShared>::kFits);
    __shared__ atlas::pick_tiles tiles;
    const int total = a.Rows * a.TopK, steps = atlas::tiles64(a.W.Cols), weight_tiles = atlas::tiles64(a.W.Rows);
    const int out_tiles = (a.W.Rows + P::kOut - 1) / P::kOut;
    atlas::wait_for_previous();
    atlas::release_next();
    atlas::count_tiles<P::kRows>(tiles, a.Starts, a.W.Count, total);
    const pipe_t pipe;
    const int work = tiles.first[a.W.Count] * out_tiles;
    if (pipe_t::copies()) {
        atlas::stage<P::kStages> now;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            const int first = i % out_tiles * (P::kOut / 64);
            const atlas_act *first_tile = atlas::tile64(a.W, at.expert, first, 0);
            const auto weights = atlas::tiles_copied<P::kOut>(
                [&](int j) { return first + j < weight_tiles ? first_tile + size_t(j) * steps * atlas::kTile64 : nullptr; });
            const atlas_act *row[P::kRows / 16];
#pragma unroll
            for (int j = 0; j < P::kRows / 16; j++) {
                const int s = at.begin + threadIdx.x % 128 / 8 + j * 16, pick = s < at.end ? a.Order[s] : -1;
                row[j] = pick >= 0 && pick < total ? a.In + size_t(pick) * a.W.Cols : nullptr;
            }
            atlas::gather_tile<P::kRows>(pipe, now, steps, a.W.Cols, a.In, weights, [&](int j) { return row[j]; });
        }
    } else {
        atlas::stage<P::kStages> now;
        float *products = static_cast<float *>(scratch);
        const bool pairs = a.W.Rows % 2 == 0;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            if (at.begin + pipe_t::team() * 64 >= at.end) {
                pipe.skip(now, steps);
                continue;
            }
            float c[P::kOut / 2];
            atlas::multiply_tile<P::kOut>(pipe, now, steps, c);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int s = at.begin + atlas::warp() * 16 + atlas::lane() / 4 + h * 8, pick = s < at.end ? a.Order[s] : -1;
                if (pick < 0 || pick >= total) continue;
                float *out = products + size_t(pick) * a.W.Rows;
#pragma unroll
                for (int j = 0; j < P::kOut / 8; j++) {
                    const int n = i % out_tiles * P::kOut + j * 8 + atlas::lane() % 4 * 2;
                    const bool one = n < a.W.Rows, two = n + 1 < a.W.Rows;
                    const float x = c[j * 4 + h * 2] * (one ? atlas::row_scale(a.W, at.expert, n) : 0.0f);
                    const float y = c[j * 4 + h * 2 + 1] * (two ? atlas::row_scale(a.W, at.expert, n + 1) : 0.0f);
                    if (pairs && two) {
                        *reinterpret_cast<float2 *>(out + n) = {x, y};
                    } else {
                        if (one) out[n] = x;
                        if (two) out[n + 1] = y;
                    }
                }
            }
        }
    }
}
