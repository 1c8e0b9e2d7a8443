// Pack, Unpack and Embedding of the frag layouts. Raw forms: atlasrt/op/weight.go. Unpack gives every bit back, but for nvfp4's
// signs of scales, which codes have, and codes whose scale is zero, which are zeros; and q6_k's scales whose factor is zero.
#pragma once
#include "lib/cuda/weight/six_pack.cuh"

namespace atlas {

// Where the code of row r (0-15) and column c of a block lies in the order of fragments: word of the block's 128, half of the
// word, place in the half.
struct frag_place {
    int word, half, place;
};
template <atlas_Scheme kScheme>
__device__ frag_place place_of(int r, int c) {
    const int lane = r % 8 * 4 + c % 8 / 2, step = c / 16, reg = r / 8 + c % 16 / 8 * 2;
    if (frag<kScheme>::kFour) return {lane * 4 + step, c % 2, reg};
    return {lane * 4 + step * 2 + reg % 2, c % 2, reg / 2};
}

// The bits of a word that hold a code, as one code's parts: bit i of the code lies at bits[i].
template <atlas_Scheme kScheme>
__device__ int bit_of(int half, int place, int bit) {
    const int h = half * 16;
    if (kScheme == ATLAS_SCHEME_NVFP4) {
        if (place == 0) return h + (bit == 3 ? 9 : bit);
        if (place == 1) return h + (bit == 3 ? 13 : 4 + bit);
        if (place == 2) return bit == 3 ? 16 - h + 3 : h + 10 + bit;
        return h + (bit == 3 ? 15 : bit == 0 ? 14 : 6 + bit);
    }
    return h + place * (frag<kScheme>::kFour ? 4 : 8) + bit;
}
template <atlas_Scheme kScheme>
__device__ uint32_t put_code(int half, int place, uint32_t code) {
    uint32_t w = 0;
#pragma unroll
    for (int i = 0; i < (frag<kScheme>::kFour ? 4 : 8); i++) w |= (code >> i & 1) << bit_of<kScheme>(half, place, i);
    return w;
}
template <atlas_Scheme kScheme>
__device__ uint32_t get_code(uint32_t w, int half, int place) {
    uint32_t code = 0;
#pragma unroll
    for (int i = 0; i < (frag<kScheme>::kFour ? 4 : 8); i++) code |= (w >> bit_of<kScheme>(half, place, i) & 1) << i;
    return code;
}

// The bytes of a checkpoint.
template <atlas_Scheme kScheme>
struct frag_raw {
    static constexpr int kHead = kScheme == ATLAS_SCHEME_Q4_1 ? 4 : 2, kBlockBytes = kHead + (frag<kScheme>::kFour ? 16 : 32);  // of GGUF
    static constexpr bool kBlocks = kScheme == ATLAS_SCHEME_Q8_0 || kScheme == ATLAS_SCHEME_Q4_0 || kScheme == ATLAS_SCHEME_Q4_1;
    int cols;

