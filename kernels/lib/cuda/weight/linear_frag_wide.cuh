// Linear for many rows and weights in a frag layout, with wgmma: tiles of kRows rows by 128 outputs, of which each warp has two strips. It is for f8block,
// whose sums change units; others have linear_frag_tall.cuh.
//
// Block: 256 threads, one to a multiprocessor (min_blocks 1); no cluster; dynamic shared memory atlas::frag_pipe<…>::kShared. Grid: any number of blocks, at
// most ceil(Rows/kRows)*ceil(W.Rows/128). Tile of the copy engine: In [Rows,W.Cols], box [kRows,64], so that W.Cols%8 == 0. kRows 64 or 128. Any Rows,
// OutPitch and alignment of Out.
#pragma once
#include "lib/cuda/weight/frag_wide.cuh"
#include "lib/cuda/weight/linear_wide.cuh"

template <class P>
__device__ void linear_frag_wide(const atlas_Linear &a, const atlas_TensorMap *in) {
    constexpr int kOut = 128;
    using pipe_t = atlas::frag_pipe<P::kScheme, 1, P::kRows, P::kStages, true>;
    static_assert(atlas::launched<P, pipe_t::kThreads, pipe_t::kShared>::kFits);
    const pipe_t pipe;
    const int steps = atlas::tiles64(a.W.Cols), strips = (a.W.Rows + 15) / 16;
    const int row_tiles = (a.Rows + P::kRows - 1) / P::kRows, out_tiles = (a.W.Rows + kOut - 1) / kOut, tiles = row_tiles * out_tiles;
    atlas::release_next();
    if (pipe_t::copies()) {
        if (atlas::warp() == 4) {
            atlas::stage<P::kStages> now;
            for (int i = blockIdx.x; i < tiles; i += gridDim.x) {
                const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
                const int first = at.out * (kOut / 16), n = min(kOut / 16, strips - first);
                const atlas::copy_strips<P::kScheme, kOut / 16> weights = {atlas::frag<P::kScheme>::strip(a.W, 0, first), 0, 0, n, a.W.Cols, n, atlas::box_rows(P::kRows, a.Rows) * 128, true};
                const auto copy_rows = [&](int slot, int step) {
                    if (atlas::elected()) atlas::copy_box(pipe.rows(slot), in, step * 64, at.row * P::kRows, pipe.full + slot * 8);
                };
                int step = 0;
                if (i == blockIdx.x) {  // weights depend on no kernel before this one
                    const int early = min(steps, P::kStages);
                    for (; step < early; step++) weights(step, pipe.weights(step), pipe.full + step * 8);
                    atlas::wait_for_previous();
                    for (step = 0; step < early; step++, now.next()) copy_rows(step, step);
                }
                for (; step < steps; step++, now.next()) {
                    atlas::wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    weights(step, pipe.weights(now.slot), pipe.full + now.slot * 8);
                    copy_rows(now.slot, step);
                }
            }
        }
    } else {
        atlas::stage<P::kStages> now;
        const bool whole = a.OutPitch % 8 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 16 == 0;
        atlas::wait_for_previous();
        for (int i = blockIdx.x; i < tiles; i += gridDim.x) {
            const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
            const int first = at.out * kOut + atlas::warp() * 32;
            const float *const scales[2] = {atlas::strip_scales<P::kScheme>(a.W, 0, first / 16), atlas::strip_scales<P::kScheme>(a.W, 0, first / 16 + 1)};
            float c[2][P::kRows / 2];
            atlas::multiply_strips<P::kScheme, P::kRows>(pipe, now, steps, a.W.Cols, scales, c);
            float scale[4], bias[4];  // of outputs first+g, +8, +16, +24
#pragma unroll
            for (int l = 0; l < 4; l++) {
                const int n = first + l * 8 + atlas::lane() / 4;
                scale[l] = n < a.W.Rows ? atlas::row_scale(a.W, 0, n) : 0.0f;
                bias[l] = a.Bias && n < a.W.Rows ? a.Bias[n] : 0.0f;
            }
            const int n = first + atlas::lane() % 4 * 8;
#pragma unroll
            for (int j = 0; j < P::kRows / 8; j++) {
                uint32_t u[4];
#pragma unroll
                for (int l = 0; l < 4; l++) {
                    const float *x = c[l / 2] + j * 4 + l % 2 * 2;
                    u[l] = atlas::transpose_matrix(atlas::narrow(fmaf(x[0], scale[l], bias[l]), fmaf(x[1], scale[l], bias[l])));
                }
                atlas::transpose_quad(u);
                const int row = at.row * P::kRows + j * 8 + atlas::lane() / 4;
                if (row < a.Rows) atlas::store_outputs(a.Out + size_t(row) * a.OutPitch + n, u, a.W.Rows - n, whole);
            }
        }
    }
}
