// Between the blocks of a cluster: stores into another block's shared memory, and barriers in two halves. Addresses are those of the
// shared window; a block of the cluster goes by its rank.
#pragma once
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"

namespace atlas {

// The same address in another block.
__device__ __forceinline__ uint32_t address_in(uint32_t shared, int block) {
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared), "r"(block));
    return there;
}

// Stores 16 bytes in any block.
__device__ __forceinline__ void store_in(uint32_t to, const float (&x)[4]) {
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]) : "memory");
}

// Stores 16 bytes, which count at a barrier; both addresses are of one other block.
__device__ __forceinline__ void store_counted(uint32_t to, const float (&x)[4], uint32_t barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1,%2,%3,%4}, [%5];"
                 ::"r"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(barrier) : "memory");
}

// The same of eight bytes, of which the block may be this one.
__device__ __forceinline__ void store_counted(uint32_t to, float2 x, uint32_t barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];" ::"r"(to), "f"(x.x), "f"(x.y), "r"(barrier) : "memory");
}

// Every thread of the cluster arrives, and waits for the others later: then they have begun, and barriers that fence_barriers followed can
// be used. Nothing else is ordered, since that is a fence of all memory, behind which stores wait until they are done.
__device__ __forceinline__ void arrive_cluster() {
    jitter();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait_cluster() {
    jitter();
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

}  // namespace atlas
