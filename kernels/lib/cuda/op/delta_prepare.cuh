// What the chunks of delta_chunks.cuh need beside the state, on sm_90a: a block for a chunk of a key head, whose two warpgroups take turns with its value heads.
//
// T is made in blocks of 16 by 16: each warp inverts one on the diagonal in f32, a column a lane, and tf32 products make those below.
// Grid: chunks at most, KeyHeads; block 256. Limit: ValueHeads at most 4·KeyHeads.
#pragma once
#include "lib/cuda/op/delta_chunks.cuh"
#include "lib/cuda/ptx/barrier.cuh"

namespace atlas::chunks {

constexpr int kPitch = 68, kRest = 36;  // floats from a row of T to the next, and of a product on its way to T

// Of a warpgroup: T and what is on its way there; of each row the sum of logarithms to base 2 of α, β, and what makes query and key units.
struct workspace {
    float t[kRows * kPitch], rest[kRows / 2 * kRest], sum[kRows], beta[kRows], query[kRows], key[kRows];
};
constexpr int kPrepareBytes = 4 * kTile + 2 * sizeof(workspace) + 1024;

// A tile of 64 rows, of which count are there and the others zeros.
template <int kThreads>
__device__ __forceinline__ void bring(uint32_t to, const atlas_act *from, size_t pitch, int count) {
    const int thread = threadIdx.x % kThreads, c = thread % 16;
    const atlas_act *row = from + c * 8 + thread / 16 * pitch;
#pragma unroll
    for (int r = thread / 16; r < kRows; r += kThreads / 16, row += kThreads / 16 * pitch) copy_async(to + place(r, c), r < count ? row : from, r < count);
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

// M, which the workspace has, becomes T: block (i,j) at rows 16i and columns 16j. Above the diagonal nothing is read. wp is the warp of the warpgroup.
__device__ __forceinline__ void invert(workspace &w, int wp, int group) {
    const auto block = [&](int i, int j) { return w.t + i * 16 * kPitch + j * 16; };
    {
        float *const m = block(wp, wp);
        const int c = lane() % 16;
        float x[16];
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float sum[4] = {i == c ? 1.0f : 0.0f};
#pragma unroll
            for (int k = 0; k < i; k += 4) {
                const float4 y = *reinterpret_cast<const float4 *>(m + i * kPitch + k);
                const float ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
                for (int e = 0; e < 4; e++)
                    if (k + e < i) sum[e] = fmaf(-ys[e], x[k + e], sum[e]);
            }
            x[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
        __syncwarp();
        if (lane() < 16)
#pragma unroll
            for (int i = 0; i < 16; i++) m[i * kPitch + c] = x[i];
    }
    sync_named<128>(group + 1);
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
    sync_named<128>(group + 1);
    const int i = 2 + wp / 2, j = wp % 2;
    float p[2][4] = {}, q[2][4] = {};
    for (int k = j; k < 2; k++) product16(p, block(i, k), kPitch, block(k, j), kPitch);
    store16(w.rest + (i - 2) * 16 * kRest + j * 16, kRest, p, 1);
    sync_named<128>(group + 1);
    for (int k = 2; k <= i; k++) product16(q, block(i, k), kPitch, w.rest + (k - 2) * 16 * kRest + j * 16, kRest);
    store16(block(i, j), kPitch, q, -1);
    sync_named<128>(group + 1);
}

// Writes this warp's 16 rows of a slab, by way of shared memory.
__device__ __forceinline__ void write(uint8_t *to, uint32_t stage, int wp, const float (&c)[32]) {
    const int l = lane(), r = l % 16;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
        const int at = n * 4;
        const uint32_t x[4] = {narrow(c[at], c[at + 1]), narrow(c[at + 2], c[at + 3]), narrow(c[at + 4], c[at + 5]), narrow(c[at + 6], c[at + 7])};
        store_matrices(stage + r * 128 + ((n + l / 16) ^ r % 8) * 16, x);
    }
    __syncwarp();
    uint4 *const into = reinterpret_cast<uint4 *>(to + wp * 2048) + l;
#pragma unroll
    for (int i = 0; i < 4; i++) into[i * 32] = load_shared(stage + (i * 32 + l) * 16);
}

// Makes U or W of its factors in registers and the tile of values or keys.
__device__ __forceinline__ void make(const uint32_t (&by)[4][4], uint32_t tile, uint8_t *into, uint32_t stage, int wp) {
#pragma unroll
    for (int slab = 0; slab < 2; slab++) {
        float c[32];
        begin_products();
#pragma unroll
        for (int s = 0; s < 4; s++) multiply_columns(c, by[s], swizzled(tile + slab * kSlab + s * 2048, 0), s > 0);
        commit_products();
        wait_products<0>();
        pin(c);
        write(into + slab * kSlab, stage, wp, c);
    }
}

}  // namespace atlas::chunks

template <class P>
__device__ void delta_prepare(const atlas_DeltaRule &a, void *scratch) {
    using namespace atlas::chunks;
    static_assert(atlas::launched<P, 256, kPrepareBytes>::kFits);
    extern __shared__ __align__(128) uint8_t dynamic[];
    const int l = atlas::lane(), group = __shfl_sync(atlas::kAllLanes, threadIdx.x / 128, 0), wp = __shfl_sync(atlas::kAllLanes, threadIdx.x / 32 % 4, 0);
    const int g = l / 4, t = l % 4, thread = threadIdx.x % 128, key = blockIdx.y, heads = a.KeyHeads, ratio = a.ValueHeads / heads;
    const uint32_t begin = __cvta_generic_to_shared(dynamic), q = (begin + 1023) / 1024 * 1024, k = q + kTile, v = q + (2 + group) * kTile;
    workspace &w = reinterpret_cast<workspace *>(dynamic + (q - begin) + 4 * kTile)[group];
    atlas::release_next();
    atlas::wait_for_previous();
    const owner of = owner_of<P::kLeast>(a, blockIdx.x);
    if (of.seq == a.Seqs) return;
    const atlas::drafted_rows r(a, of.seq);
    const int first = r.first + of.number * kRows, count = min(kRows, r.rows - of.number * kRows);
    const size_t pitch = size_t(2 * heads + a.ValueHeads) * kDim;
    const atlas_act *const in = a.QKV + first * pitch;
    const memory out = {static_cast<uint8_t *>(scratch), heads, a.ValueHeads};
    bring<256>(q, in + size_t(key) * kDim, pitch, count);
    bring<256>(k, in + size_t(heads + key) * kDim, pitch, count);
    atlas::commit_copies();
    const int row = wp * 16 + g;  // and row+8
    float *const mine = w.t + wp * 16 * kPitch;
    const uint32_t stage = __cvta_generic_to_shared(mine);
    for (int j = group; j < max(ratio, 2); j += 2) {
        const bool there = j < ratio;  // else this warpgroup has no value head, and helps with the tiles alone
        const int h = a.Tiled ? key + j * heads : key * ratio + j;
        if (there) bring<128>(v, in + size_t(2 * heads + h) * kDim, pitch, count);
        atlas::commit_copies();
        if (wp == 0 && there) {  // two rows a lane
            float log[2], b[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const bool has = l * 2 + i < count;
                const atlas_act *const gates = a.Gates + size_t(has ? first + l * 2 + i : first) * a.GatesPitch + h;
                b[i] = has ? atlas::sigmoid(__bfloat162float(gates[0])) : 0.0f;
                log[i] = has ? a.Decay[h] * atlas::softplus(__bfloat162float(gates[a.ValueHeads]) + a.Bias[h]) * atlas::kLog2E : 0.0f;
            }
            float sum = log[0] + log[1];
            for (int d = 1; d < 32; d *= 2) {
                const float x = __shfl_up_sync(atlas::kAllLanes, sum, d);
                if (l >= d) sum += x;
            }
            *reinterpret_cast<float2 *>(&w.sum[l * 2]) = {sum - log[1], sum}, *reinterpret_cast<float2 *>(&w.beta[l * 2]) = {b[0], b[1]};
        }
        if (j < 2) {
            atlas::wait_copies<1>();
            atlas::fence_shared();
            __syncthreads();
            uint4 *const to = reinterpret_cast<uint4 *>(out.key(blockIdx.x, key)) + threadIdx.x;
#pragma unroll 4
            for (int i = 0; i < 2 * kTile / 4096; i++) to[i * 256] = atlas::load_shared(q + (i * 256 + threadIdx.x) * 16);
            float squares = 0;
#pragma unroll
            for (int c = 0; c < 8; c++) {
                const atlas::f32x8 x = atlas::widen(atlas::load_shared(q + place(thread / 2, thread % 2 * 8 + c)));
#pragma unroll
                for (int i = 0; i < 8; i++) squares = fmaf(x.v[i], x.v[i], squares);
            }
            squares += __shfl_xor_sync(atlas::kAllLanes, squares, 1);
            if (thread % 2 == 0) w.query[thread / 2] = rsqrtf(squares + a.Eps) * rsqrtf(float(kDim));
        }
        if (!there) break;
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
            atlas::multiply_rows(qk, atlas::swizzled(q + at, 0), atlas::swizzled(k + at, 0), i > 0);
        }
        atlas::commit_products();
        atlas::wait_products<0>();
        atlas::pin(kk);
        atlas::pin(qk);
#pragma unroll
        for (int n = 0; n < 8; n++) {  // squares of keys stand on the diagonal
            const float x[4] = {kk[n * 4], kk[n * 4 + 1], kk[n * 4 + 2], kk[n * 4 + 3]}, low = g % 2 ? +x[1] : +x[0], high = g % 2 ? +x[3] : +x[2];
            if (n / 2 == wp && g / 2 == t) w.key[n * 8 + g] = rsqrtf((n % 2 ? high : low) + a.Eps);
        }
        atlas::sync_named<128>(group + 1);
        uint8_t *const to = out.value(blockIdx.x, h);
        if (thread < kRows) {
            factors *const f = reinterpret_cast<factors *>(to + kFactors);
            f->query[thread] = atlas::exp2_fast(w.sum[thread]) * w.query[thread];
            f->key[thread] = atlas::exp2_fast(w.sum[kRows - 1] - w.sum[thread]) * w.key[thread];
            if (thread == 0) f->state = atlas::exp2_fast(w.sum[kRows - 1]);
        }
        const float sums[2] = {w.sum[row], w.sum[row + 8]}, queries[2] = {w.query[row], w.query[row + 8]}, keys[2] = {w.key[row] * w.beta[row], w.key[row + 8] * w.beta[row + 8]};
#pragma unroll
        for (int n = 0; n < 8; n++) {
            if (n / 2 > wp) {  // above the diagonal
#pragma unroll
                for (int e = 0; e < 4; e++) qk[n * 4 + e] = kk[n * 4 + e] = 0;
                continue;
            }
            const int c = n * 8 + t * 2;
            const float2 sum = *reinterpret_cast<const float2 *>(&w.sum[c]), unit = *reinterpret_cast<const float2 *>(&w.key[c]);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int i = row + e / 2 * 8;
                const float power = c + e % 2 <= i ? atlas::exp2_fast(sums[e / 2] - (e % 2 ? sum.y : sum.x)) * (e % 2 ? unit.y : unit.x) : 0.0f;
                qk[n * 4 + e] *= power * queries[e / 2];
                kk[n * 4 + e] = c + e % 2 < i ? kk[n * 4 + e] * (power * keys[e / 2]) : 0.0f;
            }
        }
        write(to + kA, stage, wp, qk);
        __syncwarp();
#pragma unroll
        for (int n = 0; n < 8; n++) {
            *reinterpret_cast<float2 *>(mine + g * kPitch + n * 8 + t * 2) = {kk[n * 4], kk[n * 4 + 1]};
            *reinterpret_cast<float2 *>(mine + (g + 8) * kPitch + n * 8 + t * 2) = {kk[n * 4 + 2], kk[n * 4 + 3]};
        }
        __syncwarp();
        invert(w, wp, group);
        uint32_t of_values[4][4] = {}, of_keys[4][4] = {};
#pragma unroll
        for (int s = 0; s < 4; s++) {
            if (s > wp) continue;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int c = s * 16 + half * 8 + t * 2;
                const float2 beta = *reinterpret_cast<const float2 *>(&w.beta[c]), sum = *reinterpret_cast<const float2 *>(&w.sum[c]), unit = *reinterpret_cast<const float2 *>(&w.key[c]);
                const float by[2] = {-atlas::exp2_fast(sum.x) * unit.x, -atlas::exp2_fast(sum.y) * unit.y};
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const float2 x = *reinterpret_cast<const float2 *>(mine + (g + e * 8) * kPitch + c);
                    const float u[2] = {x.x * beta.x, x.y * beta.y};
                    of_values[s][half * 2 + e] = atlas::narrow(u[0], u[1]), of_keys[s][half * 2 + e] = atlas::narrow(u[0] * by[0], u[1] * by[1]);
                }
            }
        }
        atlas::wait_copies<0>();
        atlas::fence_shared();
        atlas::sync_named<128>(group + 1);
        make(of_values, v, to + kU, stage, wp);
        make(of_keys, k, to + kMinusW, stage, wp);
        atlas::sync_named<128>(group + 1);  // the tile of values is free
    }
}
