// DeltaNet for many sequences of few rows: convolution, delta rule, norm and gate in one launch. A block has a key head, and goes through its value heads of
// one sequence after the other. A bulk copy brings a state to shared memory; while a block waits for it, the others of its multiprocessor work. Eight lanes
// have a row of state, four neighbouring columns of every 32 each.
//
// A block alone has the channels of its key head, so that it may write their ring once it has read it: for the last of its value heads.
// Grid: KeyHeads, at most Seqs; block kThreads; dynamic shared memory: a state. Limits: KeyDim = ValueDim = 128, Width 4, kMost sequences a block.
#pragma once
#include "lib/cuda/op/delta_step.cuh"
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"

template <class P>
__device__ void delta_net_many(const atlas_DeltaNet &a) {
    constexpr int kDim = 128, kThreads = P::kThreads, kWidth = 4, kGroups = kThreads / 8, kValues = kDim / kGroups, kQuads = kDim / 32;
    constexpr int kPairs = kDim * 3 / 2, kWarps = kThreads / 32, kState = kDim * kDim;
    static_assert(atlas::launched<P, kThreads, kState * 4>::kFits && kPairs <= kThreads);
    extern __shared__ __align__(128) float states[];  // of one value head
    __shared__ __align__(16) float lines[2][3 * kDim], sums[2][kWarps];  // query, key, values
    __shared__ atlas::drafted_rows list[P::kMost];                       // the block's sequences that have rows
    __shared__ int turns[P::kMost], count;                               // the ring's row of the first of them
    __shared__ __align__(8) uint64_t arrival;
    const int key = blockIdx.x, l = atlas::lane(), t = threadIdx.x % 8, group = threadIdx.x / 8;
    const int heads = a.KeyHeads, values = a.ValueHeads, ratio = values / heads, channels = 2 * heads * kDim + values * kDim, ring = kWidth + a.MaxDrafts;
    const uint32_t barrier = __cvta_generic_to_shared(&arrival);
    const size_t pitch = size_t(channels) + size_t(values) * (kDim + 2);
    const auto head_of = [&](int j) { return a.Tiled ? key + j * heads : key * ratio + j; };
    if (threadIdx.x == 0) {
        atlas::init_barrier(barrier, 1);
        atlas::fence_barriers();
    }
    // This thread's channels: of the query, of the key, or of a value head.
    const int pair = threadIdx.x < kPairs ? int(threadIdx.x) : -1, part = pair * 2 / kDim, at = pair * 2 % kDim;
    const auto channel_of = [&](int h) { return part == 0 ? key * kDim + at : part == 1 ? (heads + key) * kDim + at : (2 * heads + h) * kDim + at; };
    atlas::release_next();
    atlas::wait_for_previous();
    if (threadIdx.x < 32) {
        int found = 0;
        for (int i = l; i / 32 * 32 * gridDim.y + blockIdx.y < a.Seqs; i += 32) {
            const int s = i * gridDim.y + blockIdx.y;
            const atlas::drafted_rows r(a, min(s, a.Seqs - 1));
            const bool there = s < a.Seqs && !r.empty();
            const uint32_t all = __ballot_sync(atlas::kAllLanes, there);
            const int to = found + __popc(all & ((1u << l) - 1));
            if (there) list[to] = r, turns[to] = r.position % ring;
            found += __popc(all);
        }
        if (l == 0) count = found;
    }
    __syncthreads();
    const int items = count * ratio;
    const auto bring = [&](int m) {
        const atlas::drafted_rows &r = list[m / ratio];
        if (r.position == 0) {
            atlas::arrive(barrier);
            return;
        }
        atlas::arrive_expecting(barrier, kState * 4);
        atlas::copy_bulk(__cvta_generic_to_shared(states), a.State + (size_t(r.slot) * values + head_of(m % ratio)) * kState, kState * 4, barrier);
    };
    if (threadIdx.x == 0 && items > 0) bring(0);

    int b = 0;  // rows so far, modulo 2
    for (int m = 0; m < items; m++) {
        const atlas::drafted_rows r = list[m / ratio];
        const int h = head_of(m % ratio), kept = r.rows - r.drafts, channel = pair < 0 ? 0 : channel_of(h);
        const bool last = m % ratio == ratio - 1 || part == 2;
        const atlas::journal journal(a, r.slot);
        float *const state = a.State + (size_t(r.slot) * values + h) * kState + group * kDim + t * 4;
        float4 *const own = reinterpret_cast<float4 *>(states + group * kDim + t * 4);
        const auto place = [&](int n, int j) -> float4 & { return own[n * kGroups * kDim / 4 + j * 8]; };
        const auto keep = [&] {
#pragma unroll
            for (int n = 0; n < kValues; n++)
#pragma unroll
                for (int j = 0; j < kQuads; j++) *reinterpret_cast<float4 *>(state + n * kGroups * kDim + j * 32) = place(n, j);
        };
        const float decay = a.Decay[h], bias = a.Bias[h];
        int turn = turns[m / ratio];
        atlas::channel_pair mine;
        if (pair >= 0) {
            mine.load(a.Filter + size_t(channel) * kWidth);
            mine.window[kWidth - 1] = *reinterpret_cast<const uint32_t *>(a.In + size_t(r.first) * pitch + channel);
            atlas::load_window(mine, a.Window + size_t(r.slot) * ring * channels + channel, channels, ring, r.position, turn);
        }
        for (int i = 0; i < r.rows; i++, b ^= 1, turn = atlas::turned(turn, 1, ring)) {
            const atlas_act *const row = a.In + size_t(r.first + i) * pitch;
            const atlas_act *const gates = row + channels + size_t(values) * kDim;
            float beta = __bfloat162float(gates[h]), alpha = __bfloat162float(gates[values + h]);
            atlas_act z[kValues];
#pragma unroll
            for (int n = 0; n < kValues; n++) z[n] = row[channels + size_t(h) * kDim + n * kGroups + group];
            if (pair >= 0) {
                const uint32_t x = mine.window[kWidth - 1];
                *reinterpret_cast<float2 *>(&lines[b][threadIdx.x * 2]) = mine.take(i + 1 < r.rows ? *reinterpret_cast<const uint32_t *>(row + pitch + channel) : 0);
                if (last && i >= r.rows - ring) *reinterpret_cast<uint32_t *>(a.Window + (size_t(r.slot) * ring + turn) * channels + channel) = x;
            }
            __syncthreads();
            if (i == 0) {
                atlas::wait_barrier(barrier, m & 1);
                if (r.position == 0)
#pragma unroll 1
                    for (int n = 0; n < kValues; n++)
                        for (int j = 0; j < kQuads; j++) place(n, j) = {};
                for (int p = r.position - r.accepted; p < r.position; p++)
#pragma unroll 1
                    for (int n = 0; n < kValues; n++) {
                        const float delta = journal.delta(p, h)[n * kGroups + group], by = *journal.alpha(p, h);
                        const float *const k = journal.key(p, key) + t * 4;
                        for (int j = 0; j < kQuads; j++) place(n, j) = atlas::stepped(place(n, j), {k[j * 32], k[j * 32 + 1], k[j * 32 + 2], k[j * 32 + 3]}, delta, by);
                    }
            }
            if (i == kept) keep();
            const auto key_of = [&](int j) { return *reinterpret_cast<const float4 *>(&lines[b][kDim + j * 32 + t * 4]); };
            float qq = 0, kk = 0, kq = 0, sk[kValues] = {}, sq[kValues] = {};
#pragma unroll
            for (int j = 0; j < kQuads; j++) {
                const float4 q = *reinterpret_cast<const float4 *>(&lines[b][j * 32 + t * 4]), k = key_of(j);
                qq = atlas::dot(q, q, qq), kk = atlas::dot(k, k, kk), kq = atlas::dot(k, q, kq);
#pragma unroll
                for (int n = 0; n < kValues; n++) {
                    const float4 s = place(n, j);
                    sk[n] = atlas::dot(s, k, sk[n]), sq[n] = atlas::dot(s, q, sq[n]);
                }
            }
            const float unit = rsqrtf(atlas::row_sum(qq) + a.Eps) * rsqrtf(float(kDim)), key_unit = rsqrtf(atlas::row_sum(kk) + a.Eps);
            kq = atlas::row_sum(kq) * unit * key_unit;
            beta = atlas::sigmoid(beta), alpha = __expf(decay * atlas::softplus(alpha + bias));
            float out[kValues], step[kValues], squares = 0;
#pragma unroll
            for (int n = 0; n < kValues; n++) {
                const float delta = beta * (lines[b][2 * kDim + n * kGroups + group] - alpha * (atlas::row_sum(sk[n]) * key_unit));
                out[n] = __bfloat162float(__float2bfloat16_rn(fmaf(alpha * unit, atlas::row_sum(sq[n]), delta * kq)));
                squares = fmaf(out[n], out[n], squares), step[n] = delta * key_unit;
                if (i >= kept && t == 0) journal.delta(r.position + i, h)[n * kGroups + group] = delta;
            }
            squares += __shfl_xor_sync(atlas::kAllLanes, squares, 8);
            squares += __shfl_xor_sync(atlas::kAllLanes, squares, 16);
            if (l == 0) sums[b][threadIdx.x / 32] = squares;
            if (i >= kept) {
                if (threadIdx.x == 0) *journal.alpha(r.position + i, h) = alpha;
                if (m % ratio == ratio - 1 && threadIdx.x < kDim) journal.key(r.position + i, key)[threadIdx.x] = lines[b][kDim + threadIdx.x] * key_unit;
            }
            const bool ends = i + 1 == r.rows && r.drafts == 0;
#pragma unroll
            for (int j = 0; j < kQuads; j++) {
                const float4 k = key_of(j);
#pragma unroll
                for (int n = 0; n < kValues; n++) {
                    const float4 s = atlas::stepped(place(n, j), k, step[n], alpha);
                    if (ends)
                        *reinterpret_cast<float4 *>(state + n * kGroups * kDim + j * 32) = s;
                    else
                        place(n, j) = s;
                }
            }
            if (r.rows > 1 || r.accepted > 0 || r.position == 0) atlas::fence_shared();  // what was stored comes before the copy after it
            __syncthreads();
            if (i + 1 == r.rows && threadIdx.x == 0 && m + 1 < items) bring(m + 1);
            const float mean = atlas::warp_sum(l < kWarps ? sums[b][l] : 0.0f) / kDim;
#pragma unroll
            for (int n = 0; n < kValues; n++) {
                const float x = __bfloat162float(z[n]), gate = a.Gate == ATLAS_GATE_SILU ? atlas::silu(x) : atlas::sigmoid(x);
                if (t == 0)
                    a.Out[(size_t(r.first + i) * values + h) * kDim + n * kGroups + group] = __float2bfloat16_rn(out[n] * rsqrtf(mean + a.NormEps) * a.Scale[n * kGroups + group] * gate);
            }
        }
    }
}
