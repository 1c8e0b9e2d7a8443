// nvfp4 times one or two rows of activations. A product has eight columns: two for each step of 16 columns of weights. A step's
// codes are multiplied by all of them; its own two columns belong to one lane of four, which multiplies by the scale of its step
// alone. Codes stay as they are decoded, times 2⁻¹²⁶, and activations are times 2⁶⁴: beyond ±2⁶³ they overflow.
#pragma once
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

constexpr uint32_t kTwo64 = 0x5f805f80;  // a pair of bf16

// Where pair i of eight activations, the chunk'th eight of a row, lies: a lane's two pairs of a step are side by side.
__device__ inline int spread_at(int chunk, int i) { return chunk / 2 * 32 + i * 8 + chunk % 2 * 4; }

template <int kRows, int kStrips>
struct spread_product {
    static_assert(kRows <= 2, "two columns for a step");
    static constexpr int kSums = 1;
    static constexpr float kFactor = 0x1p62f;
    uint4 codes[kStrips];
    uint32_t scales[kStrips];
    uint2 x;

    // Where a lane reads activations; rows lie pitch apart from `from` on.
    struct lines {
        uint32_t at;
        __device__ lines(uint32_t from, int rows, int pitch) : at(from + min(lane() / 4 % 2, rows - 1) * pitch + lane() / 8 * 32 + lane() % 4 * 8) {}
        __device__ lines moved(int bytes) const {
            lines m = *this;
            m.at += bytes;
            return m;
        }
    };

    __device__ static int scales_at() { return 512 + lane() * 2; }
    __device__ void load(uint32_t codes_at, uint32_t scale_at, int strip_bytes, const lines &from, int offset) {
        x = load_shared2(from.at + offset);
#pragma unroll
        for (int s = 0; s < kStrips; s++) codes[s] = load_shared(codes_at + s * strip_bytes), scales[s] = load_shared_half(scale_at + s * strip_bytes);
    }
    __device__ void multiply(const lines &, int, int, const float (&)[kStrips], float (&c)[kStrips][kSums][4]) const {
#pragma unroll
        for (int s = 0; s < kStrips; s++) {
            const uint32_t w[4] = {codes[s].x, codes[s].y, codes[s].z, codes[s].w};
            const float2 by = scale_of(scales[s]);
#pragma unroll
            for (int step = 0; step < 4; step++) {
                uint32_t a[4];
                decode_e2m1(w[step], a);
                float p[4] = {};
                product(p, a, x.x, x.y);
                if (lane() % 4 == step)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        if (kRows > 1 || i % 2 == 0) c[s][0][i] = fmaf(p[i], i < 2 ? by.x : by.y, c[s][0][i]);
            }
        }
    }

  private:
    __device__ static uint32_t load_shared_half(uint32_t from) {
        uint16_t x;
        asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(from) : "memory");
        return x;
    }
    // Of rows g and g+8, as decode_e4m3 has them.
    __device__ static float2 scale_of(uint32_t pair) {
        const uint32_t g = pair << 16 & 0x87f00000, g8 = (pair << 20 & 0x80f00000) | (pair << 12 & 0x07000000);
        return {__uint_as_float(g) * 0x1p120f, __uint_as_float(g8) * 0x1p120f};
    }
};

}  // namespace atlas
