// Sample on a GPU. sample_scan, block (chunk of kChunk logits, row), rules out, edits and finds maxima; sample_bins, the same
// blocks, counts what draws by its distance from the row's maximum; sample_draw, one block per row, ends a row. A draw finds
// its token by its place in the order of logits: the bin, then the value in it, then the id among equals. Masses are 64-bit
// integers in units of 2⁻⁴⁰ of the largest token's, so that sums depend on no order. Scratch for each row and chunk: f32
// [kChunk] logits of all, then {max, id} of all, then {count, mass} [kBins] of all: kChunk·4 + 8 + kBins·16 bytes.
#pragma once
#include <float.h>
#include "lib/cuda/atlas.cuh"

namespace atlas::sampling {

constexpr int kChunk = 4096, kBins = 512, kBinsPerNat = 16, kDigits = 256, kListed = 1024;

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
    int chunks;
    float max, inverse_temperature;
    __device__ uint64_t mass(float logit) const {
        const uint64_t m = uint64_t(__expf((logit - max) * inverse_temperature) * 1099511627776.0f);
        return m < 1ull << 40 ? m : (1ull << 40) - 1;
    }
    __device__ int bin(float logit) const { return int(fminf((max - logit) * inverse_temperature * kBinsPerNat, kBins - 1)); }
};

// Tokens before a place in the order: how many, and how much.
struct share {
    uint32_t count;
    uint64_t mass;
};
static_assert(sizeof(share) == 16, "the scratch of a bin");
__device__ inline share operator+(share x, share y) { return {x.count + y.count, x.mass + y.mass}; }

__device__ inline share *bins(const atlas_Sample &a, void *scratch, size_t row) {
    return reinterpret_cast<share *>(maxima(a, scratch, a.Rows)) + row * chunks(a) * kBins;
}

// A place: the token's key and what comes before the first token of that key.
struct place {
    uint32_t key;
    share before;
};

constexpr int kListedChunks = 1024;

struct shared {
    share above[kBins];  // what lies before a bin
    uint32_t in_bin[kBins];
    uint32_t key[kListed];  // tokens of a bin
    int id[kListed];
    unsigned long long list_mass[kListed];
    int chunk[kListedChunks];  // that have such tokens
    uint32_t count[kDigits];
    unsigned long long mass[kDigits];
    share part[32], picked;
    uint32_t found_key, least_key;
    int digit, last, listed, chunks, token;
};
static_assert(sizeof(shared) <= 47 * 1024, "static shared memory");

// Sums over the threads before this one.
template <int kThreads>
__device__ share sums_before(shared &s, share mine) {
    share sum = mine;
    for (int d = 1; d < 32; d *= 2) {
        const share y = {__shfl_up_sync(kAllLanes, sum.count, d), __shfl_up_sync(kAllLanes, sum.mass, d)};
        if (lane() >= d) sum = sum + y;
    }
    __syncthreads();
    if (lane() == 31) s.part[warp()] = sum;
    __syncthreads();
    sum.count -= mine.count, sum.mass -= mine.mass;
    for (int w = 0; w < warp(); w++) sum = sum + s.part[w];
    return sum;
}

// Each thread offers a group of tokens, the first threads the largest. Leaves in s.digit the id of the group in which the
// count (or else the mass) exceeds target, of the last group with tokens if none does, and in s.picked what comes before it.
template <int kThreads>
__device__ void choose(shared &s, int id, share before, share group, bool by_count, uint64_t target) {
    if (threadIdx.x == 0) s.last = -1;
    __syncthreads();
    if (group.count) atomicMax(&s.last, int(threadIdx.x));
    __syncthreads();
    const share with = before + group;
    const uint64_t reached = by_count ? before.count : before.mass, reaches = by_count ? with.count : with.mass;
    // The last group takes what lies past the end.
    if (group.count && reached <= target && (reaches > target || int(threadIdx.x) == s.last)) s.digit = id, s.picked = before;
    __syncthreads();
}

// Lists the tokens of a bin in s, if they fit.
template <int kThreads>
__device__ void list_bin(const row &r, const share *chunk_bins, shared &s, int bin) {
    constexpr int kVectors = kChunk / 4, kAtOnce = 4;
    if (threadIdx.x == 0) s.listed = s.chunks = 0;
    __syncthreads();
    for (int c = threadIdx.x; c < r.chunks; c += kThreads)
        if (chunk_bins[c * kBins + bin].count) s.chunk[atomicAdd(&s.chunks, 1)] = c;
    __syncthreads();
    const int n = s.chunks * kVectors;
    const float4 *z = reinterpret_cast<const float4 *>(r.z);
    for (int base = threadIdx.x; base < n; base += kAtOnce * kThreads) {
        float4 v[kAtOnce];
        int at[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; k++) {
            const int i = base + k * kThreads;
            at[k] = i < n ? s.chunk[i / kVectors] * kVectors + i % kVectors : -1;
            v[k] = at[k] >= 0 ? z[at[k]] : float4{-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; k++) {
            const float x[4] = {v[k].x, v[k].y, v[k].z, v[k].w};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (x[j] == -INFINITY || r.bin(x[j]) != bin) continue;
                const int to = atomicAdd(&s.listed, 1);
                s.key[to] = key_of(x[j]), s.id[to] = at[k] * 4 + j, s.list_mass[to] = r.mass(x[j]);
            }
        }
    }
    __syncthreads();
}

