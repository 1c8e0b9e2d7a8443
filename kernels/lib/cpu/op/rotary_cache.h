// RotaryCache on a CPU, kRows rows per block: norm, turn and cache write in one pass over a head.
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");

INLINE void scale_head(float *head, const float *scale, int n, float eps) {
    const float inverse = inverse_rms(head, n, eps);
    for (int d = 0; d < n; d++) head[d] = head[d] * inverse * scale[d];
}

// Turns element i with i+pairs.
INLINE void turn_halves(float *head, const float *cosine, const float *sine, int pairs) {
    for (int j = 0; j < pairs; j += kWidth) {
        const int n = pairs - j;
        const f32x8 x = load_up_to8(head + j, n), y = load_up_to8(head + pairs + j, n);
        const f32x8 c = load_up_to8(cosine + j, n), s = load_up_to8(sine + j, n);
        store_up_to8(head + j, fma8(neg8(y), s, mul8(x, c)), n);
        store_up_to8(head + pairs + j, fma8(x, s, mul8(y, c)), n);
    }
}

// Turns element 2i with 2i+1.
INLINE void turn_neighbours(float *head, const float *cosine, const float *sine, int pairs) {
    for (int j = 0; j < pairs; j++) {
        const float x = head[2 * j], y = head[2 * j + 1];
        head[2 * j] = fmaf(-y, sine[j], x * cosine[j]);
        head[2 * j + 1] = fmaf(x, sine[j], y * cosine[j]);
    }
}

INLINE void turn(const atlas_RotaryCache *a, float *head, const float *angles) {
    if (a->Pairing == ATLAS_PAIR_HALF)
        turn_halves(head, angles, angles + a->Pairs, a->Pairs);
    else
        turn_neighbours(head, angles, angles + a->Pairs, a->Pairs);
}

INLINE void store_head(const atlas_RotaryCache *a, void *cache, size_t at, const float *head) {
    if (a->KVType == ATLAS_F32) {
        memcpy((float *)cache + at, head, (size_t)a->HeadDim * sizeof(float));
        return;
    }
    for (int d = 0; d < a->HeadDim; d += kWidth)
        store_up_to8_bf16((uint16_t *)cache + at + d, load_up_to8(head + d, a->HeadDim - d), a->HeadDim - d);
}

static inline void rotary_cache_row(const atlas_RotaryCache *a, size_t row) {
    const int dim = a->HeadDim;
    float *head = a->QKV + row * (size_t)a->QKVPitch;
    const float *angles = a->Angles + row * 2 * a->Pairs;
    for (int h = 0; h < a->Heads; h++, head += dim) {
        if (a->QNorm) scale_head(head, a->QNorm, dim, a->Eps);
        turn(a, head, angles);
    }
    const int32_t slot = a->Slots[row];
    const size_t block = slot < 0 ? 0 : slot / a->BlockSize, offset = slot < 0 ? 0 : slot % a->BlockSize;
    for (int h = 0; h < a->KVHeads; h++, head += dim) {
        if (a->KNorm) scale_head(head, a->KNorm, dim, a->Eps);
        turn(a, head, angles);
        if (slot < 0) continue;
        const size_t at = ((block * a->KVHeads + h) * a->BlockSize + offset) * dim;
        store_head(a, a->K, at, head);
        store_head(a, a->V, at, head + (size_t)a->KVHeads * dim);
    }
}

static inline void rotary_cache(const atlas_RotaryCache *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int64_t begin = (int64_t)x * kRows, end = begin + kRows < a->Rows ? begin + kRows : a->Rows;
    for (int64_t row = begin; row < end; row++) rotary_cache_row(a, row);
}
