#include "lib/common.cuh"

template <class P>
__device__ void quantise(const atlas_Linear &a, uint8_t *scratch) { scratch[blockIdx.x * P::kThreads + threadIdx.x] = a.Rows; }

template <class P>
__device__ void linear(const atlas_Linear &a, uint8_t *scratch) {
    extern __shared__ float row[];
    row[threadIdx.x] = scratch[threadIdx.x];
    __syncthreads();
    a.Out[size_t(blockIdx.y) * a.W.Rows + blockIdx.x] = twice(row[P::kThreads - 1 - threadIdx.x]);
}
