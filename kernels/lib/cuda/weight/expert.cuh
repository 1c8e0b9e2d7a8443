// ExpertUp and ExpertDown with bf16 weights. Picks are grouped by expert into tiles of at most 8·kTiles, so that a tile reads
// its weights once; grid.y bounds the tiles: min(Rows·TopK, W.Count + Rows·TopK/(8·kTiles)). Which tile is whose is found on the
// device. A pick's bits do not depend on its tile; expert_down_few and expert_down_picks with expert_down_sum agree too.
#pragma once
#include "lib/cuda/weight/strip.cuh"

namespace atlas {

// Sorted picks begin … end-1, all of one expert; -1 where there is no such tile.
struct pick_tile {
    int expert, begin, end;
};
template <int kThreads>
__device__ pick_tile find_picks(const int32_t *starts, int experts, int total, int size, int tile) {
    __shared__ pick_tile found;
    if (threadIdx.x == 0) found.expert = -1;
    for (int base = 0, before = 0; base < experts && before <= tile; base += kThreads) {
        const int e = base + threadIdx.x;
        const int begin = e < experts ? starts[e] : 0, end = e < experts ? min(starts[e + 1], total) : 0;
        const int tiles = begin >= 0 && end > begin ? (end - begin + size - 1) / size : 0;
        const scan s = block_scan<kThreads>(tiles);
        const int mine = tile - before - s.before;
        if (mine >= 0 && mine < tiles) found = {e, begin + mine * size, min(end, begin + (mine + 1) * size)};
        before += s.total;
    }
    __syncthreads();
    return found;
}

__device__ inline strip_weights start_rows(const atlas_Weight &w, int expert, int low, int high) {
    return {weight_row(w, expert, min(low, w.Rows - 1)), weight_row(w, expert, min(high, w.Rows - 1)), padded(w.Cols), {}};
}

}  // namespace atlas

// Block (W.Rows/2/8, tile): eight gates and the eight ups that belong to them are one strip; kWarps warps share out columns.
template <class P>
__device__ void expert_up(const atlas_ExpertUp &a) {
    __shared__ atlas::strip_sums<P::kWarps, P::kTiles> sums;
    const int half = a.W.Rows / 2, total = a.Rows * a.TopK, first = blockIdx.x * 8;
    atlas::release_next();
    atlas::wait_for_previous();
    const atlas::pick_tile tile = atlas::find_picks<P::kWarps * 32>(a.Starts, a.W.Count, total, 8 * P::kTiles, blockIdx.y);
    if (tile.expert < 0) return;
    const int n = min(first + atlas::lane() / 4, half - 1);
    atlas::strip_weights weights = atlas::start_rows(a.W, tile.expert, n, half + n);
    weights.load(atlas::warp());
    atlas::strip_rows<P::kTiles> rows;
#pragma unroll
    for (int j = 0; j < P::kTiles; j++) {
        const int s = tile.begin + j * 8 + atlas::lane() / 4, pick = s < tile.end ? a.Order[s] : -1;
        rows.row[j] = pick >= 0 && pick < total ? a.In + size_t(pick / a.TopK) * a.W.Cols : nullptr;
    }
    float c[P::kTiles][4] = {};
    atlas::multiply_strip<P::kTiles>(weights, rows, a.W.Cols, atlas::warp(), P::kWarps, c);
    sums.put(c);
    for (int i = threadIdx.x; i < P::kTiles * 64; i += P::kWarps * 32) {
        const int out = first + atlas::strip_row(i % 64), s = tile.begin + i / 64 * 8 + atlas::strip_column(i % 64);
        if (out >= half || s >= tile.end) continue;
        const int pick = a.Order[s];
        if (pick < 0 || pick >= total) continue;
        const float gate = sums.get(i / 64, i % 64) * atlas::row_scale(a.W, tile.expert, out);
        const float up = sums.get(i / 64, i % 64 + 64) * atlas::row_scale(a.W, tile.expert, half + out);
        a.Out[size_t(pick) * half + out] = __float2bfloat16_rn(atlas::silu(gate) * up);
    }
}

