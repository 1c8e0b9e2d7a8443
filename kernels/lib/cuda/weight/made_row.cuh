// A row of activations in the form that a product of one row wants (fixed.cuh, half.cuh), in shared memory, as it is or normalised: a thread has sixteen
// columns at a time. Columns are a multiple of 16 at least; zeros follow up to a whole unit of 64.
#pragma once
#include "lib/cuda/weight/resident.cuh"

namespace atlas {

// The larger of |x| and |y|, or what is no number.
__device__ inline float most_of(float x, float y) {
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(fabsf(x)), "f"(fabsf(y)));
    return most;
}

// The largest of sixteen sizes, or what is no number.
__device__ inline float most_of(const f32x8 &x, const f32x8 &y) {
    float most[8];
#pragma unroll
    for (int i = 0; i < 8; i++) most[i] = most_of(x.v[i], y.v[i]);
#pragma unroll
    for (int n = 4; n; n /= 2)
#pragma unroll
        for (int i = 0; i < n; i++) most[i] = most_of(most[i], most[n + i]);
    return most[0];
}

// Form::put makes sixteen columns of it, which lie Form::at, 2 bytes for each, and what they are counted in Form::factors_at, a byte for kColumns of them.
// kNorms: at most 4096 columns. A multiple of 256 threads.
template <typename Form, int kThreads, bool kNorms>
struct made_row {
    static constexpr int kTurn = kThreads * 16, kTurns = kNorms ? 1 : (12288 + kTurn - 1) / kTurn;  // all of 12288 columns on their way at once
    static_assert(kThreads % 256 == 0, "a turn has all columns of a norm");
    const atlas_act *line;  // null counts as zeros
    int cols, first;        // the first of this thread's sixteen columns; those a turn on are the next
    uint32_t at, factors;

    __device__ made_row(uint32_t row, uint32_t row_factors, int cols, const atlas_act *line)
        : line(line), cols(cols), first(threadIdx.x * 16), at(Form::at(row, first)), factors(Form::factors_at(row_factors, first)) {}
    // What hangs on all of this, for settle.
    __device__ uint32_t ready() const { return first ^ at ^ factors; }

    // As it is. The kernel before must have ended.
    __device__ void keep() const {
        for (int c = 0; c < cols; c += kTurns * kTurn) {
            uint4 x[kTurns][2];
#pragma unroll
            for (int t = 0; t < kTurns; t++) load(line, c + t * kTurn, x[t]);
#pragma unroll
            for (int t = 0; t < kTurns; t++)
                if (c + t * kTurn < cols) put(c + t * kTurn, x[t]);
        }
        sync_named<kThreads>(1);
    }

    // Normalised: prepare before the kernel before has ended. partial: eight floats for this.
    f32x8 scale[2];
    __device__ void prepare(const row_norm &norm) {
#pragma unroll
        for (int i = 0; i < 2; i++) scale[i] = first < cols ? load_scales(norm.scale + first + i * 8) : f32x8{};
    }
    __device__ void keep(const row_norm &norm, float *partial) const {
        uint4 x[2];
        load(line, 0, x);
        if (norm.residual) {
            uint4 before[2];
            load(norm.residual, 0, before);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                x[i] = sum_of(x[i], before[i]);
                if (norm.sum && blockIdx.x == 0 && first < cols) reinterpret_cast<uint4 *>(norm.sum + first)[i] = x[i];
            }
        }
        f32x8 y[2] = {widen(x[0]), widen(x[1])};
        float squares[2] = {};
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) squares[i] = fmaf(y[i].v[j], y[i].v[j], squares[i]), y[i].v[j] *= scale[i].v[j];
        const float mine = warp_sum(squares[0] + squares[1]);
        if (lane() == 0 && warp() < 8) partial[warp()] = mine;  // who follows has no columns
        sync_named<kThreads>(1);
        const float4 low = reinterpret_cast<const float4 *>(partial)[0], high = reinterpret_cast<const float4 *>(partial)[1];
        const float inverse = rsqrtf((low.x + low.y + low.z + low.w + (high.x + high.y + high.z + high.w)) / cols + norm.eps);
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int j = 0; j < 8; j++) y[i].v[j] *= inverse;
            x[i] = narrow(y[i]);
        }
        put(0, x);
        sync_named<kThreads>(1);
    }

  private:
    __device__ void load(const atlas_act *from, int on, uint4 (&x)[2]) const {
#pragma unroll
        for (int i = 0; i < 2; i++) x[i] = from && first + on < cols ? reinterpret_cast<const uint4 *>(from + first + on)[i] : uint4{};
    }
    __device__ void put(int on, const uint4 (&x)[2]) const {
        Form::put(at + on * 2, factors + on / Form::kColumns, first + on < (cols + 63) / 64 * 64, widen(x[0]), widen(x[1]));
    }
};

}  // namespace atlas
