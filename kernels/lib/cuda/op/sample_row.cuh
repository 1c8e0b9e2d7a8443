// A row of logits whose tokens the blocks of a cluster share: how tokens are ordered and weighed, and what a block does for the first.
#pragma once
#include <float.h>
#include "lib/cuda/atlas.cuh"
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/peer.cuh"
#include "lib/cuda/uniform.cuh"

namespace atlas::sampling {

constexpr int kBins = 512, kBinsPerNat = 16, kDigits = 256, kListed = 512;

template <int kBlocks>
__host__ __device__ constexpr int span_of(int vocab) {
    return (vocab + kBlocks * 4 - 1) / (kBlocks * 4) * 4;
}

struct best {
    float z;
    int id;
};
__device__ inline best better(best x, best y) { return y.z > x.z || (y.z == x.z && y.id < x.id) ? y : x; }

// Unsigned integers in the order of finite floats; 0 is left for what is ruled out.
__device__ inline uint32_t key_of(float z) {
    const uint32_t u = __float_as_uint(z);
    return z == -INFINITY ? 0 : (u >> 31 ? ~u : u | 0x80000000u);
}
__device__ inline float of_key(uint32_t k) { return __uint_as_float(k >> 31 ? k & 0x7fffffffu : ~k); }

// Tokens before a place in the order: how many, and how much.
struct share {
    uint32_t count;
    uint64_t mass;
};
__device__ inline share operator+(share x, share y) { return {x.count + y.count, x.mass + y.mass}; }

// A place: the token's key and what comes before the first token of that key.
struct place {
    uint32_t key;
    share before;
};

// What the first block asks of all.
enum task : int { kList, kCountDigits, kCountEqual, kPickEqual, kSumLikely, kEnd };
struct order {
    task what;
    int low, high;           // bins to list, or the bin in which to count; or the block that picks
    uint32_t key, known;     // count keys that agree in the known bits; or the halves of the least mass to sum
    int shift;               // by the digit there; or the number of the token to pick
};

struct shared {
    union {
        struct {
            uint32_t count[kBins], part[3][kBins];  // of this block's tokens; masses in parts of 16 bits
        };
        struct {  // of the first block: tokens that were listed
            uint32_t key[kListed], id[kListed];
            uint64_t list_mass[kListed];
        };
    };
    uint64_t bin_count[kBins], bin_mass[kBins];  // of all tokens, where this block sums the bin; in the first block then what lies above
    uint32_t in_bin[kBins];
    uint64_t digit_count[kDigits], digit_mass[kDigits];
    uint64_t last_kept;  // mass of the last token that a limit kept
    best tops[16], part_best[32];
    share sums[32], picked;
    order asked;
    uint32_t listed, equal[16], token, found_key, least_key;
    int digit, last;
};

// A block's part of a row that draws.
template <int kThreads, int kBlocks>
struct row {
    shared &s;
    float *z;
    int span, begin, rank;
    float max, inverse_temperature;

    __device__ uint64_t mass(float logit) const {
        const uint64_t m = uint64_t(__expf((logit - max) * inverse_temperature) * 1099511627776.0f);
        return m < 1ull << 40 ? m : (1ull << 40) - 1;
    }
    __device__ int bin(float logit) const { return int(fminf((max - logit) * inverse_temperature * kBinsPerNat, kBins - 1)); }
    template <typename T>
    __device__ uint32_t of_block(const T &x, int block) const {
        return address_in(__cvta_generic_to_shared(&x), block);
    }

    // f(logit, place in the span) of every token that is not ruled out.
    template <typename F>
    __device__ void each(F f) const {
        for (int g = threadIdx.x; g < span / 4; g += kThreads) {
            const float4 v = reinterpret_cast<const float4 *>(z)[g];
            const float x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (x[j] != -INFINITY) f(x[j], g * 4 + j);
        }
    }

