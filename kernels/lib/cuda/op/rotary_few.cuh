// RotaryCache of few rows whose heads have 128 elements that all turn in halves, with the bits of rotary_cache.cuh. Sixteen lanes take
// a head; a lane gets what turns with its elements from the lane that has it.
//
// Little is done, and that at once: what is constant is there before the kernel before has ended, and so are the instructions, which
// run once in vain.
// Grid: Rows, ⌈(Heads+2·KVHeads)/(kThreads/16)⌉; block kThreads.
#pragma once
#include "lib/cuda/op/rotary_cache.cuh"

namespace atlas::rotary {

// Past the first cache, which may hold what was there before.
__device__ inline f32x8 load8_fresh(const float *p) {
    const float4 low = __ldcg(reinterpret_cast<const float4 *>(p)), high = __ldcg(reinterpret_cast<const float4 *>(p + 4));
    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

}  // namespace atlas::rotary

template <class P>
__device__ void rotary_few(const atlas_RotaryCache &a) {
    using namespace atlas;
    constexpr int kDim = 128, kHeads = P::kThreads / 16;
    const int all = a.Heads + 2 * a.KVHeads, h = blockIdx.y * kHeads + threadIdx.x / 16, lane = threadIdx.x % 16, c = lane * 8;
    const bool there = h < all, query = h < a.Heads, value = h >= a.Heads + a.KVHeads, upper = lane >= 8;  // half of the head
    const size_t row = blockIdx.x;
    atlas_act *data = a.QKV + row * a.QKVPitch + (there ? h : 0) * kDim + c;
    const float *angles = a.Angles + row * kDim + c % 64, *norm = value ? nullptr : query ? a.QNorm : a.KNorm;
    release_next();
    const f32x8 scale = norm ? rotary::load8_f32(norm + c, 8, true) : f32x8{};
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        if (turn) wait_for_previous();
        f32x8 x = widen(__ldcg(reinterpret_cast<const uint4 *>(data)));
        const f32x8 cosine = rotary::load8_fresh(angles), sine = rotary::load8_fresh(angles + 64);
        const int slot = __ldcg(a.Slots + row), block = max(slot, 0) / a.BlockSize, offset = max(slot, 0) - block * a.BlockSize;
        float squares = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) squares = fmaf(x.v[i], x.v[i], squares);
#pragma unroll
        for (int d = 8; d; d /= 2) squares += __shfl_xor_sync(kAllLanes, squares, d);
        const float inverse = rsqrtf(squares / kDim + a.Eps);
        if (norm)
#pragma unroll
            for (int i = 0; i < 8; i++) x.v[i] *= inverse * scale.v[i];
        f32x8 turned = x;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float other = __shfl_xor_sync(kAllLanes, x.v[i], 8);
            if (!value) turned.v[i] = fmaf(upper ? other : -other, sine.v[i], x.v[i] * cosine.v[i]);
        }
        if (!turn || !there) continue;
        if (!value) store8(data, turned, 8, true);
        if (query || slot < 0) continue;
        const size_t at = ((size_t(block) * a.KVHeads + (h - a.Heads) % a.KVHeads) * a.BlockSize + offset) * kDim + c;
        void *cache = value ? a.V : a.K;
        if (a.KVType == ATLAS_F32) {
            float4 *to = reinterpret_cast<float4 *>(static_cast<float *>(cache) + at);
            to[0] = {turned.v[0], turned.v[1], turned.v[2], turned.v[3]}, to[1] = {turned.v[4], turned.v[5], turned.v[6], turned.v[7]};
        } else {
            store8(static_cast<__nv_bfloat16 *>(cache) + at, turned, 8, true);
        }
    }
}
