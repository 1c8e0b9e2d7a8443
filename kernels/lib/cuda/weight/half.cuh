// FP8 times one row of activations in f16, which one instruction makes of two codes; bf16 takes six for four. A unit of 64 columns of the row has a power of two by
// which its largest fits (half_form), so that what is no smaller than a 2⁻²⁸th of that is as exact as in bf16.
#pragma once
#include "lib/cuda/weight/made_row.cuh"

namespace atlas {

// c[16,8] += a[16,16]·b[16,8] as mma.cuh has it, f16 factors, f32 sums; may be moved.
__device__ __forceinline__ void product_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four e4m3 codes as f16: those of the low half and those of the high one.
__device__ __forceinline__ void widen_e4m3(uint32_t codes, uint32_t &low, uint32_t &high) {
    asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.rn.f16x2.e4m3x2 %0, l;\ncvt.rn.f16x2.e4m3x2 %1, h;\n}" : "=r"(low), "=r"(high) : "r"(codes));
}

// How a row lies: as in bf16, but of sixteen columns 0, 8, 2, 10 … 14, 1, 9 … 15, for so a code's word has the factors of a product; behind the
// row a float for each unit, by which sums are multiplied.
struct half_form {
    static constexpr int kColumns = 16, kUnitFactors = 4;  // bytes of a unit's factor
    __device__ static uint32_t at(uint32_t row, int column) { return row + column * 2; }
    __device__ static uint32_t factors_at(uint32_t factors, int column) { return factors + column / 64 * 4; }
    // A lane's sixteen columns, 0-7 and 8-15; four lanes have a unit. Where a value of a unit is no finite number, the unit has none.
    __device__ static void put(uint32_t at, uint32_t factors, bool there, const f32x8 &low_columns, const f32x8 &high_columns) {
        float most = most_of(low_columns, high_columns);
        most = most_of(most, __shfl_xor_sync(kAllLanes, most, 1));
        most = most_of(most, __shfl_xor_sync(kAllLanes, most, 2));
        const uint32_t exponent = max(__float_as_uint(most) >> 23, 15);  // so that a unit's factor is no subnormal
        const float up = __uint_as_float((268 - exponent) << 23);           // below 2¹⁵
        uint32_t even[4], odd[4];
#pragma unroll
        for (int t = 0; t < 4; t++) {
            even[t] = pair(low_columns.v[2 * t] * up, high_columns.v[2 * t] * up);
            odd[t] = pair(low_columns.v[2 * t + 1] * up, high_columns.v[2 * t + 1] * up);
        }
        if (!there) return;
        store_shared(at, {even[0], even[1], even[2], even[3]}), store_shared(at + 16, {odd[0], odd[1], odd[2], odd[3]});
        if (lane() % 4 == 0) store_shared1(factors, exponent == 255 ? 0x7fc00000 : (exponent - 14) << 23);
    }

  private:
    __device__ static uint32_t pair(float low, float high) {
        const __half2 x = __floats2half2_rn(low, high);
        return reinterpret_cast<const uint32_t &>(x);
    }
};

// kStride: from one unit of a warp to the next, in units.
template <atlas_Scheme kScheme, int kStrips, int kStride>
struct half_product {
    using form = half_form;
    using layout = frag<kScheme>;
    using unit_t = unit<kScheme>;
    static_assert(layout::kRaw, "e4m3 codes");
    static constexpr float kFactor = 1;
    uint4 codes[kStrips][2];
    uint32_t x[2][4], factor;

    // Where a lane's turns in ldmatrix read; all columns of a product have the same row. factors: what belongs to the unit.
    struct lines {
        uint32_t from, factors;
        // at: the row's part of this warp's first unit; row_factors: what belongs to that.
        __device__ lines(uint32_t at, uint32_t row_factors, uint32_t) : from(held(at + lane() / 8 * 16)), factors(held(row_factors)) {}
        __device__ uint32_t ready() const { return from ^ factors; }
        __device__ lines moved(uint32_t bytes) const {
            lines m = *this;
            m.from += bytes, m.factors += bytes / 32;
            return m;
        }
    };
    __device__ static int codes_at() { return unit_t::codes_at(); }
    __device__ static int scales_at() { return 0; }
    __device__ void load(uint32_t codes_at, uint32_t, int strip_bytes, const lines &row, int offset) {
        load_matrices(x[0], row.from + offset), load_matrices(x[1], row.from + offset + 64);
        factor = load_shared1(row.factors + offset / 32);
#pragma unroll
        for (int s = 0; s < kStrips; s++)
#pragma unroll
            for (int v = 0; v < 2; v++) codes[s][v] = load_shared(codes_at + s * strip_bytes + v * layout::kNext);
    }
    // c += kUnits units. block: f8block's scales.
    template <int kUnits>
    __device__ static void multiply(const half_product *units, const lines &, int, int, const float (&block)[kUnits][kStrips], float (&c)[kStrips][1][4]) {
        float p[kUnits][kStrips][4] = {};
#pragma unroll
        for (int step = 0; step < 4; step++)
#pragma unroll
            for (int u = 0; u < kUnits; u++)
#pragma unroll
                for (int s = 0; s < kStrips; s++) {
                    const uint32_t(&b)[4] = units[u].x[step / 2];
                    uint32_t a[4];
                    widen_e4m3(word(units[u].codes[s][0], step), a[0], a[2]), widen_e4m3(word(units[u].codes[s][1], step), a[1], a[3]);
                    product_f16(p[u][s], a, b[step % 2 * 2], b[step % 2 * 2 + 1]);
                }
#pragma unroll
        for (int u = 0; u < kUnits; u++)
#pragma unroll
            for (int s = 0; s < kStrips; s++) {
                const float by = __uint_as_float(units[u].factor) * (kScheme == ATLAS_SCHEME_F8BLOCK ? block[u][s] : 1.0f);
                c[s][0][0] = fmaf(p[u][s][0], by, c[s][0][0]), c[s][0][2] = fmaf(p[u][s][2], by, c[s][0][2]);
            }
    }
    __device__ static void gather(float (&)[4]) {}
    __device__ static int row_of(int i) { return lane() % 4 == 0 && i % 2 == 0 ? 0 : 1; }

  private:
    __device__ static uint32_t word(uint4 v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
};

}  // namespace atlas
