// q6_k as a checkpoint has it, and how it becomes a strip of layout frag and comes back.
#pragma once
#include "lib/cuda/weight/frag.cuh"

namespace atlas {

// q6_k in a checkpoint: blocks of 256 columns. Column c's code is four bits of a byte, which the column 64 further on shares, and two of one that
// those 32, 64 and 96 further on share.
struct six_raw {
    uint8_t *raw;
    int cols;

    __device__ uint8_t *block(int row, int c) const { return raw + (size_t(row) * (cols / 256) + c / 256) * 210; }
    __device__ uint8_t *low(int row, int c) const { return block(row, c) + c % 256 / 128 * 64 + c % 64; }
    __device__ uint8_t *high(int row, int c) const { return block(row, c) + 128 + c % 256 / 128 * 32 + c % 32; }
    __device__ uint32_t code(int row, int c) const { return (*low(row, c) >> c % 128 / 64 * 4 & 15) | (*high(row, c) >> c % 128 / 32 * 2 & 3) << 4; }
    __device__ uint8_t *scale(int row, int c) const { return block(row, c) + 192 + c % 256 / 16; }
    __device__ uint8_t *factor(int row, int c) const { return block(row, c) + 208; }
};
// Where the scale of row r and column c of a strip of q6_k lies, and its factor.
__device__ inline int six_scale_at(int r, int c) { return c / 64 * frag<ATLAS_SCHEME_Q6_K>::kBlock + kSixScalesAt + r % 8 * 8 + c % 64 / 16 * 2 + r / 8; }
__device__ inline int six_factor_at(int r, int c) { return c / 64 * frag<ATLAS_SCHEME_Q6_K>::kBlock + kSixFactorsAt + r % 8 * 4 + r / 8 * 2; }
__device__ inline uint32_t six_code(const uint8_t *strip, int r, int c) {
    const int lane = r % 8 * 4 + c % 8 / 2, step = c % 64 / 16, reg = r / 8 + c % 16 / 8 * 2;
    const uint8_t *block = strip + size_t(c / 64) * frag<ATLAS_SCHEME_Q6_K>::kBlock;
    const uint32_t *steps = reinterpret_cast<const uint32_t *>(block) + lane * 4 + step / 2 * 2, others = reinterpret_cast<const uint32_t *>(block + kSixOthersAt)[lane * 2 + step / 2];
    uint32_t code = 0;
#pragma unroll
    for (int i = 0; i < 6; i++) {
        const int at = six_bit(step % 2, c % 2, reg, i);
        code |= ((at < 64 ? steps[at / 32] : others) >> at % 32 & 1) << i;
    }
    return code;
}
// Packs or unpacks a strip, by kThreads threads.
template <int kThreads>
__device__ void pack_six(const six_raw &raw, uint8_t *strip, int first, int rows) {
    for (int i = threadIdx.x; i < raw.cols; i += kThreads) {  // a lane of 64 columns has two times two steps
        const int block = i / 64, lane = i % 64 / 2, pair = i % 2;
        uint32_t words[3] = {};
#pragma unroll
        for (int n = 0; n < 16; n++) {
            const int odd = n / 8, half = n / 4 % 2, reg = n % 4, r = first + lane / 4 + reg % 2 * 8, c = block * 64 + (pair * 2 + odd) * 16 + reg / 2 * 8 + lane % 4 * 2 + half;
            if (r >= rows) continue;
            const uint32_t code = raw.code(r, c);
#pragma unroll
            for (int b = 0; b < 6; b++) words[six_bit(odd, half, reg, b) / 32] |= (code >> b & 1) << six_bit(odd, half, reg, b) % 32;
        }
        uint32_t *const to = reinterpret_cast<uint32_t *>(strip + size_t(block) * frag<ATLAS_SCHEME_Q6_K>::kBlock);
        to[lane * 4 + pair * 2] = words[0], to[lane * 4 + pair * 2 + 1] = words[1], to[128 + lane * 2 + pair] = words[2];
    }
    for (int i = threadIdx.x; i < raw.cols; i += kThreads) {  // a row of sixteen for each 16 columns
        const int r = i % 16, c = i / 16 * 16;
        const bool there = first + r < rows;
        const uint32_t factor = there ? raw.factor(first + r, c)[0] | raw.factor(first + r, c)[1] << 8 : 0;
        strip[six_scale_at(r, c)] = factor & 0x7fff ? *raw.scale(first + r, c) ^ 128 : 128;
        if (c % 64 == 0) *reinterpret_cast<uint16_t *>(strip + six_factor_at(r, c)) = factor;
    }
}
template <int kThreads>
__device__ void unpack_six(const six_raw &raw, const uint8_t *strip, int first, int rows) {
    for (int i = threadIdx.x; i < 16 * raw.cols; i += kThreads) {
        const int r = i / raw.cols, c = i % raw.cols, row = first + r;
        if (row >= rows) continue;
        if (c % 128 < 64) *raw.low(row, c) = (six_code(strip, r, c) & 15) | (six_code(strip, r, c + 64) & 15) << 4;
        if (c % 128 < 32) {
            uint32_t byte = 0;
            for (int k = 0; k < 4; k++) byte |= six_code(strip, r, c + k * 32) >> 4 << k * 2;
            *raw.high(row, c) = byte;
        }
        if (c % 16 == 0) *raw.scale(row, c) = strip[six_scale_at(r, c)] ^ 128;
        if (c % 256 < 2) raw.factor(row, c)[c % 256] = strip[six_factor_at(r, c) + c % 256];
    }
}

}  // namespace atlas
