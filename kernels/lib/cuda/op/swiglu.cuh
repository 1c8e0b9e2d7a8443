// SwiGLU on a GPU: 8·kThreads columns of one row per block. Grid: ⌈Cols/(8·kThreads)⌉, Rows.
#pragma once
#include "lib/cuda/atlas.cuh"

template <class P>
__device__ void swiglu(const atlas_SwiGLU &a) {
    const int n = a.Cols, c = (blockIdx.x * P::kThreads + threadIdx.x) * 8;
    const bool whole = n % 8 == 0;
    const atlas_act *gate = a.In + size_t(blockIdx.y) * 2 * n + c;
    atlas::release_next();
    atlas::wait_for_previous();
    if (c >= n) return;
    atlas::f32x8 g = atlas::load8(gate, n - c, whole);
    const atlas::f32x8 u = atlas::load8(gate + n, n - c, whole);
#pragma unroll
    for (int i = 0; i < 8; i++) g.v[i] = atlas::silu(g.v[i]) * u.v[i];
    atlas::store8(a.Out + size_t(blockIdx.y) * n + c, g, n - c, whole);
}