// Block (W.Rows/(16·kWarps), tile): a warp makes 16 outputs of the tile's picks, f32, in scratch [Rows·TopK,W.Rows].
template <class P>
__device__ void expert_down_picks(const atlas_ExpertDown &a, void *scratch) {
    const int total = a.Rows * a.TopK, first = (blockIdx.x * P::kWarps + atlas::warp()) * 16;
    float *products = static_cast<float *>(scratch);
    atlas::release_next();
    atlas::wait_for_previous();
    const atlas::pick_tile tile = atlas::find_picks<P::kWarps * 32>(a.Starts, a.W.Count, total, 8 * P::kTiles, blockIdx.y);
    if (tile.expert < 0 || first >= a.W.Rows) return;
    const int low = first + atlas::lane() / 4;
    atlas::strip_weights weights = atlas::start_rows(a.W, tile.expert, low, low + 8);
    weights.load(0);
    atlas::strip_rows<P::kTiles> rows;
#pragma unroll
    for (int j = 0; j < P::kTiles; j++) {
        const int s = tile.begin + j * 8 + atlas::lane() / 4, pick = s < tile.end ? a.Order[s] : -1;
        rows.row[j] = pick >= 0 && pick < total ? a.In + size_t(pick) * a.W.Cols : nullptr;
    }
    float c[P::kTiles][4] = {};
    atlas::multiply_strip<P::kTiles>(weights, rows, a.W.Cols, 0, 1, c);
#pragma unroll
    for (int j = 0; j < P::kTiles; j++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int i = r * 32 + atlas::lane(), out = first + atlas::strip_row(i), s = tile.begin + j * 8 + atlas::strip_column(i);
            if (out >= a.W.Rows || s >= tile.end) continue;
            const int pick = a.Order[s];
            if (pick >= 0 && pick < total) products[size_t(pick) * a.W.Rows + out] = c[j][r] * atlas::row_scale(a.W, tile.expert, out);
        }
}

// Block (W.Rows/kThreads, row), after expert_down_picks.
template <class P>
__device__ void expert_down_sum(const atlas_ExpertDown &a, const void *scratch) {
    const int n = blockIdx.x * P::kThreads + threadIdx.x;
    const float *products = static_cast<const float *>(scratch);
    atlas::release_next();
    atlas::wait_for_previous();
    if (n >= a.W.Rows) return;
    float sum = 0;
    for (int k = 0; k < a.TopK; k++) {
        const size_t pick = size_t(blockIdx.y) * a.TopK + k;
        const int expert = a.IDs[pick];
        if (expert >= 0 && expert < a.W.Count) sum = fmaf(a.Weights[pick], products[pick * a.W.Rows + n], sum);
    }
    a.Out[size_t(blockIdx.y) * a.W.Rows + n] = __float2bfloat16_rn(sum);
}

// Block (W.Rows/16, row): a warp per pick.
template <class P>
__device__ void expert_down_few(const atlas_ExpertDown &a) {
    __shared__ float products[P::kWarps][16];
    const int first = blockIdx.x * 16, low = first + atlas::lane() / 4;
    float sum = 0;
    atlas::release_next();
    atlas::wait_for_previous();
    for (int base = 0; base < a.TopK; base += P::kWarps) {
        const int k = base + atlas::warp(), pick = blockIdx.y * a.TopK + k;
        const int expert = k < a.TopK ? a.IDs[pick] : -1;
        if (expert >= 0 && expert < a.W.Count) {
            atlas::strip_weights weights = atlas::start_rows(a.W, expert, low, low + 8);
            weights.load(0);
            const atlas::strip_rows<1> rows = {{atlas::lane() < 4 ? a.In + size_t(pick) * a.W.Cols : nullptr}};
            float c[1][4] = {};
            atlas::multiply_strip<1>(weights, rows, a.W.Cols, 0, 1, c);
            if (atlas::lane() % 4 == 0)
                for (int r = 0; r < 2; r++) {
                    const int row = atlas::lane() / 4 + r * 8;
                    products[atlas::warp()][row] = first + row < a.W.Rows ? c[0][r * 2] * atlas::row_scale(a.W, expert, first + row) : 0.0f;
                }
        }
        __syncthreads();
        if (threadIdx.x < 16)
            for (int i = 0; i < P::kWarps && base + i < a.TopK; i++) {
                const size_t p = size_t(blockIdx.y) * a.TopK + base + i;
                if (a.IDs[p] >= 0 && a.IDs[p] < a.W.Count) sum = fmaf(a.Weights[p], products[i][threadIdx.x], sum);
            }
        __syncthreads();
    }
    if (threadIdx.x < 16 && first + threadIdx.x < a.W.Rows) a.Out[size_t(blockIdx.y) * a.W.Rows + first + threadIdx.x] = __float2bfloat16_rn(sum);
}
