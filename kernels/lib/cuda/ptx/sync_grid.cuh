// A barrier of all blocks of a grid, which must all be resident: at most as many as fit the device at once, counted with the shared
// memory they ask for. About 0.9 µs on an H200 with 132 blocks.
#pragma once
#include "lib/cuda/ptx/barrier.cuh"

namespace atlas {

// The counter of a kernel's grid: zero when a module is loaded, and of no other kernel. Its highest bit turns at each barrier.
struct grid_count {
    uint32_t value;
};

// One thread of a block tells that the block's stores so far are done, which it knows of by a barrier of the block, and gets what
// to wait for.
__device__ __forceinline__ uint32_t arrive_grid(grid_count &count) {
    const uint32_t step = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
    uint32_t before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(&count.value), "r"(step) : "memory");
    return before;
}
// Waits until all blocks have arrived. What they stored is seen by this thread, by the block after a barrier of it, and by bulk
// copies after a fence of the proxies (fence_copies).
__device__ __forceinline__ void wait_grid(grid_count &count, uint32_t before) {
    uint32_t now;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(&count.value) : "memory");
    while (((now ^ before) & 0x80000000u) == 0);
}
// Between what other threads stored to memory, as a barrier has shown, and bulk copies of it by this one.
__device__ __forceinline__ void fence_copies() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// All of kThreads threads, which named barrier `name` is theirs.
template <int kThreads>
__device__ __forceinline__ void sync_grid(grid_count &count, int name) {
    sync_named<kThreads>(name);
    if (threadIdx.x == 0) wait_grid(count, arrive_grid(count));
    sync_named<kThreads>(name);
}

}  // namespace atlas
