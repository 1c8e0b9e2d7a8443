// The order in which attention over a bf16 cache is summed. Kernels that keep it give a query the same bits, whatever is beside
// it and whoever computes which part.
//
// Tiles of kKeys keys stand at fixed positions. In a tile a score is one chain of k16 products from zero, weights are powers
// of two relative to the tile's maximum, their f32 sum is a fixed tree, and rounded to bf16 they meet the values in one chain
// from zero. Tiles of a chunk, kChunk of them at a fixed position, then fold one after the other, from its first, and so do chunks; what a
// query does not see changes none of its bits. So whoever has a whole chunk tells others one sum of it, and long sequences are shared out.
// Limits: Scale > 0, a KVType of bf16, HeadDim 32, 64, 128 or 256, QPitch a multiple of 8.
#pragma once
#include "lib/cuda/atlas.cuh"
#include "lib/cuda/ptx/attention_mma.cuh"
#include "lib/cuda/ptx/mma.cuh"

namespace atlas::attention {

template <int kDim>
constexpr int kKeysOf = kDim > 128 ? 64 : 128;
constexpr int kChunk = 4;

__device__ inline int last_seen(const atlas_PagedAttention &a, int seq, int end, int row) {
    return min(a.Lengths[seq] - (end - row), a.MaxBlocks * a.BlockSize - 1);
}
__device__ inline int first_seen(const atlas_PagedAttention &a, int last) { return a.Window > 0 ? max(last - a.Window + 1, 0) : 0; }

// The sequence that owns a row, Seqs if none does.
__device__ inline int owner(const atlas_PagedAttention &a, int row) {
    if (row < a.Starts[0] || row >= a.Starts[a.Seqs]) return a.Seqs;
    int low = 0, high = a.Seqs;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (a.Starts[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// Query vectors of one sequence and key head, numbered along heads and then rows.
struct tile {
    int seq, head, row, end, begin, count, group;
    __device__ int rows_on(int i) const { return begin + i < group ? 0 : (begin + i) / group; }
    __device__ int query_row(int i) const { return row + rows_on(i); }
    __device__ int query_head(int i) const { return head * group + begin + i - rows_on(i) * group; }
    __device__ int last(const atlas_PagedAttention &a, int i) const { return last_seen(a, seq, end, query_row(i)); }
    __device__ const atlas_act *query(const atlas_PagedAttention &a, int i) const {
        return a.Q + size_t(query_row(i)) * a.QPitch + size_t(query_head(i)) * a.HeadDim;
    }
};

// Where the key and value of a position lie, in heads from the cache's begin; -1 past end and where no block is.
__device__ inline int cache_row(const atlas_PagedAttention &a, int seq, int head, int position, int end) {
    if (position > end) return -1;
    const int n = position / a.BlockSize, block = a.Tables[size_t(seq) * a.MaxBlocks + n];
    return block >= 0 && block < a.Blocks ? (block * a.KVHeads + head) * a.BlockSize + position - n * a.BlockSize : -1;
}

// Chunk c (eight elements) of row r in shared memory, in elements: chunks are swapped so that eight rows meet no bank twice.
template <int kDim>
__device__ int chunk_at(int r, int c) {
    return kDim >= 64 ? r * kDim + (c ^ r % 8) * 8 : r * kDim + (c ^ r / 2 % 4) * 8;
}

// A query's maximum (in powers of two) and sum over the tiles or chunks so far.
struct running {
    float max = -INFINITY, sum = 0;
};

// How the next tile or chunk joins what is there: by factors, of which one is 1.
struct joint {
    float keep, add;
    __device__ float fold(float all, float part) const { return fmaf(part, add, __fmul_rn(all, keep)); }
};
__device__ inline joint join(running &r, float max, float sum) {
    const float less = max == -INFINITY ? 0.0f : exp2_fast(-fabsf(max - r.max));
    const joint j = max <= r.max ? joint{1.0f, less} : joint{less, 1.0f};
    r.sum = j.fold(r.sum, sum);
    r.max = fmaxf(r.max, max);
    return j;
}

// What a score of s weighs where the tile's maximum is max.
__device__ inline float weight(float s, float factor, float max) { return exp2_fast(fmaf(s, factor, max == -INFINITY ? 0.0f : -max)); }
__device__ inline float inverse(float sum) { return sum > 0 ? __frcp_rn(sum) : 0.0f; }

}  // namespace atlas::attention