// As find, among the listed tokens of a bin, a thread for each.
template <int kThreads>
__device__ place find_listed(shared &s, share before, bool by_count, uint64_t target) {
    static_assert(kThreads >= kListed, "a thread per token");
    const int t = threadIdx.x, n = s.listed;
    if (t == 0) s.least_key = ~0u;
    __syncthreads();
    share larger = before, same = {};
    uint32_t key = 0;
    bool found = false;
    if (t < n) {
        key = s.key[t];
        for (int j = 0; j < n; j++) {
            const share one = {1, s.list_mass[j]};
            if (s.key[j] > key) larger = larger + one;
            if (s.key[j] == key) same = same + one;
        }
        const share with = larger + same;
        const uint64_t reached = by_count ? larger.count : larger.mass, reaches = by_count ? with.count : with.mass;
        found = reached <= target && reaches > target;
        atomicMin(&s.least_key, key);
    }
    const bool any = __syncthreads_or(found);
    if (any ? found : t < n && key == s.least_key) s.found_key = key, s.picked = larger; // threads of one key agree
    __syncthreads();
    return {s.found_key, s.picked};
}

// As find, among all tokens of a bin, digit by digit.
template <int kThreads>
__device__ place find_among_many(const row &r, shared &s, int bin, share before, bool by_count, uint64_t target) {
    const int t = threadIdx.x, n = r.chunks * kChunk;
    uint32_t prefix = 0, known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (t < kDigits) s.count[t] = 0, s.mass[t] = 0;
        __syncthreads();
        for (int i = t; i < n; i += kThreads) {
            const float z = r.z[i];
            const uint32_t key = key_of(z);
            if (!key || (key & known) != prefix || r.bin(z) != bin) continue;
            atomicAdd(&s.count[key >> shift & 255], 1u);
            atomicAdd(&s.mass[key >> shift & 255], static_cast<unsigned long long>(r.mass(z)));
        }
        __syncthreads();
        const int digit = kDigits - 1 - t;
        const share group = digit >= 0 ? share{s.count[digit], s.mass[digit]} : share{};
        choose<kThreads>(s, digit, before + sums_before<kThreads>(s, group), group, by_count, target);
        before = s.picked;
        prefix |= uint32_t(s.digit) << shift;
        known |= 255u << shift;
        __syncthreads();
    }
    return {prefix, before};
}

// Where the count (or else the mass) of tokens, the largest first, exceeds target; the last place if it never does. The
// bin's tokens are listed afterwards, if they fit.
template <int kThreads>
__device__ place find(const row &r, const share *chunk_bins, shared &s, bool by_count, uint64_t target) {
    static_assert(kThreads >= kBins && kThreads >= kDigits && kThreads <= 1024, "a thread per bin");
    const int t = threadIdx.x;
    const share above = t < kBins ? s.above[t] : share{};
    const uint64_t mass = t + 1 < kBins ? s.above[t + 1].mass - above.mass : ~0ull - above.mass;
    choose<kThreads>(s, t, above, t < kBins ? share{s.in_bin[t], mass} : share{}, by_count, target);
    const int bin = s.digit;
    const share before = s.picked;
    __syncthreads();
    if (s.in_bin[bin] > kListed || r.chunks > kListedChunks) return find_among_many<kThreads>(r, s, bin, before, by_count, target);
    list_bin<kThreads>(r, chunk_bins, s, bin);
    return find_listed<kThreads>(s, before, by_count, target);
}

