// Frag layouts: weights in the order of the A fragments of mma.m16n8k16 and wgmma m64k16. A strip is 16 rows; strips follow
// one another, in a strip blocks of 64 columns (q8_0: 32), then what is said below; zeros past the matrix. A fragment's lane
// 4g+t has rows g, g+8, g, g+8 at columns 2t, 2t, 2t+8, 2t+8 (two each) of a step of 16 columns.
//
// A block of q8_0 and of 4-bit codes begins with 512 bytes of codes, 16 for each lane: a step is two words (8-bit) or one
// (4-bit). In a word the low half has the codes of a fragment register's first column, the high half those of the second; how
// a half holds its codes is said at each decoder. Of 8-bit codes the first word is row g's, of registers 0 and 2, the second row g+8's.
//
// A block of f8 and f8block is what wgmma reads from shared memory as well: 16 rows of 64 bytes in the 64-byte swizzle, chunk
// c of row r at c ^ r/2%4. Chunk t has lane 4g+t's codes of row g or g+8, a word for each step: columns 2t, 2t+8, 2t+1, 2t+9.
//
// After the codes of a block:  nvfp4  64 scales, of rows 0 and 8 in step 0, in step 1 …, then of rows 1 and 9 …: five bits that are 21 more than
//                                     the exponent, three of e4m3's fraction, and no sign, which codes have been given. So none is subnormal,
//                                     and a mask makes it f16 or bf16. 0 is 0, and its codes are zeros
//                              q8_0   16 f16 scales, of rows 0, 8, 1, 9 …
//                              q4_0   the same, two for each row, of the first 32 columns and of the others
//                              q4_1   the same, then minima in the same order
//                              q6_k   what six.cuh says, 8 bytes for each lane; 64 scales of steps in nvfp4's order, 128 too large; 16 f16
//                                     factors of those, of rows 0, 8, 1, 9 …; scales are zero where that is
// f8 has none; f8block has f32 [strips, columns/128] after the last strip.
#pragma once
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/weight/six.cuh"
#include "lib/cuda/weight/tile64.cuh"

namespace atlas {

__device__ inline uint32_t multiply_pair(uint32_t x, uint32_t y) {
    const __nv_bfloat162 p = __hmul2(reinterpret_cast<const __nv_bfloat162 &>(x), reinterpret_cast<const __nv_bfloat162 &>(y));
    return reinterpret_cast<const uint32_t &>(p);
}
__device__ inline uint32_t low_twice(uint32_t x) {
    const __nv_bfloat162 p = __low2bfloat162(reinterpret_cast<const __nv_bfloat162 &>(x));
    return reinterpret_cast<const uint32_t &>(p);
}
__device__ inline uint32_t high_twice(uint32_t x) {
    const __nv_bfloat162 p = __high2bfloat162(reinterpret_cast<const __nv_bfloat162 &>(x));
    return reinterpret_cast<const uint32_t &>(p);
}

__device__ inline uint32_t multiply_add_pair(uint32_t x, uint32_t y, uint32_t z) {
    const __nv_bfloat162 p = __hfma2(reinterpret_cast<const __nv_bfloat162 &>(x), reinterpret_cast<const __nv_bfloat162 &>(y), reinterpret_cast<const __nv_bfloat162 &>(z));
    return reinterpret_cast<const uint32_t &>(p);
}

constexpr uint32_t kTwoMinus128 = 0x00200020, kTwo64 = 0x5f805f80, kTwo120 = 0x7b807b80, kTwo123 = 0x7d007d00, kTwo125 = 0x7e007e00, kTwo127 = 0x7f007f00;  // pairs of bf16

// x's bits of a mask, and others that are set; in one instruction, where the compiler takes two for two constants.
template <uint32_t kMask, uint32_t kSet>
__device__ inline uint32_t mask_and_set(uint32_t x) {
    uint32_t y;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(y) : "r"(x), "n"(kMask), "r"(kSet));
    return y;
}

