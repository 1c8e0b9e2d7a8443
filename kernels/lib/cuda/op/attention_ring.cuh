// What attention for few rows is made of, in the order of attention_order.cuh: the tiles of a sequence, warps that bring tiles of keys and
// values into a ring of shared memory, and four warps that multiply them by 8 or 16 query vectors of a key head.
//
// Starts, Lengths and Tables, and keys and values of earlier steps, are read before the kernels before this one are done: they are
// inputs of the step, which are there when it begins, for Embedding waits for all that was before instead of beginning early.
#pragma once
#include "lib/cuda/op/attention_order.cuh"
#include "lib/cuda/ptx/barrier.cuh"

constexpr int kAnyRows = 1 << 30;

namespace atlas::attention {

constexpr int kFewWarps = 4;  // that multiply

// What tiles make in grains of size.
__device__ inline int grains(int tiles, int size) { return (tiles + size - 1) / size; }

// A sequence's work: tiles, from a chunk's first on, for each of passes · KVHeads groups of query vectors.
struct share {
    int row, rows, end, old, seen, last, first, tiles, passes;  // positions from seen to last are seen, those before old are of earlier steps
    __device__ int grains(int size) const { return attention::grains(tiles, size); }
    __device__ int work(const atlas_PagedAttention &a, int size) const { return rows > 0 ? a.KVHeads * passes * grains(size) : 0; }
    template <int kColumns>
    __device__ tile group(const atlas_PagedAttention &a, int seq, int head, int pass) const {
        const int size = a.Heads / a.KVHeads, begin = pass * kColumns;
        return {seq, head, row, end, begin, min(kColumns, rows * size - begin), size};
    }
};
template <int kDim, int kColumns, int kMost>
__device__ share share_of(const atlas_PagedAttention &a, int seq) {
    if (seq >= a.Seqs) return {};
    const int row = load_here(a.Starts + seq), end = load_here(a.Starts + seq + 1), old = load_here(a.Lengths + seq) - (end - row), rows = min(end, a.Rows) - row;
    if (rows <= 0 || rows > kMost) return {};
    const int most = a.MaxBlocks * a.BlockSize - 1, last = min(old + rows - 1, most), seen = first_seen(a, min(old, most));
    const int first = seen / (kChunk * kKeysOf<kDim>) * kChunk, tiles = max(last / kKeysOf<kDim> - first + 1, 1);
    return {row, rows, end, old, seen, last, first, tiles, (rows * (a.Heads / a.KVHeads) + kColumns - 1) / kColumns};
}

// Slots of shared memory that hold tiles of keys and values, and whose turn they are. Barriers: full, free of each slot.
template <int kDim, int kSlots>
struct ring {
    static constexpr int kBytes = 2 * kKeysOf<kDim> * kDim;
    uint32_t memory, barriers;
    int slot = 0, parity = 0;
    __device__ uint32_t at() const { return memory + slot * kBytes; }
    __device__ uint32_t full() const { return barriers + slot * 16; }
    __device__ uint32_t free() const { return barriers + slot * 16 + 8; }
    __device__ void next() {
        if (++slot == kSlots) slot = 0, parity ^= 1;
    }
};

// Of so many bytes of dynamic shared memory.
template <int kDim, int kShared>
constexpr int kRingSlots = kShared / ring<kDim, 1>::kBytes;

// One thread calls it, and fences. kWarps warps bring tiles.
template <int kWarps, int kDim, int kSlots>
__device__ void init_ring(const ring<kDim, kSlots> &r) {
    for (int i = 0; i < kSlots; i++) {
        init_barrier(r.barriers + i * 16, kWarps * 32);
        init_barrier(r.barriers + i * 16 + 8, kFewWarps * 32);
    }
}

// Brings tiles from a place on, keys and then values, until count steps of the walk have ended a grain. The kWarps warps after those
// that multiply call it. Sixteen rows come together, where they stand together in the cache.
template <int kWarps, int kDim, int kSlots, typename Walk>
__device__ void bring(const atlas_PagedAttention &a, ring<kDim, kSlots> r, Walk w, int count) {
    constexpr int kKeys = kKeysOf<kDim>, kChunks = kDim / 8, kRows = 32 / kChunks, kGroups = kKeys / 16;
    const int l = lane(), first = warp() - kFewWarps, c = l % kChunks, mine = l / kChunks;
    const bool together = a.BlockSize % 16 == 0;
    bool waited = false;
    // Where rows of eight go that come together.
    uint32_t at_row[8 / kRows];
#pragma unroll
    for (int i = 0; i < 8 / kRows; i++) at_row[i] = 2 * chunk_at<kDim>(i * kRows + mine, c);
    // The block of group l of sixteen keys of a tile, -1 where nobody sees it, and where in it they begin. It is looked up a tile ahead.
    struct place {
        int block, begin;
    };
    const auto look_up = [&](const Walk &w) {
        const int at = (w.of.first + w.tile) * kKeys + l * 16, n = at / a.BlockSize;
        return place{l < kGroups && at + 16 > w.of.seen && at <= w.of.last ? a.Tables[size_t(w.seq) * a.MaxBlocks + n] : -1, at - n * a.BlockSize};
    };
    place next = look_up(w);
    while (count) {
        const Walk now = w;
        const int rows = next.block >= 0 && next.block < a.Blocks ? (next.block * a.KVHeads + now.head(a)) * a.BlockSize + next.begin : -1;
        const int base = (now.of.first + now.tile) * kKeys, last = now.of.last;
        count -= w.next(a);
        if (count) next = look_up(w);
        const ring<kDim, kSlots> keys = r;
        r.next();
        const ring<kDim, kSlots> values = r;
        r.next();
        // Groups of sixteen that have rows of this step come last. Code is short, for it is read from memory as well, and the same for
        // both, so that it is there.
        const int fresh = waited ? kGroups : min(max(now.of.old - base, 0) / 16, kGroups), stale = min((last - base) / 16 + 1, kGroups);
        for (bool again = false;; again = true) {
#pragma unroll 1
            for (int i = 0; i < 2; i++) {
                const uint32_t into = i ? values.at() : keys.at();
                if (!again) wait_barrier(i ? values.free() : keys.free(), (i ? values.parity : keys.parity) ^ 1);
                const atlas_act *cache = static_cast<const atlas_act *>(i ? a.V : a.K);
                if (together) {
#pragma unroll
                    for (int n = 0; n < kGroups / kWarps; n++) {
                        const int g = n * kWarps + first;
                        if ((g >= fresh && g < stale) != again) continue;
                        const int at = __shfl_sync(kAllLanes, rows, g), left = at < 0 ? 0 : last - base - g * 16 + 1;
                        const atlas_act *p = cache + size_t(max(at, 0) + mine) * kDim + c * 8;
#pragma unroll
                        for (int j = 0; j < 16; j += kRows) copy_async(into + g * 32 * kDim + at_row[j % 8 / kRows] + j / 8 * 16 * kDim, p + j * kDim, j + mine < left);
                    }
                } else {
                    const int head = now.head(a);
#pragma unroll 1
                    for (int j = first * kRows + mine; j < kKeys; j += kWarps * kRows) {
                        if ((j >= fresh * 16 && j < stale * 16) != again) continue;
                        const int at = base + j < now.of.seen ? -1 : cache_row(a, now.seq, head, base + j, last);
                        copy_async(into + 2 * chunk_at<kDim>(j, c), cache + size_t(max(at, 0)) * kDim + c * 8, at >= 0);
                    }
                }
                if (again || fresh >= stale) arrive_after_copies(i ? values.full() : keys.full());
            }
            if (again || fresh >= stale) break;
            wait_for_previous();
            waited = true;
        }
    }
    wait_copies<0>();
}

template <int kDim, int kColumns>
struct few_shared {
    static constexpr int kKeys = kKeysOf<kDim>;
    static constexpr int kPitch = kDim + 8;
    alignas(16) atlas_act p[kColumns][kKeys + 8], queries[kColumns][kPitch];
    float max[4][kColumns], sum[4][8][kColumns];
    int came;  // of the blocks that share a group
};

// What a thread of the four warps holds of kColumns query vectors of a tile or of several: sums, and their columns' weights.
template <int kDim, int kColumns>
struct few_part {
    static constexpr int kSets = kColumns / 8, kValueTiles = kDim >= 64 ? kDim / 64 : 1;
    float values[kSets][kValueTiles][4] = {};
    running state[kSets][2];
    // f(set, number in the set, column, row of values, value) for each value of columns before count.
    template <typename F>
    __device__ void each(int count, F f) const {
        const int g = lane() / 4, q0 = lane() % 4 * 2, w = warp();
        if (w * 16 * kValueTiles >= kDim) return;
#pragma unroll
        for (int n = 0; n < kSets; n++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (const int q = n * 8 + q0 + i; q < count)
#pragma unroll
                    for (int m = 0; m < kValueTiles; m++)
#pragma unroll
                        for (int r = 0; r < 2; r++) f(n, i, q, (w * kValueTiles + m) * 16 + r * 8 + g, values[n][m][r * 2 + i]);
    }
    // f(column, row of values, values of two columns) where the first is before count.
    template <typename F>
    __device__ void each_pair(int count, F f) const {
        const int g = lane() / 4, q0 = lane() % 4 * 2, w = warp();
        if (w * 16 * kValueTiles >= kDim) return;
#pragma unroll
        for (int n = 0; n < kSets; n++)
            if (const int q = n * 8 + q0; q < count)
#pragma unroll
                for (int m = 0; m < kValueTiles; m++)
#pragma unroll
                    for (int r = 0; r < 2; r++) f(q, (w * kValueTiles + m) * 16 + r * 8 + g, float2{values[n][m][r * 2], values[n][m][r * 2 + 1]});
    }
};

// The query vectors of a group, as the second factors of products, and the positions that they see.
template <int kDim, int kColumns>
struct few_queries {
    static constexpr int kSets = kColumns / 8;
    uint32_t x[kSets][kDim / 16][2];
    int lows[kSets][2], highs[kSets][2];
    // Waits for the kernels before, and lets the next one start. The threads of the four warps call it.
    __device__ few_queries(const atlas_PagedAttention &a, const tile &t, few_shared<kDim, kColumns> &s) {
        constexpr int kChunks = kDim / 8, kThreads = kFewWarps * 32, kEach = (kColumns * kChunks + kThreads - 1) / kThreads;
        const int l = lane(), q0 = l % 4 * 2;
        const uint4 *from[kEach];
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            const int e = i * kThreads + threadIdx.x, q = e / kChunks;
            from[i] = q < t.count ? reinterpret_cast<const uint4 *>(t.query(a, q)) + e % kChunks : nullptr;
        }
        const uint32_t at = __cvta_generic_to_shared(&s.queries[l % 8][l / 8 * 8]);
#pragma unroll
        for (int n = 0; n < kSets; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                highs[n][i] = n * 8 + q0 + i < t.count ? t.last(a, n * 8 + q0 + i) : -1;
                lows[n][i] = first_seen(a, highs[n][i]);
            }
        sync_named<kThreads>(3);  // the queries before are read
        wait_for_previous();
        uint4 mine[kEach] = {};
#pragma unroll
        for (int i = 0; i < kEach; i++)
            if (from[i]) mine[i] = __ldcg(from[i]);
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            const int e = i * kThreads + threadIdx.x;
            if (e < kColumns * kChunks) *reinterpret_cast<uint4 *>(&s.queries[e / kChunks][e % kChunks * 8]) = mine[i];
        }
        release_next();  // not sooner: weights of the next kernel would stand in front of the queries
        sync_named<kThreads>(3);
#pragma unroll
        for (int n = 0; n < kSets; n++)
#pragma unroll
            for (int k = 0; k < kDim / 32; k++) {
                uint32_t r[4];
                load_matrices(r, at + n * 16 * s.kPitch + k * 64);
                x[n][2 * k][0] = r[0], x[n][2 * k][1] = r[1], x[n][2 * k + 1][0] = r[2], x[n][2 * k + 1][1] = r[3];
            }
    }
};

