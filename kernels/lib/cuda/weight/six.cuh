// Codes of six bits, as q6_k has them: four of each lie where those of formats of four bits do, two more behind all of those, and both come together
// with two masks for four codes.
//
// A step is a word of halves of codes: bits 0-3 of byte b are the lower four of row g's code in register b%2·2 and half b/2 of a fragment, bits 4-7 the
// upper four of row g+8's. The others of two steps are a word: bits 4-5 and 2-3 of byte b belong, of rows g and g+8, to the even step; bits 0-1 of byte b
// and 6-7 of the byte before it, which are there once the word has been rotated by four, to the odd one.
#pragma once
#include <cuda_fp16.h>
#include <stdint.h>

namespace atlas {

constexpr int kSixOthersAt = 512, kSixScalesAt = 768, kSixFactorsAt = 832;  // in a block of layout frag, which frag.cuh explains

// Four codes of row g, and four times those of row g+8, a byte each. pair: the two steps' other bits.
template <bool kOdd>
__device__ inline void join_sixes(uint32_t step, uint32_t pair, uint32_t &g, uint32_t &g8) {
    const uint32_t other = kOdd ? __funnelshift_l(pair, pair, 4) : pair;
    g = (step & 0x0f0f0f0f) | (other & 0x30303030);
    g8 = (step & 0xf0f0f0f0) | (other & 0x0c0c0c0c);
}

// Where bit i of a code lies that a lane has of two steps: bit n%32 of word n/32, of which the steps are 0 and 1 and the others 2.
__device__ constexpr int six_bit(int odd, int half, int reg, int i) {
    const int byte = half * 2 + reg / 2, low = reg % 2 ? 2 : 0;  // bits low … low+3 lie among halves
    if (i >= low && i < low + 4) return odd * 32 + byte * 8 + reg % 2 * 4 + i - low;
    const int at = reg % 2 ? byte * 8 + 2 + i : byte * 8 + i;  // among the others, as the even step has it and as rotation makes it
    return 64 + (odd ? (at + 28) % 32 : at);
}

// Scales of rows g and g+8, bytes 2·kAt and 2·kAt+1 of a word, which are 128 too large, times f16 that belong to the same rows; exact.
template <int kAt>
__device__ inline float2 six_scales(uint32_t bytes, uint32_t halves) {
    constexpr uint32_t k1152 = 0x64806480;
    const uint32_t raised = __byte_perm(bytes, 0x64, kAt ? 0x4342 : 0x4140);  // and 1024
    const float2 s = __half22float2(__hsub2(reinterpret_cast<const __half2 &>(raised), reinterpret_cast<const __half2 &>(k1152)));
    const float2 d = __half22float2(reinterpret_cast<const __half2 &>(halves));
    return {s.x * d.x, s.y * d.y};
}

}  // namespace atlas