// Two bytes as the low ones of halves, filled up with their signs: those that the selector's digits 0 and 2 name, with 8 added in
// digits 1 and 3.
template <uint32_t kSelector>
__device__ inline uint32_t spread_bytes(uint32_t w) {
    uint32_t x;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(x) : "r"(w), "n"(kSelector));
    return x;
}

// Two e4m3 codes in a half, the first low. Gives both as bf16, times 2⁻¹²⁰.
__device__ inline void decode_e4m3(uint32_t w, uint32_t &first, uint32_t &second) {
    first = spread_bytes<0xa280>(w) << 4 & 0x87f087f0;
    second = spread_bytes<0xb391>(w) << 4 & 0x87f087f0;
}

// Four scales of nvfp4 in a word. Gives both even ones and both odd ones as bf16, times 2¹¹⁸.
__device__ inline void decode_scales(uint32_t w, uint32_t &even, uint32_t &odd) {
    even = mask_and_set<0x0ff00ff0, 0x70007000>(w << 4);
    odd = mask_and_set<0x0ff00ff0, 0x70007000>(w >> 4);
}
// Two in a word's low half as f16, times 2⁶.
__device__ inline uint32_t decode_two_scales(uint32_t w) { return __byte_perm(w, 0, 0x4140) << 7; }

// Four e2m1 codes s ee m in a half: the first at bits 9, 2-0, the second at 13, 6-4, the third at 12-10 with its sign at bit 3
// of the other half, the fourth at 15, 8-7, 14. Gives all as bf16, times 2⁻¹²⁶. Masks and shifts are what takes time, so the fourth's last
// bit, which alone is two, is moved by a product with 2⁻¹²⁸.
__device__ inline void decode_e2m1(uint32_t w, uint32_t (&a)[4]) {
    a[0] = w << 6 & 0x81c081c0;
    a[1] = w << 2 & 0x81c081c0;
    a[2] = __funnelshift_r(w, w, 4) & 0x81c081c0;
    a[3] = (w & 0x81808180) | multiply_pair(w & 0x40004000, kTwoMinus128);
}

// As bf16, the low eight bits of a half are that number times 2⁻¹³³, whichever bit is the first of the exponent: below 2⁻¹²⁵ steps are equal.
// So bytes and nibbles are there with a mask; what is to be taken away from them goes with a product that raises them.

// Two signed bytes in a half, the first low. Gives both times 2⁻⁶.
__device__ inline void decode_bytes(uint32_t w, uint32_t &first, uint32_t &second) {
    constexpr uint32_t kMinusTwo = 0xc000c000;  // 128
    w ^= 0x80808080;
    first = multiply_add_pair(w & 0x00ff00ff, kTwo127, kMinusTwo);
    second = multiply_add_pair(__byte_perm(w, 0, 0x4341), kTwo127, kMinusTwo);
}

// Four nibbles in a half, the first lowest. Gives the first and third times 2⁻¹³³, the others times 2⁻¹²⁹.
__device__ inline void tiny_nibbles(uint32_t w, uint32_t (&a)[4]) {
    a[0] = w & 0x000f000f, a[1] = w & 0x00f000f0;
    a[2] = w >> 8 & 0x000f000f, a[3] = w >> 8 & 0x00f000f0;
}
// Gives all, less eight, times 2⁻⁶.
__device__ inline void decode_nibbles(uint32_t w, uint32_t (&a)[4]) {
    constexpr uint32_t kMinusEighth = 0xbe00be00;
    tiny_nibbles(w, a);
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = multiply_add_pair(a[i], i % 2 ? kTwo123 : kTwo127, kMinusEighth);
}

