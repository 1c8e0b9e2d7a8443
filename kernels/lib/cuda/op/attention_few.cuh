// PagedAttention for few rows per sequence, in the order of attention_order.cuh: attention_few and then attention_merge.
//
// attention_few<kDim, kColumns, kMost, kPerSM, kCount>: kPerSM·kCount blocks of 128 threads share all tiles of all sequences evenly, whatever their lengths. A
// block folds the tiles from a sequence's first on, and leaves every other tile in scratch for the merge. kColumns query
// vectors (8 or 16) of a key head share a read; more take turns. Dynamic shared memory: 4·kKeys·kDim bytes. Sequences of more than kMost rows are left out.
// attention_merge: block (⌈kDim/32⌉·Heads, slots) of 128 threads folds what is left. Scratch: f32 [slots,Heads,tiles,kDim+2] for
// ⌈MaxBlocks·BlockSize/kKeys⌉ tiles; slots are Rows, or with kMost 1 Seqs.
#pragma once
#include "lib/cuda/op/attention_order.cuh"

constexpr int kAnyRows = 1 << 30;

namespace atlas::attention {

// A sequence's work: tiles for each of passes · KVHeads groups of query vectors.
struct share {
    int row, rows, first, tiles, passes;
    __device__ int work(const atlas_PagedAttention &a) const { return rows > 0 ? a.KVHeads * passes * tiles : 0; }
};
template <int kDim, int kColumns, int kMost>
__device__ share share_of(const atlas_PagedAttention &a, int seq) {
    if (seq >= a.Seqs) return {};
    const int row = a.Starts[seq], end = a.Starts[seq + 1], rows = min(end, a.Rows) - row;
    if (rows <= 0 || rows > kMost) return {};
    const int last = last_seen(a, seq, end, row + rows - 1), first = first_seen(a, last_seen(a, seq, end, row)) / kKeysOf<kDim>;
    return {row, rows, first, max(last / kKeysOf<kDim> - first + 1, 1), (rows * (a.Heads / a.KVHeads) + kColumns - 1) / kColumns};
}

__device__ inline int warp_total(int x) {
    for (int d = 16; d; d /= 2) x += __shfl_xor_sync(kAllLanes, x, d);
    return x;
}
__device__ inline int lanes_before(int x) {
    int sum = x;
    for (int d = 1; d < 32; d *= 2) {
        const int y = __shfl_up_sync(kAllLanes, sum, d);
        if (lane() >= d) sum += y;
    }
    return sum - x;
}

// How blocks share tiles: block b takes those from begin(b) up to begin(b + 1).
struct shares {
    int each, more;  // the first more blocks take one more than each
    __device__ shares(int blocks, int total) : each(total / max(blocks, 1)), more(total - each * blocks) {}
    __device__ int begin(int b) const { return b * each + min(b, more); }
    __device__ int taker(int tile) const {
        const int big = more * (each + 1);
        return tile < big ? tile / (each + 1) : more + (tile - big) / each;
    }
};

__device__ inline size_t tiles_of(const atlas_PagedAttention &a, int keys) { return (size_t(a.MaxBlocks) * a.BlockSize + keys - 1) / keys; }

template <int kDim>
struct parts {
    float *values;
    float2 *sums;
    size_t tiles;
    __device__ parts(const atlas_PagedAttention &a, void *scratch, int slots)
        : values(static_cast<float *>(scratch)), tiles(tiles_of(a, kKeysOf<kDim>)) {
        sums = reinterpret_cast<float2 *>(values + size_t(slots) * a.Heads * tiles * kDim);
    }
};

template <int kDim, int kColumns>
struct few_shared {
    static constexpr int kKeys = kKeysOf<kDim>;
    alignas(16) atlas_act p[kColumns][kKeys + 8];
    float max[4][kColumns], sum[4][8][kColumns];
    int at[2][kKeys];
};

// Tiles from … to-1 of one group of query vectors, of which first is the sequence's first.
template <int kDim, int kColumns, int kMost>
__device__ void attend_few(const atlas_PagedAttention &a, few_shared<kDim, kColumns> &s, atlas_act *memory, const parts<kDim> &left, const tile &t, int first,
                           int from, int to, bool all_tiles) {
    constexpr int kKeys = kKeysOf<kDim>, kThreads = 128, kChunks = kDim / 8, kSets = kColumns / 8, kRowTiles = kKeys / 64, kValueTiles = kDim >= 64 ? kDim / 64 : 1;
    const int l = lane(), g = l / 4, q0 = l % 4 * 2, w = warp();
    atlas_act *keys = memory, *values = memory + kKeys * kDim;
    const uint32_t key_tile = __cvta_generic_to_shared(keys), value_tile = __cvta_generic_to_shared(values);
    const int end = t.last(a, t.count - 1);
    const auto place = [&](int tile) { return threadIdx.x < kKeys && tile < to ? cache_row(a, t.seq, t.head, tile * kKeys + threadIdx.x, end) : -1; };
    const auto copy = [&](const void *cache, uint32_t into, int tile) {
#pragma unroll
        for (int i = 0; i < kKeys * kChunks / kThreads; i++) {
            const int r = (i * kThreads + threadIdx.x) / kChunks, c = threadIdx.x % kChunks, at = s.at[tile & 1][r];
            copy_async(into + 2 * chunk_at<kDim>(r, c), static_cast<const atlas_act *>(cache) + size_t(max(at, 0)) * kDim + c * 8, at >= 0);
        }
    };
    __syncthreads();
    if (threadIdx.x < kKeys) s.at[from & 1][threadIdx.x] = place(from);
    __syncthreads();
    copy(a.K, key_tile, from);
    commit_copies();
    copy(a.V, value_tile, from);
    commit_copies();
    uint32_t query[kSets][kDim / 16][2];
    int lows[kSets][2], highs[kSets][2];
#pragma unroll
    for (int n = 0; n < kSets; n++) {
        const int q = n * 8 + g;
        const uint32_t *p = reinterpret_cast<const uint32_t *>(t.query(a, min(q, t.count - 1)));
#pragma unroll
        for (int k = 0; k < kDim / 16; k++)
#pragma unroll
            for (int i = 0; i < 2; i++) query[n][k][i] = q < t.count ? p[k * 8 + i * 4 + l % 4] : 0;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            highs[n][i] = n * 8 + q0 + i < t.count ? t.last(a, n * 8 + q0 + i) : -1;
            lows[n][i] = first_seen(a, highs[n][i]);
        }
    }
    const float factor = a.Scale * kLog2E;
    running state[kSets][2];
    float all[kSets][kValueTiles][4] = {};
    const bool prefix = from == first;
    const auto store = [&](int tile, const float(&v)[kSets][kValueTiles][4], const float(&max)[kSets][2], const float(&sum)[kSets][2]) {
#pragma unroll
        for (int n = 0; n < kSets; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int q = n * 8 + q0 + i;
                if (q >= t.count) continue;
                const size_t at = (size_t(kMost == 1 ? t.seq : t.query_row(q)) * a.Heads + t.query_head(q)) * left.tiles + tile;
                if (w == 0 && g == 0) left.sums[at] = {max[n][i], sum[n][i]};
                if (w * 16 * kValueTiles < kDim) {
#pragma unroll
                    for (int m = 0; m < kValueTiles; m++)
#pragma unroll
                        for (int r = 0; r < 2; r++) left.values[at * kDim + (w * kValueTiles + m) * 16 + r * 8 + g] = v[n][m][r * 2 + i];
                }
            }
    };
    for (int tile = from; tile < to; tile++) {
        const int next = place(tile + 1);
        wait_copies<1>();
        __syncthreads();
        float c[kSets][kRowTiles][4] = {};
#pragma unroll
        for (int k = 0; k < kDim / 16; k++)
#pragma unroll
            for (int m = 0; m < kRowTiles; m++) {
                uint32_t x[4];
                load_matrices(x, key_tile + 2 * chunk_at<kDim>(w * 16 * kRowTiles + m * 16 + l % 16, k * 2 + l / 16));
#pragma unroll
                for (int n = 0; n < kSets; n++) mma(c[n][m], x[0], x[1], x[2], x[3], query[n][k][0], query[n][k][1]);
            }
        float max[kSets][2], sum[kSets][2];
#pragma unroll
        for (int n = 0; n < kSets; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                max[n][i] = -INFINITY;
#pragma unroll
                for (int m = 0; m < kRowTiles; m++)
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        const int p = tile * kKeys + (w * kRowTiles + m) * 16 + r * 8 + g;
                        float &x = c[n][m][r * 2 + i];
                        if (p < lows[n][i] || p > highs[n][i]) x = -INFINITY;
                        max[n][i] = fmaxf(max[n][i], x);
                    }
#pragma unroll
                for (int d = 4; d < 32; d *= 2) max[n][i] = fmaxf(max[n][i], __shfl_xor_sync(kAllLanes, max[n][i], d));
                if (g == 0) s.max[w][n * 8 + q0 + i] = max[n][i];
            }
        if (threadIdx.x < kKeys) s.at[(tile + 1) & 1][threadIdx.x] = next;
        __syncthreads();
        if (tile + 1 < to) copy(a.K, key_tile, tile + 1);
        commit_copies();
#pragma unroll
        for (int n = 0; n < kSets; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int q = n * 8 + q0 + i;
                max[n][i] = __fmul_rn(fmaxf(fmaxf(s.max[0][q], s.max[1][q]), fmaxf(s.max[2][q], s.max[3][q])), factor);
                float part = 0;
#pragma unroll
                for (int m = 0; m < kRowTiles; m++)
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        const float p = weight(c[n][m][r * 2 + i], factor, max[n][i]);
                        part += p;
                        s.p[q][(w * kRowTiles + m) * 16 + r * 8 + g] = __float2bfloat16_rn(p);
                    }
                s.sum[w][g][q] = part;
            }
        wait_copies<1>();
        __syncthreads();
        float part[kSets][kValueTiles][4] = {};
        if (w * 16 * kValueTiles < kDim) {
#pragma unroll
            for (int k = 0; k < kKeys / 16; k++)
#pragma unroll
                for (int m = 0; m < kValueTiles; m++) {
                    uint32_t x[4];
                    load_matrices_transposed(x, value_tile + 2 * chunk_at<kDim>(k * 16 + l / 16 * 8 + l % 8, (w * kValueTiles + m) * 2 + l / 8 % 2));
#pragma unroll
                    for (int n = 0; n < kSets; n++) {
                        const uint32_t *p = reinterpret_cast<const uint32_t *>(&s.p[n * 8 + g][k * 16]) + l % 4;
                        mma(part[n][m], x[0], x[1], x[2], x[3], p[0], p[4]);
                    }
                }
        }