// One tile of keys and values, the next two of the ring. The threads of the four warps call it.
template <int kDim, int kColumns, int kSlots>
__device__ few_part<kDim, kColumns> attend(const few_queries<kDim, kColumns> &query, few_shared<kDim, kColumns> &s, ring<kDim, kSlots> &r, int base,
                                           float factor) {
    constexpr int kKeys = kKeysOf<kDim>, kSets = kColumns / 8, kRowTiles = kKeys / 64, kValueTiles = few_part<kDim, kColumns>::kValueTiles;
    const int l = lane(), g = l / 4, q0 = l % 4 * 2, w = warp();
    const auto done = [&] {
        __syncwarp();
        arrive(r.free());
        r.next();
    };
    few_part<kDim, kColumns> part;
    float c[kSets][kRowTiles][4] = {};
    wait_barrier(r.full(), r.parity);
#pragma unroll
    for (int k = 0; k < kDim / 16; k++)
#pragma unroll
        for (int m = 0; m < kRowTiles; m++) {
            uint32_t x[4];
            load_matrices(x, r.at() + 2 * chunk_at<kDim>(w * 16 * kRowTiles + m * 16 + l % 16, k * 2 + l / 16));
#pragma unroll
            for (int n = 0; n < kSets; n++) mma(c[n][m], x[0], x[1], x[2], x[3], query.x[n][k][0], query.x[n][k][1]);
        }
    done();
#pragma unroll
    for (int n = 0; n < kSets; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float max = -INFINITY;
#pragma unroll
            for (int m = 0; m < kRowTiles; m++)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int p = base + (w * kRowTiles + m) * 16 + r * 8 + g;
                    float &x = c[n][m][r * 2 + i];
                    if (p < query.lows[n][i] || p > query.highs[n][i]) x = -INFINITY;
                    max = fmaxf(max, x);
                }
#pragma unroll
            for (int d = 4; d < 32; d *= 2) max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, d));
            if (g == 0) s.max[w][n * 8 + q0 + i] = max;
        }
    sync_named<kFewWarps * 32>(1);
