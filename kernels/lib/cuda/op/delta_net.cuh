// DeltaNet for few rows of a sequence: convolution, delta rule, norm and gate in one launch. A cluster of kBlocks blocks has the value heads of a key head;
// a block has as many of their rows of state as the others. They are held in registers.
//
// A head's sum of squares passes between blocks: each warp sends that of its four outputs to all. It waits for those of a row when it has sent those of
// the next one, so kPlaces rows are on their way at most. A block reads what it needs of the rings before it sends anything. What others read of the
// convolution's is written by the first block alone, after it has heard from all; entries of the journal that are read and written in a step differ.
// So sequences may have any number of rows.
// Grid: kBlocks·KeyHeads, Seqs; block kThreads. Limits: KeyDim = ValueDim = kDim, ValueHeads = kRatio·KeyHeads, Width 4.
#pragma once
#include "lib/cuda/op/delta_step.cuh"
#include "lib/cuda/ptx/peer.cuh"

template <class P>
__device__ void delta_net(const atlas_DeltaNet &a) {
    constexpr int kDim = P::kDim, kThreads = P::kThreads, kBlocks = P::kBlocks, kWidth = 4;
    constexpr int kRows = P::kRatio * kDim / kBlocks, kGroups = kThreads / 8, kValues = kRows / kGroups, kQuads = kDim / 32;
    constexpr int kPairs = kDim + kRows / 2, kTurns = (kPairs + kThreads - 1) / kThreads;  // channels of the block: query, key, its values
    constexpr int kSums = kDim / 4, kSumBytes = P::kRatio * kSums * 4, kPlaces = 4;
    constexpr int kEntries = 4, kEntry = kDim + kRows + P::kRatio;  // of the journal: key, deltas, alphas
    static_assert(atlas::launched<P, kThreads, 0, kBlocks>::kFits && kRows % kGroups == 0 && kRows % 4 == 0 && kDim % 32 == 0 && kSums <= 32, "whole groups");
    static_assert(kEntry <= kThreads && (kDim + kRows) % 4 == 0, "a thread for each part of an entry");
    __shared__ __align__(16) float lines[2][2 * kDim + kRows], sums[kPlaces][P::kRatio * kSums];  // query, key, values
    __shared__ __align__(16) float entries[kEntries][(kEntry + 3) / 4 * 4];
    __shared__ __align__(8) uint64_t barriers[kPlaces];
    const int rank = atlas::cluster_rank(), key = blockIdx.x / kBlocks, l = atlas::lane(), t = threadIdx.x % 8, group = threadIdx.x / 8;
    const int heads = a.KeyHeads, values = a.ValueHeads, channels = 2 * heads * kDim + values * kDim, ring = kWidth + a.MaxDrafts;
    const uint32_t barrier = __cvta_generic_to_shared(barriers);
    const auto head_of = [&](int row) { return a.Tiled ? key + row / kDim * heads : key * P::kRatio + row / kDim; };
    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < kPlaces; i++) atlas::init_barrier(barrier + 8 * i, 1);
        atlas::fence_barriers();
    }
    __syncthreads();
    atlas::arrive_cluster();
    atlas::release_next();

    // Weights: filters, and of each row of state its head's numbers.
    atlas::channel_pair pair[kTurns];
    int channel[kTurns];  // negative: none
#pragma unroll
    for (int i = 0; i < kTurns; i++) {
        const int p = threadIdx.x + i * kThreads;
        const int row = rank * kRows + (p - kDim) * 2;
        channel[i] = p < kDim / 2 ? key * kDim + p * 2 : p < kDim ? (heads + key) * kDim + (p - kDim / 2) * 2 : 2 * heads * kDim + head_of(row) * kDim + row % kDim;
        if (p >= kPairs) channel[i] = -1;
        if (p < kPairs) pair[i].load(a.Filter + size_t(channel[i]) * kWidth);
    }
    int h[kValues], v[kValues];
    float decay[kValues], bias[kValues], scale[kValues];
