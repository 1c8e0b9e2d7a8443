// q6_k times one row of activations as whole numbers, as fixed.cuh has the other formats. Here a block is 16 columns, a step, and has two of the eight
// columns of a product: a sum takes the four blocks of a unit. Codes are bytes of no sign, those of rows g+8 four times as large.
#pragma once
#include "lib/cuda/weight/fixed.cuh"

namespace atlas {

// A row has 128 bytes for a unit of 64 columns, which are for each block 16 high bytes and 16 low ones; behind it, for each block, four floats: what its
// numbers are counted in, a quarter of that, and minus 32 times their sum, for by 32 are codes too large.
template <>
struct fixed_form<ATLAS_SCHEME_Q6_K> {
    static constexpr int kColumns = 1, kUnitFactors = 64;
    __device__ static uint32_t at(uint32_t row, int column) { return row + column * 2; }
    __device__ static uint32_t factors_at(uint32_t factors, int column) { return factors + column; }
    // As other formats have it; the block is the lane's own.
    __device__ static void put(uint32_t at, uint32_t factors, bool there, const f32x8 &low_columns, const f32x8 &high_columns) {
        const uint32_t exponent = max(__float_as_uint(most_of(low_columns, high_columns)) >> 23, 18);
        const float up = __uint_as_float((267 - exponent) << 23);
        const float unit = exponent == 255 ? __uint_as_float(0x7fc00000) : __uint_as_float((exponent - 13) << 23);
        const whole_numbers numbers(low_columns, high_columns, up);
        if (!there) return;
        numbers.put(at, at + 16);
        store_shared(factors, {__float_as_uint(unit), __float_as_uint(unit * 0x1p-2f), __float_as_uint(float(numbers.sum()) * (unit * -32)), 0});
    }
};

template <int kStrips, int kStride>
struct fixed_product<ATLAS_SCHEME_Q6_K, kStrips, kStride> {
    using form = fixed_form<ATLAS_SCHEME_Q6_K>;
    using layout = frag<ATLAS_SCHEME_Q6_K>;
    static constexpr float kFactor = 1;
    uint4 codes[kStrips][2];
    uint32_t scales[kStrips], factors[kStrips];  // of rows g and g+8: bytes of the lane's block, f16 of the unit
    uint4 factor;
    uint32_t x[4];

    // Where a lane's turns in ldmatrix read: a matrix is a block, and zeros elsewhere, on other banks.
    struct lines {
        uint32_t at, own, factors;
        __device__ lines(uint32_t from, uint32_t row_factors, uint32_t zeros) {
            const int column = lane() % 8, matrix = lane() / 8;
            own = held(column / 2 == matrix ? ~0u : 0);
            at = held(own ? from + matrix * 32 + column % 2 * 16 : zeros + (matrix ^ 1) * 32);
            factors = held(row_factors + lane() % 4 * 16);
        }
        __device__ uint32_t ready() const { return at ^ own ^ factors; }
        __device__ lines moved(uint32_t bytes) const {
            lines m = *this;
            m.at += bytes & own, m.factors += bytes / 2;
            return m;
        }
    };

    __device__ static int codes_at() { return layout::lane_at(); }
    __device__ static int scales_at() { return kSixScalesAt + lane() * 2; }
    __device__ void load(uint32_t codes_at, uint32_t scales_at, int strip_bytes, const lines &from, int offset) {
        load_matrices(x, from.at + offset);
        factor = load_shared(from.factors + offset / 2);
#pragma unroll
        for (int s = 0; s < kStrips; s++) {
            layout::load(codes_at + s * strip_bytes, codes[s]);
            scales[s] = load_shared_half(scales_at + s * strip_bytes);
            factors[s] = load_shared1(scales_at + s * strip_bytes + (kSixFactorsAt - kSixScalesAt + lane() / 4 * 4 - lane() * 2));
        }
    }
    // c += kUnits units, all of which are there.
    template <int kUnits>
    __device__ static void multiply(const fixed_product *units, const lines &, int, int, const float (&)[kUnits][kStrips], float (&c)[kStrips][1][4]) {
        int p[kUnits][kStrips][4] = {};
#pragma unroll
        for (int pair = 0; pair < 2; pair++)
#pragma unroll
            for (int u = 0; u < kUnits; u++)
#pragma unroll
                for (int s = 0; s < kStrips; s++) {
                    const uint4 &w = units[u].codes[s][0], &others = units[u].codes[s][1];
                    uint32_t a[4];
                    join_sixes<false>(pair ? w.z : w.x, pair ? others.y : others.x, a[0], a[1]);
                    join_sixes<true>(pair ? w.w : w.y, pair ? others.y : others.x, a[2], a[3]);
                    product<false>(p[u][s], a, units[u].x[2 * pair], units[u].x[2 * pair + 1]);
                }
#pragma unroll
        for (int u = 0; u < kUnits; u++)
#pragma unroll
            for (int s = 0; s < kStrips; s++) units[u].scale(s, p[u][s], c[s][0]);
    }

    __device__ static void gather(float (&sum)[4]) { fixed_product<ATLAS_SCHEME_Q8_0, kStrips, kStride>::gather(sum); }
    __device__ static int row_of(int i) { return lane() % 4 == 0 && i % 2 == 0 ? 0 : 1; }

  private:
    __device__ void scale(int s, const int (&p)[4], float (&c)[4]) const {
        const float2 by = six_scales<0>(scales[s], factors[s]);
        const float units[2] = {__uint_as_float(factor.x), __uint_as_float(factor.y)}, least = __uint_as_float(factor.z);
#pragma unroll
        for (int i = 0; i < 2; i++) c[2 * i] = fmaf(fmaf(float(p[2 * i] * 256 + p[2 * i + 1]), units[i], least), i ? by.y : by.x, c[2 * i]);
    }
};

}  // namespace atlas