#pragma unroll
    for (int n = 0; n < kSets; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int q = n * 8 + q0 + i;
            const float max = __fmul_rn(fmaxf(fmaxf(s.max[0][q], s.max[1][q]), fmaxf(s.max[2][q], s.max[3][q])), factor);
            float sum = 0;
#pragma unroll
            for (int m = 0; m < kRowTiles; m++)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const float p = weight(c[n][m][r * 2 + i], factor, max);
                    sum += p;
                    s.p[q][(w * kRowTiles + m) * 16 + r * 8 + g] = __float2bfloat16_rn(p);
                }
            s.sum[w][g][q] = sum;
            part.state[n][i].max = max;
        }
    sync_named<kFewWarps * 32>(2);
    wait_barrier(r.full(), r.parity);
#pragma unroll
    for (int n = 0; n < kSets; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int q = n * 8 + q0 + i;
            float x = (s.sum[0][g][q] + s.sum[1][g][q]) + (s.sum[2][g][q] + s.sum[3][g][q]);
#pragma unroll
            for (int d = 4; d < 32; d *= 2) x += __shfl_xor_sync(kAllLanes, x, d);
            part.state[n][i].sum = x;
        }
    if (kDim >= 64 || w * 16 * kValueTiles < kDim) {
#pragma unroll
        for (int k = 0; k < kKeys / 16; k++)
#pragma unroll
            for (int m = 0; m < kValueTiles; m++) {
                uint32_t x[4];
                load_matrices_transposed(x, r.at() + 2 * chunk_at<kDim>(k * 16 + l / 16 * 8 + l % 8, (w * kValueTiles + m) * 2 + l / 8 % 2));
#pragma unroll
                for (int n = 0; n < kSets; n++) {
                    const uint32_t *p = reinterpret_cast<const uint32_t *>(&s.p[n * 8 + g][k * 16]) + l % 4;
                    mma(part.values[n][m], x[0], x[1], x[2], x[3], p[0], p[4]);
                }
            }
    }
    done();
    return part;
}

// Folds a tile, or a chunk, into those before it.
template <int kDim, int kColumns>
__device__ void fold(few_part<kDim, kColumns> &all, const few_part<kDim, kColumns> &part) {
#pragma unroll
    for (int n = 0; n < kColumns / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const joint j = join(all.state[n][i], part.state[n][i].max, part.state[n][i].sum);
#pragma unroll
            for (int m = 0; m < part.kValueTiles; m++)
#pragma unroll
                for (int r = 0; r < 2; r++) all.values[n][m][r * 2 + i] = j.fold(all.values[n][m][r * 2 + i], part.values[n][m][r * 2 + i]);
        }
}

// Stores what a group's query vectors see.
template <int kDim, int kColumns>
__device__ __forceinline__ void store_group(const atlas_PagedAttention &a, const tile &t, const few_part<kDim, kColumns> &all) {
    all.each(t.count, [&](int n, int i, int q, int d, float x) {
        a.Out[(size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + d] = __float2bfloat16_rn(x * inverse(all.state[n][i].sum));
    });
}

}  // namespace atlas::attention
