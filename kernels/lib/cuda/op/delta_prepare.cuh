// What the chunks of delta_chunks.cuh need beside the state, on sm_90a: a warpgroup for a chunk of a key head, whose value heads it takes one after the other.
//
// T is made in blocks of 16 by 16: each warp inverts one on the diagonal in f32, a column a lane, and tf32 products make those below.
// Grid: chunks at most, KeyHeads; block 128. Limit: ValueHeads at most 4·KeyHeads.
#pragma once
#include "lib/cuda/op/delta_chunks.cuh"

namespace atlas::chunks {

constexpr int kPitch = 68, kRest = 36;  // floats from a row of T to the next, and of a product on its way to T

struct workspace {
    float t[kRows * kPitch], rest[kRows / 2 * kRest], sum[4][kRows], beta[4][kRows], query[kRows], key[kRows];
};
constexpr int kPrepareBytes = 3 * kTile + sizeof(workspace) + 1024;

// A tile of 64 rows, of which count are there and the others zeros.
__device__ __forceinline__ void bring(uint32_t to, const atlas_act *from, size_t pitch, int count) {
    const int c = threadIdx.x % 16, first = threadIdx.x / 16;
#pragma unroll
    for (int r = first; r < kRows; r += 8) copy_async(to + place(r, c), from + (r < count ? r * pitch : 0) + c * 8, r < count);
}

// Rounds to tf32.
__device__ __forceinline__ uint32_t tf32(float x) { return __float_as_uint(x) + 0x1000; }

// c += a·b of 16 by 16.
__device__ __forceinline__ void product16(float (&c)[2][4], const float *a, int pitch_a, const float *b, int pitch_b) {
    const int g = lane() / 4, t = lane() % 4;
#pragma unroll
    for (int k = 0; k < 16; k += 8) {
        const float *from = a + g * pitch_a + k + t;
        const uint32_t x[4] = {tf32(from[0]), tf32(from[8 * pitch_a]), tf32(from[4]), tf32(from[8 * pitch_a + 4])};
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const float *by = b + (k + t) * pitch_b + n * 8 + g;
            product_tf32(c[n], x, tf32(by[0]), tf32(by[4 * pitch_b]));
        }
    }
}
__device__ __forceinline__ void store16(float *to, int pitch, const float (&c)[2][4], float sign) {
    const int g = lane() / 4, t = lane() % 4;
#pragma unroll
    for (int n = 0; n < 2; n++) {
        *reinterpret_cast<float2 *>(to + g * pitch + n * 8 + t * 2) = {sign * c[n][0], sign * c[n][1]};
        *reinterpret_cast<float2 *>(to + (g + 8) * pitch + n * 8 + t * 2) = {sign * c[n][2], sign * c[n][3]};
    }
}

// M, which the workspace has, becomes T: block (i,j) at rows 16i and columns 16j. Above the diagonal nothing is read.
__device__ __forceinline__ void invert(workspace &w) {
    const int wp = warp();
    const auto block = [&](int i, int j) { return w.t + i * 16 * kPitch + j * 16; };
    {
        float *const m = block(wp, wp);
        const int c = lane() % 16;
        float x[16];
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float sum[2] = {i == c ? 1.0f : 0.0f, 0.0f};
#pragma unroll
            for (int k = 0; k < i; k++) sum[k % 2] = fmaf(-m[i * kPitch + k], x[k], sum[k % 2]);
            x[i] = sum[0] + sum[1];
        }
        __syncwarp();
        if (lane() < 16)
#pragma unroll
            for (int i = 0; i < 16; i++) m[i * kPitch + c] = x[i];
    }
    __syncthreads();
    if (wp % 2) {
        float p[2][4] = {}, q[2][4] = {};
        float *const to = block(wp, wp - 1);
        product16(p, to, kPitch, block(wp - 1, wp - 1), kPitch);
        __syncwarp();
        store16(to, kPitch, p, 1);
        __syncwarp();
        product16(q, block(wp, wp), kPitch, to, kPitch);
        __syncwarp();
        store16(to, kPitch, q, -1);
    }
    __syncthreads();
    const int i = 2 + wp / 2, j = wp % 2;
    float p[2][4] = {}, q[2][4] = {};
    for (int k = j; k < 2; k++) product16(p, block(i, k), kPitch, block(k, j), kPitch);
    store16(w.rest + (i - 2) * 16 * kRest + j * 16, kRest, p, 1);
    __syncthreads();
    for (int k = 2; k <= i; k++) product16(q, block(i, k), kPitch, w.rest + (k - 2) * 16 * kRest + j * 16, kRest);
    store16(block(i, j), kPitch, q, -1);
    __syncthreads();
}

