// Lookup on a GPU: a thread for each number.
#pragma once
#include "lib/cuda/atlas.cuh"

template <class P>
__device__ void lookup(const atlas_Lookup &a) {
    const int r = blockIdx.x * P::kThreads + threadIdx.x;
    atlas::wait_for_previous();
    if (r >= a.Rows) return;
    const int id = a.IDs[r];
    a.IDs[r] = id >= 0 && id < a.Count ? a.Table[id] : -1;
}
