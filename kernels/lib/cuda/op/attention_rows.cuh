// PagedAttention for any cache type and head: block (key head, rows) of 128 threads walks all splits of kSplit positions of max(1, 8/group)
// rows; grid.y = Rows does for every group.
//
// Each of kWarps warps takes 32 keys of a split: scores with mma.m16n8k16 (keys are its rows, queries its columns; f32 keys go
// in as two bf16 parts), values with plain f32 sums. Splits stand at fixed positions and meet in their order, so a query's bits
// do not depend on other queries. Limits: HeadDim a multiple of 8, at most kMaxDim.
#pragma once
#include "lib/cuda/op/attention_order.cuh"

namespace atlas::attention {

constexpr int kQueries = 8, kWarps = 4, kThreads = kWarps * 32, kSplit = kWarps * 32, kMaxDim = 256;
static_assert(kThreads >= kQueries, "a thread per query");

struct shared {
    alignas(16) atlas_act query[kQueries][kMaxDim + 8];
    alignas(16) float p[kWarps][32][kQueries];
    float values[kWarps][kQueries][kMaxDim];
    float max[kWarps][kQueries], sum[kWarps][kQueries];
    int64_t at[kWarps][32];  // first element of a key in the cache; -1 where nobody sees it
    int first[kQueries], last[kQueries];
    float merged_max[kQueries], merged_sum[kQueries], keep[kQueries], add[kQueries];
};
static_assert(sizeof(shared) <= 48 * 1024, "static shared memory");

// Brings the queries of t to shared memory, zeros where there are none.
__device__ inline void gather(const atlas_PagedAttention &a, shared &s, const tile &t) {
    const int wide = (a.HeadDim + 31) / 32 * 32;
    for (int i = threadIdx.x; i < kQueries * wide / 8; i += kThreads) {
        const int q = i / (wide / 8), d = i % (wide / 8) * 8;
        uint4 x = {};
        if (q < t.count && d < a.HeadDim)
            x = load8_raw(a.Q + size_t(t.query_row(q)) * a.QPitch + size_t(t.query_head(q)) * a.HeadDim + d, 8, a.QPitch % 8 == 0);
        *reinterpret_cast<uint4 *>(&s.query[q][d]) = x;
    }
    if (threadIdx.x < kQueries) {
        const int q = threadIdx.x;
        s.last[q] = q < t.count ? last_seen(a, t.seq, t.end, t.query_row(q)) : -1;
        s.first[q] = q < t.count ? first_seen(a, s.last[q]) : 0;
    }
    __syncthreads();
}

// Eight keys' elements as bf16 parts whose sum they are (bf16 itself, or f32 to 16 bits).
__device__ inline void load_parts(uint4 (&parts)[1], const __nv_bfloat16 *p) { parts[0] = load_once(p); }
__device__ inline void load_parts(uint4 (&parts)[2], const float *p) {
    const float4 x = *reinterpret_cast<const float4 *>(p), y = *reinterpret_cast<const float4 *>(p + 4);
    const f32x8 all = {{x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w}};
    parts[0] = narrow(all);
    const f32x8 high = widen(parts[0]);
    f32x8 low;
#pragma unroll
    for (int i = 0; i < 8; i++) low.v[i] = all.v[i] - high.v[i];
    parts[1] = narrow(low);
}

// Eight values on their way, and how many such a lane has on its way at a time.
template <typename KV>
struct raw8;
template <>
struct raw8<__nv_bfloat16> {
    static constexpr int kBatch = 8;
    uint4 x;
    __device__ void load(const __nv_bfloat16 *p) { x = load_once(p); }
    __device__ f32x8 get() const { return widen(x); }
};
template <>
struct raw8<float> {
    static constexpr int kBatch = 4;
    uint4 x, y;
    __device__ void load(const float *p) { x = load_once(p), y = load_once(p + 4); }
    __device__ f32x8 get() const {
        return {{__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z), __uint_as_float(x.w), __uint_as_float(y.x),
                 __uint_as_float(y.y), __uint_as_float(y.z), __uint_as_float(y.w)}};
    }
};

