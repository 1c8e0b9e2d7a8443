// What kernels of DeltaNet share: the convolution, and a row of state, of which eight lanes have four neighbouring columns of every 32 each.
#pragma once
#include "lib/cuda/op/slots.cuh"

namespace atlas {

// Two neighbouring channels of the convolution, and the inputs that their next row sees.
struct channel_pair {
    float4 filter[2];
    uint32_t window[4];  // the next row's own last

    __device__ static float2 widen(uint32_t x) { return {__uint_as_float(x << 16), __uint_as_float(x & 0xffff0000u)}; }

    __device__ void load(const float *from) { filter[0] = reinterpret_cast<const float4 *>(from)[0], filter[1] = reinterpret_cast<const float4 *>(from)[1]; }

    // The row's outputs, rounded; x is what the row after it has.
    __device__ float2 take(uint32_t x) {
        const float2 in[4] = {widen(window[0]), widen(window[1]), widen(window[2]), widen(window[3])};
        const float low = fmaf(filter[0].w, in[3].x, fmaf(filter[0].z, in[2].x, fmaf(filter[0].y, in[1].x, filter[0].x * in[0].x)));
        const float high = fmaf(filter[1].w, in[3].y, fmaf(filter[1].z, in[2].y, fmaf(filter[1].y, in[1].y, filter[1].x * in[0].y)));
        window[0] = window[1], window[1] = window[2], window[2] = window[3], window[3] = x;
        return widen(narrow(silu(low), silu(high)));
    }
};

__device__ __forceinline__ float dot(float4 x, float4 y, float sum) { return fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, sum)))); }

// A row of a ring from another one on, fewer than a turn ahead or behind.
__device__ __forceinline__ int turned(int row, int by, int ring) {
    row += by;
    return row < 0 ? row + ring : row >= ring ? row - ring : row;
}

// The inputs that the convolution sees at a position which lies in that row of a ring; from is the channels in the ring's first row.
__device__ __forceinline__ void load_window(channel_pair &pair, const atlas_act *from, int channels, int ring, int position, int row) {
#pragma unroll
    for (int j = 0; j < 3; j++)
        pair.window[j] = position + j < 3 ? 0 : *reinterpret_cast<const uint32_t *>(from + size_t(turned(row, j - 3, ring)) * channels);
}

// Sum over the eight lanes that have a row of state.
__device__ __forceinline__ float row_sum(float x) {
#pragma unroll
    for (int d = 4; d; d /= 2) x += __shfl_xor_sync(kAllLanes, x, d);
    return x;
}

// Four columns of a row of state after a step: α·S + δ⊗k.
__device__ __forceinline__ float4 stepped(float4 s, float4 k, float delta, float alpha) {
    return {fmaf(delta, k.x, alpha * s.x), fmaf(delta, k.y, alpha * s.y), fmaf(delta, k.z, alpha * s.z), fmaf(delta, k.w, alpha * s.w)};
}

// A journal of one slot.
struct journal {
    float *base;
    int ring, keys, values, dim;

    __device__ journal(const atlas_DeltaNet &a, int slot) : ring(2 * a.MaxDrafts + 1), keys(a.KeyHeads), values(a.ValueHeads), dim(a.KeyDim) {
        base = a.Journal + size_t(slot) * ring * entry();
    }
    __device__ size_t entry() const { return size_t(keys) * dim + size_t(values) * (dim + 1); }
    __device__ float *key(int position, int head) const { return base + position % ring * entry() + size_t(head) * dim; }
    __device__ float *delta(int position, int head) const { return base + position % ring * entry() + size_t(keys + head) * dim; }
    __device__ float *alpha(int position, int head) const { return base + position % ring * entry() + size_t(keys + values) * dim + head; }
};

}  // namespace atlas
