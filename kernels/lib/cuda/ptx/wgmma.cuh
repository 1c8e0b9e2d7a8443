// Tensor core products of a warpgroup: bf16 factors, f32 sums, running while the threads go on.
//
// c[64,N] += a[64,16]·b[N,16]ᵀ. Thread i of the warpgroup holds, with w = i/32, g = i%32/4 and t = i%4, in c[4j+0 … 4j+3] of rows
// 16w+g (two) and 16w+g+8 (two) the columns 8j+2t, 8j+2t+1. Factors in shared memory have rows of 128 bytes, 64 along k, in
// the 128-byte swizzle: 16-byte chunk c of row r at c ^ r % 8, the whole aligned to 1024 bytes.
#pragma once
#include "lib/cuda/ptx/fragment.cuh"

namespace atlas {

// Rows from an address on; 16 columns further on are 32 bytes further on, which is 2 more.
__device__ __forceinline__ uint64_t factor(uint32_t shared) {
    return uint64_t((shared & 0x3ffff) >> 4) | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

// Rows of 64 bytes in the 64-byte swizzle: 16-byte chunk c of row r at c ^ r/2 % 4, the whole aligned to 512 bytes.
__device__ __forceinline__ uint64_t factor_of_64(uint32_t shared) {
    return uint64_t((shared & 0x3ffff) >> 4) | uint64_t(1) << 16 | uint64_t(512 >> 4) << 32 | uint64_t(2) << 62;
}

// Before the first product after sums or factors in registers were written.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most kLeft groups are running.
template <int kLeft>
__device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

// Keeps the compiler from moving uses of sums to before this.
template <int kSums>
__device__ __forceinline__ void pin(float (&c)[kSums]) {
#pragma unroll
    for (int i = 0; i < kSums; i++) asm volatile("" : "+f"(c[i])::"memory");
}

#define ATLAS_SUMS8(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), "+f"(c[i + 7])
#define ATLAS_SUMS32(i) ATLAS_SUMS8(i), ATLAS_SUMS8(i + 8), ATLAS_SUMS8(i + 16), ATLAS_SUMS8(i + 24)
#define ATLAS_NAMES32_0 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define ATLAS_NAMES32_1 \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define ATLAS_NAMES32_2 \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define ATLAS_NAMES32_3 \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
    "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define ATLAS_NAMES8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define ATLAS_NAMES16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"

// For each N: both factors in shared memory, or a in registers in the order of mma.m16n8k16; the last begins anew, c = a·bᵀ.
#define ATLAS_PRODUCT(N, names, sums, d0, d1, d2, d3, d4)                                                                        \
    __device__ __forceinline__ void multiply(float (&c)[N / 2], uint64_t a, uint64_t b) {                                       \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" names "}, " d0 ", " d1 ", 1, 1, 1, 0, 0;"      \
                     : sums : "l"(a), "l"(b));                                                                                   \
    }                                                                                                                            \
    __device__ __forceinline__ void multiply(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b) {                            \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" names "}, "                                    \
                     "{" d0 "," d1 "," d2 "," d3 "}, " d4 ", 1, 1, 1, 0;"                                                        \
                     : sums : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                               \
    }                                                                                                                            \
    __device__ __forceinline__ void multiply_anew(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b) {                       \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" names "}, "                                    \
                     "{" d0 "," d1 "," d2 "," d3 "}, " d4 ", 0, 1, 1, 0;"                                                        \
                     : sums : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                               \
    }
#define ATLAS_ALL(...) __VA_ARGS__
ATLAS_PRODUCT(16, ATLAS_NAMES8, ATLAS_ALL(ATLAS_SUMS8(0)), "%8", "%9", "%10", "%11", "%12")
ATLAS_PRODUCT(32, ATLAS_NAMES16, ATLAS_ALL(ATLAS_SUMS8(0), ATLAS_SUMS8(8)), "%16", "%17", "%18", "%19", "%20")
ATLAS_PRODUCT(64, ATLAS_NAMES32_0, ATLAS_ALL(ATLAS_SUMS32(0)), "%32", "%33", "%34", "%35", "%36")
ATLAS_PRODUCT(128, ATLAS_NAMES32_0 "," ATLAS_NAMES32_1, ATLAS_ALL(ATLAS_SUMS32(0), ATLAS_SUMS32(32)), "%64", "%65", "%66", "%67", "%68")
ATLAS_PRODUCT(192, ATLAS_NAMES32_0 "," ATLAS_NAMES32_1 "," ATLAS_NAMES32_2, ATLAS_ALL(ATLAS_SUMS32(0), ATLAS_SUMS32(32), ATLAS_SUMS32(64)), "%96", "%97", "%98", "%99", "%100")
ATLAS_PRODUCT(256, ATLAS_NAMES32_0 "," ATLAS_NAMES32_1 "," ATLAS_NAMES32_2 "," ATLAS_NAMES32_3, ATLAS_ALL(ATLAS_SUMS32(0), ATLAS_SUMS32(32), ATLAS_SUMS32(64), ATLAS_SUMS32(96)), "%128", "%129", "%130", "%131", "%132")
#undef ATLAS_ALL
#undef ATLAS_PRODUCT
#undef ATLAS_NAMES8
#undef ATLAS_NAMES16
#undef ATLAS_NAMES32_0
#undef ATLAS_NAMES32_1
#undef ATLAS_NAMES32_2
#undef ATLAS_NAMES32_3
#undef ATLAS_SUMS32
#undef ATLAS_SUMS8

// Stores four 8×8 matrices of 16-bit elements, of which lane 4g+t holds row g, columns 2t and 2t+1; lane l gives the address of row l%8
// of matrix l/8.
__device__ __forceinline__ void store_matrices(uint32_t shared, const uint32_t (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}

// Transposes an 8×8 matrix of 16-bit elements over the warp: lane 4g+t holds row g, columns 2t and 2t+1.
__device__ __forceinline__ uint32_t transpose_matrix(uint32_t x) {
    uint32_t y;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

}  // namespace atlas