    // Counts tokens by bins: the blocks share the bins' sums. Rules out logits below least first, but never the largest.
    __device__ void fill_bins(double least, float top) {
        each([&](float x, int i) {
            if (double(x) < least && x != top) {
                z[i] = -INFINITY;
                return;
            }
            const int b = bin(x);
            const uint64_t m = mass(x);
            atomicAdd(&s.count[b], 1u);
#pragma unroll
            for (int p = 0; p < 3; p++)
                if (const uint32_t part = m >> 16 * p & 0xffff) atomicAdd(&s.part[p][b], part);
        });
        __syncthreads();
        for (int b = threadIdx.x; b < kBins; b += kThreads) {
            if (!s.count[b]) continue;
            add_peer(of_block(s.bin_count[b], b % kBlocks), uint64_t(s.count[b]));
            add_peer(of_block(s.bin_mass[b], b % kBlocks), (uint64_t(s.part[2][b]) << 32) + (uint64_t(s.part[1][b]) << 16) + s.part[0][b]);
        }
        sync_cluster();
    }

    // Does this block's part of a task. What it finds goes to the first block.
    __device__ void serve(const order &o) const {
        if (o.what == kList)
            each([&](float x, int i) {
                const int b = bin(x);
                if (b < o.low || b > o.high) return;
                const uint32_t to = add_peer(of_block(s.listed, 0), 1u);
                store_peer(of_block(s.key[to], 0), key_of(x));
                store_peer(of_block(s.id[to], 0), uint32_t(begin + i));
                store_peer(of_block(s.list_mass[to], 0), mass(x));
            });
        if (o.what == kCountDigits)
            each([&](float x, int) {
                const uint32_t key = key_of(x), digit = key >> o.shift & (kDigits - 1);
                if ((key & o.known) != o.key || bin(x) != o.low) return;
                add_peer(of_block(s.digit_count[digit], 0), uint64_t(1));
                add_peer(of_block(s.digit_mass[digit], 0), mass(x));
            });
        if (o.what == kCountEqual)
            each([&](float x, int) {
                if (key_of(x) == o.key) add_peer(of_block(s.equal[rank], 0), 1u);
            });
        if (o.what == kSumLikely) {
            const uint64_t least = uint64_t(o.known) << 32 | o.key;
            if (threadIdx.x == 0) s.least_key = ~0u;
            __syncthreads();
            each([&](float x, int) {
                const uint64_t m = mass(x);
                if (m < least) return;
                atomicMin(&s.least_key, key_of(x));
                add_peer(of_block(s.digit_mass[0], 0), m);
            });
            __syncthreads();
            if (threadIdx.x == 0) store_peer(of_block(s.equal[rank], 0), s.least_key);
        }
        if (o.what == kPickEqual && o.low == rank)
            for (int base = 0, seen = 0; base < span; base += kThreads) {
                const int i = base + threadIdx.x;
                const bool equal = i < span && key_of(z[i]) == o.key;
                const scan before = block_scan<kThreads>(equal);
                if (equal && seen + before.before == o.shift) store_peer(of_block(s.token, 0), uint32_t(begin + i));
                seen += before.total;
            }
    }

    // The first block calls it, all its threads, and the others wait for it in work.
    __device__ void ask(const order &o) const {
        for (int b = threadIdx.x; b < kBlocks; b += kThreads) {
            const uint32_t to = of_block(s.asked, b);
            const uint32_t words[6] = {uint32_t(o.what), uint32_t(o.low), uint32_t(o.high), o.key, o.known, uint32_t(o.shift)};
#pragma unroll
            for (int i = 0; i < 6; i++) store_peer(to + i * 4, words[i]);
        }
        sync_cluster();
        if (o.what == kEnd) return;
        serve(o);
        sync_cluster();
    }
    __device__ void work() const {
        for (;;) {
            sync_cluster();
            if (s.asked.what == kEnd) return;
            serve(s.asked);
            sync_cluster();
        }
    }
};

}  // namespace atlas::sampling