// Scores of the warp's 32 keys: c[m][r] as mma lays out keys m·16 … m·16+15.
template <typename KV>
__device__ void score(const atlas_PagedAttention &a, const shared &s, float (&c)[2][4]) {
    constexpr int kParts = sizeof(KV) / 2;
    const int g = lane() / 4, t = lane() % 4, w = warp();
    const KV *keys = static_cast<const KV *>(a.K);
    int64_t at[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) at[i / 2][i % 2] = s.at[w][i * 8 + g];
#pragma unroll 4
    for (int d = t * 8; d < a.HeadDim + t * 8; d += 32) {
        const uint4 x = *reinterpret_cast<const uint4 *>(&s.query[g][d]);
        uint4 k[2][2][kParts];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (at[i / 2][i % 2] >= 0 && d < a.HeadDim) {
                load_parts(k[i / 2][i % 2], keys + at[i / 2][i % 2] + d);
            } else {
#pragma unroll
                for (int p = 0; p < kParts; p++) k[i / 2][i % 2][p] = {};
            }
        }
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int p = 0; p < kParts; p++) {
                mma(c[m], k[m][0][p].x, k[m][1][p].x, k[m][0][p].y, k[m][1][p].y, x.x, x.y);
                mma(c[m], k[m][0][p].z, k[m][1][p].z, k[m][0][p].w, k[m][1][p].w, x.z, x.w);
            }
    }
}

// Leaves each warp's maximum, sum and values of the split at position begin in s.
template <typename KV>
__device__ void attend(const atlas_PagedAttention &a, shared &s, const tile &t, int begin) {
    const int l = lane(), w = warp(), g = l / 4, q0 = l % 4 * 2;
    const int position = begin + w * 32 + l;
    int first = s.first[0], last = s.last[0];
    for (int q = 1; q < t.count; q++) first = min(first, s.first[q]), last = max(last, s.last[q]);
    int64_t at = -1;
    if (position >= first && position <= last) {
        const int block = a.Tables[size_t(t.seq) * a.MaxBlocks + position / a.BlockSize];
        if (block >= 0 && block < a.Blocks) at = ((int64_t(block) * a.KVHeads + t.head) * a.BlockSize + position % a.BlockSize) * a.HeadDim;
    }
    s.at[w][l] = at;
    __syncwarp();
    // A key's values lie in across lanes; the warp reads 32/across keys at a time, the first of them before the scores.
    constexpr int kBatch = raw8<KV>::kBatch;
    int across = 1;
    while (across * 8 < a.HeadDim) across *= 2;
    const int d = l % across * 8;
    const auto load_value = [&](raw8<KV> &to, int i) {
        const int64_t from = i < across && d < a.HeadDim ? s.at[w][l / across + i * (32 / across)] : -1;
        to = {};
        if (from >= 0) to.load(static_cast<const KV *>(a.V) + from + d);
    };
    raw8<KV> raw[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; j++) load_value(raw[j], j);
    float c[2][4] = {};
    score<KV>(a, s, c);
    const float factor = a.Scale * kLog2E;
    float max[2] = {-INFINITY, -INFINITY}, sum[2] = {};
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int p = begin + w * 32 + m * 16 + g + r / 2 * 8, q = q0 + r % 2;
            c[m][r] = p >= s.first[q] && p <= s.last[q] ? c[m][r] * factor : -INFINITY;
            max[r % 2] = fmaxf(max[r % 2], c[m][r]);
        }
#pragma unroll
    for (int i = 0; i < 2; i++)
        for (int d = 4; d < 32; d *= 2) max[i] = fmaxf(max[i], __shfl_xor_sync(kAllLanes, max[i], d));
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const float p = c[m][r] == -INFINITY ? 0.0f : exp2f(c[m][r] - max[r % 2]);
            s.p[w][m * 16 + g + r / 2 * 8][q0 + r % 2] = p;
            sum[r % 2] += p;
        }
#pragma unroll
    for (int i = 0; i < 2; i++)
        for (int d = 4; d < 32; d *= 2) sum[i] += __shfl_xor_sync(kAllLanes, sum[i], d);
    if (g == 0) {
#pragma unroll
        for (int i = 0; i < 2; i++) s.max[w][q0 + i] = max[i], s.sum[w][q0 + i] = sum[i];
    }
    __syncwarp();
    float sums[kQueries][8] = {};
    for (int i = 0; i < across; i += kBatch) {
#pragma unroll
        for (int j = 0; j < kBatch; j++) {
            const f32x8 v = raw[j].get();
            load_value(raw[j], i + kBatch + j);
            const float4 *row = reinterpret_cast<const float4 *>(s.p[w][min(l / across + (i + j) * (32 / across), 31)]);
            float p[kQueries];
#pragma unroll
            for (int q = 0; q < kQueries; q += 4) {
                const float4 x = row[q / 4];
                p[q] = x.x, p[q + 1] = x.y, p[q + 2] = x.z, p[q + 3] = x.w;
            }
#pragma unroll
            for (int q = 0; q < kQueries; q++)
#pragma unroll
                for (int e = 0; e < 8; e++) sums[q][e] = fmaf(p[q], v.v[e], sums[q][e]);
        }
    }
    for (int step = across; step < 32; step *= 2)
