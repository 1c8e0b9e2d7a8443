// What looks for kernels that rely on one warp being sooner than another: compiled with ATLAS_LATE (atlasc build --late), a warp is late by up
// to 65 µs, one time in eight, wherever it may wait or tells others something. Otherwise this is nothing.
#pragma once

namespace atlas {

__device__ __forceinline__ void perhaps_late() {
#ifdef ATLAS_LATE
    asm volatile(
        "{\n.reg .pred late;\n.reg .b32 dice, warp;\n"
        "mov.u32 dice, %clock;\n"
        "mov.u32 warp, %warpid;\n"
        "mad.lo.u32 dice, warp, 0x632be5ab, dice;\n"
        "mul.lo.u32 dice, dice, 0x9e3779b1;\n"
        "shr.u32 warp, dice, 29;\n"
        "setp.eq.u32 late, warp, 0;\n"
        "shr.u32 dice, dice, 13;\n"
        "and.b32 dice, dice, 0xffff;\n"
        "@late nanosleep.u32 dice;\n}" ::: "memory");
#endif
}

}  // namespace atlas
