// Conversion to e4m3, and bits of two words.
#pragma once
#include <stdint.h>

namespace atlas {

// Four numbers, rounded to nearest even, at most 448 in size; the first in the lowest byte.
__device__ __forceinline__ uint32_t narrow_e4m3(float x0, float x1, float x2, float x3) {
    uint16_t low, high;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(x1), "f"(x0));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(x3), "f"(x2));
    return low | uint32_t(high) << 16;
}

// Bits of x where the mask has ones, of y where it has zeros: one instruction, where the compiler would make two of it.
__device__ __forceinline__ uint32_t select_bits(uint32_t mask, uint32_t x, uint32_t y) {
    uint32_t z;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(z) : "r"(mask), "r"(x), "r"(y));
    return z;
}

}  // namespace atlas
