// Linear and Logits for many rows and weights in a frag layout, without wgmma: the tiles of frag_tile.cuh. The bits of a row are
// those of linear_eight.cuh and linear_ring.cuh.
//
// Grid: a block per tile, (Rows/64)·(W.Rows/(16·kStrips)), both rounded up; in linear_frag_split a cluster of eight, which share out the
// parts of the columns. Blocks that run at a time share a few strips and a few rows:
// tiles go along the rows of a panel of strips before the next panel begins.
#pragma once
#include "lib/cuda/ptx/peer.cuh"
#include "lib/cuda/weight/frag_tile.cuh"

namespace atlas {

template <int kStrips>
struct tile_place {
    static constexpr int kPanel = 8;  // tiles
    int row, out;

    __device__ tile_place(int tile, int rows, int outs) {
        const int row_tiles = (rows + 63) / 64, out_tiles = (outs + 16 * kStrips - 1) / (16 * kStrips);
        const int first = tile / (kPanel * row_tiles) * kPanel, i = tile % (kPanel * row_tiles), width = min(kPanel, out_tiles - first);
        row = i / width * 64, out = (first + i % width) * 16 * kStrips;
    }
};

}  // namespace atlas

template <class P>
__device__ void linear_frag_tile(const atlas_Linear &a) {
    using tile_t = atlas::frag_tile<P::kScheme, P::kStrips, 8, true, P::kStages>;
    static_assert(atlas::launched<P, tile_t::kThreads, tile_t::kShared>::kFits);
    const atlas::tile_place<P::kStrips> at(blockIdx.x, a.Rows, a.W.Rows);
    const int rows = min(64, a.Rows - at.row);
    tile_t::multiply(
        a.W, 0, rows, [&](int i) { return at.out / 16 + i; }, [&](int r) { return a.In + size_t(at.row + r) * a.W.Cols; });
    const bool whole = a.OutPitch % 8 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 16 == 0;
    const int n = at.out + threadIdx.x % (tile_t::kOut / 8) * 8, left = a.W.Rows - n;
    float scale[8], bias[8];
#pragma unroll
    for (int i = 0; i < 8; i++) scale[i] = i < left ? atlas::row_scale(a.W, 0, n + i) * atlas::unit<P::kScheme>::kLiftedFactor : 0.0f, bias[i] = a.Bias && i < left ? a.Bias[n + i] : 0.0f;
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

// Where there are few tiles.
template <class P>
__device__ void linear_frag_split(const atlas_Linear &a) {
    using tile_t = atlas::frag_tile<P::kScheme, 8, 8, true, P::kStages>;
    static_assert(atlas::launched<P, tile_t::kThreads, tile_t::kShared, 8>::kFits);
    const atlas::tile_place<8> at(blockIdx.x / 8, a.Rows, a.W.Rows);
    const int rows = min(64, a.Rows - at.row), rank = atlas::cluster_rank();
    tile_t::multiply(
        a.W, 0, rows, [&](int i) { return at.out / 16 + i; }, [&](int r) { return a.In + size_t(at.row + r) * a.W.Cols; }, rank);
    atlas::sync_cluster();
    // A warp adds the parts of a row.
    const int r = rank * 8 + atlas::warp(), n = at.out + atlas::lane() * 4;
    if (r < rows && n < a.W.Rows) {
        const uint32_t mine = atlas::shared_address(tile_t::sums(r) + (n - at.out));
        float2 parts[8][2];
#pragma unroll
        for (int p = 0; p < 8; p++)
#pragma unroll
            for (int i = 0; i < 2; i++) atlas::load_peer(atlas::address_in(mine + i * 8, p), reinterpret_cast<uint64_t &>(parts[p][i]));
        atlas_act *out = a.Out + size_t(at.row + r) * a.OutPitch + n;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float sum = 0;
#pragma unroll
            for (int p = 0; p < 8; p++) sum += i % 2 ? parts[p][i / 2].y : parts[p][i / 2].x;
            if (n + i >= a.W.Rows) continue;
            const float v = __fmul_rn(sum, atlas::row_scale(a.W, 0, n + i) * atlas::unit<P::kScheme>::kLiftedFactor);
            out[i] = __float2bfloat16_rn(a.Bias ? v + a.Bias[n + i] : v);
        }
    }
    atlas::sync_cluster();  // what others read stays until they have
}

template <class P>
__device__ void logits_frag_tile(const atlas_Logits &a) {
    using tile_t = atlas::frag_tile<P::kScheme, P::kStrips, 8, true, P::kStages>;
    static_assert(atlas::launched<P, tile_t::kThreads, tile_t::kShared>::kFits);
    const atlas::tile_place<P::kStrips> at(blockIdx.x, a.Rows, a.W.Rows);
    const int rows = min(64, a.Rows - at.row);
    const auto line = [&](int r) -> const atlas_act * {
        const int from = a.Index[at.row + r];
        return from >= 0 && from < a.InRows ? a.In + size_t(from) * a.W.Cols : nullptr;
    };
    tile_t::multiply(a.W, 0, rows, [&](int i) { return at.out / 16 + i; }, line);
    const int n = at.out + threadIdx.x % tile_t::kOut;
    if (n >= a.W.Rows) return;
    const float scale = atlas::row_scale(a.W, 0, n) * atlas::unit<P::kScheme>::kLiftedFactor;
    for (int r = threadIdx.x / tile_t::kOut; r < rows; r += tile_t::kThreads / tile_t::kOut)
        a.Out[size_t(at.row + r) * a.W.Rows + n] = line(r) ? tile_t::sums(r)[n - at.out] * scale : 0.0f;
}
