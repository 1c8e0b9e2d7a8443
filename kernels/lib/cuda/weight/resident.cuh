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

__device__ inline f32x8 load_scales(const float *p) {
    const float4 low = *reinterpret_cast<const float4 *>(p), high = *reinterpret_cast<const float4 *>(p + 4);
    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}
__device__ inline uint4 sum_of(uint4 x, uint4 y) {
    f32x8 sum = widen(x);
    const f32x8 other = widen(y);
#pragma unroll
    for (int i = 0; i < 8; i++) sum.v[i] += other.v[i];
    return narrow(sum);
}

// Stores eight elements of a row, times 2⁶⁴ where kLifts.
template <bool kLifts>
__device__ void keep(uint32_t row, int chunk, uint4 x) {
    if (kLifts) x = {multiply_pair(x.x, kTwo64), multiply_pair(x.y, kTwo64), multiply_pair(x.z, kTwo64), multiply_pair(x.w, kTwo64)};
    store_shared(row + chunk * 16, x);
}

// line(r) is row r, null counts as zeros. The kernel before must have ended.
template <int kRows, int kThreads, bool kLifts, bool kWhole, typename Line>
__device__ void keep_rows(uint32_t to, int pitch, int rows, int cols, const Line &line) {
    constexpr int kTurns = kWhole && kRows <= 4 ? 3 : 1;  // with 512 threads, all of 12288 columns on their way at once
    const int chunks = (cols + 63) / 64 * 8;
    for (int first = threadIdx.x; first < chunks; first += kThreads * kTurns) {
        uint4 x[kTurns][kRows];
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int r = 0; r < kRows; r++) {
                const int c = (first + t * kThreads) * 8;
                const atlas_act *from = r < rows && c < cols ? line(r) : nullptr;
                x[t][r] = {};
                if (from) x[t][r] = kWhole ? *reinterpret_cast<const uint4 *>(from + c) : load8_raw(from + c, cols - c, false);
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
template <int kRows, int kThreads, bool kLifts, typename Line>
__device__ void keep_rows(uint32_t to, int pitch, int rows, int cols, const Line &line) {
    if (cols % 8 == 0) keep_rows<kRows, kThreads, kLifts, true>(to, pitch, rows, cols, line);
    else keep_rows<kRows, kThreads, kLifts, false>(to, pitch, rows, cols, line);
}

// Rows of at most 4096 columns, a multiple of 8; prepare() before the kernel before has ended. With the bits of rmsnorm.cuh, or
// where kSooner scaled before all squares are there. partial has room for 16·kRows floats.
template <int kRows, int kThreads, bool kLifts, bool kSooner>
struct normed_rows {
    static constexpr int kWarps = kThreads / 32, kTurns = (16 + kWarps - 1) / kWarps;
    row_norm norm;
    int cols;
    f32x8 scale[kTurns];
    float each;

    __device__ int column(int turn) const { return (threadIdx.x + turn * kThreads) * 8; }
    __device__ void prepare() {
        each = 1.0f / cols;
#pragma unroll
        for (int t = 0; t < kTurns; t++) {
            scale[t] = {};
            if (column(t) < cols) scale[t] = load_scales(norm.scale + column(t));
        }
    }
    __device__ void make(uint32_t to, int pitch, int rows, float *partial) const {
        uint4 x[kTurns][kRows];
        load(norm.in, rows, x);
        if (norm.residual) {
            uint4 before[kTurns][kRows];
            load(norm.residual, rows, before);
#pragma unroll
            for (int t = 0; t < kTurns; t++)
#pragma unroll
                for (int r = 0; r < kRows; r++) {
                    x[t][r] = sum_of(x[t][r], before[t][r]);
                    if (norm.sum && blockIdx.x == 0 && r < rows && column(t) < cols) *reinterpret_cast<uint4 *>(norm.sum + size_t(r) * cols + column(t)) = x[t][r];
                }
        }
        f32x8 scaled[kTurns][kRows];
#pragma unroll
        for (int t = 0; t < kTurns; t++) {
            if (t * kWarps + warp() >= 16) break;
            float squares[kRows] = {};
#pragma unroll
            for (int r = 0; r < kRows; r++) {
                const f32x8 y = widen(x[t][r]);
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    squares[r] = fmaf(y.v[i], y.v[i], squares[r]);
                    scaled[t][r].v[i] = y.v[i] * scale[t].v[i];
                }
            }
            const float sum = warp_sums(squares);
            if (lane() % kSharers == 0) partial[lane() / kSharers * 16 + t * kWarps + warp()] = sum;
        }
        sync_named<kThreads>(1);
        // A lane adds up one row; rows that are lifted are so by their factor.
        const float4 *parts = reinterpret_cast<const float4 *>(partial + lane() % kRows * 16);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float4 p = parts[i];
            sum = sum + p.x + p.y + p.z + p.w;
        }
        const float factor = rsqrtf((kSooner ? sum * each : sum / cols) + norm.eps) * (kLifts ? 0x1p64f : 1.0f);
#pragma unroll
        for (int r = 0; r < kRows; r++) {
            const float inverse = __shfl_sync(kAllLanes, factor, r);
#pragma unroll
            for (int t = 0; t < kTurns; t++) {
                const int c = column(t);
                if (r >= rows || c >= (cols + 63) / 64 * 64) continue;
                f32x8 y = kSooner ? scaled[t][r] : widen(x[t][r]);
#pragma unroll
                for (int i = 0; i < 8; i++) y.v[i] *= kSooner ? inverse : inverse * scale[t].v[i];
                store_shared(to + r * pitch + c * 2, narrow(y));
            }
        }
        sync_named<kThreads>(1);
    }

  private:
    static constexpr int kSharers = 32 / kRows;  // lanes that have a row's sum
    static_assert(kSharers * kRows == 32, "a power of two");

    __device__ void load(const atlas_act *from, int rows, uint4 (&x)[kTurns][kRows]) const {
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int r = 0; r < kRows; r++) {
                x[t][r] = {};
                if (r < rows && column(t) < cols) x[t][r] = *reinterpret_cast<const uint4 *>(from + size_t(r) * cols + column(t));
            }
    }
    // Of row lane()/kSharers, with the bits of warp_sum.
    __device__ static float warp_sums(float (&x)[kRows]) {
        int d = 16;
#pragma unroll
        for (int n = kRows / 2; n > 0; n /= 2, d /= 2) {
            const bool high = lane() & d;
#pragma unroll
            for (int i = 0; i < n; i++) x[i] = (high ? x[n + i] : x[i]) + __shfl_xor_sync(kAllLanes, high ? x[i] : x[n + i], d);
        }
#pragma unroll
        for (; d; d /= 2) x[0] += __shfl_xor_sync(kAllLanes, x[0], d);
        return x[0];
    }
};

}  // namespace atlas
