// Linear, LinearAdd and NormLinear of at most kRows rows, eight at most, for matrices of which a block's share fits its registers. Weights do
// not depend on the kernel before: they are loaded, and decoded, while that one runs, so that what is left to do when it has
// ended is to read rows, multiply, and add up. Blocks take little shared memory, so that the next kernel's find room meanwhile.
//
// The warps of a block make 16 outputs, a strip: unit u of 64 columns belongs to warp u % kWarps, and the sums are added in the order of
// warps. A block makes strips blockIdx.x, blockIdx.x + gridDim.x, …, kStrips at most; a strip has kUnits·kWarps units at most. Of a
// warp's units of a strip kReady are decoded before there are rows, the others wait as they came.
//
// Grid (any of at least strips/kStrips); 32·kWarps threads. W.Cols%64 == 0; with a norm, W.Cols is 256, 512, 1024, 2048 or 4096, at most
// 256·kWarps, and there is no Residual. Dynamic shared memory: held_share<…>::kShared.
#pragma once
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/grid.cuh"
#include "lib/cuda/ptx/load.cuh"
#include "lib/cuda/weight/add.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

extern __shared__ __align__(128) uint8_t held_shared[];

// A warp's units of a strip, of which the first kReady are kept as fragments, the others as they came.
template <atlas_Scheme kScheme, int kUnits, int kReady>
struct held_units {
    using unit_t = unit<kScheme>;
    static_assert(kReady <= kUnits, "no more than there are");

    // Fragments of a unit's four steps, exact, times the scales of 16 columns where the scheme has them.
    struct fragments {
        uint32_t a[4][4];
        __device__ void decode(const unit_t &u) {
            uint32_t pair[2][4];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                u.fragments(h, pair);
#pragma unroll
                for (int i = 0; i < 4; i++) a[2 * h][i] = pair[0][i], a[2 * h + 1][i] = pair[1][i];
            }
        }
    };

    unit_t units[kUnits];
    fragments ready[kReady > 0 ? kReady : 1];
    float block[kUnits];  // f8block's scales

    // Asks for a strip of matrix m where there is any: unit(i) is the number of the warp's i-th unit, or of any other where it has fewer.
    template <typename Unit>
    __device__ void load(const atlas_Weight &w, int m, int strip, bool any, const Unit &unit) {
#pragma unroll
        for (int i = 0; i < kUnits; i++) units[i] = {}, block[i] = 0;
        if (!any) return;
#pragma unroll
        for (int i = 0; i < kUnits; i++) {
            units[i].load_once(unit_t::at(w, m, strip, unit(i)));
            if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK) block[i] = frag<kScheme>::block_scale(w, m, strip, unit(i) / 2);
        }
    }
    // Gives a word that depends on all fragments, for settle.
    __device__ uint32_t decode() {
        uint32_t all = 0;
#pragma unroll
        for (int i = 0; i < kReady; i++) {
            ready[i].decode(units[i]);
#pragma unroll
            for (int s = 0; s < 4; s++) {
                pin(ready[i].a[s]);
#pragma unroll
                for (int r = 0; r < 4; r++) all ^= ready[i].a[s][r];
            }
        }
        return all;
    }
    // c += a unit's products; x: both halves' activations, as load_matrices has them.
    __device__ void multiply(int i, const uint32_t (&x)[2][4], float (&c)[4]) const {
        fragments now;
        if (i < kReady) now = ready[i];
        else now.decode(units[i]);
        float p[2][4] = {};
#pragma unroll
        for (int h = 0; h < 2; h++) {
            product(p[h], now.a[2 * h], x[h][0], x[h][1]);
            product(p[h], now.a[2 * h + 1], x[h][2], x[h][3]);
        }
#pragma unroll
        for (int e = 0; e < 4; e++) c[e] = kScheme == ATLAS_SCHEME_F8BLOCK ? fmaf(p[0][e] + p[1][e], block[i], c[e]) : c[e] + (p[0][e] + p[1][e]);
    }
};

template <atlas_Scheme kScheme, int kRows, int kWarps, int kStrips, int kUnits, int kReady>
struct held_share {
    static constexpr int kThreads = kWarps * 32, kParts = kRows * 16;  // sums of a warp and strip
    static constexpr int kPartsBytes = kStrips * kWarps * kParts * 4, kShared = kPartsBytes + kRows * (kUnits * kWarps * 128 + 16);  // with rows of all columns
    static_assert(kRows <= 8 && kStrips * kParts <= kThreads, "columns of a product; a thread for each result");

