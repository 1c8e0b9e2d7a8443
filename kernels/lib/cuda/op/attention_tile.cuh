// PagedAttention for many rows without wgmma, in the order of attention_order.cuh: block (key head, rows) of 128 threads takes
// max(1, 64/group) rows, 64 query vectors at a time, a warp 16 of them, against tiles of keys and values in shared memory.
// Rows of sequences of fewer than kLeast rows are left out.
// Grid: KVHeads, ⌈Rows/max(1, 64/group)⌉; dynamic shared memory (128 + 4·kKeys)·kDim bytes.
#pragma once
#include "lib/cuda/op/attention_order.cuh"

namespace atlas::attention {

constexpr int kTileVectors = 64;

template <int kDim>
__device__ void attend_tile(const atlas_PagedAttention &a, atlas_act *memory, const tile &t) {
    constexpr int kThreads = 128, kKeys = kKeysOf<kDim>, kChunks = kDim / 8, kHalves = kDim > 128 ? 2 : 1, kPart = kDim / kHalves;
    atlas_act *queries = memory, *keys = queries + kTileVectors * kDim, *values = keys + kKeys * kDim;
    const int l = lane(), g = l / 4, q0 = warp() * 16;
    const uint32_t query_tile = __cvta_generic_to_shared(queries), key_tile = __cvta_generic_to_shared(keys), value_tile = __cvta_generic_to_shared(values);
    const int end = t.last(a, t.count - 1), begin = first_seen(a, t.last(a, 0));
    const auto copy = [&](const void *cache, uint32_t into, int base) {
#pragma unroll 2
        for (int i = 0; i < kKeys * kChunks / kThreads; i++) {
            const int r = (i * kThreads + threadIdx.x) / kChunks, c = threadIdx.x % kChunks, at = cache_row(a, t.seq, t.head, base + r, end);
            copy_async(into + 2 * chunk_at<kDim>(r, c), static_cast<const atlas_act *>(cache) + size_t(max(at, 0)) * kDim + c * 8, at >= 0);
        }
        commit_copies();
    };
    __syncthreads();
    for (int i = threadIdx.x; i < kTileVectors * kChunks; i += kThreads) {
        const int q = i / kChunks, c = i % kChunks;
        copy_async(query_tile + 2 * chunk_at<kDim>(q, c), t.query(a, min(q, t.count - 1)) + c * 8, q < t.count);
    }
    int base = begin / kKeys * kKeys;
    copy(a.K, key_tile, base);
    copy(a.V, value_tile, base);
    int lows[2], highs[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int q = q0 + g + i * 8;
        highs[i] = q < t.count ? t.last(a, q) : -1;
        lows[i] = first_seen(a, highs[i]);
    }
    const float factor = a.Scale * kLog2E;
    running state[2], chunks[2];
    float all[kHalves][kPart / 8][4] = {};
    // Sums of the chunks before, where there are several: used once a chunk, and registers are full.
    constexpr int kSpan = kKeys * kChunk;
    const bool several = begin / kSpan < end / kSpan;
    volatile float whole[kDim / 8][4];
    if (several)
#pragma unroll
        for (int i = 0; i < kDim / 2; i++) whole[i / 4][i % 4] = 0;
    do {
        wait_copies<1>();
        __syncthreads();
        float s[kKeys / 8][4] = {};
#pragma unroll 2
        for (int k = 0; k < kDim / 16; k++) {
            uint32_t q[4];
            load_matrices(q, query_tile + 2 * chunk_at<kDim>(q0 + l % 16, k * 2 + l / 16));
#pragma unroll
            for (int n = 0; n < kKeys / 16; n++) {
                uint32_t b[4];
                load_matrices(b, key_tile + 2 * chunk_at<kDim>(n * 16 + l % 8 + l / 16 * 8, k * 2 + l / 8 % 2));
                mma(s[n * 2], q[0], q[1], q[2], q[3], b[0], b[1]);
                mma(s[n * 2 + 1], q[0], q[1], q[2], q[3], b[2], b[3]);
            }
        }
        __syncthreads();
        const int next = base + kKeys;
        if (next <= end)
            copy(a.K, key_tile, next);
        else
            commit_copies();
        float top[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float x = -INFINITY;
#pragma unroll
            for (int n = 0; n < kKeys / 8; n++)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int p = base + n * 8 + l % 4 * 2 + r;
                    if (p < lows[i] || p > highs[i]) s[n][i * 2 + r] = -INFINITY;
                    x = fmaxf(x, s[n][i * 2 + r]);
                }
            x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
            x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
            top[i] = __fmul_rn(x, factor);
        }
        uint32_t p[kKeys / 16][4];
        joint by[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            constexpr int kPer = kKeys / 32;
            float sums[2][4];
#pragma unroll
            for (int n = 0; n < kKeys / 8; n++) {
                const float x = weight(s[n][i * 2], factor, top[i]), y = weight(s[n][i * 2 + 1], factor, top[i]);
                sums[0][n / kPer] = n % kPer ? sums[0][n / kPer] + x : x;
                sums[1][n / kPer] = n % kPer ? sums[1][n / kPer] + y : y;
                p[n / 2][n % 2 * 2 + i] = narrow(x, y);
            }
            float x = ((sums[0][0] + sums[0][1]) + (sums[0][2] + sums[0][3])) + ((sums[1][0] + sums[1][1]) + (sums[1][2] + sums[1][3]));
            x += __shfl_xor_sync(kAllLanes, x, 1);
            x += __shfl_xor_sync(kAllLanes, x, 2);
            by[i] = join(state[i], top[i], x);
        }
        wait_copies<1>();
        __syncthreads();
#pragma unroll
        for (int h = 0; h < kHalves; h++)
#pragma unroll
            for (int d = 0; d < kPart / 16; d++) {
                float part[2][4] = {};
#pragma unroll
                for (int n = 0; n < kKeys / 16; n++) {
                    uint32_t b[4];
                    load_matrices_transposed(b, value_tile + 2 * chunk_at<kDim>(n * 16 + l % 16, (h * kPart / 16 + d) * 2 + l / 16));
                    mma(part[0], p[n][0], p[n][1], p[n][2], p[n][3], b[0], b[1]);
                    mma(part[1], p[n][0], p[n][1], p[n][2], p[n][3], b[2], b[3]);
                }
#pragma unroll
                for (int j = 0; j < 2; j++)
#pragma unroll
                    for (int r = 0; r < 4; r++) all[h][d * 2 + j][r] = by[r / 2].fold(all[h][d * 2 + j][r], part[j][r]);
            }
        __syncthreads();
        if (next <= end)
            copy(a.V, value_tile, next);
        else
            commit_copies();
        base = next;
        if (several && (base % kSpan == 0 || base > end)) {
            joint to[2];
#pragma unroll
            for (int i = 0; i < 2; i++) to[i] = join(chunks[i], state[i].max, state[i].sum), state[i] = {};
#pragma unroll
            for (int d = 0; d < kDim / 8; d++)
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    float &x = all[d / (kPart / 8)][d % (kPart / 8)][r];
                    const float sum = to[r / 2].fold(whole[d][r], x);
                    if (base > end)
                        x = sum;
                    else
                        whole[d][r] = sum, x = 0;
                }
        }
    } while (base <= end);
    wait_copies<0>();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int q = q0 + g + i * 8;
        if (q >= t.count) continue;
        const float scale = inverse(several ? chunks[i].sum : state[i].sum);
        uint32_t *out = reinterpret_cast<uint32_t *>(a.Out + (size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim) + l % 4;
#pragma unroll
        for (int d = 0; d < kDim / 8; d++) {
            const float(&x)[4] = all[d / (kPart / 8)][d % (kPart / 8)];
            out[d * 4] = narrow(x[i * 2] * scale, x[i * 2 + 1] * scale);
        }
    }
}

}  // namespace atlas::attention

template <class P>
__device__ void attention_tile(const atlas_PagedAttention &a, void * = nullptr) {
    using namespace atlas::attention;
    static_assert(atlas::launched<P, kTileVectors * 2, (2 * kTileVectors + 4 * kKeysOf<P::kDim>) * P::kDim>::kFits);
    extern __shared__ __align__(128) atlas_act memory[];
    const int group = a.Heads / a.KVHeads, rows = max(1, kTileVectors / group);
    atlas::wait_for_previous();
    atlas::release_next();
    // Late rows see the most keys, so their blocks start first.
    const int y = gridDim.y - 1 - blockIdx.y;
    int row = max(y * rows, a.Starts[0]);
    const int stop = min(min((y + 1) * rows, a.Rows), a.Starts[a.Seqs]);
    while (row < stop) {
        const int seq = owner(a, row), after = a.Starts[seq + 1], end = min(stop, after);
        if (min(after, a.Rows) - a.Starts[seq] >= P::kLeast)
            for (int begin = 0; begin < (end - row) * group; begin += kTileVectors)
                attend_tile<P::kDim>(a, memory, {seq, int(blockIdx.x), row, after, begin, min(kTileVectors, (end - row) * group - begin), group});
        row = end;
    }
}
