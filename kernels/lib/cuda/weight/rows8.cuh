// Layout rows8 of bf16 weights: row-major, each row padded with zeros to whole vectors of eight. Pack, Unpack, Embedding.
#pragma once
#include "lib/cuda/weight/tile64.cuh"

namespace atlas {

__device__ inline int padded(int cols) { return (cols + 7) / 8 * 8; }

// Row n of stacked matrix m.
__device__ inline const atlas_act *weight_row(const atlas_Weight &w, int m, int n) {
    return reinterpret_cast<const atlas_act *>(w.Data + m * w.Stride) + size_t(n) * padded(w.Cols);
}

}  // namespace atlas

// Block: one row.
template <class P>
__device__ void pack_rows8(const atlas_Pack &a) {
    static_assert(sizeof(atlas_act) == 2, "bf16");
    const int cols = a.W.Cols, pitch = atlas::padded(cols), n = blockIdx.x;
    const uint16_t *in = reinterpret_cast<const uint16_t *>(a.Raw) + size_t(n) * cols;
    uint16_t *out = reinterpret_cast<uint16_t *>(a.W.Data) + size_t(n) * pitch;
    atlas::wait_for_previous();
    for (int c = threadIdx.x; c < pitch; c += P::kThreads) out[c] = c < cols ? in[c] : 0;
}

// Block: one row.
template <class P>
__device__ void unpack_rows8(const atlas_Unpack &a) {
    const int cols = a.W.Cols, n = blockIdx.x;
    const uint16_t *in = reinterpret_cast<const uint16_t *>(a.W.Data) + size_t(n) * atlas::padded(cols);
    uint16_t *out = reinterpret_cast<uint16_t *>(a.Raw) + size_t(n) * cols;
    atlas::wait_for_previous();
    for (int c = threadIdx.x; c < cols; c += P::kThreads) out[c] = in[c];
}

// Block: one row.
template <class P>
__device__ void embedding_rows8(const atlas_Embedding &a) {
    const int cols = a.W.Cols;
    const bool whole = cols % 8 == 0;
    atlas_act *out = a.Out + size_t(blockIdx.x) * cols;
    atlas::wait_for_previous();
    const int id = a.IDs[blockIdx.x];
    const bool there = id >= 0 && id < a.W.Rows;
    const atlas_act *in = atlas::weight_row(a.W, 0, there ? id : 0);
    const float scale = there ? atlas::row_scale(a.W, 0, id) : 0.0f;
    for (int c = threadIdx.x * 8; c < cols; c += P::kThreads * 8) {
        atlas::f32x8 x = {};
        if (there) x = atlas::widen(*reinterpret_cast<const uint4 *>(in + c));
#pragma unroll
        for (int i = 0; i < 8; i++) x.v[i] *= scale;
        atlas::store8(out + c, x, cols - c, whole);
    }
    atlas::release_next();
}
