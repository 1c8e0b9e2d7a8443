// Frag layouts: weights in the order of the A fragments of mma.m16n8k16 and wgmma m64k16. A strip is 16 rows; strips follow
// one another, in a strip blocks of 32 columns (8-bit codes) or 64 (4-bit), then what is said below; zeros past the matrix.
// A block begins with 512 bytes of codes, 16 for each lane: a step of 16 columns is two words (8-bit) or one (4-bit). In a
// word the low half has the codes of a fragment register's first column, the high half those of the second; how a half
// holds its codes is said at each decoder. Lane 4g+t has rows g, g+8, g, g+8 at columns 2t, 2t, 2t+8, 2t+8 (two each).
//
// After the codes of a block:  nvfp4  32 halves, of rows 0 and 8 in each step, 1 and 9 in each step …: two e4m3 codes as in a word
//                              q8_0   16 f16 scales, of rows 0, 8, 1, 9 …
//                              q4_0   the same, two for each row, of the first 32 columns and of the others
//                              q4_1   the same, then minima in the same order
// f8 has none; f8block has f32 [strips, columns/128] after the last strip.
#pragma once
#include "lib/cuda/weight/tile64.cuh"

namespace atlas {

__device__ inline uint32_t multiply_pair(uint32_t x, uint32_t y) {
    const __nv_bfloat162 p = __hmul2(reinterpret_cast<const __nv_bfloat162 &>(x), reinterpret_cast<const __nv_bfloat162 &>(y));
    return reinterpret_cast<const uint32_t &>(p);
}
__device__ inline uint32_t subtract_pair(uint32_t x, uint32_t y) {
    const __nv_bfloat162 d = __hsub2(reinterpret_cast<const __nv_bfloat162 &>(x), reinterpret_cast<const __nv_bfloat162 &>(y));
    return reinterpret_cast<const uint32_t &>(d);
}
__device__ inline uint32_t low_twice(uint32_t x) {
    const __nv_bfloat162 p = __low2bfloat162(reinterpret_cast<const __nv_bfloat162 &>(x));
    return reinterpret_cast<const uint32_t &>(p);
}
__device__ inline uint32_t high_twice(uint32_t x) {
    const __nv_bfloat162 p = __high2bfloat162(reinterpret_cast<const __nv_bfloat162 &>(x));
    return reinterpret_cast<const uint32_t &>(p);
}

constexpr uint32_t kTwoMinus128 = 0x00200020, kTwo64 = 0x5f805f80, kTwo118 = 0x7a807a80, kTwo120 = 0x7b807b80;  // pairs of bf16

// Two e4m3 codes in a half, the first s eeee mmm at bits 15, 10-4, the second at bits 11, 14-12, 3-0. Gives both as bf16,
// times 2⁻¹²⁰.
__device__ inline void decode_e4m3(uint32_t w, uint32_t &first, uint32_t &second) {
    first = w & 0x87f087f0;
    second = (w << 4 & 0x80f080f0) | (w >> 4 & 0x07000700);
}

// Four e2m1 codes s ee m in a half: the first at bits 9, 2-0, the second at 13, 6-4, the third at 12-10 with its sign at bit 3
// of the other half, the fourth at 15, 8-7, 14. Gives all as bf16, times 2⁻¹²⁶. kMultiplies: where masks and shifts are what takes time,
// a product with 2⁻¹²⁸ is the shift by 8.
template <bool kMultiplies = false>
__device__ inline void decode_e2m1(uint32_t w, uint32_t (&a)[4]) {
    a[0] = w << 6 & 0x81c081c0;
    a[1] = w << 2 & 0x81c081c0;
    a[2] = __funnelshift_r(w, w, 4) & 0x81c081c0;
    a[3] = (w & 0x81808180) | (kMultiplies ? multiply_pair(w & 0x40004000, kTwoMinus128) : w >> 8 & 0x00400040);
}

// Two signed bytes in a half, the first low. bf16 holds 128+x exactly for 0 <= x < 128.
__device__ inline uint32_t decode_byte(uint32_t w) { return subtract_pair((w & 0x007f007f) | 0x43004300, (w & 0x00800080) | 0x43004300); }
__device__ inline void decode_bytes(uint32_t w, uint32_t &first, uint32_t &second) { first = decode_byte(w), second = decode_byte(w >> 8); }

// Four nibbles in a half, the first lowest. Gives nibble - bias.
template <int kBias>
__device__ void decode_nibbles(uint32_t w, uint32_t (&a)[4]) {
    constexpr uint32_t kOffset = (0x4300 + kBias) * 0x10001u;  // 128+bias
#pragma unroll
    for (int r = 0; r < 4; r++) a[r] = subtract_pair((w >> 4 * r & 0x000f000f) | 0x43004300, kOffset);
}

// Geometry of a layout and the fragment of a step from a lane's 16 bytes of a block.
template <atlas_Scheme kScheme>
struct frag {
    static constexpr bool kFour = kScheme == ATLAS_SCHEME_NVFP4 || kScheme == ATLAS_SCHEME_Q4_0 || kScheme == ATLAS_SCHEME_Q4_1;
    static constexpr int kCols = kFour ? 64 : 32, kSteps = kCols / 16;
    static constexpr int kScales = kScheme == ATLAS_SCHEME_NVFP4 || kScheme == ATLAS_SCHEME_Q4_0 ? 64
                                   : kScheme == ATLAS_SCHEME_Q4_1                                ? 128
                                   : kScheme == ATLAS_SCHEME_Q8_0                                ? 32
                                                                                                 : 0;
    static constexpr int kBlock = 512 + kScales;  // bytes
    static_assert(kFour || kScheme == ATLAS_SCHEME_Q8_0 || kScheme == ATLAS_SCHEME_F8 || kScheme == ATLAS_SCHEME_F8BLOCK, "a frag layout");

