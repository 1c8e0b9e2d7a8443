// What the logits of a row are as a whole: how far they lie apart, and how even the distribution is that they make.
#pragma once
#include "lib/cuda/op/sample_row.cuh"

namespace atlas::sampling {

// Sums over logits less the largest, x: of 1, x, x², eˣ and x·eˣ.
struct moments {
    double count, sum, squares, heat, moment;

    // NaN where squares are too large for f32.
    __device__ double deviation() const {
        const double variance = squares / count - sum / count * (sum / count);
        return variance <= 0 ? 0 : sqrt(variance);
    }
    // In nats, at temperature 1.
    __device__ double entropy() const { return log(heat) - moment / heat; }
};

// The sums of a row. All blocks get the same bits.
template <int kThreads, int kBlocks>
__device__ moments moments_of(const row<kThreads, kBlocks> &r) {
    constexpr int kSums = 5, kWarps = kThreads / 32;
    static_assert(kWarps * kSums <= kDigits && kBlocks * kSums <= kDigits && kBlocks <= kThreads);
    shared &s = r.s;
    // A thread's f32 sums are of distances from its first logit, which lie nearer to each other than to the largest.
    float first = 0, sum = 0, squares = 0, heat = 0, moment = 0;
    int count = 0;
    r.each([&](float z, int) {
        if (count++ == 0) first = z;
        const float x = z - first, less = fmaxf(z - r.max, -100.0f), e = __expf(less);
        sum += x, squares += x * x, heat += e, moment += less * e;
    });
    const double shift = count ? double(first) - double(r.max) : 0;
    double v[kSums] = {double(count), sum + count * shift, squares + 2 * shift * sum + count * shift * shift, heat, moment};
#pragma unroll
    for (int i = 0; i < kSums; i++) {
        for (int d = 16; d; d /= 2) v[i] += __shfl_xor_sync(kAllLanes, v[i], d);
        if (lane() == 0) s.digit_count[warp() * kSums + i] = __double_as_longlong(v[i]);
    }
    __syncthreads();
    if (threadIdx.x < kBlocks * kSums) {
        const int to = threadIdx.x / kSums, i = threadIdx.x % kSums;
        double total = 0;
        for (int w = 0; w < kWarps; w++) total += __longlong_as_double(s.digit_count[w * kSums + i]);
        store_peer(r.of_block(s.digit_mass[r.rank * kSums + i], to), uint64_t(__double_as_longlong(total)));
    }
    sync_cluster();
    for (int i = 0; i < kSums; i++) {
        v[i] = 0;
        for (int b = 0; b < kBlocks; b++) v[i] += __longlong_as_double(s.digit_mass[b * kSums + i]);
    }
    return {v[0], v[1], v[2], v[3], v[4]};
}

}  // namespace atlas::sampling
