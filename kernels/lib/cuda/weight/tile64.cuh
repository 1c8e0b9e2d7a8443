// Layout tile64 of bf16 weights: tiles of 64 rows by 64 columns, zeros past the matrix, 8 KiB each, along a row of tiles
// first. In a tile a row is 128 bytes; its chunk c of eight columns lies at c ^ row % 8: the 128-byte swizzle of wgmma,
// so that a tile can be copied in one piece into shared memory (aligned to 1024 bytes) and be multiplied as it is there.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas {

constexpr int kTile64 = 64 * 64;  // weights of a tile
static_assert(kTile64 * sizeof(atlas_act) == 8192, "bf16");

// Tiles along n rows or columns.
__device__ inline int tiles64(int n) { return (n + 63) / 64; }

// Where chunk c (eight columns) of row r lies in a tile, in elements.
__device__ inline int tile64_at(int r, int c) { return r * 64 + (c ^ r % 8) * 8; }

// Tile (i, j) of stacked matrix m: rows from 64i, columns from 64j.
__device__ inline const atlas_act *tile64(const atlas_Weight &w, int m, int i, int j) {
    return reinterpret_cast<const atlas_act *>(w.Data + m * w.Stride) + (size_t(i) * tiles64(w.Cols) + j) * kTile64;
}

// A row of a matrix. Up to 64·tiles64(cols) columns can be read.
struct tile64_row {
    const atlas_act *start;  // its 128 bytes in the first tile
    int turn;                // row % 8

    // The eight columns from k, a multiple of eight.
    __device__ const atlas_act *at(int k) const { return start + size_t(k / 64) * kTile64 + (k / 8 % 8 ^ turn) * 8; }
};
__device__ inline tile64_row weight_row64(const atlas_Weight &w, int m, int n) { return {tile64(w, m, n / 64, 0) + n % 64 * 64, n % 8}; }

__device__ inline float row_scale(const atlas_Weight &w, int m, int n) { return w.Scale ? w.Scale[size_t(m) * w.Rows + n] : 1.0f; }

}  // namespace atlas

// Block (tiles along columns, tiles along rows), kThreads threads.
template <class P>
__device__ void pack_tile64(const atlas_Pack &a) {
    const int cols = a.W.Cols;
    const bool whole = cols % 8 == 0;
    const atlas_act *raw = reinterpret_cast<const atlas_act *>(a.Raw);
    atlas_act *out = const_cast<atlas_act *>(atlas::tile64(a.W, 0, blockIdx.y, blockIdx.x));
    atlas::wait_for_previous();
    for (int i = threadIdx.x; i < 512; i += P::kThreads) {
        const int n = blockIdx.y * 64 + i / 8, k = blockIdx.x * 64 + i % 8 * 8;
        const bool there = n < a.W.Rows && k < cols;
        *reinterpret_cast<uint4 *>(out + atlas::tile64_at(i / 8, i % 8)) = there ? atlas::load8_raw(raw + size_t(n) * cols + k, cols - k, whole) : uint4{};
    }
    atlas::release_next();
}

// Block (tiles along columns, tiles along rows), kThreads threads.
template <class P>
__device__ void unpack_tile64(const atlas_Unpack &a) {
    const int cols = a.W.Cols;
    const atlas_act *tile = atlas::tile64(a.W, 0, blockIdx.y, blockIdx.x);
    uint16_t *raw = reinterpret_cast<uint16_t *>(a.Raw);
    atlas::wait_for_previous();
    for (int i = threadIdx.x; i < 4096; i += P::kThreads) {
        const int n = blockIdx.y * 64 + i / 64, k = blockIdx.x * 64 + i % 64;
        if (n < a.W.Rows && k < cols) raw[size_t(n) * cols + k] = reinterpret_cast<const uint16_t *>(tile + atlas::tile64_at(i / 64, i % 64 / 8))[i % 8];
    }
    atlas::release_next();
}

// Block: one row, kThreads threads.
template <class P>
__device__ void embedding_tile64(const atlas_Embedding &a) {
    const int cols = a.W.Cols;
    const bool whole = cols % 8 == 0;
    atlas_act *out = a.Out + size_t(blockIdx.x) * cols;
    atlas::wait_for_previous();
    const int id = a.IDs[blockIdx.x];
    const bool there = id >= 0 && id < a.W.Rows;
    const atlas::tile64_row in = atlas::weight_row64(a.W, 0, there ? id : 0);
    const float scale = there ? atlas::row_scale(a.W, 0, id) : 0.0f;
    for (int c = threadIdx.x * 8; c < cols; c += P::kThreads * 8) {
        atlas::f32x8 x = {};
        if (there) x = atlas::widen(*reinterpret_cast<const uint4 *>(in.at(c)));
#pragma unroll
        for (int i = 0; i < 8; i++) x.v[i] *= scale;
        atlas::store8(out + c, x, cols - c, whole);
    }
    atlas::release_next();
}
