// The rows of one sequence in recurrent layers: see op.Recurrent.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas {

struct sequence_rows {
    int slot;         // negative: there is nothing to do
    int first, rows;  // of the step
    int position;     // of the first row

    template <class A>
    __device__ sequence_rows(const A &a, int s) : slot(a.Slot[s]), first(a.Starts[s]), rows(a.Starts[s + 1] - first), position(a.Lengths[s] - rows) {}
    __device__ bool empty() const { return slot < 0 || rows == 0; }
};

// The same where some may be drafts.
struct drafted_rows : sequence_rows {
    int drafts, accepted;  // the last rows, and rows of the journal that lead to the state

    template <class A>
    __device__ drafted_rows(const A &a, int s) : sequence_rows(a, s), drafts(a.Drafts ? a.Drafts[s] : 0), accepted(a.Accepted && position > 0 ? a.Accepted[s] : 0) {}

    // True where delta_chunks.cuh serves it: sequences of at least so many rows, all of which stay. Where least is 0, there are none.
    __device__ bool in_chunks(int least) const { return least > 0 && rows >= least && drafts == 0 && accepted == 0; }
};

// ln(1+eˣ), where eˣ is large too.
__device__ inline float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(__expf(-fabsf(x))); }
__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

}  // namespace atlas
