// The rows of one sequence in recurrent layers: see op.Recurrent.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas {

struct sequence_rows {
    int slot;         // negative: there is nothing to do
    int first, rows;  // of the step
    int position;     // of the first row

    sequence_rows() = default;
    template <class A>
    __device__ sequence_rows(const A &a, int s) : slot(a.Slot[s]), first(a.Starts[s]), rows(a.Starts[s + 1] - first), position(a.Lengths[s] - rows) {}
    __device__ bool empty() const { return slot < 0 || rows == 0; }
};

// The same where some may be drafts.
struct drafted_rows : sequence_rows {
    int drafts, accepted;  // the last rows, and rows of the journal that lead to the state

    drafted_rows() = default;
    template <class A>
    __device__ drafted_rows(const A &a, int s) : sequence_rows(a, s), drafts(a.Drafts ? a.Drafts[s] : 0), accepted(a.Accepted && position > 0 ? a.Accepted[s] : 0) {}

    // True where delta_chunks.cuh serves it: sequences of at least so many rows, all of which stay. Where least is 0, there are none.
    __device__ bool in_chunks(int least) const { return least > 0 && rows >= least && drafts == 0 && accepted == 0; }
};

// Four neighbouring activations, at an address of which 8 is a factor.
struct f32x4 {
    float v[4];
};
__device__ __forceinline__ f32x4 load4(const atlas_act *p) {
    const uint2 x = *reinterpret_cast<const uint2 *>(p);
    return {__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000u), __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000u)};
}
__device__ __forceinline__ void store4(atlas_act *p, const f32x4 &x) { *reinterpret_cast<uint2 *>(p) = {narrow(x.v[0], x.v[1]), narrow(x.v[2], x.v[3])}; }

// ln(1+eˣ), where eˣ is large too.
__device__ inline float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(__expf(-fabsf(x))); }
__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

}  // namespace atlas
