#include "lib/common.cuh"

__device__ inline void quantise(const atlas_Linear &a, uint8_t *scratch) { scratch[blockIdx.x * 64 + threadIdx.x] = a.Rows; }

template <int kWidth>
__device__ void linear(const atlas_Linear &a, uint8_t *scratch) {
    extern __shared__ float row[];
    row[threadIdx.x] = scratch[threadIdx.x];
    __syncthreads();
    a.Out[size_t(blockIdx.y) * a.W.Rows + blockIdx.x] = twice(row[kWidth - 1 - threadIdx.x]);
}
