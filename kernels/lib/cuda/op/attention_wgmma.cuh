// PagedAttention for many rows on sm_90a, in the order of attention_order.cuh: block (key head, rows) takes max(1, 128/group)
// rows, 128 query vectors at a time. Warpgroup 0 copies tiles of keys and values into kStages stages of swizzled shared
// memory; warpgroups 1 and 2 take 64 query vectors each with wgmma, weights in registers. Rows of sequences of fewer than kLeast rows are left out.
// Grid: KVHeads, ⌈Rows/max(1, 128/group)⌉; block 384; dynamic shared memory (256 + 4·kStages·kKeys)·kDim bytes and 1024 to align.
#pragma once
#include "lib/cuda/op/attention_order.cuh"
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/ptx/wgmma.cuh"

namespace atlas::attention {

constexpr int kWideVectors = 128, kWideThreads = 384;

template <int kDim, int kStages>
struct wide {
    static constexpr int kKeys = kKeysOf<kDim>, kChunks = kDim / 8, kTileBytes = kKeys * kDim * 2, kQueryBytes = 64 * kDim * 2;
    uint32_t queries, keys, values, barriers;  // of the shared window
    __device__ uint32_t keys_full(int s) const { return barriers + s * 32; }
    __device__ uint32_t keys_free(int s) const { return barriers + s * 32 + 8; }
    __device__ uint32_t values_full(int s) const { return barriers + s * 32 + 16; }
    __device__ uint32_t values_free(int s) const { return barriers + s * 32 + 24; }
    // Chunk c of row r of a tile of kRows rows: slabs of 64 columns, each in the 128-byte swizzle.
    template <int kRows>
    __device__ static uint32_t chunk(int r, int c) {
        return c / 8 * kRows * 128 + r * 128 + (c % 8 ^ r % 8) * 16;
    }
};

struct more_t {
    __device__ constexpr operator bool() const { return true; }
};
struct last_t {
    __device__ constexpr operator bool() const { return false; }
};

// Brings tiles from … to-1; tile number n of this block goes to stage n % kStages. Sixteen rows that lie in one block of the
// cache are copied from one address on; else, and where a tile is not full, every row has its own.
template <int kDim, int kStages>
__device__ void bring(const atlas_PagedAttention &a, const wide<kDim, kStages> &m, const tile &t, int from, int to, int end, int n) {
    using W = wide<kDim, kStages>;
    constexpr int kRowsOfWarp = W::kKeys / 4, kRowsOfCopy = 32 / W::kChunks, kGroups = kRowsOfWarp / 16;
    const int l = lane(), c = l % W::kChunks, first = warp() * kRowsOfWarp, mine = l / W::kChunks;
    const bool whole = a.BlockSize % 16 == 0;
    int next[kGroups];
    const auto place = [&](int tile) {
#pragma unroll
        for (int g = 0; g < kGroups; g++) next[g] = cache_row(a, t.seq, t.head, tile * W::kKeys + first + g * 16, end);
    };
    const auto copy = [&](const void *cache, uint32_t into, const int(&rows)[kGroups]) {
#pragma unroll
        for (int g = 0; g < kGroups; g++) {
            const atlas_act *p = static_cast<const atlas_act *>(cache) + size_t(rows[g] + mine) * kDim + c * 8;
#pragma unroll
            for (int i = 0; i < 16 / kRowsOfCopy; i++)
                copy_async(into + W::template chunk<W::kKeys>(first + g * 16 + i * kRowsOfCopy + mine, c), p + i * kRowsOfCopy * kDim, true);
        }
    };
    const auto copy_rows = [&](const void *cache, uint32_t into, int tile) {
#pragma unroll 1
        for (int i = 0; i < kRowsOfWarp / kRowsOfCopy; i++) {
            const int r = first + i * kRowsOfCopy + mine, at = cache_row(a, t.seq, t.head, tile * W::kKeys + r, end);
            copy_async(into + W::template chunk<W::kKeys>(r, c), static_cast<const atlas_act *>(cache) + size_t(max(at, 0)) * kDim + c * 8, at >= 0);
        }
    };
    place(from);
    for (int tile = from; tile < to; tile++, n++) {
        const int s = n % kStages, turn = n / kStages;
        int rows[kGroups];
        bool full = whole && (tile + 1) * W::kKeys - 1 <= end;
#pragma unroll
        for (int g = 0; g < kGroups; g++) rows[g] = next[g], full = full && rows[g] >= 0;
        if (tile + 1 < to) place(tile + 1);
        wait_barrier(m.keys_free(s), (turn & 1) ^ 1);
        if (full)
            copy(a.K, m.keys + s * W::kTileBytes, rows);
        else
            copy_rows(a.K, m.keys + s * W::kTileBytes, tile);
        arrive_copied(m.keys_full(s));
        wait_barrier(m.values_free(s), (turn & 1) ^ 1);
        if (full)
            copy(a.V, m.values + s * W::kTileBytes, rows);
        else
            copy_rows(a.V, m.values + s * W::kTileBytes, tile);
        arrive_copied(m.values_full(s));
    }
}

template <int kDim, int kStages>
__device__ void attend_wide(const atlas_PagedAttention &a, const wide<kDim, kStages> &m, const tile &t, int from, int to, int n) {
    using W = wide<kDim, kStages>;
    constexpr int kKeys = W::kKeys, kParts = kDim > 128 ? 4 : 1, kPart = kDim / kParts / 2;
    const int thread = threadIdx.x % 128, l = lane(), g = l / 4, group = __shfl_sync(kAllLanes, threadIdx.x / 128 - 1, 0), q0 = group * 64;
    const uint32_t queries = m.queries + group * W::kQueryBytes;
    sync_named<128>(1 + group);
    {
        for (int i = thread; i < 64 * W::kChunks; i += 128) {
            const int q = q0 + i / W::kChunks, c = i % W::kChunks;
            copy_async(queries + W::template chunk<64>(q - q0, c), t.query(a, min(q, t.count - 1)) + c * 8, q < t.count);
        }
        commit_copies();
        wait_copies<0>();
        fence_shared();
    }
    int lows[2], highs[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int q = q0 + thread / 32 * 16 + g + i * 8;
        highs[i] = q < t.count ? t.last(a, q) : -1;
        lows[i] = first_seen(a, highs[i]);
    }
    // Positions between which all of the warpgroup's queries see every key, and the last tile that it needs.
    const int least = t.last(a, min(q0, t.count - 1)), most = t.last(a, min(q0 + 63, t.count - 1)), low = first_seen(a, most);
    const int stop = q0 < t.count ? max(most / kKeys, from) : from;
    sync_named<128>(1 + group);
    const float factor = a.Scale * kLog2E;
    running state[2];
    float all[kParts][kPart] = {}, s[kKeys / 2];
    const auto score = [&](int n) {
        const uint32_t keys = m.keys + n % kStages * W::kTileBytes;
        begin_products();
#pragma unroll
        for (int k = 0; k < kDim / 16; k++)
            multiply_rows(s, swizzled(queries + k / 4 * 64 * 128 + k % 4 * 32, 0), swizzled(keys + k / 4 * kKeys * 128 + k % 4 * 32, 0), k > 0);
        commit_products();
    };
    // The warpgroups take turns to issue products, so that one's run beside the weights of the other.
    const auto my_turn = [&] { sync_named<256>(3 + group); };
    const auto next_turn = [&] { arrive_named<256>(4 - group); };
    my_turn();
    wait_barrier(m.keys_full(n % kStages), n / kStages & 1);
    fence_shared();
    score(n);
    next_turn();
    const auto step = [&](int tile, auto more) {
        const int stage = n % kStages, parity = n / kStages & 1, next = n + 1;
        wait_products<0>();
        pin(s);
        if (l == 0) arrive(m.keys_free(stage));
        const int base = tile * kKeys;
        if (base < low || base + kKeys - 1 > least) {
#pragma unroll
            for (int j = 0; j < kKeys / 8; j++)
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const int p = base + j * 8 + l % 4 * 2 + r % 2;
                    if (p < lows[r / 2] || p > highs[r / 2]) s[j * 4 + r] = -INFINITY;
                }
        }
        float top[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float x = -INFINITY;
#pragma unroll
            for (int j = 0; j < kKeys / 8; j++) x = fmaxf(x, fmaxf(s[j * 4 + i * 2], s[j * 4 + i * 2 + 1]));
            x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
            x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
            top[i] = __fmul_rn(x, factor);
        }
        uint32_t p[kKeys / 16][4];
        float sums[2][2][4];
#pragma unroll
        for (int j = 0; j < kKeys / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float x = weight(s[j * 4 + i * 2], factor, top[i]), y = weight(s[j * 4 + i * 2 + 1], factor, top[i]);
                constexpr int kPer = kKeys / 32;
                float(&sx)[4] = sums[i][0], (&sy)[4] = sums[i][1];
                sx[j / kPer] = j % kPer ? sx[j / kPer] + x : x;
                sy[j / kPer] = j % kPer ? sy[j / kPer] + y : y;
                p[j / 2][j % 2 * 2 + i] = narrow(x, y);
            }
        joint by[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float x = ((sums[i][0][0] + sums[i][0][1]) + (sums[i][0][2] + sums[i][0][3])) + ((sums[i][1][0] + sums[i][1][1]) + (sums[i][1][2] + sums[i][1][3]));
            x += __shfl_xor_sync(kAllLanes, x, 1);
            x += __shfl_xor_sync(kAllLanes, x, 2);
            by[i] = join(state[i], top[i], x);
        }
        if (by[0].keep != 1 || by[1].keep != 1) {
#pragma unroll
            for (int h = 0; h < kParts; h++)
#pragma unroll
                for (int d = 0; d < kPart; d++) all[h][d] = __fmul_rn(all[h][d], by[d / 2 % 2].keep);
        }
        wait_barrier(m.values_full(stage), parity);
        fence_shared();
        my_turn();
#pragma unroll
        for (int h = 0; h < kParts; h++) {
            float part[kPart];
            begin_products();
#pragma unroll
            for (int k = 0; k < kKeys / 16; k++)
                multiply_columns(part, p[k], swizzled(m.values + stage * W::kTileBytes + h * (kPart / 32) * kKeys * 128 + k * 2048, kKeys * 128), k > 0);
            commit_products();
            wait_products<0>();
            pin(part);
            if (h == kParts - 1) {
                if (l == 0) arrive(m.values_free(stage));
                if (more) {
                    wait_barrier(m.keys_full(next % kStages), next / kStages & 1);
                    fence_shared();
                    score(next);
                    pin(part);  // joins while the scores run
                }
                next_turn();
            }
#pragma unroll
            for (int d = 0; d < kPart; d++) all[h][d] = fmaf(part[d], by[d / 2 % 2].add, all[h][d]);
        }
        n = next;
    };
    int tile = from;
    for (; tile < stop; tile++) step(tile, more_t{});
    step(tile++, last_t{});
    for (; tile < to; tile++, n++) {
        my_turn();
        wait_barrier(m.keys_full(n % kStages), n / kStages & 1);
        if (l == 0) arrive(m.keys_free(n % kStages));
        wait_barrier(m.values_full(n % kStages), n / kStages & 1);
        if (l == 0) arrive(m.values_free(n % kStages));
        next_turn();
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int q = q0 + thread / 32 * 16 + g + i * 8;
        if (q >= t.count) continue;
        const float scale = inverse(state[i].sum);
        uint32_t *out = reinterpret_cast<uint32_t *>(a.Out + (size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim) + l % 4;
#pragma unroll
        for (int h = 0; h < kParts; h++)
#pragma unroll
            for (int d = 0; d < kPart / 4; d++) out[h * kPart + d * 4] = narrow(all[h][d * 4 + i * 2] * scale, all[h][d * 4 + i * 2 + 1] * scale);
    }
}

// Every group of query vectors of the block's rows, in the same order for all warpgroups: f(vectors, first tile, tile after the last, last key, tiles before).
template <int kDim, int kLeast, typename F>
__device__ void each_group(const atlas_PagedAttention &a, F f) {
    constexpr int kKeys = kKeysOf<kDim>;
    // Late rows see the most keys, so their blocks start first.
    const int group = a.Heads / a.KVHeads, rows = max(1, kWideVectors / group), y = gridDim.y - 1 - blockIdx.y;
    int row = max(y * rows, a.Starts[0]), n = 0;
    const int stop = min(min((y + 1) * rows, a.Rows), a.Starts[a.Seqs]);
    while (row < stop) {
        const int seq = owner(a, row), after = a.Starts[seq + 1], end = min(stop, after);
        if (min(after, a.Rows) - a.Starts[seq] >= kLeast) {
            for (int begin = 0; begin < (end - row) * group; begin += kWideVectors) {
                const tile t = {seq, int(blockIdx.x), row, after, begin, min(kWideVectors, (end - row) * group - begin), group};
                const int last = t.last(a, t.count - 1), from = first_seen(a, t.last(a, 0)) / kKeys, to = max(last / kKeys + 1, from + 1);
                f(t, from, to, last, n);
                n += to - from;
            }
        }
        row = end;
    }
}

}  // namespace atlas::attention

