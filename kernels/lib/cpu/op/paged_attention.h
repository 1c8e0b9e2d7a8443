// PagedAttention on a CPU, for heads of up to 1024 elements, in two shapes that give the same bits.
//
// attention_splits and attention_merge: few rows; the splits of one sequence and key head are shared out, partial
// results meet in scratch. attention_rows: many rows; a block walks all splits for kRows rows of one key head, widening
// the cache once for all of them. Either reads a key once for its whole query group.
#include "lib/cpu/op/attention_split.h"

// The sequence that owns a row: the last whose start is not above it; Seqs if none does.
INLINE int32_t owner(const atlas_PagedAttention *a, int32_t row) {
    if (row < a->Starts[0] || row >= a->Starts[a->Seqs]) return a->Seqs;
    int32_t low = 0, high = a->Seqs;
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (a->Starts[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

INLINE int32_t padded(int32_t dim) { return (dim + kWidth - 1) / kWidth * kWidth; }
INLINE int32_t last_seen(const atlas_PagedAttention *a, int32_t seq, int32_t row) { return a->Lengths[seq] - (a->Starts[seq + 1] - row); }
INLINE int32_t first_seen(const atlas_PagedAttention *a, int32_t last) { return a->Window > 0 ? at_least(last - a->Window + 1, 0) : 0; }

// Gathers query vectors from number begin of those of rows row … end-1 on, as many as fit.
INLINE void gather(queries *q, const atlas_PagedAttention *a, int32_t seq, int32_t head, int32_t row, int32_t end, int32_t begin) {
    const int32_t group = a->Heads / a->KVHeads, dim = a->HeadDim, wide = padded(dim);
    q->a = a;
    q->table = a->Tables + (size_t)seq * a->MaxBlocks;
    q->head = head;
    q->wide = wide;
    q->count = at_most(at_most(kQueries, kQueryFloats / wide), (end - row) * group - begin);
    for (int32_t i = 0; i < q->count; i++) {
        const int32_t r = row + (begin + i) / group, h = head * group + (begin + i) % group;
        const float *in = a->Q + (size_t)r * a->QPitch + (size_t)h * dim;
        for (int d = 0; d < dim; d += kWidth) put_query(q, i, d, mul8(load_up_to8(in + d, dim - d), set8(a->Scale)));
        q->last[i] = last_seen(a, seq, r);
        q->first[i] = first_seen(a, q->last[i]);
    }
}

// Scratch: for each row, head and split the values, then for each of them a maximum and a sum.
INLINE size_t splits(const atlas_PagedAttention *a) { return ((size_t)a->MaxBlocks * a->BlockSize + kSplit - 1) / kSplit; }
INLINE float *split_values(const atlas_PagedAttention *a, void *scratch, size_t row, size_t head, size_t split) {
    return (float *)scratch + ((row * a->Heads + head) * splits(a) + split) * padded(a->HeadDim);
}
INLINE float *split_sums(const atlas_PagedAttention *a, void *scratch, size_t row, size_t head, size_t split) {
    return split_values(a, scratch, a->Rows, 0, 0) + ((row * a->Heads + head) * splits(a) + split) * 2;
}

// Block (head, lane, sequence): every kLanes-th split.
static inline void attention_splits(const atlas_PagedAttention *a, void *scratch, uint32_t head, uint32_t lane, uint32_t seq) {
    const int32_t group = a->Heads / a->KVHeads, row = a->Starts[seq], end = at_most(a->Starts[seq + 1], a->Rows);
    queries q;
    partials p;
    for (int32_t begin = 0; begin < (end - row) * group; begin += q.count) {
        gather(&q, a, seq, head, row, end, begin);
        const int32_t first = q.first[0] / kSplit, last = q.last[q.count - 1];
        for (int32_t s = first + (int32_t)(lane + kLanes - first % kLanes) % kLanes; s <= last / kSplit && last >= 0; s += kLanes) {
            attend(&q, s * kSplit, (s + kLanes) * kSplit, &p);
            for (int32_t i = 0; i < q.count; i++) {
                if (!sees(&q, i, s * kSplit)) continue;
                const int32_t r = row + (begin + i) / group, h = head * group + (begin + i) % group;
                memcpy(split_values(a, scratch, r, h, s), p.values + i * q.wide, q.wide * sizeof(float));
                float *sums = split_sums(a, scratch, r, h, s);
                sums[0] = p.max[i], sums[1] = p.sum[i];
            }
        }
    }
}

// Block (head, row).
static inline void attention_merge(const atlas_PagedAttention *a, void *scratch, uint32_t head, uint32_t row, uint32_t z) {
    (void)z;
    const int32_t seq = owner(a, row), wide = padded(a->HeadDim);
    if (seq == a->Seqs) return;
    const int32_t last = last_seen(a, seq, row);
    _Alignas(32) float values[kQueryFloats];
    float max = -INFINITY, sum = 0;
    memset(values, 0, wide * sizeof(float));
    for (int32_t s = first_seen(a, last) / kSplit; s <= last / kSplit && last >= 0; s++) {
        const float *sums = split_sums(a, scratch, row, head, s);
        merge(&max, &sum, values, sums[0], sums[1], split_values(a, scratch, row, head, s), wide);
    }
    finish(a->Out + ((size_t)row * a->Heads + head) * a->HeadDim, a->HeadDim, values, sum);
}

// All splits for the query vectors of rows row … end-1 of one sequence.
INLINE void attend_rows(const atlas_PagedAttention *a, int32_t seq, int32_t head, int32_t row, int32_t end) {
    const int32_t group = a->Heads / a->KVHeads;
    queries q;
    partials p, all;
    for (int32_t begin = 0; begin < (end - row) * group; begin += q.count) {
        gather(&q, a, seq, head, row, end, begin);
        for (int32_t i = 0; i < q.count; i++) all.max[i] = -INFINITY, all.sum[i] = 0;
        memset(all.values, 0, (size_t)q.count * q.wide * sizeof(float));
        const int32_t last = q.last[q.count - 1];
        for (int32_t split = q.first[0] / kSplit * kSplit; split <= last; split += kSplit) {
            attend(&q, split, split + kSplit, &p);
            for (int32_t i = 0; i < q.count; i++)
                if (sees(&q, i, split))
                    merge(&all.max[i], &all.sum[i], all.values + i * q.wide, p.max[i], p.sum[i], p.values + i * q.wide, q.wide);
        }
        for (int32_t i = 0; i < q.count; i++) {
            const size_t r = row + (begin + i) / group, h = head * group + (begin + i) % group;
            finish(a->Out + (r * a->Heads + h) * a->HeadDim, a->HeadDim, all.values + i * q.wide, all.sum[i]);
        }
    }
}

// Block (head, tile of kRows rows), which may belong to several sequences.
static inline void attention_rows(const atlas_PagedAttention *a, uint32_t head, uint32_t x, uint32_t z) {
    (void)z;
    int32_t row = at_least(x * kRows, a->Starts[0]);
    const int32_t stop = at_most(at_most((x + 1) * kRows, a->Rows), a->Starts[a->Seqs]);
    while (row < stop) {
        const int32_t seq = owner(a, row), end = at_most(stop, a->Starts[seq + 1]);
        attend_rows(a, seq, head, row, end);
        row = end;
    }
}
