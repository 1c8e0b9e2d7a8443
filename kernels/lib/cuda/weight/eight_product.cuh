// A warp's products of strips with at most eight rows that lie one behind another in shared memory, as unit_product has them for any
// scheme, spread_product for nvfp4 and four rows, fixed_product for GGUF's formats and half_product for FP8 and one row.
#pragma once
#include "lib/cuda/weight/fixed_six.cuh"
#include "lib/cuda/weight/half.cuh"
#include "lib/cuda/weight/spread.cuh"

namespace atlas {

template <atlas_Scheme kScheme, int kRows, int kStrips, bool kSpreads, lifting kLifting>
struct eight_product : unit_product<kScheme, 1, kStrips, kLifting> {
    using base = unit_product<kScheme, 1, kStrips, kLifting>;
    using base::kFactor;
    struct lines {
        uint32_t from, lanes[1];
        ones<kScheme> one;
        __device__ lines(uint32_t from, int rows, int pitch, uint32_t) : from(held(from)), lanes{held(min(lane() % 8, rows - 1) * pitch + lane() / 8 * 16)} {}
        __device__ uint32_t ready() const { return from ^ lanes[0]; }
        __device__ lines moved(int bytes) const {
            lines m = *this;
            m.from += bytes;
            return m;
        }
    };
    __device__ static int codes_at() { return unit<kScheme>::codes_at(); }
    __device__ static int scales_at() { return unit<kScheme>::scales_at(); }
    __device__ void load(uint32_t codes, uint32_t scales, int strip_bytes, const lines &x, int offset) { base::load(codes, scales, strip_bytes, x.from + offset, x.lanes); }
    template <int kUnits>
    __device__ static void multiply(eight_product *units, const lines &x, int offset, int left, const float (&block)[kUnits][kStrips], float (&c)[kStrips][1][4]) {
#pragma unroll
        for (int u = 0; u < kUnits; u++) units[u].base::multiply(x.one, x.from + offset + u * 1024, x.lanes, left, block[u], c);
    }
    __device__ static void gather(float (&)[4]) {}
    __device__ static int row_of(int i) { return lane() % 4 * 2 + i % 2; }
};
template <int kRows, int kStrips>
struct eight_product<ATLAS_SCHEME_NVFP4, kRows, kStrips, true, kLifted> : spread_product<kRows, kStrips> {};
template <atlas_Scheme kScheme, int kStrips>
struct eight_product<kScheme, 1, kStrips, true, kExact> : fixed_product<kScheme, kStrips, 8> {};
template <int kStrips>
struct eight_product<ATLAS_SCHEME_F8, 1, kStrips, true, kExact> : half_product<ATLAS_SCHEME_F8, kStrips, 8> {};
template <int kStrips>
struct eight_product<ATLAS_SCHEME_F8BLOCK, 1, kStrips, true, kExact> : half_product<ATLAS_SCHEME_F8BLOCK, kStrips, 8> {};

}  // namespace atlas
