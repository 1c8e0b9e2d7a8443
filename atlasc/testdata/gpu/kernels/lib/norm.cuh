#include "lib/common.cuh"

template <int kWidth>
__device__ void norm(const atlas_Norm &a) {
    for (int c = threadIdx.x; c < a.Cols; c += kWidth) a.Out[size_t(blockIdx.x) * a.Cols + c] = twice(a.Eps);
}
