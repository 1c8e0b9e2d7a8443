// Advance on a GPU: a warp for each sequence, a thread for each row.
#pragma once
#include "lib/cuda/atlas.cuh"

template <class P>
__device__ void advance(const atlas_Advance &a) {
    const int s = blockIdx.x;
    atlas::wait_for_previous();
    const int chunk = a.Follows[s];
    if (chunk < 0 || chunk >= a.Chunks) return;
    const int n = a.Counts[chunk] - 1, end = a.Starts[s + 1];
    if (threadIdx.x == 0) {
        a.Lengths[s] += n;
        a.Accepted[s] = n;
    }
    for (int r = a.Starts[s] + threadIdx.x; r < end; r += P::kThreads) {
        const int p = a.Positions[r] + n;
        a.Positions[r] = p;
        a.DrawPositions[r] += n;
        a.Slots[r] = a.Tables[size_t(s) * a.MaxBlocks + p / a.BlockSize] * a.BlockSize + p % a.BlockSize;
    }
}
