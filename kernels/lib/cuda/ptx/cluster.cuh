// Shared memory of the other blocks of a cluster. Addresses are those of the own block's shared window.
#pragma once
#include <stdint.h>

namespace atlas {

// Stores to the same place in a block of the cluster.
__device__ __forceinline__ void store_at(uint32_t to, int block, float4 v) {
    asm volatile(
        "{\n.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "st.shared::cluster.v4.f32 [there], {%2,%3,%4,%5};\n}"
        ::"r"(to), "r"(block), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}

// Arrives at the same barrier of a block of the cluster, after what this thread wrote before.
__device__ __forceinline__ void release_at(uint32_t barrier, int block) {
    asm volatile(
        "{\n.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}"
        ::"r"(barrier), "r"(block) : "memory");
}

// Waits for a phase, and sees what the threads that arrived from other blocks wrote.
__device__ __forceinline__ void acquire_barrier(uint32_t barrier, int parity) {
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}"
        ::"r"(barrier), "r"(parity) : "memory");
}

// Orders this thread's stores before what it does next, as the cluster sees it.
__device__ __forceinline__ void fence_cluster() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }

}  // namespace atlas
