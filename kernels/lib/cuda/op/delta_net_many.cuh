// DeltaNet for many sequences of few rows: convolution, delta rule, norm and gate in one launch. An item is a key head of a sequence. A block takes
// every gridDim.x-th item, and goes through the item's value heads one after the other. Bulk copies bring states to a ring in shared memory, kStages
// ahead, and what else a head reads is asked for one head ahead: memory never waits for products. Eight lanes have a row of state in registers, four
// neighbouring columns of every 32 each.
//
// A block alone has the channels of an item's key head, so that it may write their ring once it has read it: for the last of its value heads.
// Grid: any, at most kMost items a block; block kThreads; dynamic shared memory: kStages states. Limits: KeyDim = ValueDim = 128, Width 4.
#pragma once
#include "lib/cuda/op/delta_step.cuh"
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"

template <class P>
__device__ void delta_net_many(const atlas_DeltaNet &a) {
    constexpr int kDim = 128, kThreads = P::kThreads, kWidth = 4, kGroups = kThreads / 8, kValues = kDim / kGroups, kQuads = kDim / 32;
    constexpr int kPairs = kDim * 3 / 2, kWarps = kThreads / 32, kState = kDim * kDim, kStages = P::kStages;
    static_assert(atlas::launched<P, kThreads, kStages * kState * 4>::kFits && kPairs <= kThreads && kWarps <= 32 && kStages <= 32);
    extern __shared__ __align__(128) float states[];                              // of kStages value heads
    __shared__ __align__(16) float lines[2][3 * kDim], sums[2][kWarps];           // query, key, values
    __shared__ atlas::drafted_rows list[P::kMost];                                // of the block's items that have rows
    __shared__ int keys[P::kMost], turns[P::kMost], count;                        // their key heads, and the ring's row of the first row
    __shared__ __align__(8) uint64_t arrivals[kStages];
    const int l = atlas::lane(), t = threadIdx.x % 8, group = threadIdx.x / 8;
    const int heads = a.KeyHeads, values = a.ValueHeads, ratio = values / heads, channels = 2 * heads * kDim + values * kDim, ring = kWidth + a.MaxDrafts;
    const uint32_t memory = __cvta_generic_to_shared(states), barriers = __cvta_generic_to_shared(arrivals);
    const size_t pitch = size_t(channels) + size_t(values) * (kDim + 2);
    const auto head_of = [&](int key, int j) { return a.Tiled ? key + j * heads : key * ratio + j; };
    if (atlas::warp() == 0 && atlas::elected()) {
        for (int i = 0; i < kStages; i++) atlas::init_barrier(barriers + i * 8, 1);
        atlas::fence_barriers();
        // The slot named now is likely to be asked for; another slot costs nothing but time.
        const int slot = *const_cast<const volatile int32_t *>(a.Slot + blockIdx.x / heads);
        if (slot >= 0 && slot < a.Slots)
            for (int j = 0; j < min(ratio, kStages); j++) atlas::prefetch_bulk(a.State + (size_t(slot) * values + head_of(blockIdx.x % heads, j)) * kState, kState * 4);
    }
    // This thread's channels: of the query, of the key, or of a value head.
    const int pair = threadIdx.x < kPairs ? int(threadIdx.x) : -1, part = pair * 2 / kDim, at = pair * 2 % kDim;
    atlas::release_next();
    atlas::wait_for_previous();
    if (threadIdx.x < 32) {
        int found = 0;
        for (int i = 0; i * gridDim.x + blockIdx.x < a.Seqs * heads; i += 32) {
            const int item = (i + l) * gridDim.x + blockIdx.x;
            const atlas::drafted_rows r(a, min(item / heads, a.Seqs - 1));
            const bool there = item < a.Seqs * heads && !r.empty();
            const uint32_t all = __ballot_sync(atlas::kAllLanes, there);
            const int to = found + __popc(all & ((1u << l) - 1));
            if (there) list[to] = r, keys[to] = item % heads, turns[to] = r.position % ring;
            found += __popc(all);
        }
        if (l == 0) count = found;
    }
    __syncthreads();
    const int all = count * ratio;
    const auto bring = [&](int m) {  // the state of value head m
        const atlas::drafted_rows &r = list[m / ratio];
        const uint32_t barrier = barriers + m % kStages * 8;
        if (r.position == 0) return atlas::arrive(barrier);
        atlas::arrive_expecting(barrier, kState * 4);
        atlas::copy_bulk(memory + m % kStages * (kState * 4), a.State + (size_t(r.slot) * values + head_of(keys[m / ratio], m % ratio)) * kState, kState * 4, barrier);
    };
    if (atlas::warp() == 0 && atlas::elected())
        for (int m = 0; m < min(all, kStages); m++) bring(m);

    struct inputs {
        atlas_act beta, alpha, z[kValues];
        float decay, bias;
    };
    const auto channel_of = [&](int key, int h) { return (part == 0 ? key : part == 1 ? heads + key : 2 * heads + h) * kDim + at; };
    atlas::channel_pair mine;
    const auto load_row = [&](inputs &x, const atlas_act *row, int h) {  // but for its channels
        const atlas_act *const gates = row + channels + size_t(values) * kDim;
        x.beta = gates[h], x.alpha = gates[values + h];
#pragma unroll
        for (int n = 0; n < kValues; n++) x.z[n] = row[channels + size_t(h) * kDim + n * kGroups + group];
    };
    const auto load = [&](inputs &x, int item, int j) {  // for the item's first row
        const atlas::drafted_rows &r = list[item];
        const int h = head_of(keys[item], j);
        const atlas_act *const row = a.In + size_t(r.first) * pitch;
        load_row(x, row, h);
        x.decay = a.Decay[h], x.bias = a.Bias[h];
        if (pair < 0) return;
        const int channel = channel_of(keys[item], h);
        mine.window[kWidth - 1] = *reinterpret_cast<const uint32_t *>(row + channel);
        atlas::load_window(mine, a.Window + size_t(r.slot) * ring * channels + channel, channels, ring, r.position, turns[item]);
        mine.load(a.Filter + size_t(channel) * kWidth);
    };
    inputs next;
    if (all > 0) load(next, 0, 0);

    int b = 0, stage = 0, phase = 0;  // b: rows so far, modulo 2
    for (int item = 0, j = 0; item < count; phase ^= stage + 1 == kStages, stage = stage + 1 == kStages ? 0 : stage + 1) {
        const atlas::drafted_rows r = list[item];
        const int key = keys[item], h = head_of(key, j), kept = r.rows - r.drafts, channel = pair < 0 ? 0 : channel_of(key, h), m = item * ratio + j;
        const bool ends_item = j == ratio - 1, last = ends_item || part == 2;
        const atlas::journal journal(a, r.slot);
        float *const state = a.State + (size_t(r.slot) * values + h) * kState + group * kDim + t * 4;
        inputs x = next;
        int turn = turns[item];
        if (ends_item) item++;
        j = ends_item ? 0 : j + 1;
        float4 s[kValues][kQuads];
        const auto keep = [&] {
#pragma unroll
            for (int n = 0; n < kValues; n++)
#pragma unroll
                for (int q = 0; q < kQuads; q++) *reinterpret_cast<float4 *>(state + n * kGroups * kDim + q * 32) = s[n][q];
        };
        for (int i = 0; i < r.rows; i++, b ^= 1, turn = atlas::turned(turn, 1, ring)) {
            const atlas_act *const row = a.In + size_t(r.first + i) * pitch;
            if (i > 0) load_row(x, row, h);
            if (pair >= 0) {
                const uint32_t own = mine.window[kWidth - 1];
                *reinterpret_cast<float2 *>(&lines[b][threadIdx.x * 2]) = mine.take(i + 1 < r.rows ? *reinterpret_cast<const uint32_t *>(row + pitch + channel) : 0);
                if (last && i >= r.rows - ring) *reinterpret_cast<uint32_t *>(a.Window + (size_t(r.slot) * ring + turn) * channels + channel) = own;
            }
            __syncthreads();
            if (i + 1 == r.rows && item < count) load(next, item, j);
            if (i == 0) {
                atlas::wait_barrier(barriers + stage * 8, phase);
                const float4 *const from = reinterpret_cast<const float4 *>(states + stage * kState + group * kDim + t * 4);
#pragma unroll
                for (int n = 0; n < kValues; n++)
#pragma unroll
                    for (int q = 0; q < kQuads; q++) s[n][q] = r.position > 0 ? from[n * kGroups * kDim / 4 + q * 8] : float4{};
                for (int p = r.position - r.accepted; p < r.position; p++)
#pragma unroll
                    for (int n = 0; n < kValues; n++) {
                        const float delta = journal.delta(p, h)[n * kGroups + group], by = *journal.alpha(p, h);
                        const float *const k = journal.key(p, key) + t * 4;
#pragma unroll
                        for (int q = 0; q < kQuads; q++) s[n][q] = atlas::stepped(s[n][q], {k[q * 32], k[q * 32 + 1], k[q * 32 + 2], k[q * 32 + 3]}, delta, by);
                    }
            }
            if (i == kept) keep();
            const auto key_of = [&](int q) { return *reinterpret_cast<const float4 *>(&lines[b][kDim + q * 32 + t * 4]); };
            float qq = 0, kk = 0, kq = 0, sk[kValues] = {}, sq[kValues] = {};
#pragma unroll
            for (int c = 0; c < kQuads; c++) {
                const float4 q = *reinterpret_cast<const float4 *>(&lines[b][c * 32 + t * 4]), k = key_of(c);
                qq = atlas::dot(q, q, qq), kk = atlas::dot(k, k, kk), kq = atlas::dot(k, q, kq);
#pragma unroll
                for (int n = 0; n < kValues; n++) sk[n] = atlas::dot(s[n][c], k, sk[n]), sq[n] = atlas::dot(s[n][c], q, sq[n]);
            }
            const float unit = rsqrtf(atlas::row_sum(qq) + a.Eps) * rsqrtf(float(kDim)), key_unit = rsqrtf(atlas::row_sum(kk) + a.Eps);
            kq = atlas::row_sum(kq) * unit * key_unit;
            const float beta = atlas::sigmoid(__bfloat162float(x.beta)), alpha = __expf(x.decay * atlas::softplus(__bfloat162float(x.alpha) + x.bias));
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
                if (ends_item && threadIdx.x < kDim) journal.key(r.position + i, key)[threadIdx.x] = lines[b][kDim + threadIdx.x] * key_unit;
            }
            __syncthreads();  // the state has been read, and its place is free
            if (i == 0 && m + kStages < all && atlas::warp() == 0 && atlas::elected()) bring(m + kStages);
#pragma unroll
            for (int c = 0; c < kQuads; c++) {
                const float4 k = key_of(c);
#pragma unroll
                for (int n = 0; n < kValues; n++) s[n][c] = atlas::stepped(s[n][c], k, step[n], alpha);
            }
            if (i + 1 == r.rows && r.drafts == 0) keep();
            const float mean = atlas::warp_sum(l < kWarps ? sums[b][l] : 0.0f) / kDim;
#pragma unroll
            for (int n = 0; n < kValues; n++) {
                const float z = __bfloat162float(x.z[n]), gate = a.Gate == ATLAS_GATE_SILU ? atlas::silu(z) : atlas::sigmoid(z);
                if (t == 0) a.Out[(size_t(r.first + i) * values + h) * kDim + n * kGroups + group] = __float2bfloat16_rn(out[n] * rsqrtf(mean + a.NormEps) * a.Scale[n * kGroups + group] * gate);
            }
        }
    }
}