    __device__ size_t block(int row, int c) const { return (size_t(row) * (cols / 32) + c / 32) * kBlockBytes; }
    // The byte that holds a code, and whether in its high half.
    __device__ size_t at(int row, int c) const {
        if (kScheme == ATLAS_SCHEME_Q8_0) return block(row, c) + kHead + c % 32;
        if (kBlocks) return block(row, c) + kHead + c % 16;
        return kScheme == ATLAS_SCHEME_NVFP4 ? (size_t(row) * cols + c) / 2 : size_t(row) * cols + c;
    }
    __device__ bool high(int c) const { return kScheme == ATLAS_SCHEME_NVFP4 ? c % 2 : kBlocks && frag<kScheme>::kFour && c % 32 >= 16; }
};

// Scale i of a block, in the unit that layout and checkpoint share (bytes of nvfp4, f16 of GGUF), in row r (0-15).
// Columns that it belongs to, from the block's first on; minima of q4_1 follow its scales.
template <atlas_Scheme kScheme>
struct frag_scale {
    static constexpr int kBytes = kScheme == ATLAS_SCHEME_NVFP4 ? 1 : 2, kPerRow = frag<kScheme>::kScales / kBytes / 16;
    static constexpr int kSpan = kScheme == ATLAS_SCHEME_NVFP4 ? 16 : 32, kOfBlock = frag<kScheme>::kCols / kSpan;
    // The place of scale (or minimum, from kOfBlock on) i of row r among the block's units after the codes.
    __device__ static int at(int r, int i) {
        if (kScheme == ATLAS_SCHEME_NVFP4) return r % 8 * 8 + i * 2 + r / 8;
        const int row = r % 8 * 2 + r / 8;
        return (i / kOfBlock * 16 + row) * kOfBlock + i % kOfBlock;
    }
    // Where it lies in the checkpoint, in bytes.
    __device__ static size_t raw(int rows, int cols, int row, int c, int i) {
        if (kScheme == ATLAS_SCHEME_NVFP4) return size_t(rows) * cols / 2 + size_t(row) * (cols / 16) + c / 16;
        return frag_raw<kScheme>{cols}.block(row, c) + i / kOfBlock * 2;
    }
};

// A scale of nvfp4 as the layout has it, from e4m3, and back without its sign.
__device__ inline uint8_t pack_scale(uint8_t e4m3) {
    const int exponent = e4m3 >> 3 & 15, fraction = e4m3 & 7;
    if (exponent) return uint8_t((exponent + 14) << 3 | fraction);
    if (!fraction) return 0;
    const int top = 31 - __clz(fraction);  // subnormal: 2⁻⁹ times that
    return uint8_t((12 + top) << 3 | (fraction << (3 - top) & 7));
}
__device__ inline uint8_t unpack_scale(uint8_t packed) {
    const int exponent = packed >> 3, fraction = packed & 7;
    if (exponent > 14) return uint8_t((exponent - 14) << 3 | fraction);
    return uint8_t(packed ? (8 | fraction) >> (15 - exponent) : 0);
}
// A code of nvfp4 beside its e4m3 scale: with the scale's sign, and zero where that is.
__device__ inline uint32_t sign_code(uint32_t code, uint8_t scale) { return scale & 127 ? code ^ (scale >> 4 & 8) : 0; }
// The scale of row r (0-15) and column c of a strip of nvfp4.
__device__ inline uint8_t scale_of(const uint8_t *strip, int r, int c) {
    using layout = frag<ATLAS_SCHEME_NVFP4>;
    return strip[size_t(c / 64) * layout::kBlock + 512 + frag_scale<ATLAS_SCHEME_NVFP4>::at(r, c % 64 / 16)];
}

}  // namespace atlas

