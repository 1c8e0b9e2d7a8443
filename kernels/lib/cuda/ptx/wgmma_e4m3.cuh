// As wgmma.cuh, but products of e4m3 factors: c[64,N] += a[64,32]·b[N,32]ᵀ, f32 sums. A row of 128 bytes is 128 columns; 32
// columns further on are 2 more in a factor. Thread i holds, with w = i/32, g = i%32/4 and t = i%4, of an a in registers the rows
// 16w+g and 16w+g+8 at columns 4t … 4t+3 (a[0], a[1]), the same rows at columns 16+4t … 16+4t+3 (a[2], a[3]).
#pragma once
#include "lib/cuda/ptx/wgmma.cuh"

namespace atlas {

#define ATLAS_SUMS8(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), "+f"(c[i + 7])
#define ATLAS_SUMS32(i) ATLAS_SUMS8(i), ATLAS_SUMS8(i + 8), ATLAS_SUMS8(i + 16), ATLAS_SUMS8(i + 24)
#define ATLAS_NAMES32_0 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define ATLAS_NAMES16_1 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define ATLAS_NAMES32_1 \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define ATLAS_NAMES32_2 \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"

// One function for each N; where not more, c is overwritten.
#define ATLAS_PRODUCT(N, names, sums, a0, a1, a2, a3, b0, more)                                                          \
    __device__ __forceinline__ void multiply_e4m3(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b, bool adds) {    \
        asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " more ", 0;\n"                                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3 {" names "}, "                            \
                     "{" a0 "," a1 "," a2 "," a3 "}, " b0 ", adds, 1, 1;\n}"                                             \
                     : sums : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(adds)));                       \
    }
#define ATLAS_SHARED_PRODUCT(N, names, sums, a0, b0, more)                                                               \
    __device__ __forceinline__ void multiply_e4m3(float (&c)[N / 2], uint64_t a, uint64_t b, bool adds) {                \
        asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " more ", 0;\n"                                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3 {" names "}, " a0 ", " b0 ", adds, 1, 1;\n}" \
                     : sums : "l"(a), "l"(b), "r"(int(adds)));                                                           \
    }
#define ATLAS_ALL(...) __VA_ARGS__
ATLAS_PRODUCT(64, ATLAS_NAMES32_0, ATLAS_ALL(ATLAS_SUMS32(0)), "%32", "%33", "%34", "%35", "%36", "%37")
ATLAS_PRODUCT(128, ATLAS_NAMES32_0 "," ATLAS_NAMES32_1, ATLAS_ALL(ATLAS_SUMS32(0), ATLAS_SUMS32(32)), "%64", "%65", "%66", "%67", "%68", "%69")
ATLAS_SHARED_PRODUCT(96, ATLAS_NAMES32_0 "," ATLAS_NAMES16_1, ATLAS_ALL(ATLAS_SUMS32(0), ATLAS_SUMS8(32), ATLAS_SUMS8(40)), "%48", "%49", "%50")
ATLAS_SHARED_PRODUCT(128, ATLAS_NAMES32_0 "," ATLAS_NAMES32_1, ATLAS_ALL(ATLAS_SUMS32(0), ATLAS_SUMS32(32)), "%64", "%65", "%66")
#undef ATLAS_ALL
#undef ATLAS_SHARED_PRODUCT
#undef ATLAS_PRODUCT
#undef ATLAS_NAMES32_0
#undef ATLAS_NAMES16_1
#undef ATLAS_NAMES32_1
#undef ATLAS_NAMES32_2
#undef ATLAS_SUMS32
#undef ATLAS_SUMS8

}  // namespace atlas