#pragma unroll
        for (int n = 0; n < kSets; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int q = n * 8 + q0 + i;
                float x = (s.sum[0][g][q] + s.sum[1][g][q]) + (s.sum[2][g][q] + s.sum[3][g][q]);
#pragma unroll
                for (int d = 4; d < 32; d *= 2) x += __shfl_xor_sync(kAllLanes, x, d);
                sum[n][i] = x;
            }
        if (prefix) {
#pragma unroll
            for (int n = 0; n < kSets; n++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const joint j = join(state[n][i], max[n][i], sum[n][i]);
#pragma unroll
                    for (int m = 0; m < kValueTiles; m++)
#pragma unroll
                        for (int r = 0; r < 2; r++) all[n][m][r * 2 + i] = j.fold(all[n][m][r * 2 + i], part[n][m][r * 2 + i]);
                }
        } else {
            store(tile, part, max, sum);
        }
        __syncthreads();
        if (tile + 1 < to) copy(a.V, value_tile, tile + 1);
        commit_copies();
    }
    wait_copies<0>();
    if (!prefix) return;
    if (!all_tiles) {
        float max[kSets][2], sum[kSets][2];
#pragma unroll
        for (int n = 0; n < kSets; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) max[n][i] = state[n][i].max, sum[n][i] = state[n][i].sum;
        store(first, all, max, sum);
        return;
    }
