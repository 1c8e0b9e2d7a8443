// PagedAttention for many rows and a bf16 cache: block (key head, rows) takes max(1, 64/group) rows, 64 query vectors at a time,
// against tiles of kKeys keys in shared memory, with mma.m16n8k16 and a running softmax; a warp has 16 query vectors. Tiles
// stand at fixed positions, and one in which a query sees nothing changes none of its bits. Weights are rounded to bf16
// before they meet the values. Queries stay in registers (kKeep) or in shared memory beside the tiles, for wide heads.
// Limits: HeadDim = kDim, QPitch a multiple of 8; the order differs from attention_rows.
#pragma once
#include "lib/cuda/op/attention_split.cuh"

namespace atlas::attention {

constexpr int kTileQueries = 64;

// Where chunk c (eight elements) of row r lies in a tile of rows of kDim elements.
template <int kDim>
__device__ int chunk_at(int r, int c) {
    return r * kDim + (c ^ r % 8) * 8;
}

template <int kDim, int kKeys, bool kKeep>
__device__ void attend_tile(const atlas_PagedAttention &a, atlas_act *queries, atlas_act *keys, atlas_act *values, const tile &t) {
    constexpr int kThreadsOfTile = 128, kChunks = kDim / 8, kSlices = kDim / 16;
    const int l = lane(), g = l / 4, q0 = warp() * 16;
    __syncthreads();
    for (int i = threadIdx.x; i < kTileQueries * kChunks; i += kThreadsOfTile) {
        const int q = i / kChunks, c = i % kChunks;
        uint4 x = {};
        if (q < t.count) x = load8_raw(a.Q + size_t(t.query_row(q)) * a.QPitch + size_t(t.query_head(q)) * kDim + c * 8, 8, true);
        *reinterpret_cast<uint4 *>(queries + chunk_at<kDim>(q, c)) = x;
    }
    __syncthreads();
    const uint32_t query_tile = __cvta_generic_to_shared(queries), key_tile = __cvta_generic_to_shared(keys), value_tile = __cvta_generic_to_shared(values);
    const auto load_query = [&](uint32_t(&r)[4], int k) { load_matrices(r, query_tile + 2 * chunk_at<kDim>(q0 + l % 16, k * 2 + l / 16)); };
    uint32_t kept[kKeep ? kSlices : 1][4];
    if (kKeep) {
#pragma unroll
        for (int k = 0; k < kSlices; k++) load_query(kept[kKeep ? k : 0], k);
    }
    int first[2], last[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int q = q0 + g + i * 8;
        last[i] = q < t.count ? last_seen(a, t.seq, t.end, t.query_row(q)) : -1;
        first[i] = q < t.count ? first_seen(a, last[i]) : 0;
    }
    const int end = last_seen(a, t.seq, t.end, t.query_row(t.count - 1)), begin = first_seen(a, last_seen(a, t.seq, t.end, t.query_row(0)));
    const float factor = a.Scale * kLog2E;
    float out[kDim / 8][4] = {}, max[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    for (int base = begin / kKeys * kKeys; base <= end; base += kKeys) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kKeys * kChunks / kThreadsOfTile; i++) {
            const int at = i * kThreadsOfTile + threadIdx.x, r = at / kChunks, c = at % kChunks, p = base + r;
            const int block = p <= end ? a.Tables[size_t(t.seq) * a.MaxBlocks + p / a.BlockSize] : -1;
            const bool there = block >= 0 && block < a.Blocks;
            const size_t from = there ? ((size_t(block) * a.KVHeads + t.head) * a.BlockSize + p % a.BlockSize) * kDim + c * 8 : 0;
            copy_async(key_tile + 2 * chunk_at<kDim>(r, c), static_cast<const atlas_act *>(a.K) + from, there);
            copy_async(value_tile + 2 * chunk_at<kDim>(r, c), static_cast<const atlas_act *>(a.V) + from, there);
        }
        commit_copies();
        wait_copies<0>();
        __syncthreads();
        float s[kKeys / 8][4] = {};
#pragma unroll
        for (int k = 0; k < kSlices; k++) {
            uint32_t(&q)[4] = kept[kKeep ? k : 0];
            if (!kKeep) load_query(q, k);
#pragma unroll
            for (int n = 0; n < kKeys / 16; n++) {
                uint32_t b[4];
                load_matrices(b, key_tile + 2 * chunk_at<kDim>(n * 16 + l % 8 + l / 16 * 8, k * 2 + l / 8 % 2));
                mma(s[n * 2], q[0], q[1], q[2], q[3], b[0], b[1]);
                mma(s[n * 2 + 1], q[0], q[1], q[2], q[3], b[2], b[3]);
            }
        }
        float top[2] = {max[0], max[1]};
#pragma unroll
        for (int n = 0; n < kKeys / 8; n++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int p = base + n * 8 + l % 4 * 2 + r % 2, i = r / 2;
                s[n][r] = p >= first[i] && p <= last[i] ? s[n][r] * factor : -INFINITY;
                top[i] = fmaxf(top[i], s[n][r]);
            }
        float keep[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            top[i] = fmaxf(top[i], __shfl_xor_sync(kAllLanes, top[i], 1));
            top[i] = fmaxf(top[i], __shfl_xor_sync(kAllLanes, top[i], 2));
            keep[i] = max[i] == -INFINITY ? 0.0f : exp2f(max[i] - top[i]);
            max[i] = top[i];
            sum[i] *= keep[i];
        }
#pragma unroll
        for (int n = 0; n < kKeys / 8; n++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                s[n][r] = s[n][r] == -INFINITY ? 0.0f : exp2f(s[n][r] - max[r / 2]);
                sum[r / 2] += s[n][r];
            }
#pragma unroll
        for (int d = 0; d < kDim / 8; d++)
#pragma unroll
            for (int r = 0; r < 4; r++) out[d][r] *= keep[r / 2];
#pragma unroll
        for (int n = 0; n < kKeys / 16; n++) {
            const uint32_t p[4] = {narrow(s[n * 2][0], s[n * 2][1]), narrow(s[n * 2][2], s[n * 2][3]), narrow(s[n * 2 + 1][0], s[n * 2 + 1][1]),
                                   narrow(s[n * 2 + 1][2], s[n * 2 + 1][3])};
#pragma unroll
            for (int d = 0; d < kSlices; d++) {
                uint32_t b[4];
                load_matrices_transposed(b, value_tile + 2 * chunk_at<kDim>(n * 16 + l % 16, d * 2 + l / 16));
                mma(out[d * 2], p[0], p[1], p[2], p[3], b[0], b[1]);
                mma(out[d * 2 + 1], p[0], p[1], p[2], p[3], b[2], b[3]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        sum[i] += __shfl_xor_sync(kAllLanes, sum[i], 1);
        sum[i] += __shfl_xor_sync(kAllLanes, sum[i], 2);
        const int q = q0 + g + i * 8;
        if (q >= t.count) continue;
        const float inverse = sum[i] > 0 ? 1.0f / sum[i] : 0.0f;
        atlas_act *to = a.Out + (size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + l % 4 * 2;
#pragma unroll
        for (int d = 0; d < kDim / 8; d++) *reinterpret_cast<uint32_t *>(to + d * 8) = narrow(out[d][i * 2] * inverse, out[d][i * 2 + 1] * inverse);
    }
}

}  // namespace atlas::attention

template <int kDim, int kKeys, bool kKeep>
__device__ void attention_tile(const atlas_PagedAttention &a) {
    using namespace atlas::attention;
    static_assert(kDim % 64 == 0 && kKeys % 16 == 0 && (!kKeep || 2 * kKeys >= kTileQueries), "whole chunks, and room for the queries");
    constexpr int kTile = kKeys * kDim, kQuery = kKeep ? 0 : kTileQueries * kDim;  // kept queries pass through the tiles' memory
    static_assert((2 * kTile + kQuery) * sizeof(atlas_act) <= 48 * 1024, "static shared memory");
    __shared__ __align__(128) atlas_act memory[2 * kTile + kQuery];
    const int group = a.Heads / a.KVHeads, rows = max(1, kTileQueries / group);
    atlas::wait_for_previous();
    // Late rows see the most keys, so their blocks start first.
    const int y = gridDim.y - 1 - blockIdx.y;
    int row = max(y * rows, a.Starts[0]);
    const int stop = min(min((y + 1) * rows, a.Rows), a.Starts[a.Seqs]);
    while (row < stop) {
        const int seq = owner(a, row), end = min(stop, a.Starts[seq + 1]);
        for (int begin = 0; begin < (end - row) * group; begin += kTileQueries)
            attend_tile<kDim, kKeys, kKeep>(
                a, memory + (kKeep ? 0 : 2 * kTile), memory, memory + kTile,
                {seq, int(blockIdx.x), row, a.Starts[seq + 1], begin, min(kTileQueries, (end - row) * group - begin), group});
        row = end;
    }
    atlas::release_next();
}
