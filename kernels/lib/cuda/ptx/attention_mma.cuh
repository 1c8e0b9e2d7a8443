// What attention needs beside mma.cuh and barrier.cuh: powers of two, and products of a warpgroup whose second factor may lie
// transposed. Layouts of sums and factors are those of wgmma.cuh.
#pragma once
#include <stdint.h>

namespace atlas {

// Two to the power x, to two units in the last place; 0 of -infinity.
__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Arrives at a barrier when this thread's copies so far are there.
__device__ __forceinline__ void arrive_copied(uint32_t barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Rows of 64 elements in the 128-byte swizzle; along the transposed factor's columns, the next 64 lie columns64 bytes further on.
__device__ __forceinline__ uint64_t swizzled(uint32_t shared, uint32_t columns64) {
    return uint64_t((shared & 0x3ffff) >> 4) | uint64_t(columns64 >> 4) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

#define ATLAS_SUMS8(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), "+f"(c[i + 7])
#define ATLAS_SUMS32(i) ATLAS_SUMS8(i), ATLAS_SUMS8(i + 8), ATLAS_SUMS8(i + 16), ATLAS_SUMS8(i + 24)
#define ATLAS_NAMES32_0 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define ATLAS_NAMES32_1 \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

#define ATLAS_NAMES32_2 \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define ATLAS_NAMES32_3 \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

// c = a·b, or c += a·b where more: a[64,16] and b[N,16] in shared memory, along k; or a in registers and b[16,N] along N.
__device__ __forceinline__ void multiply_rows(float (&c)[32], uint64_t a, uint64_t b, int more) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" ATLAS_NAMES32_0 "}, %32, %33, p, 1, 1, 0, 0;\n}"
                 : ATLAS_SUMS32(0) : "l"(a), "l"(b), "r"(more));
}
__device__ __forceinline__ void multiply_rows(float (&c)[64], uint64_t a, uint64_t b, int more) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" ATLAS_NAMES32_0 "," ATLAS_NAMES32_1 "}, %64, %65, p, 1, 1, 0, 0;\n}"
                 : ATLAS_SUMS32(0), ATLAS_SUMS32(32) : "l"(a), "l"(b), "r"(more));
}
__device__ __forceinline__ void multiply_columns(float (&c)[32], const uint32_t (&a)[4], uint64_t b, int more) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" ATLAS_NAMES32_0 "}, {%32,%33,%34,%35}, %36, p, 1, 1, 1;\n}"
                 : ATLAS_SUMS32(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}
__device__ __forceinline__ void multiply_columns(float (&c)[64], const uint32_t (&a)[4], uint64_t b, int more) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" ATLAS_NAMES32_0 "," ATLAS_NAMES32_1 "}, {%64,%65,%66,%67}, %68, p, 1, 1, 1;\n}"
                 : ATLAS_SUMS32(0), ATLAS_SUMS32(32) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}
__device__ __forceinline__ void multiply_columns(float (&c)[128], const uint32_t (&a)[4], uint64_t b, int more) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %133, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" ATLAS_NAMES32_0 "," ATLAS_NAMES32_1 "," ATLAS_NAMES32_2 "," ATLAS_NAMES32_3 "}, {%128,%129,%130,%131}, %132, p, 1, 1, 1;\n}"
                 : ATLAS_SUMS32(0), ATLAS_SUMS32(32), ATLAS_SUMS32(64), ATLAS_SUMS32(96) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}
#undef ATLAS_NAMES32_0
#undef ATLAS_NAMES32_1
#undef ATLAS_NAMES32_2
#undef ATLAS_NAMES32_3
#undef ATLAS_SUMS32
#undef ATLAS_SUMS8

}  // namespace atlas