    // Sums of products are to be multiplied by this.
    static constexpr float kFactor = kScheme == ATLAS_SCHEME_NVFP4 ? 256.0f : 1.0f;

    __device__ static int blocks(int cols) { return (cols + kCols - 1) / kCols; }
    __device__ static size_t strip_bytes(int cols) { return size_t(blocks(cols)) * kBlock; }
    __device__ static const uint8_t *strip(const atlas_Weight &w, int m, int i) { return w.Data + m * w.Stride + i * strip_bytes(w.Cols); }
    // f8block: of columns from 128·j on.
    __device__ static float block_scale(const atlas_Weight &w, int m, int i, int j) {
        return reinterpret_cast<const float *>(strip(w, m, (w.Rows + 15) / 16))[size_t(i) * ((w.Cols + 127) / 128) + j];
    }

    // Codes of a step, two words or one, without block scales; f8 is exact, or times 2⁻¹²⁰ where kAsDecoded, e2m1 is times 2⁻¹²⁶.
    template <bool kAsDecoded = false>
    __device__ static void codes(const uint4 &lane_bytes, int step, uint32_t (&a)[4]) {
        const uint32_t w[4] = {lane_bytes.x, lane_bytes.y, lane_bytes.z, lane_bytes.w};
        if constexpr (kScheme == ATLAS_SCHEME_NVFP4) {
            decode_e2m1(w[step], a);
        } else if constexpr (kScheme == ATLAS_SCHEME_Q4_0) {
            decode_nibbles<8>(w[step], a);
        } else if constexpr (kScheme == ATLAS_SCHEME_Q4_1) {
            decode_nibbles<0>(w[step], a);
        } else if constexpr (kScheme == ATLAS_SCHEME_Q8_0) {
            decode_bytes(w[2 * step], a[0], a[1]), decode_bytes(w[2 * step + 1], a[2], a[3]);
        } else {
            decode_e4m3(w[2 * step], a[0], a[1]), decode_e4m3(w[2 * step + 1], a[2], a[3]);
#pragma unroll
            for (int r = 0; r < 4; r++)
                if (!kAsDecoded) a[r] = multiply_pair(a[r], kTwo120);
        }
    }
};

// The block scales of a lane's two rows, g and g+8, for the four steps of an nvfp4 block, times 2¹¹⁸; codes times these are
// weights times 2⁻⁸, exactly.
struct nvfp4_scales {
    uint32_t low[2], high[2];  // of rows g and g+8 in steps 0 and 1, 2 and 3

    __device__ explicit nvfp4_scales(uint2 words) {
        decode_e4m3(words.x, low[0], low[1]);
        decode_e4m3(words.y, high[0], high[1]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            low[i] = multiply_pair(multiply_pair(low[i], kTwo120), kTwo118);
            high[i] = multiply_pair(multiply_pair(high[i], kTwo120), kTwo118);
        }
    }
    __device__ void apply(int step, uint32_t (&a)[4]) const {
        const uint32_t (&pair)[2] = step < 2 ? low : high;
        const uint32_t g = step % 2 ? high_twice(pair[0]) : low_twice(pair[0]), g8 = step % 2 ? high_twice(pair[1]) : low_twice(pair[1]);
        a[0] = multiply_pair(a[0], g), a[1] = multiply_pair(a[1], g8), a[2] = multiply_pair(a[2], g), a[3] = multiply_pair(a[3], g8);
    }
};

}  // namespace atlas
