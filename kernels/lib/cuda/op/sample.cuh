// Sample on a GPU. sample_scan, block (chunk of kChunk logits, row), rules out, edits and finds maxima; sample_draw, one block
// per row, ends a row. A draw finds its token by its place in the order of logits: three passes of 11 bits of the logit fix
// its value, one more its id among equals. Masses are 64-bit integers in units of 2⁻⁴⁰ of the largest token's, so that sums
// depend on no order. Scratch: f32 [Rows,chunks·kChunk] logits, then {f32 max, i32 id} [Rows,chunks].
#pragma once
#include <float.h>
#include "lib/cuda/atlas.cuh"

namespace atlas::sampling {

constexpr int kChunk = 4096, kBins = 2048;

struct best {
    float z;
    int id;
};
__device__ inline best better(best x, best y) { return y.z > x.z || (y.z == x.z && y.id < x.id) ? y : x; }

template <int kThreads>
__device__ best block_best(best x) {
    __shared__ best part[kThreads / 32];
    for (int d = 16; d; d /= 2) x = better(x, {__shfl_xor_sync(kAllLanes, x.z, d), __shfl_xor_sync(kAllLanes, x.id, d)});
    __syncthreads();
    if (lane() == 0) part[warp()] = x;
    __syncthreads();
    x = part[0];
    for (int w = 1; w < kThreads / 32; w++) x = better(x, part[w]);
    return x;
}

__device__ inline int chunks(const atlas_Sample &a) { return (a.Vocab + kChunk - 1) / kChunk; }
__device__ inline float *logits(const atlas_Sample &a, void *scratch, size_t row) { return static_cast<float *>(scratch) + row * chunks(a) * kChunk; }
__device__ inline best *maxima(const atlas_Sample &a, void *scratch, size_t row) {
    return reinterpret_cast<best *>(logits(a, scratch, a.Rows)) + row * chunks(a);
}

// As op.Uniform.
__device__ inline float uniform(int64_t seed, int32_t position) {
    uint64_t x = uint64_t(seed) + 0x9e3779b97f4a7c15ull * (uint64_t(uint32_t(position)) + 1);
    for (int round = 0; round < 2; round++) {
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ x >> 27) * 0x94d049bb133111ebull;
        x ^= x >> 31;
    }
    return float(x >> 40) / (1 << 24);
}

// Unsigned integers in the order of finite floats; 0 is left for what is ruled out.
__device__ inline uint32_t key_of(float z) {
    const uint32_t u = __float_as_uint(z);
    return z == -INFINITY ? 0 : (u >> 31 ? ~u : u | 0x80000000u);
}
__device__ inline float of_key(uint32_t k) { return __uint_as_float(k >> 31 ? k & 0x7fffffffu : ~k); }

// A row that draws.
struct row {
    const float *z;
    int count;
    float max, inverse_temperature;
    __device__ uint64_t mass(float logit) const { return uint64_t(__expf((logit - max) * inverse_temperature) * 1099511627776.0f); }
};

// Tokens before a place in the order: how many, and how much.
struct share {
    uint32_t count;
    uint64_t mass;
};
// A place: the token's key and what comes before the first token of that key.
struct place {
    uint32_t key;
    share before;
};

struct shared {
    uint32_t count[kBins];
    unsigned long long mass[kBins];
    share part[32];
    share picked;
    int bin;
};

// Sums of the bins above this thread's, whose bins are kBins/kThreads neighbours from the top down.
template <int kThreads>
__device__ share bins_above(shared &s, share mine) {
    share sum = mine;
    for (int d = 1; d < 32; d *= 2) {
        const uint32_t count = __shfl_up_sync(kAllLanes, sum.count, d);
        const uint64_t mass = __shfl_up_sync(kAllLanes, sum.mass, d);
        if (lane() >= d) sum.count += count, sum.mass += mass;
    }
    if (lane() == 31) s.part[warp()] = sum;
    __syncthreads();
    sum.count -= mine.count, sum.mass -= mine.mass;
    for (int w = 0; w < warp(); w++) sum.count += s.part[w].count, sum.mass += s.part[w].mass;
    return sum;
}