#pragma unroll
    for (int n = 0; n < kSets; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int q = n * 8 + q0 + i;
            if (q >= t.count || w * 16 * kValueTiles >= kDim) continue;
            const float scale = inverse(state[n][i].sum);
            atlas_act *out = a.Out + (size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + w * kValueTiles * 16 + g;
#pragma unroll
            for (int m = 0; m < kValueTiles; m++)
#pragma unroll
                for (int r = 0; r < 2; r++) out[m * 16 + r * 8] = __float2bfloat16_rn(all[n][m][r * 2 + i] * scale);
        }
}

}  // namespace atlas::attention

template <int kDim, int kColumns, int kMost, int kPerSM, int kCount>
__device__ void attention_few(const atlas_PagedAttention &a, void *scratch) {
    using namespace atlas::attention;
    constexpr int kBlocks = kPerSM * kCount;
    extern __shared__ __align__(128) atlas_act memory[];
    __shared__ few_shared<kDim, kColumns> s;
    const int group = a.Heads / a.KVHeads, l = atlas::lane();
    atlas::wait_for_previous();
    atlas::release_next();
    share mine = share_of<kDim, kColumns, kMost>(a, l);
    int own = mine.work(a), all = warp_total(own), later = 0;
    for (int i = 32; i < a.Seqs; i += 32) later += share_of<kDim, kColumns, kMost>(a, i + l).work(a);
    const int total = a.Seqs > 32 ? all + warp_total(later) : all;
    const int blocks = min(kBlocks, total), block = blockIdx.x;
    if (block >= blocks) return;
    const parts<kDim> left(a, scratch, kMost == 1 ? a.Seqs : a.Rows);
    const shares by(blocks, total);
    int at = by.begin(block), base = 0, before = 0;
    const int stop = by.begin(block + 1);
    int lanes = lanes_before(own);
    while (at < stop) {
        while (at >= before + all) {
            before += all, base += 32;
            mine = share_of<kDim, kColumns, kMost>(a, base + l);
            own = mine.work(a), lanes = lanes_before(own), all = warp_total(own);
        }
        const int off = at - before - lanes, holder = __ffs(__ballot_sync(atlas::kAllLanes, off >= 0 && off < own)) - 1;
        const auto take = [&](int x) { return __shfl_sync(atlas::kAllLanes, x, holder); };
        const int offset = take(off), row = take(mine.row), rows = take(mine.rows), first = take(mine.first), tiles = take(mine.tiles), passes = take(mine.passes);
        const int unit = offset < tiles ? 0 : offset / tiles, from = offset - unit * tiles, count = min(tiles - from, stop - at), head = passes == 1 ? unit : unit / passes, begin = (unit - head * passes) * kColumns, seq = base + holder;
        attend_few<kDim, kColumns, kMost>(a, s, memory, left, {seq, head, row, a.Starts[seq + 1], begin, min(kColumns, rows * group - begin), group}, first,
                                   first + from, first + from + count, count == tiles);
        at += count;
    }
}

