// q8_0, q4_0 and q4_1 times one row of activations as whole numbers, which tensor cores add up exactly. A block of 32 columns has
// numbers of 15 bits, in units of a power of two such that its largest takes them all; each is 256 times a signed byte, and
// another. Codes are bytes as they lie, or with a mask. Of the eight columns of a product two belong to each block, for both bytes, and are zeros in the
// other blocks: a sum takes four blocks, which are two units of 64 columns, and one lane of four has the sums of one block, which it scales.
#pragma once
#include "lib/cuda/weight/made_row.cuh"

namespace atlas {

// c[16,8] += a[16,32]·b[32,8]: weights' bytes, with a sign or without one, and signed bytes. Lane 4g+t holds of a the rows g, g+8, g,
// g+8 at columns 4t, 4t, 4t+16, 4t+16 (four each), of b the rows 4t and 4t+16 (four each) of column g, of c what mma.cuh says.
template <bool kSigned>
__device__ __forceinline__ void product(int (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (kSigned)
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Sixteen columns, 0-7 and 8-15, times a power of two, as numbers of 15 bits in the order of a product's columns.
struct whole_numbers {
    uint32_t high[4], low[4];  // signed bytes: a number is 256 times one and another

    __device__ whole_numbers(const f32x8 &low_columns, const f32x8 &high_columns, float up) {
#pragma unroll
        for (int t = 0; t < 4; t++) {
            // The low half of each is the number and 128, so that its upper byte is rounded.
            const auto number = [&](float x) { return __float_as_uint(fmaf(x, up, 12582912.0f + 128)); };
            const uint32_t even = __byte_perm(number(low_columns.v[2 * t]), number(high_columns.v[2 * t]), 0x5410);
            const uint32_t odd = __byte_perm(number(low_columns.v[2 * t + 1]), number(high_columns.v[2 * t + 1]), 0x5410);
            high[t] = __byte_perm(even, odd, 0x7531), low[t] = __byte_perm(even, odd, 0x6420) ^ 0x80808080;
        }
    }
    __device__ int sum() const {
        int sums[4];
#pragma unroll
        for (int t = 0; t < 4; t++) sums[t] = __dp4a(int(low[t]), 0x01010101, __dp4a(int(high[t]), 0x01010101, 0) * 256);
        return sums[0] + sums[1] + (sums[2] + sums[3]);
    }
    __device__ void put(uint32_t high_at, uint32_t low_at) const {
        store_shared(high_at, {high[0], high[1], high[2], high[3]}), store_shared(low_at, {low[0], low[1], low[2], low[3]});
    }
};

// How a row lies in shared memory: 128 bytes for a unit of 64 columns, which are for each block 32 high bytes and 32 low ones, in the
// order of a product's columns. Behind the row, for each block, four floats: what its numbers are counted in; a sixteenth of that, for nibbles of
// rows g+8 are left sixteen times as large; and in q4_0 minus eight times their sum, for by eight are codes too large, in q4_1 the
// sum, by which the minimum is multiplied. 256 bytes follow, which a last unit alone may read.
template <atlas_Scheme kScheme>
struct fixed_form {
    static constexpr int kColumns = 2, kUnitFactors = 32;  // bytes of a unit's factors
    __device__ static uint32_t at(uint32_t row, int column) { return row + column / 32 * 64 + column % 32; }
    __device__ static uint32_t factors_at(uint32_t factors, int column) { return factors + column / 32 * 16; }
    // Makes numbers of a lane's sixteen columns, 0-7 and 8-15; two lanes have a block. A number is the activation, rounded by half a unit, which is a
    // 2⁻¹³th of the block's largest at most; what is no smaller than a 64th of that is exact. Where a value of a block is no finite number, the
    // block has none. Puts them, and what belongs to the block, where there.
    __device__ static void put(uint32_t at, uint32_t factors, bool there, const f32x8 &low_columns, const f32x8 &high_columns) {
        constexpr bool kLeast = kScheme != ATLAS_SCHEME_Q8_0;
        float most = most_of(low_columns, high_columns);
        most = most_of(most, __shfl_xor_sync(kAllLanes, most, 1));
        const uint32_t exponent = max(__float_as_uint(most) >> 23, 18);  // so that a sixteenth of the unit is no subnormal
        const float up = __uint_as_float((267 - exponent) << 23);
        const float unit = exponent == 255 ? __uint_as_float(0x7fc00000) : __uint_as_float((exponent - 13) << 23);
        const whole_numbers numbers(low_columns, high_columns, up);
        int sum = 0;
        if (kLeast) sum = numbers.sum(), sum += __shfl_xor_sync(kAllLanes, sum, 1);
        if (!there) return;
        numbers.put(at, at + 32);
        if (lane() % 2) return;
        const float least = float(sum) * (kScheme == ATLAS_SCHEME_Q4_0 ? unit * -8 : unit);
        store_shared(factors, {__float_as_uint(unit), __float_as_uint(unit * 0x1p-4f), __float_as_uint(least), 0});
    }
};

// kStride: from one unit of a warp to the next, in units.
template <atlas_Scheme kScheme, int kStrips, int kStride>
struct fixed_product {
    using form = fixed_form<kScheme>;
    using layout = frag<kScheme>;
    using unit_t = unit<kScheme>;
    static_assert(kScheme == ATLAS_SCHEME_Q8_0 || kScheme == ATLAS_SCHEME_Q4_0 || kScheme == ATLAS_SCHEME_Q4_1, "whole numbers");
    static constexpr bool kMinima = kScheme == ATLAS_SCHEME_Q4_1;
    static constexpr float kFactor = 1;
    static constexpr int kNext = kStride * unit_t::kBytes, kNextRow = kStride * 128;  // bytes of weights, of the row
    uint4 codes[kStrips][layout::kVectors];
    uint2 scales[kStrips], minima[kStrips];  // of the lane's block, in the first of two units
    uint4 factor;
    uint32_t x[4];

    // Where a lane's turns in ldmatrix read, in the first and the second of two units. What is zero there is read at `zeros`, which
    // does not move on; on other banks.
    struct lines {
        uint32_t at[2], own[2], factors;
        // from: the row's part of this warp's first unit; row_factors: what belongs to that.
        __device__ lines(uint32_t from, uint32_t row_factors, uint32_t zeros) {
            const int column = lane() % 8, matrix = lane() / 8, t = lane() % 4;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                own[h] = held(column / 2 == 2 * h + matrix / 2 ? ~0u : 0);
                at[h] = held(own[h] ? from + matrix / 2 * 64 + column % 2 * 32 + matrix % 2 * 16 : zeros + matrix / 2 * 64 + (1 - matrix % 2) * 16);
            }
            factors = held(row_factors + t / 2 * (kNextRow / 4) + t % 2 * 16);
        }
        // What hangs on all of this, for settle.
        __device__ uint32_t ready() const { return at[0] ^ at[1] ^ own[0] ^ own[1] ^ factors; }
        __device__ lines moved(uint32_t bytes) const {
            lines m = *this;
            m.at[0] += bytes & own[0], m.at[1] += bytes & own[1], m.factors += bytes / 4;
            return m;
        }
    };

    __device__ static int codes_at() { return unit_t::codes_at(); }
    __device__ static int scales_at() {
        const int t = lane() % 4;
        return unit_t::scales_at() + t / 2 * kNext + (kScheme == ATLAS_SCHEME_Q8_0 ? t % 2 * layout::kBlock : 0);
    }
    // offset: kNextRow for each unit of the warp before this one; every other is a first one.
    __device__ void load(uint32_t codes_at, uint32_t scales_at, int strip_bytes, const lines &from, int offset) {
        const int h = offset / kNextRow % 2;
        load_matrices(x, from.at[h] + offset);
        if (h == 0) factor = load_shared(from.factors + offset / 4);
#pragma unroll
        for (int s = 0; s < kStrips; s++) {
            layout::load(codes_at + s * strip_bytes, codes[s]);
            if (h) continue;
            if constexpr (kScheme == ATLAS_SCHEME_Q8_0) scales[s].x = load_shared1(scales_at + s * strip_bytes);
            else scales[s] = load_shared2(scales_at + s * strip_bytes);
            if constexpr (kMinima) minima[s] = load_shared2(scales_at + s * strip_bytes + 64);
        }
    }
    // c += kUnits units; one alone, of which `left` columns are there, counts as a first one.
    template <int kUnits>
    __device__ static void multiply(const fixed_product *units, const lines &, int, int left, const float (&)[kUnits][kStrips], float (&c)[kStrips][1][4]) {
        constexpr int kPair = kUnits == 1 ? 1 : 2, kPairs = kUnits / kPair;
        static_assert(kPairs * kPair == kUnits, "two units at a time");
        int p[kPairs][kStrips][4] = {};
#pragma unroll
        for (int u = 0; u < kPair; u++)
#pragma unroll
            for (int block = 0; block < 2; block++)
#pragma unroll
                for (int q = 0; q < kPairs; q++)
#pragma unroll
                    for (int s = 0; s < kStrips; s++) {
                        const fixed_product &unit = units[q * kPair + u];
                        uint32_t a[4];
                        fragment(unit.codes[s], block, a);
                        product<kScheme == ATLAS_SCHEME_Q8_0>(p[q][s], a, unit.x[2 * block], unit.x[2 * block + 1]);
                    }
        const bool there = kUnits > 1 || lane() % 4 * 32 < min(left, 64);  // or this lane's block is another unit's
#pragma unroll
        for (int q = 0; q < kPairs; q++)
#pragma unroll
            for (int s = 0; s < kStrips; s++) units[q * kPair].scale(s, there, p[q][s], c[s][0]);
    }

    // Adds up what four lanes have of a row's sums; the row of a lane's sum i, or one that is none.
    __device__ static void gather(float (&sum)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i += 2)
#pragma unroll
            for (int d = 1; d < 4; d *= 2) sum[i] += __shfl_xor_sync(kAllLanes, sum[i], d);
    }
    __device__ static int row_of(int i) { return lane() % 4 == 0 && i % 2 == 0 ? 0 : 1; }

  private:
    // Both steps of a block, four columns in a word: 2t, 2t+8, 2t+1, 2t+9 of each step.
    __device__ static void fragment(const uint4 (&codes)[layout::kVectors], int block, uint32_t (&a)[4]) {
        if constexpr (kScheme == ATLAS_SCHEME_Q8_0) {
            const uint4 w = codes[block];
            a[0] = w.x, a[1] = w.y, a[2] = w.z, a[3] = w.w;
        } else {
            const uint32_t first = block ? codes[0].z : codes[0].x, second = block ? codes[0].w : codes[0].y;
            a[0] = first & 0x0f0f0f0f, a[1] = first & 0xf0f0f0f0;
            a[2] = second & 0x0f0f0f0f, a[3] = second & 0xf0f0f0f0;
        }
    }
    // Of rows g and g+8, in the lane's block.
    __device__ static float2 halves(uint2 words) {
        const uint32_t pair = kScheme == ATLAS_SCHEME_Q8_0 ? words.x : __byte_perm(words.x, words.y, lane() % 2 ? 0x7632 : 0x5410);
        return __half22float2(reinterpret_cast<const __half2 &>(pair));
    }
    __device__ void scale(int s, bool there, const int (&p)[4], float (&c)[4]) const {
        const float2 by = halves(scales[s]), m = kMinima ? halves(minima[s]) : float2{};
        const float units[2] = {__uint_as_float(factor.x), __uint_as_float(layout::kFour ? factor.y : factor.x)}, least = __uint_as_float(factor.z);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float sum = float(p[2 * i] * 256 + p[2 * i + 1]), d = i ? by.y : by.x;
            float all = fmaf(kScheme == ATLAS_SCHEME_Q4_0 ? fmaf(sum, units[i], least) : sum * units[i], d, c[2 * i]);
            if (kMinima) all = fmaf(least, i ? m.y : m.x, all);
            c[2 * i] = there ? all : c[2 * i];
        }
    }
};

}  // namespace atlas