// Where the count (or else the mass) of tokens, the largest first, first exceeds target; the last place of all if it never does.
// Of equal keys, only the first counts as reached: see ties.
template <int kThreads>
__device__ place find(const row &r, shared &s, bool by_count, uint64_t target) {
    constexpr int kMine = kBins / kThreads;
    static_assert(kBins % kThreads == 0 && kThreads <= 1024, "whole bins");
    uint32_t prefix = 0, known = 0;
    share before = {0, 0};
    for (int level = 0; level < 3; level++) {
        const int shift = level == 0 ? 21 : level == 1 ? 10 : 0, bits = level == 2 ? 10 : 11;
        __syncthreads();
        for (int b = threadIdx.x; b < kBins; b += kThreads) s.count[b] = 0, s.mass[b] = 0;
        if (threadIdx.x == 0) s.bin = -1;
        __syncthreads();
        for (int i = threadIdx.x; i < r.count; i += kThreads) {
            const float z = r.z[i];
            const uint32_t key = key_of(z);
            if (!key || (key & known) != prefix) continue;
            const int bin = key >> shift & ((1 << bits) - 1);
            atomicAdd(&s.count[bin], 1u);
            atomicAdd(&s.mass[bin], r.mass(z));
        }
        __syncthreads();
        share mine = {0, 0};
        int lowest = -1;  // of this thread's bins that hold a token
        for (int i = 0; i < kMine; i++) {
            const int b = kBins - 1 - (threadIdx.x * kMine + i);
            mine.count += s.count[b], mine.mass += s.mass[b];
        }
        share above = bins_above<kThreads>(s, mine);
        above.count += before.count, above.mass += before.mass;
        for (int i = 0; i < kMine; i++) {
            const int b = kBins - 1 - (threadIdx.x * kMine + i);
            if (!s.count[b]) continue;
            const share with = {above.count + s.count[b], above.mass + s.mass[b]};
            const uint64_t reached = by_count ? above.count : above.mass, reaches = by_count ? with.count : with.mass;
            if (reached <= target && reaches > target) s.bin = b, s.picked = above;
            lowest = b;
            above = with;
        }
        __syncthreads();
        if (s.bin < 0) {  // the last bin that holds a token
            __shared__ int least;
            if (threadIdx.x == 0) least = kBins;
            __syncthreads();
            if (lowest >= 0) atomicMin(&least, lowest);
            __syncthreads();
            share all = {0, 0};
            for (int i = 0; i < kMine; i++) {
                const int b = kBins - 1 - (threadIdx.x * kMine + i);
                if (b > least) all.count += s.count[b], all.mass += s.mass[b];
            }
            __syncthreads();
            const share rest = bins_above<kThreads>(s, all);
            if (threadIdx.x == kThreads - 1) {
                s.picked = {before.count + rest.count + all.count, before.mass + rest.mass + all.mass};
                s.bin = least;
            }
            __syncthreads();
        }
        before = s.picked;
        prefix |= uint32_t(s.bin) << shift;
        known |= ((1u << bits) - 1) << shift;
    }
    __syncthreads();
    return {prefix, before};
}

// The token that is number skip among those of this key, by id; the last of them if there are fewer.
template <int kThreads>
__device__ int tie(const row &r, uint32_t key, uint32_t skip) {
    int last = -1;
    for (int base = 0, seen = 0; base < r.count; base += kThreads) {
        const int i = base + threadIdx.x;
        const bool equal = i < r.count && key_of(r.z[i]) == key;
        if (!__syncthreads_or(equal)) continue;
        const scan s = block_scan<kThreads>(equal);
        const best found = block_best<kThreads>({equal && uint32_t(seen + s.before) <= skip ? float(seen + s.before) : -1.0f, i});
        last = found.id;
        seen += s.total;
        if (uint32_t(seen) > skip) break;
    }
    return last;
}

// How much of the tokens a limit keeps. A kept share ends within the tokens of one key.
template <int kThreads>
__device__ uint64_t mass_to(const row &r, const place &p, bool by_count, uint64_t target) {
    const uint64_t each = r.mass(of_key(p.key));
    if (by_count) return p.before.mass + each * (target + 1 - p.before.count);
    return p.before.mass + (each ? each * ((target - p.before.mass) / each + 1) : 0);
}

}  // namespace atlas::sampling