    __device__ static int strip_of(int s) { return blockIdx.x + s * gridDim.x; }
    __device__ static int unit_of(int i) { return warp() + i * kWarps; }

    // fill(rows, pitch, before) waits for the kernel before this one, asks for what is there before, and puts rows into shared memory.
    template <typename Fill, typename Before, typename Store>
    __device__ static void run(const atlas_Weight &w, const float *bias, int rows, const Fill &fill, const Before &before, const Store &store) {
        release_next();
        held_units<kScheme, kUnits, kReady> weights[kStrips];
#pragma unroll
        for (int s = 0; s < kStrips; s++)
            weights[s].load(w, 0, strip_of(s), strip_of(s) * 16 < w.Rows, [&](int i) { return min(unit_of(i), w.Cols / 64 - 1); });
        const int s = threadIdx.x / kParts, r = threadIdx.x % kParts / 16, out = strip_of(s) * 16 + threadIdx.x % 16;
        const bool mine = s < kStrips && r < rows && out < w.Rows;
        float *const parts = reinterpret_cast<float *>(held_shared);
        const float scale = mine ? row_scale(w, 0, out) * unit<kScheme>::kFactor : 0, moved = mine && bias ? bias[out] : 0;
        const uint32_t rows_at = shared_address(held_shared) + kPartsBytes;
        const int pitch = w.Cols * 2 + 16;
        const uint32_t lane_at = rows_at + min(lane() % 8, rows - 1) * pitch + lane() / 8 * 16;
#pragma unroll
        for (int s = 0; s < kStrips; s++) {
            const uint32_t decoded = weights[s].decode();
            if constexpr (Fill::kSettles) settle(decoded);
        }
        const auto there = fill(rows_at, pitch, [&]() { return mine ? before(out, r) : atlas_act{}; });
        float c[kStrips][4] = {};
#pragma unroll
        for (int i = 0; i < kUnits; i++) {
            if (unit_of(i) * 64 >= w.Cols) break;  // nobody stored rows there
            uint32_t x[2][4];
            load_matrices(x[0], lane_at + unit_of(i) * 128), load_matrices(x[1], lane_at + unit_of(i) * 128 + 64);
#pragma unroll
            for (int s = 0; s < kStrips; s++) weights[s].multiply(i, x, c[s]);
        }
#pragma unroll
        for (int s = 0; s < kStrips; s++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int r = lane() % 4 * 2 + e % 2;
                if (r < kRows) parts[(s * kWarps + warp()) * kParts + r * 16 + lane() / 4 + e / 2 * 8] = c[s][e];
            }
        __syncthreads();
        if (!mine) return;
        float sum = 0;
#pragma unroll
        for (int p = 0; p < kWarps; p++) sum += parts[(s * kWarps + p) * kParts + threadIdx.x % kParts];
        store(out, r, bias ? fmaf(sum, scale, moved) : sum * scale, there);
    }
};

// Rows as they are: each warp reads the columns of its own units.
template <int kRows, int kWarps, int kUnits>
struct held_rows {
    static constexpr bool kSettles = true;  // or the compiler would decode behind the wait
    const atlas_act *in;
    int rows, cols;

    template <typename Before>
    __device__ atlas_act operator()(uint32_t to, int pitch, const Before &before) const {
        constexpr int kTurns = (kUnits + 3) / 4;  // of four units
        uint4 x[kTurns][kRows];
        wait_for_previous();
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int r = 0; r < kRows; r++)
                if (column(t) < cols && r < rows) x[t][r] = *reinterpret_cast<const uint4 *>(in + size_t(r) * cols + column(t));
        const atlas_act there = before();
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int r = 0; r < kRows; r++)
                if (column(t) < cols && r < rows) store_shared(to + r * pitch + column(t) * 2, x[t][r]);
        __syncwarp();
        return there;
    }
    __device__ static int column(int turn) { return (warp() + (turn * 4 + lane() / 8) * kWarps) * 64 + lane() % 8 * 8; }
};

