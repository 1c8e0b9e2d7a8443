// Tensor core products of one warp: bf16 factors, f32 sums.
#pragma once
#include <stdint.h>

namespace atlas {

// c[16,8] += a[16,16]·b[16,8]. Lane l holds, with g = l/4 and t = l%4, of a the rows g, g+8, g, g+8 at columns 2t, 2t, 2t+8,
// 2t+8 (two each), of b the rows 2t and 2t+8 (two each) of column g, of c the rows g, g, g+8, g+8 at columns 2t, 2t+1.
__device__ __forceinline__ void mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Four 8×8 matrices; lane l gives the address of row l%8 of matrix l/8.
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared));
}

// The same, each matrix transposed.
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared));
}

}  // namespace atlas