// Block: one strip.
template <class P>
__device__ void pack_frag(const atlas_Pack &a) {
    using layout = atlas::frag<P::kScheme>;
    const int rows = a.W.Rows, cols = a.W.Cols, first = blockIdx.x * 16;
    const atlas::frag_raw<P::kScheme> raw = {cols};
    uint8_t *strip = const_cast<uint8_t *>(layout::strip(a.W, 0, blockIdx.x));
    atlas::wait_for_previous();
    if constexpr (layout::kSix) {
        atlas::pack_six<P::kThreads>({const_cast<uint8_t *>(a.Raw), cols}, strip, first, rows);
    } else if constexpr (layout::kRaw) {
        for (int i = threadIdx.x; i < 16 * layout::blocks(cols) * 64; i += P::kThreads) {
            const int r = i / (layout::blocks(cols) * 64), c = i % (layout::blocks(cols) * 64);
            strip[c / 64 * layout::kBlock + layout::raw_at(r, c % 64)] = first + r < rows && c < cols ? a.Raw[raw.at(first + r, c)] : 0;
        }
    } else {
        for (int i = threadIdx.x; i < layout::blocks(cols) * 128; i += P::kThreads) {
            const int block = i / 128, lane = i % 128 / 4;
            constexpr int kCodes = layout::kFour ? 8 : 4;
            uint32_t w = 0;
#pragma unroll
            for (int j = 0; j < kCodes; j++) {
                const int half = j % 2, place = j / 2, reg = layout::kFour ? place : i % 2 + place * 2, step = layout::kFour ? i % 4 : i % 4 / 2;
                const int r = first + lane / 4 + reg % 2 * 8, c = block * layout::kCols + step * 16 + reg / 2 * 8 + lane % 4 * 2 + half;
                if (r >= rows || c >= cols) continue;
                const uint32_t byte = a.Raw[raw.at(r, c)];
                uint32_t code = layout::kFour ? (raw.high(c) ? byte >> 4 : byte & 15) : byte;
                if constexpr (P::kScheme == ATLAS_SCHEME_NVFP4) code = atlas::sign_code(code, a.Raw[atlas::frag_scale<P::kScheme>::raw(rows, cols, r, c, 0)]);
                w |= atlas::put_code<P::kScheme>(half, place, code);
            }
            *reinterpret_cast<uint32_t *>(strip + size_t(block) * layout::kBlock + i % 128 * 4) = w;
        }
    }
    if constexpr (layout::kScales > 0 && !layout::kSix) {
        using scale = atlas::frag_scale<P::kScheme>;
        for (int i = threadIdx.x; i < layout::blocks(cols) * 16 * scale::kPerRow; i += P::kThreads) {
            const int block = i / (16 * scale::kPerRow), r = i / scale::kPerRow % 16, j = i % scale::kPerRow;
            const int c = block * layout::kCols + j % scale::kOfBlock * scale::kSpan;
            const bool there = first + r < rows && c < cols;
            const uint8_t *from = a.Raw + (there ? scale::raw(rows, cols, first + r, c, j) : 0);
            uint8_t *to = strip + size_t(block) * layout::kBlock + 512 + scale::at(r, j) * scale::kBytes;
#pragma unroll
            for (int b = 0; b < scale::kBytes; b++) to[b] = !there ? 0 : P::kScheme == ATLAS_SCHEME_NVFP4 ? atlas::pack_scale(from[b]) : from[b];
        }
    } else if constexpr (P::kScheme == ATLAS_SCHEME_F8BLOCK) {
        const int n = (cols + 127) / 128;
        const uint8_t *from = a.Raw + size_t(rows) * cols + size_t(blockIdx.x) * n * 4;
        uint8_t *to = const_cast<uint8_t *>(layout::strip(a.W, 0, gridDim.x)) + size_t(blockIdx.x) * n * 4;
        for (int i = threadIdx.x; i < n * 4; i += P::kThreads) to[i] = from[i];
    }
    atlas::release_next();
}

// Block: one strip.
template <class P>
__device__ void unpack_frag(const atlas_Unpack &a) {
    using layout = atlas::frag<P::kScheme>;
    const int rows = a.W.Rows, cols = a.W.Cols, first = blockIdx.x * 16;
    const atlas::frag_raw<P::kScheme> raw = {cols};
    const uint8_t *strip = layout::strip(a.W, 0, blockIdx.x);
    const auto code = [&](int r, int c) -> uint32_t {
        if constexpr (layout::kRaw) return strip[size_t(c / 64) * layout::kBlock + layout::raw_at(r, c % 64)];
        const atlas::frag_place p = atlas::place_of<P::kScheme>(r, c % layout::kCols);
        const uint8_t *block = strip + size_t(c / layout::kCols) * layout::kBlock;
        return atlas::get_code<P::kScheme>(reinterpret_cast<const uint32_t *>(block)[p.word], p.half, p.place);
    };
    atlas::wait_for_previous();
    if constexpr (layout::kSix) {
        atlas::unpack_six<P::kThreads>({a.Raw, cols}, strip, first, rows);
    } else {
        // Of two columns that share a byte the one in the low half writes both.
        constexpr int kApart = P::kScheme == ATLAS_SCHEME_NVFP4 ? 1 : 16;
        for (int i = threadIdx.x; i < 16 * cols; i += P::kThreads) {
            const int r = i / cols, c = i % cols;
            if (first + r >= rows || raw.high(c)) continue;
            uint32_t byte = code(r, c);
            if (layout::kFour) byte |= code(r, c + kApart) << 4;
            a.Raw[raw.at(first + r, c)] = byte;
        }
    }
    if constexpr (layout::kScales > 0 && !layout::kSix) {
        using scale = atlas::frag_scale<P::kScheme>;
        for (int i = threadIdx.x; i < layout::blocks(cols) * 16 * scale::kPerRow; i += P::kThreads) {
            const int block = i / (16 * scale::kPerRow), r = i / scale::kPerRow % 16, j = i % scale::kPerRow;
            const int c = block * layout::kCols + j % scale::kOfBlock * scale::kSpan;
            if (first + r >= rows || c >= cols) continue;
            const uint8_t *from = strip + size_t(block) * layout::kBlock + 512 + scale::at(r, j) * scale::kBytes;
            uint8_t *to = a.Raw + scale::raw(rows, cols, first + r, c, j);
#pragma unroll
            for (int b = 0; b < scale::kBytes; b++) to[b] = P::kScheme == ATLAS_SCHEME_NVFP4 ? atlas::unpack_scale(from[b]) : from[b];
        }
    } else if constexpr (P::kScheme == ATLAS_SCHEME_F8BLOCK) {
        const int n = (cols + 127) / 128;
        const uint8_t *from = layout::strip(a.W, 0, gridDim.x) + size_t(blockIdx.x) * n * 4;
        uint8_t *to = a.Raw + size_t(rows) * cols + size_t(blockIdx.x) * n * 4;
        for (int i = threadIdx.x; i < n * 4; i += P::kThreads) to[i] = from[i];
    }
    atlas::release_next();
}