// The fragment of a step of codes of six bits, less 32, times 2⁻⁶.
template <bool kOdd>
__device__ inline void decode_sixes(uint32_t step, uint32_t pair, uint32_t (&a)[4]) {
    constexpr uint32_t kMinusHalf = 0xbf00bf00;
    uint32_t g, g8;
    join_sixes<kOdd>(step, pair, g, g8);
    a[0] = multiply_add_pair(g & 0x00ff00ff, kTwo127, kMinusHalf), a[2] = multiply_add_pair(__byte_perm(g, 0, 0x4341), kTwo127, kMinusHalf);
    a[1] = multiply_add_pair(g8 & 0x00ff00ff, kTwo125, kMinusHalf), a[3] = multiply_add_pair(__byte_perm(g8, 0, 0x4341), kTwo125, kMinusHalf);
}

// Geometry of a layout, and the fragment of a step from the vectors of 16 bytes that a lane has of 64 columns.
template <atlas_Scheme kScheme>
struct frag {
    static constexpr bool kFour = kScheme == ATLAS_SCHEME_NVFP4 || kScheme == ATLAS_SCHEME_Q4_0 || kScheme == ATLAS_SCHEME_Q4_1;
    static constexpr bool kSix = kScheme == ATLAS_SCHEME_Q6_K;
    static constexpr bool kRaw = kScheme == ATLAS_SCHEME_F8 || kScheme == ATLAS_SCHEME_F8BLOCK;  // codes as wgmma reads them
    static constexpr int kCols = kScheme == ATLAS_SCHEME_Q8_0 ? 32 : 64;
    static constexpr int kScales = kScheme == ATLAS_SCHEME_NVFP4 || kScheme == ATLAS_SCHEME_Q4_0 ? 64
                                   : kScheme == ATLAS_SCHEME_Q4_1                                ? 128
                                   : kScheme == ATLAS_SCHEME_Q8_0                                ? 32
                                   : kSix                                                        ? 96
                                                                                                 : 0;
    static constexpr int kCodes = kRaw ? 1024 : kSix ? kSixScalesAt : 512, kBlock = kCodes + kScales;  // bytes
    static constexpr int kVectors = kFour ? 1 : 2, kNext = kRaw ? 512 : kBlock;  // of 64 columns; bytes from the first to the second
    static_assert(kFour || kRaw || kSix || kScheme == ATLAS_SCHEME_Q8_0, "a frag layout");

    // Sums of products of what decode_stage gives are to be multiplied by this; of codes alone, times what scales them.
    static constexpr float kFactor = kSix ? 4096.0f : kScheme == ATLAS_SCHEME_NVFP4 ? 256.0f : kScheme == ATLAS_SCHEME_Q8_0 || kScheme == ATLAS_SCHEME_Q4_0 ? 64.0f : 1.0f;
    static constexpr float kCodesFactor = kSix ? 64.0f : kFactor;

