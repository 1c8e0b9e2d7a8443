// Shared memory of the blocks of a cluster: loads, stores and sums at addresses that address_in gives.
#pragma once
#include "lib/cuda/ptx/cluster.cuh"

namespace atlas {

__device__ __forceinline__ void store_peer(uint32_t there, float2 x) {
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1,%2};" ::"r"(there), "f"(x.x), "f"(x.y) : "memory");
}
__device__ __forceinline__ void store_peer(uint32_t there, uint32_t x) { asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(x) : "memory"); }
__device__ __forceinline__ void store_peer(uint32_t there, uint64_t x) { asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(there), "l"(x) : "memory"); }
__device__ __forceinline__ void load_peer(uint32_t there, uint32_t &x) { asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(there) : "memory"); }
__device__ __forceinline__ void load_peer(uint32_t there, uint64_t &x) { asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(x) : "r"(there) : "memory"); }

// Stores one word or two, which count at a barrier; both addresses are of one block of the cluster.
__device__ __forceinline__ void store_counted(uint32_t to, uint32_t x, uint32_t barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(x), "r"(barrier) : "memory");
}

__device__ __forceinline__ void store_counted(uint32_t to, uint64_t x, uint32_t barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to), "l"(x), "r"(barrier) : "memory");
}

// Adds, and gives what was there before.
__device__ __forceinline__ uint32_t add_peer(uint32_t there, uint32_t x) {
    uint32_t before;
    asm volatile("atom.relaxed.cluster.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(before) : "r"(there), "r"(x) : "memory");
    return before;
}
__device__ __forceinline__ void add_peer(uint32_t there, uint64_t x) {
    asm volatile("red.relaxed.cluster.shared::cluster.add.u64 [%0], %1;" ::"r"(there), "l"(x) : "memory");
}

// Waits for a phase of a barrier at which other blocks arrive, and sees what they stored.
__device__ __forceinline__ void wait_peers(uint32_t barrier, int parity) {
    jitter();
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}"
        ::"r"(barrier), "r"(parity) : "memory");
}

}  // namespace atlas
