// The states of delta_chunks.cuh, on sm_90a: a warpgroup has 64 rows of a value head's state in registers and takes them through the chunks of a sequence,
// which a fifth warp brings by bulk copies. State and D are first factors of products, from registers, so that warps exchange nothing.
//
// Grid: 2·ValueHeads, Seqs; block 160.
#pragma once
#include "lib/cuda/op/delta_chunks.cuh"
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/mma.cuh"

namespace atlas::chunks {

// A stage of shared memory.
constexpr int kCarryW = 0, kCarryQ = kTile, kCarryK = 2 * kTile, kCarryA = 3 * kTile, kCarryU = kCarryA + kSlab, kCarryFactors = kCarryU + kSlab;
constexpr int kStageUsed = kCarryFactors + kFactorBytes, kStageBytes = (kStageUsed + 1023) / 1024 * 1024;

// Sums of a warpgroup as first factors: columns 16s … 16s+15 of the sums.
template <int kSums>
__device__ __forceinline__ void factor_of_sums(uint32_t (&x)[4], const float (&c)[kSums], int s) {
#pragma unroll
    for (int e = 0; e < 4; e++) x[e] = narrow(c[s * 8 + e * 2], c[s * 8 + e * 2 + 1]);
}

}  // namespace atlas::chunks

template <class P>
__device__ void delta_carry(const atlas_DeltaRule &a, void *scratch) {
    using namespace atlas::chunks;
    static_assert(atlas::launched<P, 160, P::kStages * kStageBytes + 1024>::kFits);
    extern __shared__ __align__(128) uint8_t dynamic[];
    __shared__ __align__(8) uint64_t barriers[2 * P::kStages];
    const uint32_t stages = (uint32_t(__cvta_generic_to_shared(dynamic)) + 1023) / 1024 * 1024, barrier = __cvta_generic_to_shared(barriers);
    const auto full = [&](int s) { return barrier + s * 16; };
    const auto empty = [&](int s) { return barrier + s * 16 + 8; };
    const int h = blockIdx.x / 2, slab = blockIdx.x % 2, heads = a.KeyHeads, values = a.ValueHeads, key = a.Tiled ? h % heads : h / (values / heads);
    if (threadIdx.x == 0) {
        for (int s = 0; s < P::kStages; s++) atlas::init_barrier(full(s), 1), atlas::init_barrier(empty(s), 128);
        atlas::fence_barriers();
    }
    __syncthreads();
    atlas::release_next();
    atlas::wait_for_previous();
    const int chunks = __shfl_sync(atlas::kAllLanes, count<P::kLeast>(a, blockIdx.y), 0), wp = __shfl_sync(atlas::kAllLanes, atlas::warp(), 0);
    const atlas::drafted_rows r(a, blockIdx.y);
    if (wp == 4) {
        const int first = before<P::kLeast>(a, blockIdx.y);
        const memory in = {static_cast<uint8_t *>(scratch), heads, values};
        for (int n = 0; n < chunks; n++) {
            const int s = n % P::kStages;
            atlas::wait_barrier(empty(s), (n / P::kStages & 1) ^ 1);
            if (atlas::elected()) {
                const uint32_t to = stages + s * kStageBytes;
                const uint8_t *const keys = in.key(first + n, key), *const own = in.value(first + n, h);
                atlas::arrive_expecting(full(s), kStageUsed);
                atlas::copy_bulk(to + kCarryW, own + kMinusW, kTile, full(s));
                atlas::copy_bulk(to + kCarryU, own + kU + slab * kSlab, kSlab, full(s));
                atlas::copy_bulk(to + kCarryQ, keys, kTile, full(s));
                atlas::copy_bulk(to + kCarryFactors, own + kFactors, kFactorBytes, full(s));
                atlas::copy_bulk(to + kCarryK, keys + kTile, kTile, full(s));
                atlas::copy_bulk(to + kCarryA, own + kA, kSlab, full(s));
            }
        }
        return;
    }
    if (chunks == 0) return;
    const int l = atlas::lane(), g = l / 4, t = l % 4, row = slab * 64 + wp * 16 + g;  // and row+8
    float *const state = a.State + ((size_t(r.slot) * values + h) * kDim + row) * kDim + t * 2;
    float s[64] = {};
    if (r.position > 0)
#pragma unroll
        for (int i = 0; i < 32; i++) {
            const float2 x = *reinterpret_cast<const float2 *>(state + i % 2 * 8 * kDim + i / 2 * 8);
            s[i * 2] = x.x, s[i * 2 + 1] = x.y;
        }
    atlas_act *const out = a.Out + (size_t(r.first + g) * values + h) * kDim + slab * 64 + wp * 16 + t * 2;
    uint32_t left[16] = {};  // what a chunk gives, which is stored while products of the next run
    const size_t step = size_t(8) * values * kDim;
    const auto leave = [&](int n) {
        const int count = n < 0 ? 0 : r.rows - n * kRows - g;
        atlas_act *to = out + int64_t(n) * int64_t(8 * step);
#pragma unroll
        for (int i = 0; i < 8; i++, to += step) {
            const uint32_t low = atlas::transpose_matrix(left[i * 2]), high = atlas::transpose_matrix(left[i * 2 + 1]);
            if (i * 8 < count) reinterpret_cast<uint32_t *>(to)[0] = low, reinterpret_cast<uint32_t *>(to)[4] = high;
        }
    };
    for (int n = 0; n < chunks; n++) {
        const uint32_t stage = stages + n % P::kStages * kStageBytes;
        uint32_t of_state[8][4], of_d[4][4], scaled[4][4];
        float d[32], o[32];
#pragma unroll
        for (int i = 0; i < 8; i++) factor_of_sums(of_state[i], s, i);
        atlas::wait_barrier(full(n % P::kStages), n / P::kStages & 1);
#pragma unroll
        for (int i = 0; i < 8; i += 2) {  // U transposed
            uint32_t x[4];
            const int at = (i + l / 16) * 8 + l % 8, c = wp * 2 + l / 8 % 2;
            atlas::load_matrices_transposed(x, stage + kCarryU + at * 128 + (c ^ at % 8) * 16);
#pragma unroll
            for (int e = 0; e < 4; e++) d[i * 4 + e * 2] = __uint_as_float(x[e] << 16), d[i * 4 + e * 2 + 1] = __uint_as_float(x[e] & 0xffff0000u);
        }
        const uint32_t factors_at = stage + kCarryFactors;
        const float keep = __uint_as_float(atlas::load_shared1(factors_at + 2 * kRows * 4));
#pragma unroll
        for (int i = 0; i < 64; i++) s[i] *= keep;
        atlas::begin_products();
#pragma unroll
        for (int i = 0; i < 8; i++) atlas::multiply(d, of_state[i], atlas::factor(stage + kCarryW + i / 4 * kSlab + i % 4 * 32));
        atlas::commit_products();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint64_t by = atlas::factor(stage + kCarryQ + i / 4 * kSlab + i % 4 * 32);
            if (i == 0)
                atlas::multiply_anew(o, of_state[i], by);
            else
                atlas::multiply(o, of_state[i], by);
        }
        atlas::commit_products();
        leave(n - 1);
        atlas::wait_products<1>();
        atlas::pin(d);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            factor_of_sums(of_d[i], d, i);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const uint2 x = atlas::load_shared2(factors_at + (kRows + i * 16 + half * 8 + t * 2) * 4);
                const float f[2] = {__uint_as_float(x.x), __uint_as_float(x.y)};
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int at = i * 8 + half * 4 + e * 2;
                    scaled[i][half * 2 + e] = atlas::narrow(d[at] * f[0], d[at + 1] * f[1]);
                }
            }
        }
        atlas::begin_products();
