// Scales of a unit that lie behind its codes (frag.cuh), as a lane holds those of its rows g and g+8: how they are loaded, and what sums of
// products are multiplied by.
//
// load(unit) and load_half(unit, half) read shared memory, from the unit's first byte; load<kMinima>(lane) an address of the shared window,
// that of the lane's first scale, kLaneBytes for each row of eight after the unit's first; load_once(unit) global memory.
// factors(half, block, by): what the products of each part of a half are multiplied by, for both rows; block is f8block's scale, which lies elsewhere.
// minima(half): by what the sum of activations is multiplied.
#pragma once
#include "lib/cuda/ptx/load.cuh"
#include "lib/cuda/weight/frag.cuh"

namespace atlas {

// f8 and f8block have none here.
template <atlas_Scheme kScheme>
struct unit_scales {
    static constexpr int kLaneBytes = 8, kParts = 1;  // parts of a half that have scales of their own
    __device__ void load(const uint8_t *) {}
    __device__ void load_half(const uint8_t *, int) {}
    template <bool kMinima>
    __device__ void load(uint32_t) {}
    __device__ void load_once(const uint8_t *) {}
    __device__ void factors(int, float block, float2 (&by)[1]) const { by[0] = {block, block}; }
    __device__ float2 minima(int) const { return {}; }
};

// A word for each row: nvfp4's scales of four steps, which fragments are multiplied by.
struct word_scales {
    static constexpr int kLaneBytes = 8, kParts = 1;
    uint2 words;
    __device__ void load(const uint8_t *unit) { words = reinterpret_cast<const uint2 *>(unit + 512)[lane() / 4]; }
    __device__ void load_half(const uint8_t *unit, int) { load(unit); }
    template <bool kMinima>
    __device__ void load(uint32_t lane) { words = load_shared2(lane); }
    __device__ void load_once(const uint8_t *unit) { words = load_once2(unit + 512 + lane() / 4 * 8); }
    __device__ void factors(int, float, float2 (&)[1]) const {}
    __device__ float2 minima(int) const { return {}; }
};
template <>
struct unit_scales<ATLAS_SCHEME_NVFP4> : word_scales {};

// q4_0: f16 of both halves in a word.
__device__ inline float2 of_half(uint2 words, int half) {
    const float2 g = __half22float2(reinterpret_cast<const __half2 &>(words.x)), g8 = __half22float2(reinterpret_cast<const __half2 &>(words.y));
    return half ? float2{g.y, g8.y} : float2{g.x, g8.x};
}
template <>
struct unit_scales<ATLAS_SCHEME_Q4_0> : word_scales {
    __device__ void factors(int half, float, float2 (&by)[1]) const { by[0] = of_half(words, half); }
};

// q4_1: minima as well. Codes of row g+8 are 16 times too large.
template <>
struct unit_scales<ATLAS_SCHEME_Q4_1> : word_scales {
    uint2 least;
    __device__ void load(const uint8_t *unit) {
        word_scales::load(unit);
        least = reinterpret_cast<const uint2 *>(unit + 576)[lane() / 4];
    }
    __device__ void load_half(const uint8_t *unit, int) { load(unit); }
    template <bool kMinima>
    __device__ void load(uint32_t lane) {
        word_scales::load<kMinima>(lane);
        if constexpr (kMinima) least = load_shared2(lane + 64);
    }
    __device__ void factors(int half, float, float2 (&by)[1]) const {
        const float2 d = of_half(words, half);
        by[0] = {d.x, d.y * 0x1p-4f};
    }
    __device__ float2 minima(int half) const { return of_half(least, half); }
};

// q8_0: a block for each half, in which f16 of both rows are a word.
template <>
struct unit_scales<ATLAS_SCHEME_Q8_0> {
    static constexpr int kLaneBytes = 4, kParts = 1, kBlock = frag<ATLAS_SCHEME_Q8_0>::kBlock;
    uint32_t words[2];
    __device__ void load(const uint8_t *unit) {
#pragma unroll
        for (int b = 0; b < 2; b++) words[b] = reinterpret_cast<const uint32_t *>(unit + b * kBlock + 512)[lane() / 4];
    }
    __device__ void load_half(const uint8_t *unit, int) { load(unit); }
    template <bool kMinima>
    __device__ void load(uint32_t lane) {
#pragma unroll
        for (int b = 0; b < 2; b++) words[b] = load_shared1(lane + b * kBlock);
    }
    __device__ void load_once(const uint8_t *) {}
    __device__ void factors(int half, float, float2 (&by)[1]) const {
        const uint32_t w = half ? words[1] : words[0];
        by[0] = __half22float2(reinterpret_cast<const __half2 &>(w));
    }
    __device__ float2 minima(int) const { return {}; }
};

// q6_k: for each half a word of bytes, of both rows in two steps, and f16 factors of both rows for the unit.
template <>
struct unit_scales<ATLAS_SCHEME_Q6_K> {
    static constexpr int kLaneBytes = 8, kParts = 2;
    uint2 bytes;
    uint32_t factor;
    __device__ void load(const uint8_t *unit) {
        bytes = reinterpret_cast<const uint2 *>(unit + kSixScalesAt)[lane() / 4], factor = reinterpret_cast<const uint32_t *>(unit + kSixFactorsAt)[lane() / 4];
    }
    __device__ void load_half(const uint8_t *unit, int half) {
        const uint32_t word = reinterpret_cast<const uint32_t *>(unit + kSixScalesAt)[lane() / 4 * 2 + half];
        bytes = {word, word}, factor = reinterpret_cast<const uint32_t *>(unit + kSixFactorsAt)[lane() / 4];
    }
    template <bool kMinima>
    __device__ void load(uint32_t lane) { bytes = load_shared2(lane), factor = load_shared1(lane + kSixFactorsAt - kSixScalesAt - atlas::lane() / 4 * 4); }
    __device__ void load_once(const uint8_t *) {}
    __device__ void factors(int half, float, float2 (&by)[2]) const {
        const uint32_t word = half ? bytes.y : bytes.x;
        by[0] = six_scales<0>(word, factor), by[1] = six_scales<1>(word, factor);
    }
    __device__ float2 minima(int) const { return {}; }
};

}  // namespace atlas
