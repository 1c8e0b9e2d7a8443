// Linear and Logits for few rows and bf16 weights: a block makes 16 outputs of 8·kTiles rows; its kWarps warps share out
// the columns. Block (outputs/16, rows/(8·kTiles)). The bits of a row are the same for every kTiles.
#pragma once
#include "lib/cuda/weight/strip.cuh"

namespace atlas {

// Starts reading the weights of block x; row numbers past the matrix read its last row and are dropped later.
template <int kWarps>
__device__ strip_weights start_strip(const atlas_Weight &w) {
    const int n = blockIdx.x * 16 + lane() / 4;
    strip_weights s = {weight_row(w, 0, min(n, w.Rows - 1)), weight_row(w, 0, min(n + 8, w.Rows - 1)), padded(w.Cols), {}};
    s.load(warp());
    return s;
}

}  // namespace atlas

template <class P>
__device__ void linear_few(const atlas_Linear &a) {
    __shared__ atlas::strip_sums<P::kWarps, P::kTiles> sums;
    atlas::strip_weights weights = atlas::start_strip<P::kWarps>(a.W);
    const int first = blockIdx.y * 8 * P::kTiles;
    atlas::strip_rows<P::kTiles> rows;
#pragma unroll
    for (int j = 0; j < P::kTiles; j++) {
        const int r = first + j * 8 + atlas::lane() / 4;
        rows.row[j] = r < a.Rows ? a.In + size_t(r) * a.W.Cols : nullptr;
    }
    float c[P::kTiles][4] = {};
    atlas::release_next();
    atlas::wait_for_previous();
    atlas::multiply_strip<P::kTiles>(weights, rows, a.W.Cols, atlas::warp(), P::kWarps, c);
    sums.put(c);
    for (int i = threadIdx.x; i < P::kTiles * 128; i += P::kWarps * 32) {
        const int n = blockIdx.x * 16 + atlas::strip_row(i % 128), r = first + i / 128 * 8 + atlas::strip_column(i % 128);
        if (n >= a.W.Rows || r >= a.Rows) continue;
        const float bias = a.Bias ? a.Bias[n] : 0.0f;
        a.Out[size_t(r) * a.OutPitch + n] = __float2bfloat16_rn(fmaf(sums.get(i / 128, i % 128), atlas::row_scale(a.W, 0, n), bias));
    }
}

template <class P>
__device__ void logits_few(const atlas_Logits &a) {
    __shared__ atlas::strip_sums<P::kWarps, P::kTiles> sums;
    atlas::strip_weights weights = atlas::start_strip<P::kWarps>(a.W);
    const int first = blockIdx.y * 8 * P::kTiles;
    atlas::strip_rows<P::kTiles> rows;
    atlas::release_next();
    atlas::wait_for_previous();
#pragma unroll
    for (int j = 0; j < P::kTiles; j++) {
        const int r = first + j * 8 + atlas::lane() / 4, from = r < a.Rows ? a.Index[r] : -1;
        rows.row[j] = from >= 0 && from < a.InRows ? a.In + size_t(from) * a.W.Cols : nullptr;
    }
    float c[P::kTiles][4] = {};
    atlas::multiply_strip<P::kTiles>(weights, rows, a.W.Cols, atlas::warp(), P::kWarps, c);
    sums.put(c);
    for (int i = threadIdx.x; i < P::kTiles * 128; i += P::kWarps * 32) {
        const int n = blockIdx.x * 16 + atlas::strip_row(i % 128), r = first + i / 128 * 8 + atlas::strip_column(i % 128);
        if (n < a.W.Rows && r < a.Rows) a.Out[size_t(r) * a.W.Rows + n] = sums.get(i / 128, i % 128) * atlas::row_scale(a.W, 0, n);
    }
}
