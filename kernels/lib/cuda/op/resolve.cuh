// Resolve on a GPU: a thread for each word, kThreads words per block.
#pragma once
#include "lib/cuda/atlas.cuh"

template <class P>
__device__ void resolve(const atlas_Resolve &a) {
    const int32_t i = blockIdx.x * P::kThreads + threadIdx.x;
    atlas::wait_for_previous();
    if (i >= a.Count) return;
    int32_t word = a.In[i];
    if (i < a.Rows && word < 0) word = -1 - word < a.Samples ? a.Sampled[-1 - word] : -1;
    a.Out[i] = word;
}
