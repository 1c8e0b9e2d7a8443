// PagedAttention for many rows: attention_wgmma where there is wgmma, else attention_tile. Beside sequences of one row
// attention_few and attention_merge with kMost 1 come before, and kLeast is 2.
#pragma once
#include "lib/cuda/op/attention_few.cuh"
#include "lib/cuda/op/attention_tile.cuh"
#include "lib/cuda/op/attention_wgmma.cuh"

template <int kDim, int kLeast, int kWarpgroups>
__device__ void attention_many(const atlas_PagedAttention &a, void * = nullptr) {
    if constexpr (kWarpgroups && kDim >= 64)
        attention_wgmma<kDim, 2, kLeast>(a);
    else
        attention_tile<kDim, kLeast>(a);
}
