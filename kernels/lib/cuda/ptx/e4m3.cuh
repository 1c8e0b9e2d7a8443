// Conversion to e4m3.
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

}  // namespace atlas
