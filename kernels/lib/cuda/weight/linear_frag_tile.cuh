// Linear and Logits for many rows and weights in a frag layout, without wgmma: the tiles of frag_tile.cuh. The bits of a row are
// those of linear_eight.cuh and linear_ring.cuh.
//
// Grid: a block per tile, (Rows/64)·(W.Rows/(16·kStrips)), both rounded up. Blocks that run at a time share a few strips and a few rows:
// tiles go along the rows of a panel of strips before the next panel begins.
#pragma once
#include "lib/cuda/weight/frag_tile.cuh"

namespace atlas {

template <int kStrips>
struct tile_place {
    static constexpr int kPanel = 8;  // tiles
    int row, out;

    __device__ tile_place(int rows, int outs) {
        const int row_tiles = (rows + 63) / 64, out_tiles = (outs + 16 * kStrips - 1) / (16 * kStrips);
        const int first = blockIdx.x / (kPanel * row_tiles) * kPanel, i = blockIdx.x % (kPanel * row_tiles), width = min(kPanel, out_tiles - first);
        row = i / width * 64, out = (first + i % width) * 16 * kStrips;
    }
};

}  // namespace atlas

template <atlas_Scheme kScheme, int kStrips, int kStages>
__device__ void linear_frag_tile(const atlas_Linear &a) {
    using tile_t = atlas::frag_tile<kScheme, kStrips, 8, true, kStages>;
    const atlas::tile_place<kStrips> at(a.Rows, a.W.Rows);
    const int rows = min(64, a.Rows - at.row);
    tile_t::multiply(
        a.W, 0, rows, [&](int i) { return at.out / 16 + i; }, [&](int r) { return a.In + size_t(at.row + r) * a.W.Cols; });
    const bool whole = a.OutPitch % 8 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 16 == 0;
    const int n = at.out + threadIdx.x % (tile_t::kOut / 8) * 8, left = a.W.Rows - n;
    float scale[8], bias[8];
#pragma unroll
    for (int i = 0; i < 8; i++) scale[i] = i < left ? atlas::row_scale(a.W, 0, n + i) * atlas::unit<kScheme>::kFactor : 0.0f, bias[i] = a.Bias && i < left ? a.Bias[n + i] : 0.0f;
    for (int r = threadIdx.x / (tile_t::kOut / 8); r < rows && left > 0; r += tile_t::kThreads * 8 / tile_t::kOut) {
        const float *sums = tile_t::sums(r) + (n - at.out);
        atlas::f32x8 x;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float v = __fmul_rn(sums[i], scale[i]);
            x.v[i] = a.Bias ? v + bias[i] : v;
        }
        atlas::store8(a.Out + size_t(at.row + r) * a.OutPitch + n, x, left, whole && left >= 8);
    }
}

template <atlas_Scheme kScheme, int kStrips, int kStages>
__device__ void logits_frag_tile(const atlas_Logits &a) {
    using tile_t = atlas::frag_tile<kScheme, kStrips, 8, true, kStages>;
    const atlas::tile_place<kStrips> at(a.Rows, a.W.Rows);
    const int rows = min(64, a.Rows - at.row);
    const auto line = [&](int r) -> const atlas_act * {
        const int from = a.Index[at.row + r];
        return from >= 0 && from < a.InRows ? a.In + size_t(from) * a.W.Cols : nullptr;
    };
    tile_t::multiply(a.W, 0, rows, [&](int i) { return at.out / 16 + i; }, line);
    const int n = at.out + threadIdx.x % tile_t::kOut;
    if (n >= a.W.Rows) return;
    const float scale = atlas::row_scale(a.W, 0, n) * atlas::unit<kScheme>::kFactor;
    for (int r = threadIdx.x / tile_t::kOut; r < rows; r += tile_t::kThreads / tile_t::kOut)
        a.Out[size_t(at.row + r) * a.W.Rows + n] = line(r) ? tile_t::sums(r)[n - at.out] * scale : 0.0f;
}
