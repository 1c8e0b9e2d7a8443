// CausalConv on a GPU: a thread for each channel of a sequence, which goes through all of its rows. Grid: ⌈Channels/kThreads⌉, Seqs.
// Limit: Width at most kMost.
#pragma once
#include "lib/cuda/op/slots.cuh"

template <class P>
__device__ void causal_conv(const atlas_CausalConv &a) {
    const int c = blockIdx.x * P::kThreads + threadIdx.x, ring = a.Width + a.MaxDrafts;
    atlas::release_next();
    atlas::wait_for_previous();
    const atlas::sequence_rows r(a, blockIdx.y);
    if (r.empty() || c >= a.Channels) return;
    atlas_act *const state = a.State + size_t(r.slot) * ring * a.Channels + c;
    const atlas_act *const in = a.In + size_t(r.first) * a.InPitch + c;
    float filter[P::kMost] = {}, window[P::kMost] = {};  // the latest inputs, the newest last
#pragma unroll
    for (int j = 0; j < P::kMost; j++) {
        const int position = r.position - P::kMost + j, tap = a.Width - P::kMost + j;
        if (tap >= 0) filter[j] = a.Filter[size_t(c) * a.Width + tap];
        if (tap > 0 && position >= 0) window[j] = __bfloat162float(state[size_t(position % ring) * a.Channels]);
    }
    const float bias = a.Bias ? a.Bias[c] : 0.0f;
    for (int i = 0; i < r.rows; i++) {
        const atlas_act x = in[size_t(i) * a.InPitch];
        if (i >= r.rows - ring) state[size_t((r.position + i) % ring) * a.Channels] = x;
#pragma unroll
        for (int j = 0; j + 1 < P::kMost; j++) window[j] = window[j + 1];
        window[P::kMost - 1] = __bfloat162float(x);
        float sum = bias;
#pragma unroll
        for (int j = 0; j < P::kMost; j++) sum = fmaf(filter[j], window[j], sum);
        a.Out[size_t(r.first + i) * a.Channels + c] = __float2bfloat16_rn(atlas::silu(sum));
    }
}
