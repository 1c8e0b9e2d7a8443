// Barriers in shared memory that count arrivals and bytes, blocks of a cluster, registers of a warpgroup. Addresses are
// those of the shared window. A barrier's phases count from zero; waits name a phase by its lowest bit.
#pragma once
#include "lib/cuda/ptx/jitter.cuh"

#include <stdint.h>

namespace atlas {

__device__ __forceinline__ void init_barrier(uint32_t barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers seen by copies and by the other blocks of the cluster.
__device__ __forceinline__ void fence_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Where lanes stored or read what the barrier is about, each of them arrives. One for all after __syncwarp is ordered as well, but
// the race checker does not follow it, and costs the same.
__device__ __forceinline__ void arrive(uint32_t barrier) {
    jitter();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives once the copies that this thread began are there, which is an arrival among those that the barrier was made for.
__device__ __forceinline__ void arrive_after_copies(uint32_t barrier) {
    jitter();
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and lets the phase end no sooner than the bytes have come.
__device__ __forceinline__ void arrive_expecting(uint32_t barrier, int bytes) {
    jitter();
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Arrives at the same barrier of a block of the cluster. Orders what tensor cores and the copy engine did, not what threads wrote.
__device__ __forceinline__ void arrive_at(uint32_t barrier, int block) {
    jitter();
    asm volatile(
        "{\n.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}"
        ::"r"(barrier), "r"(block) : "memory");
}

__device__ __forceinline__ void wait_barrier(uint32_t barrier, int parity) {
    jitter();
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}"
        ::"r"(barrier), "r"(parity) : "memory");
}

// How much dynamic shared memory this launch has.
__device__ __forceinline__ int dynamic_shared_bytes() {
    int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

// Waits for every thread of the cluster.
__device__ __forceinline__ void sync_cluster() {
    jitter();
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ __forceinline__ int cluster_rank() {
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Waits for kThreads threads at named barrier id, 1 … 15.
template <int kThreads>
__device__ __forceinline__ void sync_named(int id) {
    jitter();
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
}

// Arrives there and goes on; those that wait count it among kThreads.
template <int kThreads>
__device__ __forceinline__ void arrive_named(int id) {
    jitter();
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
}

// Gives registers of the warpgroup back, or takes more; all its warps call it.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace atlas