#pragma unroll
        for (int q = 0; q < kQueries; q++)
#pragma unroll
            for (int i = 0; i < 8; i++) sums[q][i] += __shfl_xor_sync(kAllLanes, sums[q][i], step);
    if (l < across && d < a.HeadDim) {
#pragma unroll
        for (int q = 0; q < kQueries; q++)
#pragma unroll
            for (int i = 0; i < 8; i += 4) *reinterpret_cast<float4 *>(&s.values[w][q][d + i]) = {sums[q][i], sums[q][i + 1], sums[q][i + 2], sums[q][i + 3]};
    }
    __syncthreads();
}

// How much of two parts with maxima x and y (in powers of two) goes into their union.
__device__ inline float share(float part, float both) { return part == -INFINITY ? 0.0f : exp2f(part - both); }

// The union of the warps' parts for query q: its maximum, sum and value d.
__device__ inline float split_max(const shared &s, int q) {
    float m = s.max[0][q];
    for (int w = 1; w < kWarps; w++) m = fmaxf(m, s.max[w][q]);
    return m;
}
__device__ inline float split_sum(const shared &s, int q, float max) {
    float sum = 0;
    for (int w = 0; w < kWarps; w++) sum = fmaf(s.sum[w][q], share(s.max[w][q], max), sum);
    return sum;
}
__device__ inline float split_value(const shared &s, int q, int d, float max) {
    float value = 0;
    for (int w = 0; w < kWarps; w++) value = fmaf(s.values[w][q][d], share(s.max[w][q], max), value);
    return value;
}

__device__ inline float merge(float all, float keep, float part, float add) { return fmaf(all, keep, __fmul_rn(part, add)); }

template <typename KV>
__device__ void attend_rows(const atlas_PagedAttention &a, shared &s, const tile &t) {
    constexpr int kValues = kQueries * kMaxDim / kThreads;
    float values[kValues] = {};
    __syncthreads();
    gather(a, s, t);
    if (threadIdx.x < kQueries) s.merged_max[threadIdx.x] = -INFINITY, s.merged_sum[threadIdx.x] = 0;
    const int first = s.first[0] / kSplit, last = s.last[t.count - 1];
    for (int split = first; last >= 0 && split <= last / kSplit; split++) {
        attend<KV>(a, s, t, split * kSplit);
        if (threadIdx.x < kQueries) {
            const int q = threadIdx.x;
            const float part = split_max(s, q), max = s.merged_max[q], both = fmaxf(max, part);
            s.keep[q] = share(max, both), s.add[q] = share(part, both);
            s.merged_sum[q] = merge(s.merged_sum[q], s.keep[q], split_sum(s, q, part), s.add[q]);
            s.merged_max[q] = both;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kValues; i++) {
            const int at = i * kThreads + threadIdx.x, q = at / a.HeadDim, d = at % a.HeadDim;
            if (q < t.count) values[i] = merge(values[i], s.keep[q], split_value(s, q, d, split_max(s, q)), s.add[q]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kValues; i++) {
        const int at = i * kThreads + threadIdx.x, q = at / a.HeadDim, d = at % a.HeadDim;
        if (q >= t.count) continue;
        const float sum = s.merged_sum[q];
        a.Out[(size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * a.HeadDim + d] = __float2bfloat16_rn(sum > 0 ? values[i] / sum : 0.0f);
    }
}

}  // namespace atlas::attention

template <class P>
__device__ void attention_rows(const atlas_PagedAttention &a) {
    using namespace atlas::attention;
    using kv_t = std::conditional_t<P::kF32, float, __nv_bfloat16>;
    __shared__ shared s;
    const int group = a.Heads / a.KVHeads, rows = max(1, kQueries / group);
    atlas::release_next();
    atlas::wait_for_previous();
    int row = max(int(blockIdx.y) * rows, a.Starts[0]);
    const int stop = min(min(int(blockIdx.y + 1) * rows, a.Rows), a.Starts[a.Seqs]);
    while (row < stop) {
        const int seq = owner(a, row), end = min(stop, a.Starts[seq + 1]);
        for (int begin = 0; begin < (end - row) * group; begin += kQueries)
            attend_rows<kv_t>(a, s, {seq, int(blockIdx.x), row, a.Starts[seq + 1], begin, min(kQueries, (end - row) * group - begin), group});
        row = end;
    }
}
