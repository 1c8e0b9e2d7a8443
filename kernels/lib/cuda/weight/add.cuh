// Products that are added to what Out holds. Each result is read and written by one thread alone, which asks for it as soon as the
// kernel before has ended, long before the product is there.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas {

template <typename Args>
constexpr bool kAddsTo = false;
template <>
constexpr bool kAddsTo<atlas_LinearAdd> = true;
template <>
constexpr bool kAddsTo<atlas_ExpertDownAdd> = true;

// What was there plus a product that is rounded before, as if it had been stored and then read.
__device__ inline float plus(atlas_act before, float product) { return __bfloat162float(before) + __bfloat162float(__float2bfloat16_rn(product)); }

// Two of each.
__device__ inline uint32_t plus(uint32_t before, uint32_t products) {
    return narrow(__uint_as_float(before << 16) + __uint_as_float(products << 16), __uint_as_float(before & 0xffff0000u) + __uint_as_float(products & 0xffff0000u));
}

// Where nothing is there before.
struct nothing {
    __device__ atlas_act operator()(int, int) const { return {}; }
};

}  // namespace atlas