// Writes this warp's 16 rows of a slab, by way of shared memory.
__device__ __forceinline__ void write(uint8_t *to, uint32_t stage, const float (&c)[32]) {
    const int l = lane(), r = l % 16;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
        const int at = n * 4;
        const uint32_t x[4] = {narrow(c[at], c[at + 1]), narrow(c[at + 2], c[at + 3]), narrow(c[at + 4], c[at + 5]), narrow(c[at + 6], c[at + 7])};
        store_matrices(stage + r * 128 + ((n + l / 16) ^ r % 8) * 16, x);
    }
    __syncwarp();
    uint4 *const into = reinterpret_cast<uint4 *>(to + warp() * 2048) + l;
#pragma unroll
    for (int i = 0; i < 4; i++) into[i * 32] = load_shared(stage + (i * 32 + l) * 16);
}

// Makes U or W of its factors in registers and the tile of values or keys.
__device__ __forceinline__ void make(const uint32_t (&by)[4][4], uint32_t tile, uint8_t *into, uint32_t stage) {
#pragma unroll
    for (int slab = 0; slab < 2; slab++) {
        float c[32];
        begin_products();
#pragma unroll
        for (int s = 0; s < 4; s++) multiply_columns(c, by[s], swizzled(tile + slab * kSlab + s * 2048, 0), s > 0);
        commit_products();
        wait_products<0>();
        pin(c);
        write(into + slab * kSlab, stage, c);
    }
}

}  // namespace atlas::chunks

