// Strips of the frag layout of f8block times many gathered rows of e4m3 activations, with wgmma: weights are the factor in registers, a
// strip for each warp; sums are [outputs, rows]. Products of each 128 columns are summed by themselves, then added up by fma with the
// product of both scales: tensor cores add with 14 bits or so.
//
// A stage is 128 columns: kRows rows of codes in the 128-byte swizzle; then eight strips, each in one piece; then the scales of the rows. Each
// of two warpgroups has 64 outputs.
#pragma once
#include "lib/cuda/ptx/wgmma_e4m3.cuh"
#include "lib/cuda/weight/e4m3_rows.cuh"
#include "lib/cuda/weight/frag_wide.cuh"

namespace atlas {

// The place of a row's scale in a tile: of each 16 rows those at 2t, 2t+1, 2t+8, 2t+9 are at 4t … 4t+3.
__device__ inline int scale_place(int row) { return row / 16 * 16 + row % 8 / 2 * 4 + row / 8 % 2 * 2 + row % 2; }

template <int kRows, int kStages>
struct e4m3_pipe : wide<2, kRows, 8 * 2048 + 1024, kStages, 1, false, true> {
    static_assert(kRows * sizeof(float) <= 1024, "scales fit");

    __device__ uint32_t strip(int slot, int i) const { return this->weights(slot) + i * 2048; }
    __device__ uint32_t scales(int slot) const { return strip(slot, 8); }
};

// Multiplies a tile's steps: a warp's strip by kRows rows. Fragments of the next step are fetched while the tensor cores work.
template <int kRows, typename Pipe, typename Stage>
struct e4m3_product {
    const Pipe &pipe;
    Stage &now;           // of the step whose fragments were made last
    const float *scales;  // of the strip, or null
    const int steps;
    float (&sum)[kRows / 2];
    float c[kRows / 2];
    float next;  // the scale of the step that now is at

    // The fragments of the step that now is at.
    __device__ void fetch(uint32_t (&a)[4][4]) {
        pipe.wait_full(now);
        const uint32_t from = pipe.strip(now.slot, warp() % 8) + frag<ATLAS_SCHEME_F8>::lane_at();
#pragma unroll
        for (int i = 0; i < 2; i++) {  // 64 columns
            const uint4 g = load_shared(from + i * 1024), g8 = load_shared(from + i * 1024 + 512);
            a[2 * i][0] = g.x, a[2 * i][1] = g8.x, a[2 * i][2] = g.y, a[2 * i][3] = g8.y;
            a[2 * i + 1][0] = g.z, a[2 * i + 1][1] = g8.z, a[2 * i + 1][2] = g.w, a[2 * i + 1][3] = g8.w;
        }
#pragma unroll
        for (int k = 0; k < 4; k++) pin(a[k]);
    }
    __device__ void multiply_step(int step, uint32_t (&a)[4][4], uint32_t (&after)[4][4]) {
        const int slot = now.slot;
        const uint64_t rows = factor(pipe.rows(slot));
        begin_products();
#pragma unroll
        for (int k = 0; k < 4; k++) multiply_e4m3(c, a[k], rows + k * 2, k > 0);
        commit_products();
        const float scale = next;
        now.next();
        if (step + 1 < steps) {
            if (scales) next = scales[step + 1];
            fetch(after);
        }
        float factors[kRows / 4];  // of rows 2t, 2t+1 of each eight
#pragma unroll
        for (int q = 0; q < kRows / 16; q++) {
            const uint4 x = load_shared(pipe.scales(slot) + (q * 16 + lane() % 4 * 4) * 4);
            factors[4 * q] = __uint_as_float(x.x) * scale, factors[4 * q + 1] = __uint_as_float(x.y) * scale;
            factors[4 * q + 2] = __uint_as_float(x.z) * scale, factors[4 * q + 3] = __uint_as_float(x.w) * scale;
        }
        wait_products<0>();
        pin(c);
        pipe.release(slot);
#pragma unroll
        for (int i = 0; i < kRows / 2; i++) sum[i] = fmaf(c[i], factors[i / 4 * 2 + i % 2], sum[i]);
    }
    __device__ void run() {
        uint32_t even[4][4], odd[4][4];
#pragma unroll
        for (int i = 0; i < kRows / 2; i++) sum[i] = c[i] = 0;
        if (steps <= 0) return;
        next = scales ? scales[0] : 0.0f;
        fetch(even);
        for (int i = 0;;) {
            multiply_step(i, even, odd);
            if (++i == steps) break;
            multiply_step(i, odd, even);
            if (++i == steps) break;
        }
    }
};

// scales: of the strip, or null.
template <int kRows, typename Pipe, typename Stage>
__device__ void multiply_e4m3_strip(const Pipe &pipe, Stage &now, int steps, const float *scales, float (&sum)[kRows / 2]) {
    e4m3_product<kRows, Pipe, Stage>{pipe, now, scales, steps, sum}.run();
}

}  // namespace atlas