#pragma unroll
    for (int n = 0; n < kValues; n++) {
        const int row = rank * kRows + n * kGroups + group;
        h[n] = head_of(row), v[n] = row % kDim;
        decay[n] = a.Decay[h[n]], bias[n] = a.Bias[h[n]], scale[n] = a.Scale[v[n]];
    }
    const auto state_of = [&](int slot, int n) { return a.State + ((size_t(slot) * values + h[n]) * kDim + v[n]) * kDim; };
    if (gridDim.y <= 4) {  // what the slot named now is likely to be asked for; another slot costs nothing but time
        const int slot = *const_cast<const volatile int32_t *>(a.Slot + blockIdx.y);
        if (slot >= 0 && slot < a.Slots) {
            for (int n = 0; n < kValues; n++)
                if (t < kQuads) atlas::prefetch(state_of(slot, n) + t * 32);
            for (int i = 0; i < kTurns; i++)
                if (channel[i] >= 0 && channel[i] % 64 == 0)
#pragma unroll 1
                    for (int r = 0; r < ring; r++) atlas::prefetch(a.Window + (size_t(slot) * ring + r) * channels + channel[i]);
        }
    }
    atlas::wait_cluster();
    atlas::wait_for_previous();
    const atlas::drafted_rows r(a, blockIdx.y);
    if (r.empty()) return;
    const size_t pitch = size_t(channels) + size_t(values) * (kDim + 2);
    const atlas_act *row = a.In + size_t(r.first) * pitch;
    atlas_act *const window = a.Window + size_t(r.slot) * ring * channels;
    int turn = r.position % ring;  // the ring's row of the step's row
    struct gate {
        atlas_act beta, alpha, z;
    };
    gate gates[kValues], next_gates[kValues];
    const auto load_gates = [&](const atlas_act *row) {
#pragma unroll
        for (int n = 0; n < kValues; n++) {
            const atlas_act *const of = row + channels + size_t(values) * kDim;
            next_gates[n] = {of[h[n]], of[values + h[n]], row[channels + size_t(h[n]) * kDim + v[n]]};
        }
    };
#pragma unroll
    for (int i = 0; i < kTurns; i++) {
        if (channel[i] < 0) continue;
        pair[i].window[kWidth - 1] = *reinterpret_cast<const uint32_t *>(row + channel[i]);
        atlas::load_window(pair[i], window + channel[i], channels, ring, r.position, turn);
    }
    load_gates(row);

    float4 s[kValues][kQuads] = {};
    if (r.position > 0)
#pragma unroll
        for (int n = 0; n < kValues; n++)
