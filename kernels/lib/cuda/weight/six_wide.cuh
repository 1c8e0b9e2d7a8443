// q6_k for wgmma. A weight is a factor of a row's 256 columns times a scale of 16 times a code: products of the last two are rounded once to bf16, and sums
// are kept in units of the factor.
#pragma once
#include "lib/cuda/weight/frag.cuh"
#include "lib/cuda/weight/wide.cuh"

namespace atlas {

// Byte i of a word in both halves of another.
template <int i>
__device__ inline uint32_t byte_twice(uint32_t w) {
    return __byte_perm(w, 0, 0x4040 | i << 8 | i);
}

// The fragments of 64 columns in units of factors, times 2⁻¹². scales: of rows g and g+8 in step 0, in step 1 …
__device__ inline void decode_six_stage(const uint4 (&codes)[2], uint2 scales, uint32_t (&a)[4][4]) {
    constexpr uint32_t kMinusTwo = 0xc000c000;  // 128 too large
    decode_sixes<false>(codes[0].x, codes[1].x, a[0]), decode_sixes<true>(codes[0].y, codes[1].x, a[1]);
    decode_sixes<false>(codes[0].z, codes[1].y, a[2]), decode_sixes<true>(codes[0].w, codes[1].y, a[3]);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const uint32_t w = k < 2 ? scales.x : scales.y;
        const uint32_t g = multiply_add_pair(k % 2 ? byte_twice<2>(w) : byte_twice<0>(w), kTwo127, kMinusTwo);
        const uint32_t g8 = multiply_add_pair(k % 2 ? byte_twice<3>(w) : byte_twice<1>(w), kTwo127, kMinusTwo);
        a[k][0] = multiply_pair(a[k][0], g), a[k][1] = multiply_pair(a[k][1], g8), a[k][2] = multiply_pair(a[k][2], g), a[k][3] = multiply_pair(a[k][3], g8);
    }
}

// What sums of rows g and g+8 are counted in.
struct row_units {
    float now[2] = {1, 1};

    // At the first step of 256 columns, which lies at `from`: sums are counted in its factors from now on. Where one is zero there is nothing to count.
    template <int kSums>
    __device__ void change(uint32_t from, float (&c)[kSums]) {
        const uint32_t halves = load_shared1(from + kSixFactorsAt + lane() / 4 * 4);
        const float2 d = __half22float2(reinterpret_cast<const __half2 &>(halves));
        const float next[2] = {d.x ? d.x : now[0], d.y ? d.y : now[1]}, ratio[2] = {now[0] / next[0], now[1] / next[1]};
        pin(c);
#pragma unroll
        for (int i = 0; i < kSums; i++) c[i] *= ratio[i / 2 % 2];
        pin(c);
        now[0] = next[0], now[1] = next[1];
    }
    // Of sum i of a lane.
    __device__ float of(int i) const { return now[i / 2 % 2]; }
};

}  // namespace atlas
