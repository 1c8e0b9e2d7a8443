// PagedAttention on a GPU in two shapes that give the same bits; attention_split.cuh says how a split is computed.
//
// attention_splits and attention_merge: few rows; block (key head, lane, sequence) takes every gridDim.y-th split, partial
// results meet in scratch: f32 [Rows,Heads,splits,HeadDim] and then [Rows,Heads,splits,2] for ⌈MaxBlocks·BlockSize/kSplit⌉ splits.
// attention_rows: block (key head, rows) walks all splits of max(1, kCount/group)
// rows; grid.y = Rows does for every group. kCount, 4 or 8, is how many query vectors share a read.
#pragma once
#include "lib/cuda/op/attention_split.cuh"

namespace atlas::attention {

__device__ inline size_t splits(const atlas_PagedAttention &a) { return (size_t(a.MaxBlocks) * a.BlockSize + kSplit - 1) / kSplit; }
__device__ inline float *split_values(const atlas_PagedAttention &a, void *scratch, size_t row, size_t head, size_t split) {
    return static_cast<float *>(scratch) + ((row * a.Heads + head) * splits(a) + split) * a.HeadDim;
}
__device__ inline float *split_sums(const atlas_PagedAttention &a, void *scratch, size_t row, size_t head, size_t split) {
    return split_values(a, scratch, a.Rows, 0, 0) + ((row * a.Heads + head) * splits(a) + split) * 2;
}

__device__ inline float merge(float all, float keep, float part, float add) { return fmaf(all, keep, __fmul_rn(part, add)); }

}  // namespace atlas::attention

template <typename KV, int kCount>
__device__ void attention_splits(const atlas_PagedAttention &a, void *scratch) {
    using namespace atlas::attention;
    __shared__ shared s;
    atlas::wait_for_previous();
    const int seq = blockIdx.z, row = a.Starts[seq], end = min(a.Starts[seq + 1], a.Rows), group = a.Heads / a.KVHeads;
    for (int begin = 0; begin < (end - row) * group; begin += kCount) {
        const tile t = {seq, int(blockIdx.x), row, a.Starts[seq + 1], begin, min(kCount, (end - row) * group - begin), group};
        __syncthreads();
        gather(a, s, t);
        const int first = s.first[0] / kSplit, last = s.last[t.count - 1], lanes = gridDim.y;
        for (int split = first + int(blockIdx.y + lanes - first % lanes) % lanes; last >= 0 && split <= last / kSplit; split += lanes) {
            attend<KV, kCount>(a, s, t, split * kSplit);
            for (int i = threadIdx.x; i < t.count * a.HeadDim; i += kThreads) {
                const int q = i / a.HeadDim, d = i % a.HeadDim;
                const float max = split_max(s, q);
                split_values(a, scratch, t.query_row(q), t.query_head(q), split)[d] = split_value(s, q, d, max);
                if (d == 0) {
                    float *sums = split_sums(a, scratch, t.query_row(q), t.query_head(q), split);
                    sums[0] = max, sums[1] = split_sum(s, q, max);
                }
            }
            __syncthreads();
        }
    }
    atlas::release_next();
}

// Block (head, row) of kMaxDim threads or fewer: a thread per element.
template <int kThreadsOfMerge>
__device__ void attention_merge(const atlas_PagedAttention &a, void *scratch) {
    using namespace atlas::attention;
    constexpr int kAhead = 16;
    const int head = blockIdx.x, row = blockIdx.y;
    atlas::wait_for_previous();
    const int seq = owner(a, row);
    if (seq == a.Seqs) return;
    const int last = last_seen(a, seq, a.Starts[seq + 1], row), first = first_seen(a, last) / kSplit, n = last < 0 ? 0 : last / kSplit + 1;
    const float2 *sums = reinterpret_cast<const float2 *>(split_sums(a, scratch, row, head, 0));
    for (int d = threadIdx.x; d < a.HeadDim; d += kThreadsOfMerge) {
        const float *values = split_values(a, scratch, row, head, 0) + d;
        float max = -INFINITY, sum = 0, value = 0;
        for (int base = first; base < n; base += kAhead) {
            float2 part[kAhead];
            float next[kAhead];
#pragma unroll
            for (int i = 0; i < kAhead; i++) {
                const bool there = base + i < n;
                part[i] = there ? sums[base + i] : float2{-INFINITY, 0};
                next[i] = there ? values[size_t(base + i) * a.HeadDim] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < kAhead; i++) {
                const float both = fmaxf(max, part[i].x), keep = share(max, both), add = share(part[i].x, both);
                sum = merge(sum, keep, part[i].y, add);
                value = merge(value, keep, next[i], add);
                max = both;
            }
        }
        a.Out[(size_t(row) * a.Heads + head) * a.HeadDim + d] = __float2bfloat16_rn(sum > 0 ? value / sum : 0.0f);
    }
    atlas::release_next();
}

namespace atlas::attention {

template <typename KV, int kCount>
__device__ void attend_rows(const atlas_PagedAttention &a, shared &s, const tile &t) {
    constexpr int kValues = kCount * kMaxDim / kThreads;
    float values[kValues] = {};
    __syncthreads();
    gather(a, s, t);
    if (threadIdx.x < kCount) s.merged_max[threadIdx.x] = -INFINITY, s.merged_sum[threadIdx.x] = 0;
    const int first = s.first[0] / kSplit, last = s.last[t.count - 1];
    for (int split = first; last >= 0 && split <= last / kSplit; split++) {
        attend<KV, kCount>(a, s, t, split * kSplit);
        if (threadIdx.x < kCount) {
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

template <typename KV, int kCount>
__device__ void attention_rows(const atlas_PagedAttention &a) {
    using namespace atlas::attention;
    __shared__ shared s;
    const int group = a.Heads / a.KVHeads, rows = max(1, kCount / group);
    atlas::wait_for_previous();
    int row = max(int(blockIdx.y) * rows, a.Starts[0]);
    const int stop = min(min(int(blockIdx.y + 1) * rows, a.Rows), a.Starts[a.Seqs]);
    while (row < stop) {
        const int seq = owner(a, row), end = min(stop, a.Starts[seq + 1]);
        for (int begin = 0; begin < (end - row) * group; begin += kCount)
            attend_rows<KV, kCount>(a, s, {seq, int(blockIdx.x), row, a.Starts[seq + 1], begin, min(kCount, (end - row) * group - begin), group});
        row = end;
    }
}
