// NormPair on a CPU, a row per block. A row's bits do not depend on the other rows.
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");

static inline void norm_pair_half(float *out, const float *in, const float *scale, int n, float eps) {
    const float inverse = inverse_rms(in, n, eps);
    for (int c = 0; c < n; c++) out[c] = in[c] * inverse * scale[c];
}

static inline void norm_pair(const atlas_NormPair *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const size_t n = a->Cols;
    float *out = a->Out + 2 * n * x;
    norm_pair_half(out, a->In + n * x, a->Scale, a->Cols, a->Eps);
    const int64_t from = a->Index ? a->Index[x] : (int64_t)x;
    if (from < 0 || from >= a->OtherRows)
        memset(out + n, 0, n * sizeof(float));
    else
        norm_pair_half(out + n, a->Other + n * from, a->OtherScale, a->Cols, a->Eps);
}
