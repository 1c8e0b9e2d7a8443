// A warp's products of strips with the few picks of a tile, as unit_product has them for any scheme, spread_product for nvfp4 and two picks,
// fixed_product for GGUF's formats and one.
#pragma once
#include "lib/cuda/weight/fixed_six.cuh"
#include "lib/cuda/weight/ring.cuh"

namespace atlas {

template <atlas_Scheme kScheme, int kStrips, bool kSpreads>
struct few_product : unit_product<kScheme, 1, kStrips, kLifted> {
    using base = unit_product<kScheme, 1, kStrips, kLifted>;
    static constexpr bool kLifts = unit<kScheme>::kLifts;
    static constexpr int kAtOnce = 1;  // units
    using base::kFactor;
    // Where a lane's turns in ldmatrix read; a column's row begins `line` bytes after `from`.
    struct lines {
        uint32_t lanes[1], from;
        ones<kScheme> one;
        __device__ lines(uint32_t from, uint32_t) : lanes{uint32_t(lane() / 8 * 16)}, from(from) {}
        __device__ lines with(uint32_t line) const {
            lines m = *this;
            m.lanes[0] += line;
            return m;
        }
        __device__ lines moved(uint32_t bytes) const {
            lines m = *this;
            m.from += bytes;
            return m;
        }
    };
    __device__ static int codes_at() { return unit<kScheme>::codes_at(); }
    __device__ static int scales_at() { return unit<kScheme>::scales_at(); }
    __device__ void load(uint32_t codes, uint32_t scales, int strip_bytes, const lines &x, int offset) { base::load(codes, scales, strip_bytes, x.from + offset, x.lanes); }
    // c += kUnits units, whose rows lie `step` bytes apart. left: columns that there are; block(s, i): f8block's scale of strip s, unit i.
    template <int kUnits, typename Block>
    __device__ static void multiply(few_product *units, const lines &x, int step, int left, const Block &block, float (&c)[kStrips][1][4]) {
#pragma unroll
        for (int i = 0; i < kUnits; i++) {
            float factor[kStrips];
#pragma unroll
            for (int s = 0; s < kStrips; s++) factor[s] = block(s, i);
            units[i].base::multiply(x.one, x.from + i * step, x.lanes, left - i * 64, factor, c);
        }
    }
    // Calls store(column, row, sum) for the sums of a strip that this lane has.
    template <typename Store>
    __device__ static void each(const float (&c)[4], const Store &store) {
#pragma unroll
        for (int i = 0; i < 4; i++) store(lane() % 4 * 2 + i % 2, lane() / 4 + i / 2 * 8, c[i]);
    }
};

template <int kStrips>
struct few_product<ATLAS_SCHEME_NVFP4, kStrips, true> : spread_product<2, kStrips> {
    using base = spread_product<2, kStrips>;
    static constexpr bool kLifts = true;
    static constexpr int kAtOnce = 1;
    struct lines : base::lines {
        __device__ lines(uint32_t from, uint32_t zeros) : base::lines(from, 1, 0, zeros) {}
        __device__ lines with(uint32_t line) const { return moved(line); }
        __device__ lines moved(uint32_t bytes) const {
            lines m = *this;
            m.at[0] += bytes & m.own[0], m.at[1] += bytes & m.own[1];
            return m;
        }
    };
    template <int kUnits, typename Block>
    __device__ static void multiply(few_product *units, const lines &x, int, int, const Block &, float (&c)[kStrips][1][4]) {
        base::template multiply<kUnits>(units, x, 0, 0, {}, c);
    }
    // Four lanes have a part each of a row's four sums: each adds up one.
    template <typename Store>
    __device__ static void each(const float (&c)[4], const Store &store) {
        const bool high = lane() & 2, odd = lane() & 1;
        const float even_sum = (high ? c[2] : c[0]) + __shfl_xor_sync(kAllLanes, high ? c[0] : c[2], 2);
        const float odd_sum = (high ? c[3] : c[1]) + __shfl_xor_sync(kAllLanes, high ? c[1] : c[3], 2);
        const float sum = (odd ? odd_sum : even_sum) + __shfl_xor_sync(kAllLanes, odd ? even_sum : odd_sum, 1);
        store(lane() % 2, lane() / 4 + lane() % 4 / 2 * 8, sum);
    }
};

// One row of GGUF's formats, whose numbers a warp has made for itself.
template <atlas_Scheme kScheme, int kStrips>
struct few_product<kScheme, kStrips, true> : fixed_product<kScheme, kStrips, 1> {
    using base = fixed_product<kScheme, kStrips, 1>;
    static constexpr bool kLifts = false;
    static constexpr int kAtOnce = 2;
    template <int kUnits, typename Block>
    __device__ static void multiply(few_product *units, const typename base::lines &x, int, int, const Block &, float (&c)[kStrips][1][4]) {
        base::template multiply<kUnits>(units, x, 0, 64, {}, c);
    }
    template <typename Store>
    __device__ static void each(const float (&c)[4], const Store &store) {
        float sum[4] = {c[0], 0, c[2], 0};
        base::gather(sum);
        if (lane() % 4 == 0) store(0, lane() / 4, sum[0]), store(0, lane() / 4 + 8, sum[2]);
    }
};

}  // namespace atlas
