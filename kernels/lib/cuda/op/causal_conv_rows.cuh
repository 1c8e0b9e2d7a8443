// CausalConv of many rows on a GPU: causal_conv_rows convolves, and then causal_conv_keep stores what the ring holds, which rows of other blocks read.
// A thread has four channels.
//
// Grids: ⌈Channels/(4·kThreads)⌉, ⌈Rows/kRows⌉ and ⌈Channels/(4·kThreads)⌉, Seqs. Limits: Channels%4 == 0, InPitch%4 == 0, Width at most kMost.
#pragma once
#include "lib/cuda/op/slots.cuh"

namespace atlas {

// The sequence of a row of the step, Seqs where it has none, -1 where it stands before all of them.
template <class A>
__device__ int sequence_of(const A &a, int row) {
    int low = -1, high = a.Seqs;  // Starts[low] <= row < Starts[high+1]
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (a.Starts[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

}  // namespace atlas

template <class P>
__device__ void causal_conv_rows(const atlas_CausalConv &a) {
    const int c = (blockIdx.x * P::kThreads + threadIdx.x) * 4, ring = a.Width + a.MaxDrafts;
    atlas::release_next();
    float filter[P::kMost][4] = {}, bias[4] = {};
    if (c < a.Channels)
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < P::kMost; j++)
                if (a.Width - P::kMost + j >= 0) filter[j][i] = a.Filter[size_t(c + i) * a.Width + a.Width - P::kMost + j];
            if (a.Bias) bias[i] = a.Bias[c + i];
        }
    atlas::wait_for_previous();
    if (c >= a.Channels) return;
    int row = max(int(blockIdx.y * P::kRows), a.Starts[0]);
    const int end = min(min(int(blockIdx.y + 1) * P::kRows, a.Rows), a.Starts[a.Seqs]);
    while (row < end) {
        const atlas::sequence_rows r(a, atlas::sequence_of(a, row));
        const int stop = min(end, r.first + r.rows);
        if (r.slot < 0) {
            row = stop;
            continue;
        }
        const atlas_act *in = a.In + size_t(row) * a.InPitch + c, *const state = a.State + size_t(r.slot) * ring * a.Channels + c;
        atlas_act *out = a.Out + size_t(row) * a.Channels + c;
        atlas::f32x4 window[P::kMost] = {};  // the latest inputs, the newest last
#pragma unroll
        for (int j = 1; j < P::kMost; j++) {
            const int back = P::kMost - j, position = r.position + row - r.first - back;
            if (a.Width > back && position >= 0)
                window[j] = atlas::load4(position >= r.position ? in - size_t(back) * a.InPitch : state + size_t(position % ring) * a.Channels);
        }
#pragma unroll 4
        for (; row < stop; row++, in += a.InPitch, out += a.Channels) {
#pragma unroll
            for (int j = 0; j + 1 < P::kMost; j++) window[j] = window[j + 1];
            window[P::kMost - 1] = atlas::load4(in);
            atlas::f32x4 y;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                y.v[i] = bias[i];
#pragma unroll
                for (int j = 0; j < P::kMost; j++) y.v[i] = fmaf(filter[j][i], window[j].v[i], y.v[i]);
                y.v[i] = atlas::silu(y.v[i]);
            }
            atlas::store4(out, y);
        }
    }
}

template <class P>
__device__ void causal_conv_keep(const atlas_CausalConv &a) {
    const int c = (blockIdx.x * P::kThreads + threadIdx.x) * 4, ring = a.Width + a.MaxDrafts;
    atlas::release_next();
    atlas::wait_for_previous();
    const atlas::sequence_rows r(a, blockIdx.y);
    if (r.empty() || c >= a.Channels) return;
    for (int i = max(0, r.rows - ring); i < r.rows; i++)
        *reinterpret_cast<uint2 *>(a.State + (size_t(r.slot) * ring + (r.position + i) % ring) * a.Channels + c) =
            *reinterpret_cast<const uint2 *>(a.In + size_t(r.first + i) * a.InPitch + c);
}
