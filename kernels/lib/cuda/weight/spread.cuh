// nvfp4 times one to four rows of activations. Of the eight columns of a product two, or four, belong to each step of 16 columns of
// weights and are zeros in the other steps: a sum takes four steps, or two (0 and 2, 1 and 3), and still has each step's own, which one
// lane of four, or two, multiplies by the scale of that step. Codes stay as they are decoded, times 2⁻¹²⁶, and activations are lifted (unit.cuh).
#pragma once
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

template <int kRows, int kStrips>
struct spread_product {
    static_assert(kRows <= 4, "four columns for a step");
    static constexpr int kWidth = kRows <= 2 ? 2 : 4, kSums = kWidth / 2;  // columns of a step, sums for the four
    static constexpr float kFactor = 0x1p56f;
    uint4 codes[kStrips];
    uint32_t scales[kStrips], x[2][4];

    // Where a lane's turns in ldmatrix read, two steps at once. Rows lie pitch apart from `from` on; what is zero in these
    // steps is read at `zeros`, which does not move on.
    struct lines {
        uint32_t at[2], own[2];
        __device__ lines(uint32_t from, int rows, int pitch, uint32_t zeros) {
            const int column = lane() % 8, matrix = lane() / 8;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                own[h] = held(column / kWidth == (kSums == 1 ? 2 * h + matrix / 2 : h) ? ~0u : 0);
                at[h] = held(own[h] ? from + min(column % kWidth, rows - 1) * pitch + h * 64 + matrix * 16 : zeros + (1 - h) * 64 + matrix * 16);  // other banks
            }
        }
        // What hangs on all of this, for settle.
        __device__ uint32_t ready() const { return at[0] ^ at[1] ^ own[0] ^ own[1]; }
        __device__ lines moved(uint32_t bytes) const {
            lines m = *this;
            m.at[0] += bytes & own[0], m.at[1] += bytes & own[1];
            return m;
        }
    };

    __device__ static int codes_at() { return unit<ATLAS_SCHEME_NVFP4>::codes_at(); }
    __device__ static int scales_at() { return 512 + lane() / 4 * 8 + lane() % 4 / kSums * 2 * kSums; }
    __device__ void load(uint32_t codes_at, uint32_t scale_at, int strip_bytes, const lines &from, int offset) {
        load_matrices(x[0], from.at[0] + offset), load_matrices(x[1], from.at[1] + offset);
#pragma unroll
        for (int s = 0; s < kStrips; s++) {
            codes[s] = load_shared(codes_at + s * strip_bytes);
            scales[s] = kSums == 1 ? load_shared_half(scale_at + s * strip_bytes) : load_shared1(scale_at + s * strip_bytes);
        }
    }
    // c += kUnits units, whose sums depend on nothing of one another.
    template <int kUnits>
    __device__ static void multiply(const spread_product *units, const lines &, int, int, const float (&)[kUnits][kStrips], float (&c)[kStrips][1][4]) {
        float p[kUnits][kStrips][kSums][4] = {};
#pragma unroll
        for (int step = 0; step < 4; step++)
#pragma unroll
            for (int u = 0; u < kUnits; u++)
#pragma unroll
                for (int s = 0; s < kStrips; s++) {
                    const uint4 &codes = units[u].codes[s];
                    const uint32_t w[4] = {codes.x, codes.y, codes.z, codes.w}, (&b)[4] = units[u].x[step / 2];
                    uint32_t a[4];
                    decode_e2m1(w[step], a);
                    product(p[u][s][step % kSums], a, b[step % 2 * 2], b[step % 2 * 2 + 1]);
                }
#pragma unroll
        for (int u = 0; u < kUnits; u++)
#pragma unroll
            for (int s = 0; s < kStrips; s++)
#pragma unroll
                for (int j = 0; j < kSums; j++) {
                    const float2 by = scales_of(units[u].scales[s] >> 16 * j);
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        if (kRows > 1 || i % 2 == 0) c[s][0][i] = fmaf(p[u][s][j][i], i < 2 ? by.x : by.y, c[s][0][i]);
                }
    }

    // Adds up what the lanes of a row have; the row of a lane's sum i, or kRows where another lane has the same.
    __device__ static void gather(float (&sum)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int d = kWidth / 2; d < 4; d *= 2) sum[i] += __shfl_xor_sync(kAllLanes, sum[i], d);
    }
    __device__ static int row_of(int i) { return lane() % 4 < kWidth / 2 ? lane() % 4 * 2 + i % 2 : kRows; }

  private:
    // Of rows g and g+8, the first low, times 2⁶.
    __device__ static float2 scales_of(uint32_t pair) {
        const uint32_t halves = decode_two_scales(pair);
        return __half22float2(reinterpret_cast<const __half2 &>(halves));
    }
};

}  // namespace atlas
