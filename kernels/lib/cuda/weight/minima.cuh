// q4_1's minima, each times the sum of activations over the 32 columns that it belongs to, on tensor cores: of two units at once, which are four blocks
// of 32 columns.
//
// Sums are products too, of a tile of eight rows times ones in two columns that are the block's. The four registers that are factors of 32 columns
// lie as those of a factor of 16 rows, of which a row and the eighth after it are halves of one of the tile. So lane 4g+t has the sum of row g over
// block t, as the next product wants it. There a minimum is f16, which tf32 holds, and a sum two numbers of tf32, of 11 bits and of the others, of
// which two are lost.
#pragma once
#include "lib/cuda/ptx/fragment.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

// What other schemes have: none.
template <atlas_Scheme kScheme>
struct minima {
    __device__ void begin() {}
    __device__ ones<kScheme> unit_of(int) { return {}; }
    template <int kTiles>
    __device__ void multiply(uint32_t, float (&)[kTiles][4]) const {}
};
template <>
struct minima<ATLAS_SCHEME_Q4_1> {
    uint32_t one[4];   // of each block, times 2⁻¹³³ as codes are
    uint32_t at;       // where a lane reads minima of its block, after the first byte of two units: of rows g and g+8, for both blocks of a unit
    float sums[2][4];  // of both tiles

    __device__ minima() : at(held(lane() % 4 / 2 * unit<ATLAS_SCHEME_Q4_1>::kBytes + 576 + lane() / 4 * 8)) {
#pragma unroll
        for (int b = 0; b < 4; b++) one[b] = held(lane() / 8 == b ? 0x00010001 : 0);
    }
    __device__ void begin() {
#pragma unroll
        for (int j = 0; j < 2; j++) sums[j][0] = sums[j][1] = sums[j][2] = sums[j][3] = 0;
    }
    // Unit 0 or 1: adds up a half's tile of lifted activations.
    struct adder {
        minima &all;
        int unit;
        __device__ void take(int half, int tile, const uint32_t (&x)[4], float (&)[4]) const {
            const uint32_t one = all.one[2 * unit + half];
            product(all.sums[tile], x, one, one);
        }
    };
    __device__ adder unit_of(int i) { return {*this, i}; }
    // c += minima times sums. strip: where the strip's two units begin.
    template <int kTiles>
    __device__ void multiply(uint32_t strip, float (&c)[kTiles][4]) const {
        static_assert(kTiles == 2, "sixteen rows");
        const uint2 words = load_shared2(strip + at);
        const uint32_t pair = __byte_perm(words.x, words.y, lane() % 2 ? 0x7632 : 0x5410);
        const float2 m = __half22float2(reinterpret_cast<const __half2 &>(pair));
        const uint32_t g = __float_as_uint(m.x), g8 = __float_as_uint(m.y);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const float sum = sums[j][0] + sums[j][2];
            const uint32_t most = __float_as_uint(sum) & 0xffffe000;
            product_tf32(c[j], {g, g8, g, g8}, most, __float_as_uint(sum - __uint_as_float(most)));
        }
    }
};

}  // namespace atlas
