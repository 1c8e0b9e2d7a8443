// q6_k for wgmma. A weight is a factor of a row's 256 columns times a scale of 16 times a code: products of the last two are rounded once to bf16, and sums
// are kept in units of the factor. Or all becomes bf16, rounded once, for what has no sums.
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
        const uint32_t halves = load_shared1(from + 832 + lane() / 4 * 4);
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

// Byte i of a word, seven bits at most, and 128.
template <int i>
__device__ inline float raise_byte(uint32_t w) {
    return __uint_as_float(__byte_perm(w, 0x00004300, 0x5044 | i << 8));
}
__device__ inline float2 widen_halves(uint32_t x) { return __half22float2(reinterpret_cast<const __half2 &>(x)); }

// The fragments of 64 columns, which lie at `from`, as bf16.
__device__ inline void widen_six_stage(uint32_t from, uint32_t (&a)[4][4]) {
    uint4 codes[2];
    frag<ATLAS_SCHEME_Q6_K>::load(from + frag<ATLAS_SCHEME_Q6_K>::lane_at(), codes);
    const uint2 scales = load_shared2(from + 768 + lane() / 4 * 8);
    const uint32_t factors = load_shared1(from + 832 + lane() / 4 * 4), steps[4] = {codes[0].x, codes[0].y, codes[0].z, codes[0].w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const uint32_t pair = k < 2 ? codes[1].x : codes[1].y, bytes = k < 2 ? scales.x : scales.y;
        uint32_t w[2];
        if (k % 2) join_sixes<true>(steps[k], pair, w[0], w[1]);
        else join_sixes<false>(steps[k], pair, w[0], w[1]);
        w[1] >>= 2;
        const float2 d = k % 2 ? six_scales<1>(bytes, factors) : six_scales<0>(bytes, factors);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float scale = r ? d.y : d.x, least = -160 * scale;  // 128 and 32; exact
            a[k][r] = narrow(fmaf(raise_byte<0>(w[r]), scale, least), fmaf(raise_byte<2>(w[r]), scale, least));
            a[k][2 + r] = narrow(fmaf(raise_byte<1>(w[r]), scale, least), fmaf(raise_byte<3>(w[r]), scale, least));
        }
    }
}

}  // namespace atlas
