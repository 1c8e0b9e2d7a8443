// GatedNorm, SigmoidGate and GatedAdd on a GPU.
#pragma once
#include "lib/cuda/op/slots.cuh"

// A warp for each head of a row. Grid: Rows, ⌈Heads·32/kThreads⌉. Limit: HeadDim at most 32·kPerLane.
template <class P>
__device__ void gated_norm(const atlas_GatedNorm &a) {
    const int h = blockIdx.y * (P::kThreads / 32) + atlas::warp(), dim = a.HeadDim, l = atlas::lane();
    const size_t row = blockIdx.x;
    atlas::release_next();
    atlas::wait_for_previous();
    if (h >= a.Heads) return;
    const atlas_act *in = a.In + (row * a.Heads + h) * dim, *gate = a.Z + row * a.ZPitch + size_t(h) * dim;
    float x[P::kPerLane] = {}, squares = 0;
#pragma unroll
    for (int p = 0; p < P::kPerLane; p++) {
        if (l + 32 * p < dim) x[p] = __bfloat162float(in[l + 32 * p]);
        squares = fmaf(x[p], x[p], squares);
    }
    const float inverse = rsqrtf(atlas::warp_sum(squares) / dim + a.Eps);
#pragma unroll
    for (int p = 0; p < P::kPerLane; p++) {
        if (l + 32 * p >= dim) continue;
        const float z = __bfloat162float(gate[l + 32 * p]), g = a.Gate == ATLAS_GATE_SILU ? atlas::silu(z) : atlas::sigmoid(z);
        a.Out[(row * a.Heads + h) * dim + l + 32 * p] = __float2bfloat16_rn(x[p] * inverse * a.Scale[l + 32 * p] * g);
    }
}

// The same for heads of 128, four neighbouring columns a lane. Limit: ZPitch%4 == 0.
template <class P>
__device__ void gated_norm_quads(const atlas_GatedNorm &a) {
    const int h = blockIdx.y * (P::kThreads / 32) + atlas::warp(), c = h * 128 + atlas::lane() * 4;
    const size_t row = blockIdx.x;
    const float4 scale = *reinterpret_cast<const float4 *>(a.Scale + atlas::lane() * 4);
    const float scales[4] = {scale.x, scale.y, scale.z, scale.w};
    atlas::release_next();
    atlas::wait_for_previous();
    if (h >= a.Heads) return;
    atlas::f32x4 x = atlas::load4(a.In + row * a.Heads * 128 + c);
    const atlas::f32x4 z = atlas::load4(a.Z + row * a.ZPitch + c);
    float squares = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) squares = fmaf(x.v[i], x.v[i], squares);
    const float inverse = rsqrtf(atlas::warp_sum(squares) / 128 + a.Eps);
#pragma unroll
    for (int i = 0; i < 4; i++) x.v[i] *= inverse * scales[i] * (a.Gate == ATLAS_GATE_SILU ? atlas::silu(z.v[i]) : atlas::sigmoid(z.v[i]));
    atlas::store4(a.Out + row * a.Heads * 128 + c, x);
}

// Eight columns a thread. Grid: ⌈Cols/(8·kThreads)⌉, Rows.
template <class P>
__device__ void sigmoid_gate(const atlas_SigmoidGate &a) {
    const int n = a.Cols, c = (blockIdx.x * P::kThreads + threadIdx.x) * 8;
    const bool whole = n % 8 == 0, aligned = whole && a.GatePitch % 8 == 0 && reinterpret_cast<size_t>(a.Gate) % 16 == 0;
    atlas::release_next();
    atlas::wait_for_previous();
    if (c >= n) return;
    const size_t at = size_t(blockIdx.y) * n + c;
    atlas::f32x8 x = atlas::load8(a.In + at, n - c, whole);
    const atlas::f32x8 g = atlas::load8(a.Gate + size_t(blockIdx.y) * a.GatePitch + c, n - c, aligned);
#pragma unroll
    for (int i = 0; i < 8; i++) x.v[i] *= atlas::sigmoid(g.v[i]);
    atlas::store8(a.Out + at, x, n - c, whole);
}

// Eight columns a thread. Grid: ⌈Cols/(8·kThreads)⌉, Rows.
template <class P>
__device__ void gated_add(const atlas_GatedAdd &a) {
    const int n = a.Cols, c = (blockIdx.x * P::kThreads + threadIdx.x) * 8;
    const bool whole = n % 8 == 0;
    atlas::release_next();
    atlas::wait_for_previous();
    if (c >= n) return;
    const size_t at = size_t(blockIdx.y) * n + c;
    const float g = atlas::sigmoid(__bfloat162float(a.Gate[blockIdx.y]));
    const atlas::f32x8 x = atlas::load8(a.In + at, n - c, whole);
    atlas::f32x8 sum = atlas::load8(a.Out + at, n - c, whole);
#pragma unroll
    for (int i = 0; i < 8; i++) sum.v[i] = fmaf(x.v[i], g, sum.v[i]);
    atlas::store8(a.Out + at, sum, n - c, whole);
}