// Rows normalised, with the bits of rmsnorm.cuh. A warp takes 256 columns of a row at a time, the same ones of each row it meets.
template <int kRows, int kWarps>
struct held_norm {
    static constexpr bool kSettles = false;
    static constexpr int kTurns = (kRows * 16 + kWarps - 1) / kWarps;
    const atlas_act *in;
    float eps;
    int rows, cols, pieces;
    float scale[8], each;

    __device__ held_norm(const atlas_NormLinear &a) : in(a.In), eps(a.Eps), rows(a.Rows), cols(a.W.Cols), pieces(a.W.Cols / 256), each(1.0f / a.W.Cols) {
        const float4 *from = reinterpret_cast<const float4 *>(a.Scale + column());
        const float4 low = from[0], high = from[1];
        scale[0] = low.x, scale[1] = low.y, scale[2] = low.z, scale[3] = low.w, scale[4] = high.x, scale[5] = high.y, scale[6] = high.z, scale[7] = high.w;
    }
    __device__ int column() const { return warp() % pieces * 256 + lane() * 8; }
    __device__ int row(int turn) const { return warp() / pieces + turn * (kWarps / pieces); }

    template <typename Before>
    __device__ atlas_act operator()(uint32_t to, int pitch, const Before &before) const {
        __shared__ float partial[kRows * 16];
        if (threadIdx.x < kRows * 16) partial[threadIdx.x] = 0;
        __syncthreads();
        wait_for_previous();
        uint4 x[kTurns];
#pragma unroll
        for (int t = 0; t < kTurns; t++)
            if (row(t) < rows) x[t] = *reinterpret_cast<const uint4 *>(in + size_t(row(t)) * cols + column());
        const atlas_act there = before();
#pragma unroll
        for (int t = 0; t < kTurns; t++) {
            if (row(t) >= rows) break;
            const f32x8 y = widen(x[t]);
            float squares = 0;
#pragma unroll
            for (int i = 0; i < 8; i++) squares = fmaf(y.v[i], y.v[i], squares);
            squares = warp_sum(squares);
            if (lane() == 0) partial[row(t) * 16 + warp() % pieces] = squares;
        }
        __syncthreads();
#pragma unroll
        for (int t = 0; t < kTurns; t++) {
            if (row(t) >= rows) break;
            const float4 *from = reinterpret_cast<const float4 *>(partial + row(t) * 16);
            float sum = 0;
#pragma unroll
            for (int w = 0; w < 4; w++) {
                const float4 v = from[w];
                sum = sum + v.x + v.y + v.z + v.w;
            }
            const float inverse = rsqrtf(sum * each + eps);
            f32x8 y = widen(x[t]);
#pragma unroll
            for (int i = 0; i < 8; i++) y.v[i] *= inverse * scale[i];
            store_shared(to + row(t) * pitch + column() * 2, narrow(y));
        }
        __syncthreads();
        return there;
    }
};

}  // namespace atlas

template <class P, typename Args>
__device__ void linear_held(const Args &a) {
    using share = atlas::held_share<P::kScheme, P::kRows, P::kWarps, P::kStrips, P::kUnits, P::kReady>;
    static_assert(atlas::launched<P, share::kThreads, share::kShared>::kFits);
    share::run(
        a.W, a.Bias, a.Rows, atlas::held_rows<P::kRows, P::kWarps, P::kUnits>{a.In, a.Rows, a.W.Cols}, [&](int n, int r) { return atlas::kAddsTo<Args> ? a.Out[size_t(r) * a.OutPitch + n] : atlas_act{}; },
        [&](int n, int r, float result, atlas_act there) { a.Out[size_t(r) * a.OutPitch + n] = __float2bfloat16_rn(atlas::kAddsTo<Args> ? atlas::plus(there, result) : result); });
}

template <class P>
__device__ void norm_linear_held(const atlas_NormLinear &a) {
    using share = atlas::held_share<P::kScheme, P::kRows, P::kWarps, P::kStrips, P::kUnits, P::kReady>;
    static_assert(atlas::launched<P, share::kThreads, share::kShared>::kFits);
    share::run(
        a.W, a.Bias, a.Rows, atlas::held_norm<P::kRows, P::kWarps>(a), [](int, int) { return atlas_act{}; },
        [&](int n, int r, float result, atlas_act) { a.Out[size_t(r) * a.OutPitch + n] = __float2bfloat16_rn(result); });
}
