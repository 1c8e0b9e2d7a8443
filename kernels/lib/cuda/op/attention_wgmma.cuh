// PagedAttention for many rows on sm_90a. Warpgroup 0 copies query vectors, and tiles of keys and values into kStages stages of
// swizzled shared memory; each of kGroups more multiplies 64 query vectors of a key head with wgmma, weights in registers.
//
// Tiles of kKeys keys stand at fixed positions and are taken from the first on, weights relative to the greatest score so far; one
// in which a query sees nothing changes none of its bits. So a query has the same bits whatever is beside it here, but not those
// of attention_order.cuh. Rows of sequences of fewer than kLeast rows are left out.
// Grid: any number of blocks, which share the groups of 64·kGroups query vectors; block 128 + 128·kGroups; dynamic shared memory:
// (128·kGroups + 4·kStages·kKeys)·kDim bytes and 1024 to align.
#pragma once
#include "lib/cuda/op/attention_order.cuh"
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/ptx/wgmma.cuh"

namespace atlas::attention {

template <int kDim_, int kGroups_, int kKeys_, int kStages_>
struct wide {
    static constexpr int kDim = kDim_, kGroups = kGroups_, kKeys = kKeys_, kStages = kStages_;
    static constexpr int kVectors = 64 * kGroups, kChunks = kDim / 8, kTileBytes = kKeys * kDim * 2, kQueryBytes = 64 * kDim * 2;
    static constexpr int kFewRegisters = kGroups == 2 ? kDim > 128 ? 56 : 72 : kDim > 64 ? 56 : 32, kManyRegisters = kGroups == 2 ? kDim > 128 ? 224 : 216 : kDim > 64 ? 152 : 160;
    uint32_t queries, keys, values, barriers;  // of the shared window
    __device__ uint32_t keys_full(int s) const { return barriers + s * 32; }
    __device__ uint32_t keys_free(int s) const { return barriers + s * 32 + 8; }
    __device__ uint32_t values_full(int s) const { return barriers + s * 32 + 16; }
    __device__ uint32_t values_free(int s) const { return barriers + s * 32 + 24; }
    __device__ uint32_t queries_full() const { return barriers + kStages * 32; }
    __device__ uint32_t queries_free() const { return barriers + kStages * 32 + 8; }
    // Chunk c of row r of a tile of kRows rows: slabs of 64 columns, each in the 128-byte swizzle.
    template <int kRows>
    __device__ static uint32_t chunk(int r, int c) {
        return c / 8 * kRows * 128 + r * 128 + (c % 8 ^ r % 8) * 16;
    }
};

// Query vectors of a block and the tiles that they need, from … to-1. They and their first tile have numbers within the block.
// The copying warpgroup finds them and leaves them for the others beside the queries; without vectors, there are no more.
struct errand {
    tile of;
    int length, most;  // keys that the first row sees, and any
    int from, to, last, number, first;
    __device__ int last_of(int i) const { return min(length + of.rows_on(i), most) - 1; }
};

// Calls f for every errand of this block, and returns what to leave after them.
template <typename W, int kLeast, typename F>
__device__ errand each_errand(const atlas_PagedAttention &a, F f) {
    // Late rows see the most keys and come first. Every other round goes the other way, so that the blocks' sums are alike.
    const int group = a.Heads / a.KVHeads, rows = max(1, W::kVectors / group), pieces = (a.Rows + rows - 1) / rows;
    int number = 0, first = 0;
    for (int base = 0, round = 0; base < pieces * a.KVHeads; base += gridDim.x, round++) {
        const int i = base + (round & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x), y = pieces - 1 - i / a.KVHeads;
        if (y < 0) continue;
        int row = max(y * rows, a.Starts[0]);
        const int stop = min(min((y + 1) * rows, a.Rows), a.Starts[a.Seqs]);
        while (row < stop) {
            const int seq = owner(a, row), after = a.Starts[seq + 1], end = min(stop, after);
            if (min(after, a.Rows) - a.Starts[seq] >= kLeast) {
                for (int begin = 0; begin < (end - row) * group; begin += W::kVectors) {
                    const tile t = {seq, i % a.KVHeads, row, after, begin, min(W::kVectors, (end - row) * group - begin), group};
                    errand e = {t, a.Lengths[seq] - (after - row) + 1, a.MaxBlocks * a.BlockSize};
                    e.last = e.last_of(t.count - 1), e.from = first_seen(a, e.last_of(0)) / W::kKeys, e.to = max(e.last / W::kKeys + 1, e.from + 1);
                    e.number = number++, e.first = first;
                    first += e.to - e.from;
                    f(e);
                }
            }
            row = end;
        }
    }
    errand none = {};
    none.of.group = 1, none.number = number;
    return none;
}

// Brings the queries once those of the errand before are used.
template <typename W>
__device__ void bring_queries(const atlas_PagedAttention &a, const W &m, const errand &e, errand *errands) {
    const tile &t = e.of;
    wait_barrier(m.queries_free(), (e.number & 1) ^ 1);
    if (threadIdx.x == 0) {
        errands[e.number & 1] = e;
        arrive(m.queries_full());
    }
    constexpr int kStep = 128 / W::kChunks;
    const int c = threadIdx.x % W::kChunks, first = t.begin + threadIdx.x / W::kChunks, rows = kStep / t.group, heads = kStep % t.group;
    int row = t.row + first / t.group, head = first % t.group;
#pragma unroll 4
    for (int q = threadIdx.x / W::kChunks; q < W::kVectors; q += kStep) {
        const atlas_act *from = a.Q + size_t(row) * a.QPitch + size_t(t.head * t.group + head) * W::kDim + c * 8;
        copy_async(m.queries + q / 64 * W::kQueryBytes + W::template chunk<64>(q % 64, c), from, q < t.count);
        row += rows, head += heads;
        if (head >= t.group) head -= t.group, row++;
    }
    arrive_copied(m.queries_full());
}

// Brings the errand's tiles; the block's tile number n goes to stage n % kStages. Where sixteen rows lie in one block of the cache
// they are copied from one address on, else every row has its own. What lies behind the last key is zeros.
template <typename W>
__device__ void bring(const atlas_PagedAttention &a, const W &m, const errand &e, errand *errands) {
    constexpr int kDim = W::kDim, kStages = W::kStages, kRowsOfWarp = W::kKeys / 4, kRowsOfCopy = 32 / W::kChunks, kParts = kRowsOfWarp / 16;
    const int l = lane(), c = l % W::kChunks, first = warp() * kRowsOfWarp, mine = l / W::kChunks;
    const bool whole = a.BlockSize % 16 == 0;
    const tile &t = e.of;
    int next[kParts], n = e.first;
    const auto place = [&](int tile) {
#pragma unroll
        for (int g = 0; g < kParts; g++) next[g] = cache_row(a, t.seq, t.head, tile * W::kKeys + first + g * 16, e.last);
    };
    const auto copy = [&](const void *cache, uint32_t into, int tile, const int(&rows)[kParts]) {
        const atlas_act *from = static_cast<const atlas_act *>(cache) + c * 8;
        if (!whole) {
#pragma unroll 1
            for (int r = first + mine; r < first + kRowsOfWarp; r += kRowsOfCopy) {
                const int at = cache_row(a, t.seq, t.head, tile * W::kKeys + r, e.last);
                copy_async(into + W::template chunk<W::kKeys>(r, c), from + size_t(max(at, 0)) * kDim, at >= 0);
            }
            return;
        }
#pragma unroll
        for (int g = 0; g < kParts; g++) {
            const int left = rows[g] < 0 ? 0 : e.last + 1 - (tile * W::kKeys + first + g * 16 + mine);
            const atlas_act *p = from + size_t(max(rows[g], 0) + mine) * kDim;
#pragma unroll
            for (int i = 0; i < 16 / kRowsOfCopy; i++)
                copy_async(into + W::template chunk<W::kKeys>(first + g * 16 + i * kRowsOfCopy + mine, c), p + i * kRowsOfCopy * kDim, i * kRowsOfCopy < left);
        }
    };
    place(e.from);
    for (int tile = e.from; tile < e.to; tile++, n++) {
        const int s = n % kStages, turn = n / kStages;
        int rows[kParts];
#pragma unroll
        for (int g = 0; g < kParts; g++) rows[g] = next[g];
        if (tile + 1 < e.to) place(tile + 1);
        wait_barrier(m.keys_free(s), (turn & 1) ^ 1);
        copy(a.K, m.keys + s * W::kTileBytes, tile, rows);
        arrive_copied(m.keys_full(s));
        if (tile == e.from) bring_queries(a, m, e, errands);
        wait_barrier(m.values_free(s), (turn & 1) ^ 1);
        copy(a.V, m.values + s * W::kTileBytes, tile, rows);
        arrive_copied(m.values_full(s));
    }
}

// Of four lanes' four words each, lane n gets the n-th words.
__device__ inline uint4 transpose_lanes(const uint32_t (&x)[4]) {
    const bool odd = lane() & 1, high = lane() & 2;
    const uint32_t a = __shfl_xor_sync(kAllLanes, odd ? x[0] : x[1], 1), b = __shfl_xor_sync(kAllLanes, odd ? x[2] : x[3], 1);
    const uint32_t y[4] = {odd ? a : x[0], odd ? x[1] : a, odd ? b : x[2], odd ? x[3] : b};
    const uint32_t c = __shfl_xor_sync(kAllLanes, high ? y[0] : y[2], 2), d = __shfl_xor_sync(kAllLanes, high ? y[1] : y[3], 2);
    return {high ? c : y[0], high ? d : y[1], high ? y[2] : c, high ? y[3] : d};
}

template <typename W>
__device__ void attend_wide(const atlas_PagedAttention &a, const W &m, const errand &e) {
    constexpr int kDim = W::kDim, kKeys = W::kKeys, kStages = W::kStages;
    const int thread = threadIdx.x % 128, l = lane(), group = __shfl_sync(kAllLanes, threadIdx.x / 128 - 1, 0), q0 = group * 64, mine = q0 + thread / 32 * 16 + l / 4;
    const tile &t = e.of;
    // The last tile that the warpgroup needs, and those of which all of its queries see every key.
    const int least = e.last_of(min(q0, t.count - 1)), most = e.last_of(min(q0 + 63, t.count - 1));
    const int from = __shfl_sync(kAllLanes, e.from, 0), to = __shfl_sync(kAllLanes, e.to, 0);
    const int stop = __shfl_sync(kAllLanes, q0 < t.count ? max(most / kKeys, from) : from, 0);
    const int clear = (first_seen(a, most) + kKeys - 1) / kKeys, cut = (least + 1) / kKeys;
    int n = __shfl_sync(kAllLanes, e.first, 0);
    const float factor = a.Scale * kLog2E;
    // Per row: the greatest score so far in powers of two, this thread's sum of weights, and what a tile makes of the sums before it.
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {}, keep[2];
    float all[kDim / 2] = {}, s[kKeys / 2];
    uint32_t p[kKeys / 16][4];
    // The warpgroups take turns to issue products, so that one's run beside the weights of the others.
    const auto my_turn = [&] { sync_named<256>(1 + group); };
    const auto next_turn = [&] { arrive_named<256>(1 + (group + 1) % W::kGroups); };
    const auto score = [&](int n) {
        const uint32_t queries = m.queries + group * W::kQueryBytes, keys = m.keys + n % kStages * W::kTileBytes;
#pragma unroll
        for (int k = 0; k < kDim / 16; k++)
            multiply_rows(s, swizzled(queries + k / 4 * 64 * 128 + k % 4 * 32, 0), swizzled(keys + k / 4 * kKeys * 128 + k % 4 * 32, 0), k > 0);
        commit_products();
    };
    const auto add_values = [&](int n) {
        const uint32_t values = m.values + n % kStages * W::kTileBytes;
#pragma unroll
        for (int k = 0; k < kKeys / 16; k++) multiply_columns(all, p[k], swizzled(values + k * 2048, kKeys * 128), 1);
        commit_products();
    };
    const auto last_of = [&](int i) { return mine + i * 8 < t.count ? e.last_of(mine + i * 8) : -1; };
    // Scores become weights.
    const auto weigh = [&](int tile) {
        const int at = tile * kKeys + l % 4 * 2;  // of this thread's first score
        if (tile >= cut)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int last = last_of(i) - at;
#pragma unroll
                for (int j = 0; j < kKeys / 4; j++)
                    if (j / 2 * 8 + j % 2 > last) s[j / 2 * 4 + i * 2 + j % 2] = -INFINITY;
            }
        if (tile < clear)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int first = first_seen(a, last_of(i)) - at;
#pragma unroll
                for (int j = 0; j < kKeys / 4; j++)
                    if (j / 2 * 8 + j % 2 < first) s[j / 2 * 4 + i * 2 + j % 2] = -INFINITY;
            }
        float zero[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float x[2] = {s[i * 2], s[i * 2 + 1]};
#pragma unroll
            for (int j = 1; j < kKeys / 8; j++) x[0] = fmaxf(x[0], s[j * 4 + i * 2]), x[1] = fmaxf(x[1], s[j * 4 + i * 2 + 1]);
            float y = fmaxf(x[0], x[1]);
            y = fmaxf(y, __shfl_xor_sync(kAllLanes, y, 1));
            y = fmaxf(y, __shfl_xor_sync(kAllLanes, y, 2));
            y = fmaxf(top[i], __fmul_rn(y, factor));
            zero[i] = y == -INFINITY ? 0.0f : y;
            keep[i] = exp2_fast(top[i] - zero[i]);
            top[i] = y;
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float part[2] = {};
#pragma unroll
            for (int j = 0; j < kKeys / 8; j++) {
                float &u = s[j * 4 + i * 2], &v = s[j * 4 + i * 2 + 1];
                u = exp2_fast(fmaf(u, factor, -zero[i])), v = exp2_fast(fmaf(v, factor, -zero[i]));
                part[0] += u, part[1] += v;
            }
            sum[i] = fmaf(sum[i], keep[i], part[0] + part[1]);
        }
    };
    const auto pack = [&] {
#pragma unroll
        for (int j = 0; j < kKeys / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) p[j / 2][j % 2 * 2 + i] = narrow(s[j * 4 + i * 2], s[j * 4 + i * 2 + 1]);
    };

    wait_barrier(m.keys_full(n % kStages), n / kStages & 1);
    fence_shared();
    my_turn();
    begin_products();
    score(n);
    next_turn();
    wait_products<0>();
    pin(s);
    if (l == 0) arrive(m.keys_free(n % kStages));
    if (l == 0 && from == stop) arrive(m.queries_free());
    weigh(from);
    pack();
    for (int tile = from + 1; tile <= stop; tile++, n++) {
        const int next = n + 1;
        wait_barrier(m.keys_full(next % kStages), next / kStages & 1);
        wait_barrier(m.values_full(n % kStages), n / kStages & 1);
        fence_shared();
        my_turn();
        begin_products();
        score(next);
        add_values(n);
        next_turn();
        wait_products<1>();
        pin(s);
        if (l == 0) arrive(m.keys_free(next % kStages));
        if (l == 0 && tile == stop) arrive(m.queries_free());
        weigh(tile);  // while the values are added
        wait_products<0>();
        pin(all);
#pragma unroll
        for (int k = 0; k < kKeys / 16; k++) pin(p[k]);
        if (l == 0) arrive(m.values_free(n % kStages));
        if (keep[0] != 1 || keep[1] != 1) {
#pragma unroll
            for (int d = 0; d < kDim / 2; d++) all[d] *= keep[d / 2 % 2];
        }
        pack();
    }
    wait_barrier(m.values_full(n % kStages), n / kStages & 1);
    fence_shared();
    begin_products();
    add_values(n);
    wait_products<0>();
    pin(all);
    if (l == 0) arrive(m.values_free(n % kStages));
    n++;
