// Linear for many rows and bf16 weights (layout tile64) with wgmma: tiles of kRows rows by kOut outputs.
//
// Block: kRows*2+128 threads; clusters of kCluster blocks in x; dynamic shared memory kStages*((kRows+kOut)*128+16)+1024.
// Grid: any multiple of kCluster, at most a block per tile, that is kCluster*ceil(Rows/(kRows*kCluster))*ceil(W.Rows/kOut);
// blocks go on to further tiles. kRows 64 or 128; kOut 64, 128, 192 or 256. Any Rows, Cols, OutPitch and alignment; fast where
// Cols and OutPitch are multiples of 8. All instances give the same bits.
#pragma once
#include "lib/cuda/weight/wide.cuh"

namespace atlas {

// Tile number i: neighbours share weights, and bands of kBand tiles of outputs share rows that the cache still holds.
struct wide_tile {
    int row, out;
};
__device__ inline wide_tile place_tile(int i, int row_tiles, int out_tiles) {
    constexpr int kBand = 8;
    const int band = i / (kBand * row_tiles), rest = i - band * kBand * row_tiles, width = min(kBand, out_tiles - band * kBand);
    return {rest / width, band * kBand + rest % width};
}

}  // namespace atlas

template <int kRows, int kOut, int kStages, int kCluster>
__device__ void linear_wide(const atlas_Linear &a) {
    using pipe_t = atlas::wide<kRows / 64, kRows, kOut * 128, kStages, kCluster>;
    const pipe_t pipe;
    const int steps = atlas::tiles64(a.W.Cols), weight_tiles = atlas::tiles64(a.W.Rows);
    const int row_tiles = (a.Rows + kRows * kCluster - 1) / (kRows * kCluster), out_tiles = (a.W.Rows + kOut - 1) / kOut;
    const int first = blockIdx.x / kCluster, stride = gridDim.x / kCluster, tiles = row_tiles * out_tiles;
    atlas::release_next();
    if (pipe_t::copies()) {
        atlas::wide_copies<pipe_t, kRows, kStages> copies(pipe, a.In);
        const bool whole = a.W.Cols % 8 == 0 && reinterpret_cast<uintptr_t>(a.In) % 16 == 0;
        for (int i = first; i < tiles; i += stride) {
            const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
            const int tile = at.out * (kOut / 64), row = (at.row * kCluster + pipe.rank) * kRows + threadIdx.x % 128 / 8;
            const atlas_act *first_tile = atlas::tile64(a.W, 0, tile, 0), *first_row = a.In + size_t(row) * a.W.Cols;
            const auto weights = atlas::tiles_copied<kOut, kCluster>(pipe.rank, [&](int j) {
                return tile + j < weight_tiles ? first_tile + size_t(j) * steps * atlas::kTile64 : nullptr;
            });
            if (i == first) {
                copies.start(steps, weights);
                atlas::wait_for_previous();
            }
            copies.tile(steps, a.W.Cols, whole, weights, [&](int j) { return row + j * 16 < a.Rows ? first_row + size_t(j * 16) * a.W.Cols : nullptr; });
        }
        copies.finish();
    } else {
        atlas::stage<kStages> now;
        const bool whole = a.OutPitch % 8 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 16 == 0;
        const int t = atlas::lane() % 4;
        atlas::wait_for_previous();
        for (int i = first; i < tiles; i += stride) {
            const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
            float c[kOut / 2];
            atlas::multiply_tile<kOut>(pipe, now, steps, c);
            const int row = (at.row * kCluster + pipe.rank) * kRows + atlas::warp() * 16 + atlas::lane() / 4;
#pragma unroll
            for (int j = 0; j < kOut / 8; j += 4) {
                const int n = at.out * kOut + j * 8;
                uint32_t low[4], high[4];
#pragma unroll
                for (int l = 0; l < 4; l++) {
                    const int m = n + l * 8 + t * 2;
                    float *x = c + (j + l) * 4;
                    if (a.W.Scale || a.Bias) {
                        const bool one = m < a.W.Rows, two = m + 1 < a.W.Rows;
                        const float scale[2] = {one ? atlas::row_scale(a.W, 0, m) : 0.0f, two ? atlas::row_scale(a.W, 0, m + 1) : 0.0f};
                        const float bias[2] = {a.Bias && one ? a.Bias[m] : 0.0f, a.Bias && two ? a.Bias[m + 1] : 0.0f};
#pragma unroll
                        for (int e = 0; e < 4; e++) x[e] = fmaf(x[e], scale[e % 2], bias[e % 2]);
                    }
                    low[l] = atlas::narrow(x[0], x[1]), high[l] = atlas::narrow(x[2], x[3]);
                }
                atlas::transpose_quad(low);
                atlas::transpose_quad(high);
                atlas_act *out = a.Out + size_t(row) * a.OutPitch + n + t * 8;
                const int left = a.W.Rows - n - t * 8;
                if (row < a.Rows) atlas::store_outputs(out, low, left, whole);
                if (row + 8 < a.Rows) atlas::store_outputs(out + size_t(8) * a.OutPitch, high, left, whole);
            }
        }
    }
    pipe.end();
}
