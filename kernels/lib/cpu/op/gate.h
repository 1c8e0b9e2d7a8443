// GatedNorm, kHeads heads of a row per block, SigmoidGate, kCols columns of a row per block, and GatedAdd, a row per block, on a CPU.
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");

static inline void gated_norm(const atlas_GatedNorm *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    const int dim = a->HeadDim;
    const int64_t end = ((int64_t)x + 1) * kHeads < a->Heads ? ((int64_t)x + 1) * kHeads : a->Heads;
    for (int64_t h = (int64_t)x * kHeads; h < end; h++) {
        const float *in = a->In + ((size_t)y * a->Heads + h) * dim, *gate = a->Z + (size_t)y * a->ZPitch + (size_t)h * dim;
        float *out = a->Out + ((size_t)y * a->Heads + h) * dim;
        const f32x8 inverse = set8(inverse_rms(in, dim, a->Eps));
        for (int c = 0; c < dim; c += kWidth) {
            const f32x8 g = load_up_to8(gate + c, dim - c), s = sigmoid8(g);
            const f32x8 normed = mul8(mul8(load_up_to8(in + c, dim - c), inverse), load_up_to8(a->Scale + c, dim - c));
            store_up_to8(out + c, mul8(normed, a->Gate == ATLAS_GATE_SILU ? mul8(g, s) : s), dim - c);
        }
    }
}

static inline void sigmoid_gate(const atlas_SigmoidGate *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    const int begin = x * kCols, end = a->Cols - begin < kCols ? a->Cols : begin + kCols;
    for (int c = begin; c < end; c += kWidth) {
        const f32x8 s = sigmoid8(load_up_to8(a->Gate + (size_t)y * a->GatePitch + c, end - c));
        store_up_to8(a->Out + (size_t)y * a->Cols + c, mul8(load_up_to8(a->In + (size_t)y * a->Cols + c, end - c), s), end - c);
    }
}

static inline void gated_add(const atlas_GatedAdd *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const f32x8 s = sigmoid8(set8(a->Gate[x]));
    for (int c = 0; c < a->Cols; c += kWidth) {
        const int n = a->Cols - c;
        float *out = a->Out + (size_t)x * a->Cols + c;
        store_up_to8(out, fma8(load_up_to8(a->In + (size_t)x * a->Cols + c, n), s, load_up_to8(out, n)), n);
    }
}
