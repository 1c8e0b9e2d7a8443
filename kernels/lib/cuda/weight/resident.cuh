// Rows of activations that all of a block's threads put into shared memory, as they are or normalised. Rows are pitch bytes
// apart; zeros follow the last column up to a whole unit of 64.
#pragma once
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/weight/spread.cuh"

namespace atlas {

// What a norm before a product needs; no norm where scale is null.
struct row_norm {
    const atlas_act *in, *residual;
    const float *scale;
    atlas_act *sum;  // in+residual
    float eps;
};

// Stores eight elements of a row, times 2⁶⁴ where kLifts.
template <bool kLifts>
__device__ void keep(uint32_t row, int chunk, uint4 x) {
    if (kLifts) x = {multiply_pair(x.x, kTwo64), multiply_pair(x.y, kTwo64), multiply_pair(x.z, kTwo64), multiply_pair(x.w, kTwo64)};
    store_shared(row + chunk * 16, x);
}

// line(r) is row r, null counts as zeros. The kernel before must have ended.
template <int kRows, int kThreads, bool kLifts, typename Line>
__device__ void keep_rows(uint32_t to, int pitch, int rows, int cols, const Line &line) {
    constexpr int kTurns = kRows == 1 ? 3 : 1;
    const int chunks = (cols + 63) / 64 * 8;
    const bool whole = cols % 8 == 0;
    for (int first = threadIdx.x; first < chunks; first += kThreads * kTurns) {
        uint4 x[kTurns][kRows] = {};
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int r = 0; r < kRows; r++) {
                const int c = (first + t * kThreads) * 8;
                const atlas_act *from = r < rows && c < cols ? line(r) : nullptr;
                if (from) x[t][r] = load8_raw(from + c, cols - c, whole);
            }
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int r = 0; r < kRows; r++) {
                const int c = first + t * kThreads;
                if (r < rows && c < chunks) keep<kLifts>(to + r * pitch, c, x[t][r]);
            }
    }
    sync_named<kThreads>(1);
}

// Rows of at most 4096 columns, a multiple of 8, with the bits of rmsnorm.cuh; prepare() before the kernel before has ended.
// partial has room for 16·kRows floats.
template <int kRows, int kThreads, bool kLifts>
struct normed_rows {
    static constexpr int kWarps = kThreads / 32, kTurns = (16 + kWarps - 1) / kWarps;
    row_norm norm;
    int cols;
    f32x8 scale[kTurns];

    __device__ int column(int turn) const { return (threadIdx.x + turn * kThreads) * 8; }
    __device__ void prepare() {
#pragma unroll
        for (int t = 0; t < kTurns; t++) {
            scale[t] = {};
            if (column(t) < cols) scale[t] = load_scales(norm.scale + column(t));
        }
    }
    __device__ void make(uint32_t to, int pitch, int rows, float *partial) const {
        uint4 x[kTurns][kRows] = {}, before[kTurns][kRows] = {};
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int r = 0; r < kRows; r++) {
                if (r >= rows || column(t) >= cols) continue;
                x[t][r] = *reinterpret_cast<const uint4 *>(norm.in + size_t(r) * cols + column(t));
                if (norm.residual) before[t][r] = *reinterpret_cast<const uint4 *>(norm.residual + size_t(r) * cols + column(t));
            }
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int r = 0; r < kRows; r++) {
                if (norm.residual) x[t][r] = add(x[t][r], before[t][r]);
                const f32x8 y = widen(x[t][r]);
                float squares = 0;
#pragma unroll
                for (int i = 0; i < 8; i++) squares = fmaf(y.v[i], y.v[i], squares);
                squares = warp_sum(squares);
                if (lane() == 0 && t * kWarps + warp() < 16) partial[r * 16 + t * kWarps + warp()] = squares;
            }
        sync_named<kThreads>(1);
        const bool says = norm.residual && norm.sum && blockIdx.x == 0;
#pragma unroll
        for (int r = 0; r < kRows; r++) {
            float sum = 0;
#pragma unroll
            for (int w = 0; w < 16; w++) sum += partial[r * 16 + w];
            const float inverse = rsqrtf(sum / cols + norm.eps);
#pragma unroll
            for (int t = 0; t < kTurns; t++) {
                const int c = column(t);
                if (r >= rows || c >= (cols + 63) / 64 * 64) continue;
                f32x8 y = widen(x[t][r]);
#pragma unroll
                for (int i = 0; i < 8; i++) y.v[i] *= inverse * scale[t].v[i];
                keep<kLifts>(to + r * pitch, c / 8, narrow(y));
                if (says && c < cols) *reinterpret_cast<uint4 *>(norm.sum + size_t(r) * cols + c) = x[t][r];
            }
        }
        sync_named<kThreads>(1);
    }

  private:
    __device__ static uint4 add(uint4 x, uint4 y) {
        f32x8 sum = widen(x);
        const f32x8 other = widen(y);
#pragma unroll
        for (int i = 0; i < 8; i++) sum.v[i] += other.v[i];
        return narrow(sum);
    }
    __device__ static f32x8 load_scales(const float *p) {
        const float4 low = *reinterpret_cast<const float4 *>(p), high = *reinterpret_cast<const float4 *>(p + 4);
        return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    }
};

}  // namespace atlas