#pragma unroll 1
    for (int tile = stop + 1; tile < to; tile++, n++) {
        wait_barrier(m.keys_full(n % kStages), n / kStages & 1);
        wait_barrier(m.values_full(n % kStages), n / kStages & 1);
        if (l == 0) arrive(m.keys_free(n % kStages)), arrive(m.values_free(n % kStages));
        my_turn();
        next_turn();
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int q = mine + i * 8;
        float total = sum[i];
        total += __shfl_xor_sync(kAllLanes, total, 1);
        total += __shfl_xor_sync(kAllLanes, total, 2);
        const float scale = inverse(total);
        uint4 *out = reinterpret_cast<uint4 *>(a.Out + (size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim) + l % 4;
#pragma unroll
        for (int d = 0; d < kDim / 8; d += 4) {  // four lanes have four chunks, a quarter of each
            uint32_t x[4];
#pragma unroll
            for (int k = 0; k < 4; k++) x[k] = narrow(all[(d + k) * 4 + i * 2] * scale, all[(d + k) * 4 + i * 2 + 1] * scale);
            const uint4 whole = transpose_lanes(x);
            if (q < t.count) out[d] = whole;
        }
    }
}

}  // namespace atlas::attention

template <class P>
__device__ void attention_wgmma(const atlas_PagedAttention &a, void * = nullptr) {
    using namespace atlas::attention;
    using W = wide<P::kDim, P::kGroups, P::kKeys, P::kStages>;
    static_assert(atlas::launched<P, P::kGroups * 128 + 128, P::kGroups * W::kQueryBytes + 2 * P::kStages * W::kTileBytes + 1024>::kFits);
    static_assert(P::kDim % 64 == 0, "whole slabs");
    extern __shared__ __align__(128) atlas_act memory[];
    __shared__ __align__(32) uint64_t barriers[P::kStages * 4 + 2];
    W m;
    m.queries = (uint32_t(__cvta_generic_to_shared(memory)) + 1023) / 1024 * 1024;
    m.keys = m.queries + P::kGroups * W::kQueryBytes, m.values = m.keys + P::kStages * W::kTileBytes;
    m.barriers = __cvta_generic_to_shared(barriers);
    __shared__ errand errands[2];
    if (threadIdx.x == 0) {
        constexpr int kWarps = P::kGroups * 4;  // of each, a lane says what is free
        for (int s = 0; s < P::kStages; s++) {
            atlas::init_barrier(m.keys_full(s), 128), atlas::init_barrier(m.values_full(s), 128);
            atlas::init_barrier(m.keys_free(s), kWarps), atlas::init_barrier(m.values_free(s), kWarps);
        }
        atlas::init_barrier(m.queries_full(), 129), atlas::init_barrier(m.queries_free(), kWarps);
        atlas::fence_barriers();
    }
    __syncthreads();
    atlas::wait_for_previous();
    atlas::release_next();
    if (threadIdx.x < 128) {
        atlas::give_registers<W::kFewRegisters>();
        const errand none = each_errand<W, P::kLeast>(a, [&](const errand &e) { bring(a, m, e, errands); });
        bring_queries(a, m, none, errands);
    } else {
        atlas::take_registers<W::kManyRegisters>();
        if (threadIdx.x >= 128 * P::kGroups) atlas::arrive_named<256>(1);  // the first turn
        for (int number = 0;; number++) {
            atlas::wait_barrier(m.queries_full(), number & 1);
            if (__shfl_sync(atlas::kAllLanes, errands[number & 1].of.count, 0) == 0) break;
            attend_wide(a, m, errands[number & 1]);
        }
    }
}
