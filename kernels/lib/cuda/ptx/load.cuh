// Loads and asynchronous copies of 16 bytes.
#pragma once
#include "lib/cuda/ptx/jitter.cuh"

#include <stdint.h>

namespace atlas {

// Memory that is read once. Not by ld.global.nc: that may be moved past the wait for the kernel before, in either direction.
__device__ __forceinline__ uint4 load_once(const void *p) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
__device__ __forceinline__ uint2 load_once2(const void *p) {
    uint2 v;
    asm volatile("ld.global.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
    return v;
}

// A word that is asked for at this place, not where it is used, which may be behind a branch that waits for another.
__device__ __forceinline__ int load_here(const int *p) {
    int v;
    asm volatile("ld.global.s32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

// Brings the 128 bytes around p into L2.
__device__ __forceinline__ void prefetch(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// Copies 16 bytes to shared memory, or writes zeros there.
__device__ __forceinline__ void copy_async(uint32_t to, const void *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
// The same of 4 bytes.
__device__ __forceinline__ void copy_async4(uint32_t to, const void *from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(there ? 4 : 0) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most kLeft groups are on their way.
template <int kLeft>
__device__ __forceinline__ void wait_copies() {
    jitter();
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

}  // namespace atlas