#pragma unroll
            for (int j = 0; j < kQuads; j++) {
                const uint4 x = atlas::load_once(state_of(r.slot, n) + j * 32 + t * 4);
                s[n][j] = {__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z), __uint_as_float(x.w)};
            }
    const auto keep = [&] {
#pragma unroll
        for (int n = 0; n < kValues; n++)
#pragma unroll
            for (int j = 0; j < kQuads; j++)
                *reinterpret_cast<float4 *>(state_of(r.slot, n) + j * 32 + t * 4) = s[n][j];
    };

    // Drafts that were right: a thread reads its part of several entries at a time.
    const atlas::journal journal(a, r.slot);
    const auto entry = [&](int position) -> const float & {
        const int part = threadIdx.x, own = rank * kRows + part - kDim;
        if (part < kDim) return journal.key(position, key)[part];
        if (part < kDim + kRows) return journal.delta(position, head_of(own))[own % kDim];
        return *journal.alpha(position, head_of((part - kDim - kRows) * kDim));
    };
    for (int from = r.position - r.accepted; from < r.position; from += kEntries) {
        if (threadIdx.x < kEntry) {
            float x[kEntries];
#pragma unroll
            for (int i = 0; i < kEntries; i++) x[i] = from + i < r.position ? entry(from + i) : 0.0f;
#pragma unroll
            for (int i = 0; i < kEntries; i++) entries[i][threadIdx.x] = x[i];
        }
        __syncthreads();
#pragma unroll 1
        for (int i = 0; i < min(kEntries, r.position - from); i++) {
#pragma unroll
            for (int n = 0; n < kValues; n++) {
                const float delta = entries[i][kDim + n * kGroups + group], alpha = entries[i][kDim + kRows + (rank * kRows + n * kGroups + group) / kDim];
#pragma unroll
                for (int j = 0; j < kQuads; j++) s[n][j] = atlas::stepped(s[n][j], *reinterpret_cast<const float4 *>(&entries[i][j * 32 + t * 4]), delta, alpha);
            }
        }
        __syncthreads();
    }

    // The outputs of a row, of which o and z are given.
    float out[kValues], z[kValues];
    const auto finish = [&](int i) {
        const int place = i % kPlaces;
        atlas::wait_peers(barrier + 8 * place, i / kPlaces & 1);
#pragma unroll
        for (int n = 0; n < kValues; n++) {
            const int head = (rank * kRows + n * kGroups + group) / kDim;
            const float mean = atlas::warp_sum(l < kSums ? sums[place][head * kSums + l] : 0.0f) / kDim;
            const float gate = a.Gate == ATLAS_GATE_SILU ? atlas::silu(z[n]) : atlas::sigmoid(z[n]);
            if (t == 0)
                a.Out[(size_t(r.first + i) * values + h[n]) * kDim + v[n]] = __float2bfloat16_rn(out[n] * rsqrtf(mean + a.NormEps) * scale[n] * gate);
        }
    };

    const int kept = r.rows - r.drafts;
    for (int i = 0; i < r.rows; i++) {
        const int b = i & 1, place = i % kPlaces;
        if (threadIdx.x == 0) atlas::arrive_expecting(barrier + 8 * place, kSumBytes);
        if (i == 1 && a.MaxDrafts == 0) atlas::wait_peers(barrier, 0);  // a ring of four rows: what row 1 overwrites is read before row 0 is sent
#pragma unroll
        for (int n = 0; n < kValues; n++) gates[n] = next_gates[n];
        if (i + 1 < r.rows) load_gates(row + pitch);
#pragma unroll
        for (int p = 0; p < kTurns; p++) {
            if (channel[p] < 0) continue;
            const int at = (threadIdx.x + p * kThreads) * 2;
            const uint32_t x = pair[p].window[kWidth - 1];
            *reinterpret_cast<float2 *>(&lines[b][at]) = pair[p].take(i + 1 < r.rows ? *reinterpret_cast<const uint32_t *>(row + pitch + channel[p]) : 0);
            if (i >= r.rows - ring && (rank == 0 || at >= 2 * kDim)) *reinterpret_cast<uint32_t *>(window + size_t(turn) * channels + channel[p]) = x;
        }
        __syncthreads();
        if (i == kept) keep();

        float qq = 0, kk = 0, kq = 0, sk[kValues] = {}, sq[kValues] = {};
        const auto key_of = [&](int j) { return *reinterpret_cast<const float4 *>(&lines[b][kDim + j * 32 + t * 4]); };
#pragma unroll
        for (int j = 0; j < kQuads; j++) {
            const float4 q = *reinterpret_cast<const float4 *>(&lines[b][j * 32 + t * 4]), k = key_of(j);
            qq = atlas::dot(q, q, qq), kk = atlas::dot(k, k, kk), kq = atlas::dot(k, q, kq);
#pragma unroll
            for (int n = 0; n < kValues; n++) sk[n] = atlas::dot(s[n][j], k, sk[n]), sq[n] = atlas::dot(s[n][j], q, sq[n]);
        }
        const float unit = rsqrtf(atlas::row_sum(qq) + a.Eps) * rsqrtf(float(kDim)), key_unit = rsqrtf(atlas::row_sum(kk) + a.Eps);
        kq = atlas::row_sum(kq) * unit * key_unit;
        float made[kValues], alpha[kValues], step[kValues];
#pragma unroll
        for (int n = 0; n < kValues; n++) {
            const float beta = atlas::sigmoid(__bfloat162float(gates[n].beta));
            alpha[n] = __expf(decay[n] * atlas::softplus(__bfloat162float(gates[n].alpha) + bias[n]));
            const float delta = beta * (lines[b][2 * kDim + n * kGroups + group] - alpha[n] * (atlas::row_sum(sk[n]) * key_unit));
            const float o = fmaf(alpha[n] * unit, atlas::row_sum(sq[n]), delta * kq);
            made[n] = __bfloat162float(__float2bfloat16_rn(o));
            float square = made[n] * made[n];
            square += __shfl_xor_sync(atlas::kAllLanes, square, 8);
            square += __shfl_xor_sync(atlas::kAllLanes, square, 16);
            const int quad = (rank * kRows + n * kGroups) / 4 + threadIdx.x / 32;
            if (l < kBlocks)
                atlas::store_counted(atlas::address_in(__cvta_generic_to_shared(&sums[place][quad]), l), __float_as_uint(square), atlas::address_in(barrier + 8 * place, l));
            if (i >= kept && t == 0) {
                journal.delta(r.position + i, h[n])[v[n]] = delta;
                if (v[n] == 0) *journal.alpha(r.position + i, h[n]) = alpha[n];
            }
            step[n] = delta * key_unit;
        }
#pragma unroll
        for (int j = 0; j < kQuads; j++) {
            const float4 k = key_of(j);
#pragma unroll
            for (int n = 0; n < kValues; n++) s[n][j] = atlas::stepped(s[n][j], k, step[n], alpha[n]);
        }
        if (i >= kept && rank == 0)
            for (int c = threadIdx.x; c < kDim; c += kThreads) journal.key(r.position + i, key)[c] = lines[b][kDim + c] * key_unit;
        if (i + 1 == r.rows && r.drafts == 0) keep();

        if (i > 0) finish(i - 1);
#pragma unroll
        for (int n = 0; n < kValues; n++) out[n] = made[n], z[n] = __bfloat162float(gates[n].z);
        row += pitch, turn = atlas::turned(turn, 1, ring);
    }
    finish(r.rows - 1);
}