template <int kDim, int kStages, int kLeast>
__device__ void attention_wgmma(const atlas_PagedAttention &a) {
    using namespace atlas::attention;
    using W = wide<kDim, kStages>;
    static_assert(kDim % 64 == 0, "whole slabs");
    extern __shared__ __align__(128) atlas_act memory[];
    __shared__ __align__(32) uint64_t barriers[kStages * 4];
    W m;
    m.queries = (uint32_t(__cvta_generic_to_shared(memory)) + 1023) / 1024 * 1024;
    m.keys = m.queries + 2 * W::kQueryBytes, m.values = m.keys + kStages * W::kTileBytes;
    m.barriers = __cvta_generic_to_shared(barriers);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; s++) {
            atlas::init_barrier(m.keys_full(s), 128), atlas::init_barrier(m.values_full(s), 128);
            atlas::init_barrier(m.keys_free(s), 8), atlas::init_barrier(m.values_free(s), 8);  // a lane of each warp
        }
        atlas::fence_barriers();
    }
    __syncthreads();
    atlas::wait_for_previous();
    atlas::release_next();
    if (threadIdx.x < 128) {
        atlas::give_registers<56>();
        each_group<kDim, kLeast>(a, [&](const tile &t, int from, int to, int last, int n) { bring<kDim, kStages>(a, m, t, from, to, last, n); });
    } else {
        atlas::take_registers<224>();
        if (threadIdx.x >= 256) atlas::arrive_named<256>(3);  // the first turn
        each_group<kDim, kLeast>(a, [&](const tile &t, int from, int to, int, int n) { attend_wide<kDim, kStages>(a, m, t, from, to, n); });
    }
}
