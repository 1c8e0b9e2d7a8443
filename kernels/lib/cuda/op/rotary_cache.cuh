// RotaryCache on a GPU: kMaxDim/8 lanes a head (32 at most), eight elements a lane and turn, the element that turns with each
// read beside it; a lane takes kPerLane heads one after the other. Norm and turn happen in f32 and round once.
// Grid: Rows, ⌈(Heads+2·KVHeads)/(kHeads·kPerLane)⌉ with kHeads = kThreads/min(kMaxDim/8, 32); block kThreads.
// Limit: heads of at most kMaxDim elements.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas::rotary {

__device__ inline f32x8 load8_f32(const float *p, int left, bool whole) {
    f32x8 x;
    if (whole) {
        const float4 low = *reinterpret_cast<const float4 *>(p), high = *reinterpret_cast<const float4 *>(p + 4);
        return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    }
#pragma unroll
    for (int i = 0; i < 8; i++) x.v[i] = i < left ? p[i] : 0.0f;
    return x;
}

// Element i turns with other(i) by angle(i); first tells whether it is the first of the two. Past the pairs nothing turns.
struct pairs {
    int count;
    bool half;
    __device__ bool turns(int i) const { return i < 2 * count; }
    __device__ bool first(int i) const { return half ? i < count : i % 2 == 0; }
    __device__ int other(int i) const { return half ? i < count ? i + count : i - count : i ^ 1; }
    __device__ int angle(int i) const { return half ? i < count ? i : i - count : i / 2; }
};

}  // namespace atlas::rotary

template <class P>
__device__ void rotary_cache(const atlas_RotaryCache &a) {
    using namespace atlas::rotary;
    constexpr int kLanes = P::kMaxDim < 256 ? P::kMaxDim / 8 : 32, kTurns = P::kMaxDim / 8 / kLanes, kHeads = P::kThreads / kLanes;
    static_assert(kLanes * kTurns * 8 == P::kMaxDim && 32 % kLanes == 0 && P::kThreads % 32 == 0, "whole warps, heads within one");
    const int dim = a.HeadDim, all = a.Heads + 2 * a.KVHeads, begin = threadIdx.x % kLanes * 8;
    const size_t row = blockIdx.x;
    const pairs p = {a.Pairs, a.Pairing == ATLAS_PAIR_HALF};
    const bool aligned = dim % 8 == 0 && a.QKVPitch % 8 == 0, whole = aligned && p.half && a.Pairs % 8 == 0;
    const float *angles = a.Angles + row * 2 * a.Pairs;
    atlas::release_next();
    for (int i = threadIdx.x * 32; i < dim; i += P::kThreads * 32) {  // weights: no kernel writes them
        if (a.QNorm) atlas::prefetch(a.QNorm + i);
        if (a.KNorm) atlas::prefetch(a.KNorm + i);
    }
    atlas::wait_for_previous();
    const int slot = a.Slots[row], block = max(slot, 0) / a.BlockSize, offset = max(slot, 0) - block * a.BlockSize;
    atlas::f32x8 cosine[kTurns] = {}, sine[kTurns] = {};
#pragma unroll
    for (int j = 0; j < kTurns; j++) {
        const int d = begin + j * kLanes * 8;
        if (d >= dim || !p.turns(d)) continue;
        if (whole) {
            cosine[j] = load8_f32(angles + p.angle(d), 8, true), sine[j] = load8_f32(angles + a.Pairs + p.angle(d), 8, true);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (p.turns(d + i) && d + i < dim) cosine[j].v[i] = angles[p.angle(d + i)], sine[j].v[i] = angles[a.Pairs + p.angle(d + i)];
    }
#pragma unroll 2
    for (int k = 0; k < P::kPerLane; k++) {
        const int h = (blockIdx.y * P::kPerLane + k) * kHeads + threadIdx.x / kLanes;
        const bool there = h < all, query = h < a.Heads, value = h >= a.Heads + a.KVHeads;
        const float *norm = value || !there ? nullptr : query ? a.QNorm : a.KNorm;
        atlas_act *data = a.QKV + row * a.QKVPitch + h * dim;
        atlas::f32x8 own[kTurns] = {}, other[kTurns] = {}, own_norm[kTurns], other_norm[kTurns];
        float squares = 0;
#pragma unroll
        for (int j = 0; j < kTurns; j++) {
            const int d = begin + j * kLanes * 8;
            if (d >= dim || !there) continue;
            own[j] = atlas::load8(data + d, dim - d, aligned);
            if (norm) own_norm[j] = load8_f32(norm + d, dim - d, aligned);
            if (value || !p.turns(d)) continue;
            if (whole) {
                other[j] = atlas::load8(data + p.other(d), 8, true);
                if (norm) other_norm[j] = load8_f32(norm + p.other(d), 8, true);
                continue;
            }
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (p.turns(d + i) && d + i < dim) {
                    other[j].v[i] = __bfloat162float(data[p.other(d + i)]);
                    if (norm) other_norm[j].v[i] = norm[p.other(d + i)];
                }
        }
#pragma unroll
        for (int j = 0; j < kTurns; j++)
#pragma unroll
            for (int i = 0; i < 8; i++) squares = fmaf(own[j].v[i], own[j].v[i], squares);
#pragma unroll
        for (int d = kLanes / 2; d; d /= 2) squares += __shfl_xor_sync(atlas::kAllLanes, squares, d);
        __syncwarp();  // everything is read that the stores below overwrite
        const float inverse = rsqrtf(squares / dim + a.Eps);
        const size_t at = ((size_t(block) * a.KVHeads + (h - a.Heads) % a.KVHeads) * a.BlockSize + offset) * dim;
#pragma unroll
        for (int j = 0; j < kTurns; j++) {
            const int d = begin + j * kLanes * 8;
            if (d >= dim || !there) continue;
            atlas::f32x8 x;
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const float first = norm ? own[j].v[i] * (inverse * own_norm[j].v[i]) : own[j].v[i];
                const float second = norm ? other[j].v[i] * (inverse * other_norm[j].v[i]) : other[j].v[i];
                x.v[i] = value || !p.turns(d + i) ? first : fmaf(p.first(d + i) ? -second : second, sine[j].v[i], first * cosine[j].v[i]);
            }
            if (!value) atlas::store8(data + d, x, dim - d, aligned);
            if (query || slot < 0) continue;
            void *cache = value ? a.V : a.K;
            if (a.KVType == ATLAS_F32) {
#pragma unroll
                for (int i = 0; i < 8; i++)
                    if (d + i < dim) static_cast<float *>(cache)[at + d + i] = x.v[i];
            } else {
                atlas::store8(static_cast<__nv_bfloat16 *>(cache) + at + d, x, dim - d, aligned);
            }
        }
    }
}
