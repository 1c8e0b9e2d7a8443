// test_mark adds value to a cell for each block, test_double doubles every cell, test_fault writes where nothing is.
struct mark { unsigned *out; unsigned columns, planes, value, pad; };

extern "C" __global__ void test_mark(const __grid_constant__ mark a) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    if (threadIdx.x == 0) a.out[(blockIdx.z * a.planes + blockIdx.y) * a.columns + blockIdx.x] += a.value;
}

extern "C" __global__ void test_double(const __grid_constant__ mark a) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    if (threadIdx.x == 0) a.out[(blockIdx.z * a.planes + blockIdx.y) * a.columns + blockIdx.x] *= 2;
}

extern "C" __global__ void test_fault(const __grid_constant__ mark a) { ((volatile unsigned *)8)[threadIdx.x] = a.value; }

// test_cluster adds its block's rank in its cluster and what its dynamic shared memory holds.
extern "C" __global__ void test_cluster(const __grid_constant__ mark a) {
    extern __shared__ unsigned shared[];
    shared[threadIdx.x * 1024] = a.value;
    __syncthreads();
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    if (threadIdx.x == 0) a.out[blockIdx.x] += rank + shared[31 * 1024];
}
