// Programmatic dependent launch. A launch without the attribute waits for nothing here.
#pragma once
#include "lib/cuda/ptx/jitter.cuh"

#include <stdint.h>

namespace atlas {

// Waits until the kernels before this one are done and their results are seen. Every block calls it, also one that has
// nothing to do: the kernel after this one waits for this one alone.
__device__ __forceinline__ void wait_for_previous() {
    jitter();
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Lets the next kernel start, as far as it needs no results.
__device__ __forceinline__ void release_next() {
    jitter();
    asm volatile("griddepcontrol.launch_dependents;" :::);
}

// Does nothing but need x, so that what x is made of is there before a wait that follows, which the compiler would otherwise bring forward.
// Only after release_next: one x in 2^32 releases the next kernel once more.
__device__ __forceinline__ void settle(uint32_t x) {
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0x9e3779b9; @p griddepcontrol.launch_dependents; }" ::"r"(x) : "memory");
}

}  // namespace atlas