// The token that is number skip among those of this key, by id; the last of them if there are fewer.
template <int kThreads>
__device__ int tie(const row &r, const share *chunk_bins, shared &s, uint32_t key, uint32_t skip) {
    static_assert(kChunk % kThreads == 0, "whole passes");
    const int bin = r.bin(of_key(key));
    if (s.in_bin[bin] <= kListed && r.chunks <= kListedChunks) { // find has listed them
        const int t = threadIdx.x;
        if (t < s.listed && s.key[t] == key) {
            uint32_t lower = 0, equal = 0;
            for (int j = 0; j < s.listed; j++)
                if (s.key[j] == key) equal++, lower += s.id[j] < s.id[t];
            if (lower == min(skip, equal - 1)) s.token = s.id[t];
        }
        __syncthreads();
        return s.token;
    }
    int last = -1;
    for (int base = 0, seen = 0; base < r.chunks * kChunk; base += kThreads) {
        if (!chunk_bins[base / kChunk * kBins + bin].count) continue;
        const int i = base + threadIdx.x;
        const bool equal = key_of(r.z[i]) == key;
        if (!__syncthreads_or(equal)) continue;
        const scan found_before = block_scan<kThreads>(equal);
        const best found = block_best<kThreads>({equal && uint32_t(seen + found_before.before) <= skip ? float(seen + found_before.before) : -1.0f, i});
        last = found.id;
        seen += found_before.total;
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

namespace atlas::sampling {

// The largest logit of a row.
template <int kThreads>
__device__ best row_best(const atlas_Sample &a, void *scratch, size_t n) {
    best top = {-INFINITY, 1 << 30};
    for (int i = threadIdx.x; i < chunks(a); i += kThreads) top = better(top, maxima(a, scratch, n)[i]);
    return block_best<kThreads>(top);
}

}  // namespace atlas::sampling

template <int kThreads>
__device__ void sample_bins(const atlas_Sample &a, void *scratch) {
    using namespace atlas::sampling;
    __shared__ uint32_t count[kBins], low[kBins], high[kBins];  // masses in two parts of 20 bits
    const size_t n = blockIdx.y;
    atlas::wait_for_previous();
    const float temperature = a.Temperature[n], min_p = a.MinP[n];
    if (!(temperature > 0)) return;
    const best top = row_best<kThreads>(a, scratch, n);
    if (top.z == -INFINITY) return;
    float *z = logits(a, scratch, n);
    const row r = {z, chunks(a), top.z, fminf(1.0f / temperature, FLT_MAX)};
    const double least = min_p > 0 ? double(top.z) + double(temperature) * log(double(min_p)) : -DBL_MAX;
    for (int b = threadIdx.x; b < kBins; b += kThreads) count[b] = 0, low[b] = 0, high[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * kChunk + threadIdx.x; i < int(blockIdx.x + 1) * kChunk; i += kThreads) {
        const float x = z[i];
        if (x == -INFINITY) continue;
        if (double(x) < least && x != top.z) {
            z[i] = -INFINITY;
            continue;
        }
        const int bin = r.bin(x);
        const uint64_t mass = r.mass(x);
        atomicAdd(&count[bin], 1u);
        if (const uint32_t part = mass & 0xfffff) atomicAdd(&low[bin], part);
        if (const uint32_t part = mass >> 20) atomicAdd(&high[bin], part);
    }
    __syncthreads();
    static_assert(kChunk <= 1 << 12, "sums of parts fit 32 bits");
    share *out = bins(a, scratch, n) + size_t(blockIdx.x) * kBins;
    for (int b = threadIdx.x; b < kBins; b += kThreads) out[b] = {count[b], (uint64_t(high[b]) << 20) + low[b]};
    atlas::release_next();
}

template <int kThreads>
__device__ void sample_draw(const atlas_Sample &a, void *scratch) {
    using namespace atlas::sampling;
    __shared__ shared s;
    __shared__ uint64_t total;
    const size_t n = blockIdx.x;
    atlas::wait_for_previous();
    const best top = row_best<kThreads>(a, scratch, n);
    const float temperature = a.Temperature[n];
    if (top.z == -INFINITY || !(temperature > 0)) {
        if (threadIdx.x == 0) a.Out[n] = top.z == -INFINITY ? -1 : top.id;
        return;
    }
    const row r = {logits(a, scratch, n), chunks(a), top.z, fminf(1.0f / temperature, FLT_MAX)};
    const share *chunk_bins = bins(a, scratch, n);
    static_assert(kThreads == 2 * kBins, "two threads per bin");
    share bin = {0, 0};
#pragma unroll 8
    for (int c = threadIdx.x / kBins; c < r.chunks; c += 2) bin = bin + chunk_bins[c * kBins + threadIdx.x % kBins];
    if (threadIdx.x >= kBins) s.above[threadIdx.x - kBins] = bin, bin = {0, 0};
    __syncthreads();
    if (threadIdx.x < kBins) bin = bin + s.above[threadIdx.x];
    const share above = sums_before<kThreads>(s, bin);
    if (threadIdx.x < kBins) s.above[threadIdx.x] = above, s.in_bin[threadIdx.x] = bin.count;
    if (threadIdx.x == kThreads - 1) total = above.mass + bin.mass;
    __syncthreads();
    uint64_t kept = total;
    if (a.TopK[n] > 0 && a.TopK[n] < a.Vocab) {
        const uint64_t target = a.TopK[n] - 1;
        kept = min(kept, mass_to<kThreads>(r, find<kThreads>(r, chunk_bins, s, true, target), true, target));
    }
    if (a.TopP[n] < 1) {
        const double limit = fmax(0.0, double(a.TopP[n])) * double(kept);
        const uint64_t target = limit < 1 ? 0 : uint64_t(ceil(limit)) - 1;
        kept = min(kept, mass_to<kThreads>(r, find<kThreads>(r, chunk_bins, s, false, target), false, target));
    }
    const uint64_t target = min(uint64_t(double(atlas::sampling::uniform(a.Seed[n], a.Position[n])) * double(kept)), kept - 1);
    const place p = find<kThreads>(r, chunk_bins, s, false, target);
    const uint64_t each = r.mass(of_key(p.key));
    const int id = tie<kThreads>(r, chunk_bins, s, p.key, each ? uint32_t((target - p.before.mass) / each) : 0);
    if (threadIdx.x == 0) a.Out[n] = id;
}
