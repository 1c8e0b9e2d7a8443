// Resolve on a GPU: a thread for each row, kThreads rows per block.
#pragma once
#include "lib/cuda/atlas.cuh"

template <int kThreads>
__device__ void resolve(const atlas_Resolve &a) {
    const int32_t r = blockIdx.x * kThreads + threadIdx.x;
    atlas::wait_for_previous();
    if (r >= a.Rows) return;
    const int32_t at = -1 - a.IDs[r];
    if (at >= 0) a.IDs[r] = at < a.Count ? a.Sampled[at] : -1;
}
