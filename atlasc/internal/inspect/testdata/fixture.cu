// The cubin that tests read, and that a compiler which is none gives for every unit of a small tree:
//   nvcc -cubin -std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a -o fixture.cubin fixture.cu   (nvcc 13.0.88)
template <int kBytes>
struct arguments {
    float *out;
    int n;
    char rest[kBytes - 12];
};

#define KERNEL(name, bytes, threads) extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ arguments<bytes> a)

KERNEL(atlas_norm, 40, 128) { a.out[blockIdx.x * 128 + threadIdx.x] = a.n; }
KERNEL(atlas_linear_0, 80, 64) { a.out[threadIdx.x] = 0; }
KERNEL(atlas_linear_1, 80, 256) { a.out[threadIdx.x] = 1; }

// What Norm could be, each wrong in its way.
KERNEL(atlas_wide, 48, 128) { a.out[threadIdx.x] = 2; }
KERNEL(atlas_small, 40, 64) { a.out[threadIdx.x] = 3; }
KERNEL(atlas_shared, 40, 128) {
    __shared__ float s[1024];
    s[threadIdx.x] = a.out[threadIdx.x];
    __syncthreads();
    a.out[threadIdx.x] = s[a.n];
}
KERNEL(atlas_stack, 40, 128) {
    float v[25];
#pragma unroll 1
    for (int i = 0; i < a.n; i++) v[i % 25] = a.out[i];
    a.out[threadIdx.x] = v[a.n];
}
extern "C" __global__ void atlas_unbounded(const __grid_constant__ arguments<40> a) { a.out[threadIdx.x] = 4; }
