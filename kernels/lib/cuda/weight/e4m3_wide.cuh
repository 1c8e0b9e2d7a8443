// Strips of the frag layout of f8 and f8block times many rows of e4m3 activations, with wgmma: weights are the factor in registers, a
// strip for each warp; sums are [outputs, rows]. Products of each 128 columns are summed by themselves, then added up, in blocks by
// fma with the product of both scales: tensor cores add with 14 bits or so.
//
// A stage is 128·kParts columns: for each part kRows rows of codes in the 128-byte swizzle; then 4·kTeams strips, each in one
// piece; then for each part the scales of the rows. A warpgroup is of a team, which has 64 outputs, and of a part of columns;
// sums of parts are added in their order at the end.
#pragma once
#include "lib/cuda/ptx/wgmma_e4m3.cuh"
#include "lib/cuda/weight/e4m3_rows.cuh"
#include "lib/cuda/weight/frag_wide.cuh"

namespace atlas {

template <int kTeams, int kParts, int kRows, int kStages, int kCluster, bool kMapped>
struct e4m3_pipe : wide<kTeams * kParts, kParts * kRows, kTeams * kParts * 8192 + 1024, kStages, kCluster, kMapped, true> {
    static_assert(kParts * kRows * sizeof(float) <= 1024, "scales fit");
    static constexpr int kStrip = kParts * 2048;  // bytes of a strip's part of a stage
    using base = wide<kTeams * kParts, kParts * kRows, kTeams * kParts * 8192 + 1024, kStages, kCluster, kMapped, true>;

    __device__ static int team() { return base::team() % kTeams; }
    __device__ static int part() { return base::team() / kTeams; }
    __device__ uint32_t strip(int slot, int i) const { return this->weights(slot) + i * kStrip; }
    __device__ uint32_t scales(int slot) const { return this->weights(slot) + kTeams * kParts * 8192; }
};

// Multiplies a tile's steps: a warp's strip by kRows rows, those columns that are its part's. Fragments of the next step are fetched
// while the tensor cores work.
template <bool kBlocks, int kParts, int kRows, typename Pipe, typename Stage>
struct e4m3_product {
    const Pipe &pipe;
    Stage &now;           // of the step whose fragments were made last
    const float *scales;  // of the strip, or null
    const int own;        // steps that have columns of this part
    float (&sum)[kRows / 2];
    float c[kRows / 2];
    float next;  // the scale of the step that now is at

    // The fragments of the step that now is at.
    __device__ void fetch(uint32_t (&a)[4][4]) {
        pipe.wait_full(now);
        const uint32_t from = pipe.strip(now.slot, pipe.team() * 4 + warp() % 4) + pipe.part() * 2048 + frag<ATLAS_SCHEME_F8>::lane_at();
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
        const uint64_t rows = factor(pipe.rows(slot) + pipe.part() * kRows * 128);
        begin_products();
#pragma unroll
        for (int k = 0; k < 4; k++) multiply_e4m3(c, a[k], rows + k * 2, k > 0);
        commit_products();
        const float scale = next;
        now.next();
        if (step + 1 < own) {
            if (scales) next = scales[(step + 1) * kParts + pipe.part()];
            fetch(after);
        }
        float factors[kRows / 4];  // of rows 2t, 2t+1 of each eight
#pragma unroll
        for (int q = 0; kBlocks && q < kRows / 16; q++) {
            const uint4 x = load_shared(pipe.scales(slot) + (pipe.part() * kRows + q * 16 + lane() % 4 * 4) * 4);
            factors[4 * q] = __uint_as_float(x.x) * scale, factors[4 * q + 1] = __uint_as_float(x.y) * scale;
            factors[4 * q + 2] = __uint_as_float(x.z) * scale, factors[4 * q + 3] = __uint_as_float(x.w) * scale;
        }
        wait_products<0>();
        pin(c);
        pipe.release(slot);
#pragma unroll
        for (int i = 0; i < kRows / 2; i++) sum[i] = kBlocks ? fmaf(c[i], factors[i / 4 * 2 + i % 2], sum[i]) : sum[i] + c[i];
    }
    __device__ void run() {
        uint32_t even[4][4], odd[4][4];
#pragma unroll
        for (int i = 0; i < kRows / 2; i++) sum[i] = c[i] = 0;
        if (own <= 0) return;
        next = scales ? scales[pipe.part()] : 0.0f;
        fetch(even);
        int i = 0;
        for (; i + 1 < own; i += 2) {
            multiply_step(i, even, odd);
            multiply_step(i + 1, odd, even);
        }
        if (i < own) multiply_step(i, even, odd);
    }
};

// scales: of the strip, or null.
template <int kParts, int kRows, bool kBlocks = true, typename Pipe, typename Stage>
__device__ void multiply_e4m3_strip(const Pipe &pipe, Stage &now, int blocks, const float *scales, float (&sum)[kRows / 2]) {
    const int steps = (blocks + kParts - 1) / kParts, own = (blocks - pipe.part() + kParts - 1) / kParts;
    e4m3_product<kBlocks, kParts, kRows, Pipe, Stage>{pipe, now, scales, own, sum}.run();
    if (own < steps) pipe.skip(now, steps - own);
}

// Adds the sums of all parts, into those of the first; memory is kept after the call until the next. kSums of 128 threads each.
template <int kTeams, int kParts, int kSums>
__device__ void add_parts(float *exchange, int team, int part, float (&sum)[kSums]) {
    if constexpr (kParts > 1) {
        const uint32_t own = uint32_t(__cvta_generic_to_shared(exchange)) + (team * (kParts - 1) * kSums * 128 + threadIdx.x % 128 * 4) * 4;
        sync_named<kParts * 128>(1 + team);  // the first part has read what was there before
        if (part) {
#pragma unroll
            for (int i = 0; i < kSums; i += 4)
                store_shared(own + ((part - 1) * kSums + i) * 512, {__float_as_uint(sum[i]), __float_as_uint(sum[i + 1]), __float_as_uint(sum[i + 2]), __float_as_uint(sum[i + 3])});
        }
        sync_named<kParts * 128>(1 + team);
        if (!part) {
#pragma unroll
            for (int p = 1; p < kParts; p++)
#pragma unroll
                for (int i = 0; i < kSums; i += 4) {
                    const uint4 x = load_shared(own + ((p - 1) * kSums + i) * 512);
                    sum[i] += __uint_as_float(x.x), sum[i + 1] += __uint_as_float(x.y), sum[i + 2] += __uint_as_float(x.z), sum[i + 3] += __uint_as_float(x.w);
                }
        }
    }
}

}  // namespace atlas
