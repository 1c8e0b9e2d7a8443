// RMSNorm on a CPU, kRows rows per block. A row's bits do not depend on the other rows.
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");

static inline void rmsnorm_row(const atlas_RMSNorm *a, size_t row) {
    const int n = a->Cols;
    const float *in = a->In + row * n;
    float *out = a->Out + row * n;
    if (a->Residual) {
        float *sum = a->Residual + row * n;
        for (int c = 0; c < n; c++) sum[c] += in[c];
        in = sum;
    }
    const float inverse = inverse_rms(in, n, a->Eps);
    for (int c = 0; c < n; c++) out[c] = in[c] * inverse * a->Scale[c];
}

static inline void rmsnorm(const atlas_RMSNorm *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int64_t begin = (int64_t)x * kRows, end = begin + kRows < a->Rows ? begin + kRows : a->Rows;
    for (int64_t row = begin; row < end; row++) rmsnorm_row(a, row);
}