    __device__ static int blocks(int cols) { return (cols + kCols - 1) / kCols; }
    __device__ static size_t strip_bytes(int cols) { return size_t(blocks(cols)) * kBlock; }
    __device__ static const uint8_t *strip(const atlas_Weight &w, int m, int i) { return w.Data + m * w.Stride + i * strip_bytes(w.Cols); }
    // The number of this lane's vector among 32, and where it lies.
    __device__ static int lane_slot() { return kRaw ? lane() ^ lane() / 8 : lane(); }
    __device__ static int lane_at() { return lane_slot() * 16; }
    // This lane's vectors of 64 columns in the shared window, lane_at() after whose first byte `at` is; q6_k's second one is half of one.
    __device__ static void load(uint32_t at, uint4 (&vectors)[kVectors]) {
        vectors[0] = load_shared(at);
        if constexpr (kSix) {
            const uint2 others = load_shared2(at + kSixOthersAt - lane() * 8);
            vectors[1] = {others.x, others.y, 0, 0};
        } else if constexpr (kVectors == 2) {
            vectors[1] = load_shared(at + kNext);
        }
    }
    // The same of a unit whose first byte is at `unit`, and of one half of its columns.
    __device__ static void load(const uint8_t *unit, uint4 (&vectors)[kVectors]) {
#pragma unroll
        for (int v = 0; v < kVectors; v++)
            if (!(kSix && v)) vectors[v] = reinterpret_cast<const uint4 *>(unit + v * kNext)[lane_slot()];
        if constexpr (kSix) {
            const uint2 others = reinterpret_cast<const uint2 *>(unit + kSixOthersAt)[lane()];
            vectors[1] = {others.x, others.y, 0, 0};
        }
    }
    __device__ static void load_half(const uint8_t *unit, int half, uint4 (&vectors)[kVectors]) {
#pragma unroll
        for (int v = 0; v < kVectors; v++) {
            if (kSix && v) {
                vectors[v] = {reinterpret_cast<const uint32_t *>(unit + kSixOthersAt)[lane() * 2 + half], 0, 0, 0};
                break;
            }
            const uint2 steps = reinterpret_cast<const uint2 *>(unit + v * kNext + lane_at())[half];
            vectors[v] = {steps.x, steps.y, 0, 0};
        }
    }
    // f8, f8block: where the code of row r (0-15) and column c (0-63) of a block lies.
    __device__ static int raw_at(int r, int c) { return r * 64 + (c % 8 / 2 ^ r / 2 % 4) * 16 + c / 16 * 4 + c % 2 * 2 + c / 8 % 2; }
    // f8block: of strip i, one for each 128 columns.
    __device__ static const float *block_scales(const atlas_Weight &w, int m, int i) {
        return reinterpret_cast<const float *>(strip(w, m, (w.Rows + 15) / 16)) + size_t(i) * ((w.Cols + 127) / 128);
    }
    __device__ static float block_scale(const atlas_Weight &w, int m, int i, int j) { return block_scales(w, m, i)[j]; }

    // Codes of a step (0-3) without block scales: e2m1 times 2⁻¹²⁶; q8_0, q4_0 and q6_k times 2⁻⁶; q4_1 times 2⁻¹³³, of rows g+8 times
    // 2⁻¹²⁹; f8 exact, or times 2⁻¹²⁰ where kAsDecoded.
    template <bool kAsDecoded = false>
    __device__ static void codes(const uint4 (&vectors)[kVectors], int step, uint32_t (&a)[4]) {
        uint32_t w[kVectors][4];
#pragma unroll
        for (int v = 0; v < kVectors; v++) w[v][0] = vectors[v].x, w[v][1] = vectors[v].y, w[v][2] = vectors[v].z, w[v][3] = vectors[v].w;
        if constexpr (kScheme == ATLAS_SCHEME_NVFP4) {
            decode_e2m1(w[0][step], a);
        } else if constexpr (kScheme == ATLAS_SCHEME_Q4_0) {
            decode_nibbles(w[0][step], a);
        } else if constexpr (kScheme == ATLAS_SCHEME_Q4_1) {
            tiny_nibbles(w[0][step], a);
        } else if constexpr (kSix) {
            if (step % 2) decode_sixes<true>(w[0][step], w[1][step / 2], a);
            else decode_sixes<false>(w[0][step], w[1][step / 2], a);
        } else if constexpr (kScheme == ATLAS_SCHEME_Q8_0) {
            decode_bytes(w[step / 2][step % 2 * 2], a[0], a[2]), decode_bytes(w[step / 2][step % 2 * 2 + 1], a[1], a[3]);
        } else {
            decode_e4m3(w[0][step], a[0], a[2]), decode_e4m3(w[1][step], a[1], a[3]);
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
        decode_scales(words.x, low[0], low[1]);
        decode_scales(words.y, high[0], high[1]);
    }
    __device__ void apply(int step, uint32_t (&a)[4]) const {
        const uint32_t (&pair)[2] = step < 2 ? low : high;
        const uint32_t g = step % 2 ? high_twice(pair[0]) : low_twice(pair[0]), g8 = step % 2 ? high_twice(pair[1]) : low_twice(pair[1]);
        a[0] = multiply_pair(a[0], g), a[1] = multiply_pair(a[1], g8), a[2] = multiply_pair(a[2], g), a[3] = multiply_pair(a[3], g8);
    }
};

}  // namespace atlas
