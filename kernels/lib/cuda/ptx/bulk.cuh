// Copies of many bytes to shared memory by the copy engine. Sizes and addresses are multiples of 16; the bytes count at a
// barrier of barrier.cuh.
#pragma once
#include <stdint.h>

namespace atlas {

// True in one lane of a warp that is all there. The compiler knows that it is one: copies that begin under it take an instruction each if their operands
// are the same in all lanes, where others take a loop over lanes, of ten instructions.
__device__ __forceinline__ bool elected() {
    uint32_t one;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(one));
    return one;
}

__device__ __forceinline__ void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// To the same place, and counted at the same barrier, of each block of the cluster whose bit is set.
__device__ __forceinline__ void copy_bulk_to(uint32_t to, const void *from, int bytes, uint32_t barrier, int blocks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier), "h"(uint16_t(blocks)) : "memory");
}

// Rows of a box of a matrix that a tensor map describes, where its manifest says most: a box is no higher than its matrix, for what lies outside takes
// longer to come than rows.
__device__ __forceinline__ int box_rows(int most, int rows) { return min(most, rows); }
// Such a box, from a column and a row on; what lies outside comes as zeros.
__device__ __forceinline__ void copy_box(uint32_t to, const void *map, int column, int row, uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier) : "memory");
}
__device__ __forceinline__ void copy_box_to(uint32_t to, const void *map, int column, int row, uint32_t barrier, int blocks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                 ::"r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(uint16_t(blocks)) : "memory");
}
__device__ __forceinline__ void prefetch_map(const void *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

__device__ __forceinline__ void store_shared(uint32_t to, uint4 x) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}
__device__ __forceinline__ void store_shared1(uint32_t to, uint32_t x) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory"); }

__device__ __forceinline__ uint4 load_shared(uint32_t from) {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from) : "memory");
    return x;
}
__device__ __forceinline__ uint2 load_shared2(uint32_t from) {
    uint2 x;
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(from) : "memory");
    return x;
}
__device__ __forceinline__ uint32_t load_shared1(uint32_t from) {
    uint32_t x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
    return x;
}
__device__ __forceinline__ uint32_t load_shared_half(uint32_t from) {
    uint16_t x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(from) : "memory");
    return x;
}

// Lets tensor cores and the copy engine see what this thread wrote to shared memory.
__device__ __forceinline__ void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace atlas
