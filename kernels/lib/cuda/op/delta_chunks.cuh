// The delta rule over chunks of 64 rows, which stand at fixed places from a sequence's first row of the step on. delta_prepare makes of each chunk what does
// not depend on the state before it; delta_carry takes the state through the chunks of a sequence. Sequences of few rows, or with drafts, are delta_rule's.
//
// With G the sum of ln α up to a row, k' and q' as in op.DeltaRule, and M[i,j] = β_i·e^(G_i-G_j)·(k'_i·k'_j) below the diagonal:
//     T = (1+M)⁻¹,  U = T·diag(β)·V,  W = T·diag(β·e^G)·K',  D = U - W·Sᵀ,
//     Out_i = e^G_i·S·q'_i + Σ_{j≤i} A[i,j]·D_j with A[i,j] = e^(G_i-G_j)·(q'_i·k'_j),  S ← e^G_last·S + Σ_j e^(G_last-G_j)·D_j⊗k'_j
// Only differences of G with i ≥ j become powers, so that none overflows. Factors are bf16; sums, T and S are f32. Source: Yang et al. 2024,
// https://arxiv.org/abs/2412.06464.
#pragma once
#include "lib/cuda/op/slots.cuh"
#include "lib/cuda/ptx/attention_mma.cuh"
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/ptx/wgmma.cuh"

namespace atlas::chunks {

constexpr int kRows = 64, kDim = 128;
constexpr int kTile = kRows * kDim * 2, kSlab = kTile / 2;  // bytes of 64 rows, and of 64 of their columns: rows of 128 bytes in the 128-byte swizzle

// Scratch memory of a chunk: Q and K of each key head, and of each value head -W, A, U and the factors of its rows.
constexpr int kKeyBytes = 2 * kTile, kFactorBytes = 576, kValueBytes = 2 * kTile + kSlab + kFactorBytes;
constexpr int kMinusW = 0, kA = kTile, kU = kA + kSlab, kFactors = kU + kTile;

// What multiplies a row: of S·q the query's, of S's update the key's; and what multiplies S.
struct factors {
    float query[kRows], key[kRows], state;
};
static_assert(sizeof(factors) <= kFactorBytes);

struct memory {
    uint8_t *base;
    int keys, values;
    __device__ size_t bytes() const { return size_t(keys) * kKeyBytes + size_t(values) * kValueBytes; }
    __device__ uint8_t *key(int chunk, int head) const { return base + chunk * bytes() + size_t(head) * kKeyBytes; }
    __device__ uint8_t *value(int chunk, int head) const { return base + chunk * bytes() + size_t(keys) * kKeyBytes + size_t(head) * kValueBytes; }
};

// Chunk c of row r of a tile.
__device__ inline uint32_t place(int r, int c) { return c / 8 * kSlab + r * 128 + (c % 8 ^ r % 8) * 16; }

template <int kLeast>
__device__ int count(const atlas_DeltaRule &a, int s) {
    const drafted_rows r(a, s);
    return !r.empty() && r.in_chunks(kLeast) ? (r.rows + kRows - 1) / kRows : 0;
}

// Chunks of the sequences before s, or of all. The whole warp calls it.
template <int kLeast>
__device__ int before(const atlas_DeltaRule &a, int s) {
    int sum = 0;
    for (int i = lane(); i < s; i += 32) sum += count<kLeast>(a, i);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(kAllLanes, sum, d);
    return sum;
}

// The sequence of a chunk, and which of its chunks it is; seq is Seqs where there are fewer chunks. The whole warp calls it.
struct owner {
    int seq, number;
};
template <int kLeast>
__device__ owner owner_of(const atlas_DeltaRule &a, int chunk) {
    for (int base = 0; base < a.Seqs; base += 32) {
        const int n = base + lane() < a.Seqs ? count<kLeast>(a, base + lane()) : 0;
        int sum = n;
        for (int d = 1; d < 32; d *= 2) {
            const int x = __shfl_up_sync(kAllLanes, sum, d);
            if (lane() >= d) sum += x;
        }
        const uint32_t behind = __ballot_sync(kAllLanes, sum > chunk);
        if (behind) {
            const int l = __ffs(behind) - 1;
            return {base + l, chunk - __shfl_sync(kAllLanes, sum - n, l)};
        }
        chunk -= __shfl_sync(kAllLanes, sum, 31);
    }
    return {a.Seqs, 0};
}

}  // namespace atlas::chunks