#pragma unroll
        for (int i = 0; i < 4; i++) atlas::multiply_columns(s, scaled[i], atlas::swizzled(stage + kCarryK + i * 2048, kSlab), 1);
        atlas::commit_products();
        atlas::wait_products<1>();
        atlas::pin(o);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint2 x = atlas::load_shared2(factors_at + (i * 8 + t * 2) * 4);
            const float f[2] = {__uint_as_float(x.x), __uint_as_float(x.y)};
#pragma unroll
            for (int e = 0; e < 4; e++) o[i * 4 + e] *= f[e % 2];
        }
        atlas::begin_products();
#pragma unroll
        for (int i = 0; i < 4; i++) atlas::multiply(o, of_d[i], atlas::factor(stage + kCarryA + i * 32));
        atlas::commit_products();
        atlas::wait_products<0>();
        atlas::pin(s);
        atlas::pin(o);
        atlas::arrive(empty(n % P::kStages));
#pragma unroll
        for (int i = 0; i < 16; i++) left[i] = atlas::narrow(o[i * 2], o[i * 2 + 1]);
    }
    leave(chunks - 1);
#pragma unroll
    for (int i = 0; i < 32; i++) *reinterpret_cast<float2 *>(state + i % 2 * 8 * kDim + i / 2 * 8) = {s[i * 2], s[i * 2 + 1]};
}