template <int kThreads>
__device__ void sample_scan(const atlas_Sample &a, void *scratch) {
    using namespace atlas::sampling;
    __shared__ float z[kChunk];
    const size_t row = blockIdx.y;
    const int begin = blockIdx.x * kChunk, n = min(kChunk, a.Vocab - begin);
    atlas::wait_for_previous();
    const float *in = a.Logits + row * a.Vocab + begin;
    const uint32_t *mask = a.Mask ? a.Mask + row * ((a.Vocab + 31) / 32) + begin / 32 : nullptr;
    for (int i = threadIdx.x; i < n; i += kThreads) z[i] = in[i];
    // The thread that brought a logit edits it, so that edits keep their order without a barrier.
    for (int e = a.EditStarts[row], end = a.EditStarts[row + 1]; e < end; e++) {
        const int64_t i = int64_t(a.EditToken[e]) - begin;
        if (i < 0 || i >= n || i % kThreads != threadIdx.x) continue;
        const float x = __fadd_rn(z[i], a.EditBias[e]);
        z[i] = __fadd_rn(x > 0 ? __fdiv_rn(x, a.EditFactor[e]) : __fmul_rn(x, a.EditFactor[e]), a.EditOffset[e]);
    }
    const bool draws = a.Temperature[row] > 0;
    float *out = logits(a, scratch, row) + begin;
    best top = {-INFINITY, 1 << 30};
    for (int i = threadIdx.x; i < kChunk; i += kThreads) {
        float x = i < n ? z[i] + 0.0f : -INFINITY;  // so that both zeros are one
        if (!(fabsf(x) <= FLT_MAX) || (mask && i < n && !(mask[i / 32] >> i % 32 & 1))) x = -INFINITY;
        if (draws) out[i] = x;
        top = better(top, {x, begin + i});
    }
    top = block_best<kThreads>(top);
    if (threadIdx.x == 0) maxima(a, scratch, row)[blockIdx.x] = top;
    atlas::release_next();
}

template <int kThreads>
__device__ void sample_draw(const atlas_Sample &a, void *scratch) {
    using namespace atlas::sampling;
    __shared__ shared s;
    const size_t n = blockIdx.x;
    atlas::wait_for_previous();
    best top = {-INFINITY, 1 << 30};
    for (int i = threadIdx.x; i < chunks(a); i += kThreads) top = better(top, maxima(a, scratch, n)[i]);
    top = block_best<kThreads>(top);
    const float temperature = a.Temperature[n];
    if (top.z == -INFINITY || !(temperature > 0)) {
        if (threadIdx.x == 0) a.Out[n] = top.z == -INFINITY ? -1 : top.id;
        return;
    }
    float *z = logits(a, scratch, n);
    const row r = {z, chunks(a) * kChunk, top.z, 1.0f / temperature};
    if (a.MinP[n] > 0) {
        const double least = double(top.z) + double(temperature) * log(double(a.MinP[n]));
        for (int i = threadIdx.x; i < r.count; i += kThreads)
            if (double(z[i]) < least && z[i] != top.z) z[i] = -INFINITY;
        __syncthreads();
    }
    uint64_t kept = 0;
    for (int i = threadIdx.x; i < r.count; i += kThreads)
        if (z[i] != -INFINITY) kept += r.mass(z[i]);
    __syncthreads();
    if (threadIdx.x == 0) s.mass[0] = 0;
    __syncthreads();
    atomicAdd(&s.mass[0], static_cast<unsigned long long>(kept));
    __syncthreads();
    kept = s.mass[0];
    if (a.TopK[n] > 0 && a.TopK[n] < a.Vocab) {
        const uint64_t target = a.TopK[n] - 1;
        const place p = find<kThreads>(r, s, true, target);
        kept = min(kept, mass_to<kThreads>(r, p, true, target));
    }
    if (a.TopP[n] < 1) {
        const double limit = fmax(0.0, double(a.TopP[n])) * double(kept);
        const uint64_t target = limit < 1 ? 0 : uint64_t(ceil(limit)) - 1;
        const place p = find<kThreads>(r, s, false, target);
        kept = min(kept, mass_to<kThreads>(r, p, false, target));
    }
    const uint64_t target = min(uint64_t(double(uniform(a.Seed[n], a.Position[n])) * double(kept)), kept - 1);
    const place p = find<kThreads>(r, s, false, target);
    const uint64_t each = r.mass(of_key(p.key));
    const int id = tie<kThreads>(r, p.key, each ? uint32_t((target - p.before.mass) / each) : 0);
    if (threadIdx.x == 0) a.Out[n] = id;
}
