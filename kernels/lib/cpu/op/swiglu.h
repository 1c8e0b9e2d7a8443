// SwiGLU on a CPU: kCols columns of one row per block.
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");
static_assert(kCols % kWidth == 0, "only the last block of a row has a tail");

static inline void swiglu(const atlas_SwiGLU *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    const int begin = x * kCols, end = a->Cols - begin < kCols ? a->Cols : begin + kCols;
    const float *gate = a->In + (size_t)y * 2 * a->Cols, *up = gate + a->Cols;
    float *out = a->Out + (size_t)y * a->Cols;
    for (int c = begin; c < end; c += kWidth) {
        const f32x8 g = load_up_to8(gate + c, end - c);
        store_up_to8(out + c, mul8(div8(g, add8(set8(1), exp8(neg8(g)))), load_up_to8(up + c, end - c)), end - c);
    }
}
