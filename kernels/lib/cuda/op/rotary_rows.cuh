// RotaryCache of many rows whose heads have 128 elements that all turn in halves, with the bits of rotary_cache.cuh. Sixteen lanes
// take a head; a lane reads kPerLane heads at once, and gets what turns with its elements from the lane that has it.
// Grid: Rows, ⌈(Heads+2·KVHeads)/(kThreads/16·kPerLane)⌉; block kThreads.
#pragma once
#include "lib/cuda/op/rotary_cache.cuh"

template <class P>
__device__ void rotary_rows(const atlas_RotaryCache &a) {
    constexpr int kDim = 128, kHeads = P::kThreads / 16;
    const int all = a.Heads + 2 * a.KVHeads, lane = threadIdx.x % 16, c = lane * 8, first = blockIdx.y * kHeads * P::kPerLane + threadIdx.x / 16;
    const bool upper = lane >= 8;  // half of the head
    const size_t row = blockIdx.x;
    atlas_act *data = a.QKV + row * a.QKVPitch + c;
    atlas::release_next();
    atlas::wait_for_previous();
    uint4 own[P::kPerLane];
#pragma unroll
    for (int k = 0; k < P::kPerLane; k++) {
        const int h = first + k * kHeads;
        own[k] = h < all ? *reinterpret_cast<const uint4 *>(data + h * kDim) : uint4{};
    }
    const float *angles = a.Angles + row * kDim + c % 64;
    const atlas::f32x8 cosine = atlas::rotary::load8_f32(angles, 8, true), sine = atlas::rotary::load8_f32(angles + 64, 8, true);
    const int slot = a.Slots[row], block = max(slot, 0) / a.BlockSize, offset = max(slot, 0) - block * a.BlockSize;
#pragma unroll
    for (int k = 0; k < P::kPerLane; k++) {
        const int h = first + k * kHeads;
        const bool query = h < a.Heads, value = h >= a.Heads + a.KVHeads;
        const float *norm = value ? nullptr : query ? a.QNorm : a.KNorm;
        atlas::f32x8 x = atlas::widen(own[k]);
        float squares = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) squares = fmaf(x.v[i], x.v[i], squares);
#pragma unroll
        for (int d = 8; d; d /= 2) squares += __shfl_xor_sync(atlas::kAllLanes, squares, d);
        const float inverse = rsqrtf(squares / kDim + a.Eps);
        if (norm) {
            const atlas::f32x8 scale = atlas::rotary::load8_f32(norm + c, 8, true);
#pragma unroll
            for (int i = 0; i < 8; i++) x.v[i] *= inverse * scale.v[i];
        }
        atlas::f32x8 turned = x;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float other = __shfl_xor_sync(atlas::kAllLanes, x.v[i], 8);
            if (!value) turned.v[i] = fmaf(upper ? other : -other, sine.v[i], x.v[i] * cosine.v[i]);
        }
        if (h >= all) continue;
        if (!value) atlas::store8(data + h * kDim, turned, 8, true);
        if (query || slot < 0) continue;
        const size_t at = ((size_t(block) * a.KVHeads + (h - a.Heads) % a.KVHeads) * a.BlockSize + offset) * kDim + c;
        void *cache = value ? a.V : a.K;
        if (a.KVType == ATLAS_F32) {
            float4 *to = reinterpret_cast<float4 *>(static_cast<float *>(cache) + at);
            to[0] = {turned.v[0], turned.v[1], turned.v[2], turned.v[3]}, to[1] = {turned.v[4], turned.v[5], turned.v[6], turned.v[7]};
        } else {
            atlas::store8(static_cast<__nv_bfloat16 *>(cache) + at, turned, 8, true);
        }
    }
}
