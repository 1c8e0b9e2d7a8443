// Linear for many rows and bf16 weights: a block makes a tile of kM rows by kN outputs with mma.m16n8k16, three stages of 32
// columns in shared memory, copied asynchronously. Block (rows/kM, outputs/kN): neighbours share weights, so that these
// come from memory once. Chunks of 16 bytes are swizzled so that ldmatrix meets no bank twice.
#pragma once
#include "lib/cuda/ptx/mma.cuh"
#include "lib/cuda/weight/rows8.cuh"

namespace atlas {

constexpr int kStages = 3, kDepth = 32;

// Where chunk c (eight columns) of row r lies in a tile of kDepth columns, in elements.
__device__ inline int tile_at(int r, int c) { return r * kDepth + (c ^ r / 2 % 4) * 8; }

// Starts copying rows of a matrix from first on, columns k … k+31; rows from limit on become zeros.
template <int kThreads, int kRows>
__device__ void copy_tile(atlas_act *to, const atlas_act *from, int first, int limit, int pitch, int cols, int k, bool whole) {
    static_assert(kRows * 4 % kThreads == 0, "whole passes");
#pragma unroll
    for (int i = 0; i < kRows * 4 / kThreads; i++) {
        const int at = i * kThreads + threadIdx.x, r = at / 4, c = at % 4, column = k + c * 8;
        const bool there = first + r < limit && column < cols;
        const atlas_act *p = from + (there ? size_t(first + r) * pitch + column : 0);
        atlas_act *slot = to + tile_at(r, c);
        if (whole)
            copy_async(__cvta_generic_to_shared(slot), p, there);
        else
            *reinterpret_cast<uint4 *>(slot) = there ? load8_raw(p, cols - column, false) : uint4{};
    }
}

}  // namespace atlas

template <class P>
__device__ void linear_tile(const atlas_Linear &a) {
    constexpr int kThreads = P::kWarpsM * P::kWarpsN * 32, kTilesM = P::kM / P::kWarpsM / 16, kTilesN = P::kN / P::kWarpsN / 8;
    static_assert(P::kM % (P::kWarpsM * 16) == 0 && P::kN % (P::kWarpsN * 16) == 0, "whole pairs of tiles");
    static_assert((P::kM + P::kN) * atlas::kDepth * atlas::kStages * sizeof(atlas_act) <= 48 * 1024, "static shared memory");
    __shared__ __align__(128) atlas_act rows[atlas::kStages][P::kM * atlas::kDepth];
    __shared__ __align__(128) atlas_act weights[atlas::kStages][P::kN * atlas::kDepth];
    const int lane = atlas::lane(), row0 = blockIdx.x * P::kM, out0 = blockIdx.y * P::kN;
    const int m0 = atlas::warp() % P::kWarpsM * (P::kM / P::kWarpsM), n0 = atlas::warp() / P::kWarpsM * (P::kN / P::kWarpsN);
    const int cols = a.W.Cols, pitch = atlas::padded(cols), steps = (cols + atlas::kDepth - 1) / atlas::kDepth;
    const bool whole = cols % 8 == 0;
    const atlas_act *w = atlas::weight_row(a.W, 0, 0);
    const auto copy_weights = [&](int step) {
        if (step < steps) atlas::copy_tile<kThreads, P::kN>(weights[step % atlas::kStages], w, out0, a.W.Rows, pitch, pitch, step * atlas::kDepth, true);
    };
    const auto copy_rows = [&](int step) {
        if (step < steps) atlas::copy_tile<kThreads, P::kM>(rows[step % atlas::kStages], a.In, row0, a.Rows, cols, cols, step * atlas::kDepth, whole);
    };
    for (int s = 0; s < atlas::kStages - 1; s++) copy_weights(s);
    atlas::wait_for_previous();
    for (int s = 0; s < atlas::kStages - 1; s++) {
        copy_rows(s);
        atlas::commit_copies();
    }
    float c[kTilesM][kTilesN][4] = {};
    for (int step = 0; step < steps; step++) {
        atlas::wait_copies<atlas::kStages - 2>();
        __syncthreads();
        copy_weights(step + atlas::kStages - 1);
        copy_rows(step + atlas::kStages - 1);
        atlas::commit_copies();
        const uint32_t row_tile = __cvta_generic_to_shared(rows[step % atlas::kStages]);
        const uint32_t weight_tile = __cvta_generic_to_shared(weights[step % atlas::kStages]);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            uint32_t x[kTilesM][4], y[kTilesN / 2][4];
#pragma unroll
            for (int i = 0; i < kTilesM; i++) atlas::load_matrices(x[i], row_tile + 2 * atlas::tile_at(m0 + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < kTilesN / 2; j++)
                atlas::load_matrices(y[j], weight_tile + 2 * atlas::tile_at(n0 + j * 16 + lane % 8 + lane / 16 * 8, k * 2 + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < kTilesM; i++)
#pragma unroll
                for (int j = 0; j < kTilesN; j++) atlas::mma(c[i][j], x[i][0], x[i][1], x[i][2], x[i][3], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        }
    }
    atlas::release_next();
    const bool pairs = a.OutPitch % 2 == 0;
#pragma unroll
    for (int j = 0; j < kTilesN; j++) {
        const int n = out0 + n0 + j * 8 + lane % 4 * 2;
        const bool one = n < a.W.Rows, two = n + 1 < a.W.Rows;
        const float bias[2] = {a.Bias && one ? a.Bias[n] : 0.0f, a.Bias && two ? a.Bias[n + 1] : 0.0f};
        const float scale[2] = {one ? atlas::row_scale(a.W, 0, n) : 0.0f, two ? atlas::row_scale(a.W, 0, n + 1) : 0.0f};
#pragma unroll
        for (int i = 0; i < kTilesM; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int r = row0 + m0 + i * 16 + lane / 4 + half * 8;
                if (r >= a.Rows) continue;
                atlas_act *out = a.Out + size_t(r) * a.OutPitch + n;
                const float low = fmaf(c[i][j][half * 2], scale[0], bias[0]), high = fmaf(c[i][j][half * 2 + 1], scale[1], bias[1]);
                if (pairs && two) {
                    *reinterpret_cast<uint32_t *>(out) = atlas::narrow(low, high);
                } else {
                    if (one) out[0] = __float2bfloat16_rn(low);
                    if (two) out[1] = __float2bfloat16_rn(high);
                }
            }
    }
}