template <int kDim, int kColumns, int kMost, int kPerSM, int kCount>
__device__ void attention_merge(const atlas_PagedAttention &a, void *scratch) {
    using namespace atlas::attention;
    constexpr int kBlocks = kPerSM * kCount, kThreads = 128, kSlices = kDim / 32;
    __shared__ __align__(16) float values[kThreads][32];
    __shared__ float4 joints[kThreads];
    __shared__ float maxima[4];
    const int group = a.Heads / a.KVHeads, l = atlas::lane(), w = atlas::warp(), head = blockIdx.x / kSlices, slice = blockIdx.x % kSlices, slot = blockIdx.y;
    atlas::wait_for_previous();
    atlas::release_next();
    int total = 0, unit = -1, row = 0, tiles = 0, first = 0;
    for (int base = 0; base < a.Seqs; base += 32) {
        const share mine = share_of<kDim, kColumns, kMost>(a, base + l);
        const int own = mine.work(a), before = lanes_before(own);
        const bool holds = mine.rows > 0 && (kMost == 1 ? base + l == slot : slot >= mine.row && slot < mine.row + mine.rows);
        const unsigned who = __ballot_sync(atlas::kAllLanes, holds);
        if (who) {
            const int holder = __ffs(who) - 1;
            const auto take = [&](int x) { return __shfl_sync(atlas::kAllLanes, x, holder); };
            row = kMost == 1 ? take(mine.row) : slot;
            tiles = take(mine.tiles), first = take(mine.first);
            unit = total + take(before) + (head / group * take(mine.passes) + ((row - take(mine.row)) * group + head % group) / kColumns) * tiles;
        }
        total += warp_total(own);
    }
    if (unit < 0) return;
    const shares by(min(kBlocks, total), total);
    const int folded = min(tiles, by.begin(by.taker(unit) + 1) - unit);
    if (folded == tiles) return;
    const parts<kDim> left(a, scratch, kMost == 1 ? a.Seqs : a.Rows);
    const size_t at = (size_t(slot) * a.Heads + head) * left.tiles;
    const int entries = 1 + tiles - folded;
    const auto tile_of = [&](int e) { return first + (e == 0 ? 0 : folded + e - 1); };
    float value = 0, sum = 0, max = -INFINITY;
    const uint32_t rows = __cvta_generic_to_shared(values);
    for (int base = 0; base < entries; base += kThreads) {
        const int count = min(kThreads, entries - base), e = base + threadIdx.x;
        for (int i = threadIdx.x / 8; i < count; i += kThreads / 8)
            atlas::copy_async(rows + (i * 8 + threadIdx.x % 8) * 16, left.values + (at + tile_of(base + i)) * kDim + slice * 32 + threadIdx.x % 8 * 4, true);
        atlas::commit_copies();
        const float2 part = e < entries ? left.sums[at + tile_of(e)] : float2{-INFINITY, 0};
        float top = part.x;  // over the entries up to this one
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const float y = __shfl_up_sync(atlas::kAllLanes, top, d);
            if (l >= d) top = fmaxf(top, y);
        }
        if (l == 31) maxima[w] = top;
        float before = __shfl_up_sync(atlas::kAllLanes, top, 1);
        before = fmaxf(l ? before : -INFINITY, max);
        __syncthreads();
        for (int i = 0; i < 4; i++) {
            if (i < w) before = fmaxf(before, maxima[i]);
            max = fmaxf(max, maxima[i]);
        }
        running r = {before, 0};
        const joint j = join(r, part.x, part.y);
        joints[threadIdx.x] = {j.keep, j.add, part.y, 0};
        atlas::wait_copies<0>();
        __syncthreads();
        if (w == 0) {
#pragma unroll 8
            for (int i = 0; i < count; i++) {
                const float4 x = joints[i];
                const joint by = {x.x, x.y};
                sum = by.fold(sum, x.z);
                value = by.fold(value, values[i][l]);
            }
        }
        __syncthreads();
    }
    if (w == 0) a.Out[(size_t(row) * a.Heads + head) * kDim + slice * 32 + l] = __float2bfloat16_rn(value * inverse(sum));
}
