// What looks for kernels that rely on one warp being sooner than another: compiled with ATLAS_JITTER (atlasc build --jitter), a warp is late
// wherever it may wait or tells others something, one time in eight by up to 16 µs, one time in 512 by up to half a millisecond, in which
// others go round a pipe many times. Otherwise this is nothing.
#pragma once

namespace atlas {

__device__ __forceinline__ void jitter() {
#ifdef ATLAS_JITTER
    asm volatile(
        "{\n.reg .pred late, very;\n.reg .b32 dice, some, much;\n"
        "mov.u32 dice, %clock;\n"
        "mov.u32 some, %warpid;\n"
        "mad.lo.u32 dice, some, 0x632be5ab, dice;\n"
        "mul.lo.u32 dice, dice, 0x9e3779b1;\n"
        "setp.lt.u32 late, dice, 0x20000000;\n"
        "setp.lt.u32 very, dice, 0x00800000;\n"
        "and.b32 some, dice, 0x3fff;\n"
        "and.b32 much, dice, 0x7ffff;\n"
        "selp.b32 some, much, some, very;\n"
        "@late nanosleep.u32 some;\n}" ::: "memory");
#endif
}

}  // namespace atlas
