// RotaryCache on a GPU: one head per warp, kWarps heads of one row per block; block (row, heads/kWarps). Norm, turn and cache
// write happen in f32 in shared memory, and round once. Limit: heads of at most kMaxDim elements.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas {

template <typename KV>
__device__ void store_head(void *cache, size_t at, const float *head, int dim) {
    for (int d = lane(); d < dim; d += 32) static_cast<KV *>(cache)[at + d] = KV(head[d]);
}

}  // namespace atlas

template <int kWarps, int kMaxDim>
__device__ void rotary_cache(const atlas_RotaryCache &a) {
    static_assert(kWarps * kMaxDim * sizeof(float) <= 48 * 1024, "static shared memory");
    __shared__ float heads[kWarps][kMaxDim];
    const int dim = a.HeadDim, all = a.Heads + 2 * a.KVHeads, lane = atlas::lane();
    const int h = blockIdx.y * kWarps + atlas::warp();
    const size_t row = blockIdx.x;
    atlas::wait_for_previous();
    if (h >= all) return;
    float *head = heads[atlas::warp()];
    atlas_act *data = a.QKV + (row * all + h) * dim;
    for (int d = lane; d < dim; d += 32) head[d] = __bfloat162float(data[d]);
    __syncwarp();
    const bool query = h < a.Heads, value = h >= a.Heads + a.KVHeads;
    if (!value) {
        if (const float *norm = query ? a.QNorm : a.KNorm) {
            float squares = 0;
            for (int d = lane; d < dim; d += 32) squares = fmaf(head[d], head[d], squares);
            const float inverse = rsqrtf(atlas::warp_sum(squares) / dim + a.Eps);
            for (int d = lane; d < dim; d += 32) head[d] *= inverse * norm[d];
            __syncwarp();
        }
        const float *cosine = a.Angles + row * 2 * a.Pairs, *sine = cosine + a.Pairs;
        for (int j = lane; j < a.Pairs; j += 32) {
            const int i = a.Pairing == ATLAS_PAIR_HALF ? j : 2 * j, k = a.Pairing == ATLAS_PAIR_HALF ? j + a.Pairs : 2 * j + 1;
            const float x = head[i], y = head[k], c = cosine[j], s = sine[j];
            head[i] = fmaf(-y, s, x * c);
            head[k] = fmaf(x, s, y * c);
        }
        __syncwarp();
        for (int d = lane; d < dim; d += 32) data[d] = __float2bfloat16_rn(head[d]);
    }
    atlas::release_next();
    const int32_t slot = a.Slots[row];
    if (query || slot < 0) return;
    const int kv = (h - a.Heads) % a.KVHeads;
    const size_t at = ((size_t(slot / a.BlockSize) * a.KVHeads + kv) * a.BlockSize + slot % a.BlockSize) * dim;
    void *cache = value ? a.V : a.K;
    if (a.KVType == ATLAS_F32)
        atlas::store_head<float>(cache, at, head, dim);
    else
        atlas::store_head<__nv_bfloat16>(cache, at, head, dim);
}