template <class P>
__device__ void delta_prepare(const atlas_DeltaRule &a, void *scratch) {
    using namespace atlas::chunks;
    static_assert(atlas::launched<P, 128, kPrepareBytes>::kFits);
    extern __shared__ __align__(128) uint8_t dynamic[];
    const uint32_t begin = __cvta_generic_to_shared(dynamic), tiles = (begin + 1023) / 1024 * 1024, k = tiles;
    const auto other = [&](int j) { return tiles + kTile * (1 + j % 2); };  // values of head j; queries are in the second until they are used
    workspace &w = *reinterpret_cast<workspace *>(dynamic + (tiles - begin) + 3 * kTile);
    const int l = atlas::lane(), wp = __shfl_sync(atlas::kAllLanes, threadIdx.x / 32, 0), g = l / 4, t = l % 4, key = blockIdx.y, heads = a.KeyHeads, ratio = a.ValueHeads / heads;
    atlas::release_next();
    atlas::wait_for_previous();
    const owner of = owner_of<P::kLeast>(a, blockIdx.x);
    if (of.seq == a.Seqs) return;
    const atlas::drafted_rows r(a, of.seq);
    const int first = r.first + of.number * kRows, count = min(kRows, r.rows - of.number * kRows);
    const size_t pitch = size_t(2 * heads + a.ValueHeads) * kDim;
    const atlas_act *const in = a.QKV + first * pitch;
    const memory out = {static_cast<uint8_t *>(scratch), heads, a.ValueHeads};
    const auto head_of = [&](int j) { return a.Tiled ? key + j * heads : key * ratio + j; };
    const auto values = [&](int j) { return in + size_t(2 * heads + head_of(j)) * kDim; };
    bring(k, in + size_t(heads + key) * kDim, pitch, count);
    bring(other(1), in + size_t(key) * kDim, pitch, count);
    atlas::commit_copies();
    bring(other(0), values(0), pitch, count);
    atlas::commit_copies();
    for (int j = wp; j < ratio; j += 4) {  // two rows a lane
        const int h = head_of(j);
        float log[2], b[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const bool there = l * 2 + i < count;
            const atlas_act *const gates = a.Gates + size_t(there ? first + l * 2 + i : first) * a.GatesPitch + h;
            b[i] = there ? atlas::sigmoid(__bfloat162float(gates[0])) : 0.0f;
            log[i] = there ? a.Decay[h] * atlas::softplus(__bfloat162float(gates[a.ValueHeads]) + a.Bias[h]) * atlas::kLog2E : 0.0f;
        }
        float sum = log[0] + log[1];
        for (int d = 1; d < 32; d *= 2) {
            const float x = __shfl_up_sync(atlas::kAllLanes, sum, d);
            if (l >= d) sum += x;
        }
        w.sum[j][l * 2] = sum - log[1], w.sum[j][l * 2 + 1] = sum;
        w.beta[j][l * 2] = b[0], w.beta[j][l * 2 + 1] = b[1];
    }
    atlas::wait_copies<1>();
    atlas::fence_shared();
    __syncthreads();
    float kk[32], qk[32];
    atlas::begin_products();
#pragma unroll
    for (int i = 0; i < kDim / 16; i++) {
        const uint32_t at = i / 4 * kSlab + i % 4 * 32;
        atlas::multiply_rows(kk, atlas::swizzled(k + at, 0), atlas::swizzled(k + at, 0), i > 0);
    }
#pragma unroll
    for (int i = 0; i < kDim / 16; i++) {
        const uint32_t at = i / 4 * kSlab + i % 4 * 32;
        atlas::multiply_rows(qk, atlas::swizzled(other(1) + at, 0), atlas::swizzled(k + at, 0), i > 0);
    }
    atlas::commit_products();
    {
        uint4 *const to = reinterpret_cast<uint4 *>(out.key(blockIdx.x, key)) + threadIdx.x;
#pragma unroll 4
        for (int i = 0; i < kTile / 2048; i++) to[i * 128] = atlas::load_shared(other(1) + (i * 128 + threadIdx.x) * 16), to[kTile / 16 + i * 128] = atlas::load_shared(k + (i * 128 + threadIdx.x) * 16);
        float squares = 0;
        const int row = threadIdx.x / 2, half = threadIdx.x % 2;
#pragma unroll
        for (int c = 0; c < 8; c++) {
            const atlas::f32x8 x = atlas::widen(atlas::load_shared(other(1) + place(row, half * 8 + c)));
#pragma unroll
            for (int i = 0; i < 8; i++) squares = fmaf(x.v[i], x.v[i], squares);
        }
        squares += __shfl_xor_sync(atlas::kAllLanes, squares, 1);
        if (half == 0) w.query[row] = rsqrtf(squares + a.Eps) * rsqrtf(float(kDim));
    }
    atlas::wait_products<0>();
    atlas::pin(kk);
    atlas::pin(qk);
#pragma unroll
    for (int n = 0; n < 8; n++) {  // squares of keys stand on the diagonal
        const float x[4] = {kk[n * 4], kk[n * 4 + 1], kk[n * 4 + 2], kk[n * 4 + 3]}, low = g % 2 ? +x[1] : +x[0], high = g % 2 ? +x[3] : +x[2];
        if (n / 2 == wp && g / 2 == t) w.key[n * 8 + g] = rsqrtf((n % 2 ? high : low) + a.Eps);
    }
    __syncthreads();
    const int row = wp * 16 + g;  // and row+8
    float *const mine = w.t + wp * 16 * kPitch;
    const uint32_t stage = __cvta_generic_to_shared(mine);
    for (int j = 0; j < ratio; j++) {
        uint8_t *const to = out.value(blockIdx.x, head_of(j));
        const float *const sum = w.sum[j], *const beta = w.beta[j];
        const uint32_t v = other(j);
        if (j + 1 < ratio) bring(other(j + 1), values(j + 1), pitch, count);
        atlas::commit_copies();
        if (threadIdx.x < kRows) {
            factors *const f = reinterpret_cast<factors *>(to + kFactors);
            f->query[threadIdx.x] = atlas::exp2_fast(sum[threadIdx.x]) * w.query[threadIdx.x];
            f->key[threadIdx.x] = atlas::exp2_fast(sum[kRows - 1] - sum[threadIdx.x]) * w.key[threadIdx.x];
            if (threadIdx.x == 0) f->state = atlas::exp2_fast(sum[kRows - 1]);
        }
        float weights[32], below[32];
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int i = row + e / 2 * 8, c = n * 8 + t * 2 + e % 2;
                const float power = c <= i ? atlas::exp2_fast(sum[i] - sum[c]) * w.key[c] : 0.0f;
                weights[n * 4 + e] = qk[n * 4 + e] * (power * w.query[i]);
                below[n * 4 + e] = c < i ? kk[n * 4 + e] * (power * w.key[i] * beta[i]) : 0.0f;
            }
        write(to + kA, stage, weights);
        __syncwarp();
#pragma unroll
        for (int n = 0; n < 8; n++) {
            *reinterpret_cast<float2 *>(mine + g * kPitch + n * 8 + t * 2) = {below[n * 4], below[n * 4 + 1]};
            *reinterpret_cast<float2 *>(mine + (g + 8) * kPitch + n * 8 + t * 2) = {below[n * 4 + 2], below[n * 4 + 3]};
        }
        __syncwarp();
        invert(w);
        uint32_t of_values[4][4] = {}, of_keys[4][4] = {};
#pragma unroll
        for (int s = 0; s < 4; s++) {
            if (s > wp) continue;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int c = s * 16 + e / 2 * 8 + t * 2;
                const float2 x = *reinterpret_cast<const float2 *>(mine + (g + e % 2 * 8) * kPitch + c);
                const float u[2] = {x.x * beta[c], x.y * beta[c + 1]};
                of_values[s][e] = atlas::narrow(u[0], u[1]);
                of_keys[s][e] = atlas::narrow(-u[0] * (atlas::exp2_fast(sum[c]) * w.key[c]), -u[1] * (atlas::exp2_fast(sum[c + 1]) * w.key[c + 1]));
            }
        }
        if (j + 1 < ratio)
            atlas::wait_copies<1>();
        else
            atlas::wait_copies<0>();
        atlas::fence_shared();
        __syncthreads();
        make(of_values, v, to + kU, stage);
        make(of_keys, k, to + kMinusW, stage);
        __syncthreads();  // the tile of values is free
    }
}