namespace atlas {

// One weight.
template <atlas_Scheme kScheme>
__device__ float frag_weight(const atlas_Weight &w, int m, int n, int k) {
    using layout = frag<kScheme>;
    const int r = n % 16, c = k % layout::kCols;
    if constexpr (layout::kSix) {
        const uint8_t *strip = layout::strip(w, m, n / 16);
        const float factor = __half2float(*reinterpret_cast<const __half *>(strip + six_factor_at(r, k)));
        return factor * (int(strip[six_scale_at(r, k)]) - 128) * (int(six_code(strip, r, k)) - 32);
    }
    const uint8_t *block = layout::strip(w, m, n / 16) + size_t(k / layout::kCols) * layout::kBlock;
    const auto code_at = [&]() -> uint32_t {
        if constexpr (layout::kRaw) return block[layout::raw_at(r, c)];
        const frag_place p = place_of<kScheme>(r, c);
        return get_code<kScheme>(reinterpret_cast<const uint32_t *>(block)[p.word], p.half, p.place);
    };
    const uint32_t code = code_at();
    const auto e4m3 = [](uint32_t x) { return __uint_as_float((x & 128) << 24 | (x & 127) << 20) * 0x1p120f; };
    const auto half = [&](int i) { return __half2float(reinterpret_cast<const __half *>(block + 512)[frag_scale<kScheme>::at(r, i)]); };
    if constexpr (kScheme == ATLAS_SCHEME_F8) return e4m3(code);
    if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK) return e4m3(code) * layout::block_scale(w, m, n / 16, k / 128);
    if constexpr (kScheme == ATLAS_SCHEME_NVFP4) {
        const uint32_t scale = scale_of(layout::strip(w, m, n / 16), r, k);
        return __uint_as_float((code & 8) << 28 | (code & 7) << 22) * 0x1p126f * (__uint_as_float(scale << 20) * 0x1p106f);
    }
    if constexpr (kScheme == ATLAS_SCHEME_Q8_0) return half(0) * int8_t(code);
    if constexpr (kScheme == ATLAS_SCHEME_Q4_0) return half(c / 32) * (int(code) - 8);
    if constexpr (kScheme == ATLAS_SCHEME_Q4_1) return fmaf(half(c / 32), float(code), half(2 + c / 32));
    return 0;
}

}  // namespace atlas

// Block: one row.
template <class P>
__device__ void embedding_frag(const atlas_Embedding &a) {
    const int cols = a.W.Cols;
    atlas_act *out = a.Out + size_t(blockIdx.x) * cols;
    atlas::wait_for_previous();
    const int id = a.IDs[blockIdx.x];
    const bool there = id >= 0 && id < a.W.Rows;
    const float scale = there ? atlas::row_scale(a.W, 0, id) : 0.0f;
    for (int c = threadIdx.x; c < cols; c += P::kThreads) out[c] = __float2bfloat16_rn(there ? atlas::frag_weight<P::kScheme>(a.W, 0, id, c) * scale : 0.0f);
    atlas::release_next();
}
