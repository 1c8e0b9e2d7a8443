// Activations as e4m3: each 128 columns of a row, or each row, have the scale s = amax/448, and codes e4m3(x/s). Where scales are below
// 2⁻¹⁰⁰, codes are zeros.
//
// Codes lie in an order of columns that weights of frag.cuh have. Of 16 columns those at 2t, 2t+8, 2t+1, 2t+9 are word t. Beside weights
// in registers a chunk of 16 bytes has the words of 16 columns; beside weights in shared memory chunk t of 64 columns has words t.
#pragma once
#include "lib/cuda/ptx/e4m3.cuh"
#include "lib/cuda/weight/wide.cuh"

namespace atlas {

// Codes and scales in scratch memory, W.Cols/128*132 bytes a row. Either the rows of every 128 columns together, in the
// 128-byte swizzle of wgmma, so that a tile of rows is one piece; then scales are [columns/128, rows]. Or row after row, to be
// gathered; then scales are [rows, columns/128]. A row's only scale is that of its first 128 columns.
//
// e4m3_tiles are beside weights in shared memory, e4m3_list beside weights in registers.
struct e4m3_tiles {
    static constexpr bool kAcross = true;
    uint8_t *codes;
    float *scales;
    int rows;  // rounded up to 128

    __device__ e4m3_tiles(void *scratch, int rows, int cols) : codes(static_cast<uint8_t *>(scratch)), rows((rows + 127) / 128 * 128) {
        scales = reinterpret_cast<float *>(codes + size_t(this->rows) * cols);
    }
    __device__ uint8_t *tile(int block, int row) const { return codes + (size_t(block) * rows + row) * 128; }
    __device__ float *scale(int block, int row) const { return scales + size_t(block) * rows + row; }
    __device__ uint8_t *chunk_at(int row, int block, int chunk) const { return tile(block, row) + (chunk ^ row % 8) * 16; }
    __device__ float *scale_at(int row, int block) const { return scale(block, row); }
};
struct e4m3_list {
    static constexpr bool kAcross = false;
    uint8_t *codes;
    float *scales;
    int cols;

    __device__ e4m3_list(void *scratch, int rows, int cols) : codes(static_cast<uint8_t *>(scratch)), cols(cols) {
        scales = reinterpret_cast<float *>(codes + size_t(rows) * cols);
    }
    __device__ uint8_t *chunk_at(int row, int block, int chunk) const { return codes + size_t(row) * cols + block * 128 + chunk * 16; }
    __device__ float *scale_at(int row, int block) const { return scales + size_t(row) * (cols / 128) + block; }
};

// Sixteen columns as codes; four lanes next to one another have 64.
struct e4m3_chunk {
    f32x8 low, high;

    __device__ e4m3_chunk(const uint4 (&x)[2]) : low(widen(x[0])), high(widen(x[1])) {}
    __device__ float most() const {
        float most = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) most = fmaxf(most, fmaxf(fabsf(low.v[i]), fabsf(high.v[i])));
        return most;
    }
    // The chunk of that number in its place; kAcross: of all lanes' words.
    template <bool kAcross>
    __device__ uint4 codes(float scale) const {
        const float inverse = scale < 0x1p-100f ? 0 : 1 / scale;
        const auto over = [&](float x) {  // the correctly rounded quotient
            const float q = x * inverse;
            return fmaf(fmaf(-q, scale, x), inverse, q);
        };
        uint32_t word[4];
#pragma unroll
        for (int t = 0; t < 4; t++) word[t] = narrow_e4m3(over(low.v[2 * t]), over(high.v[2 * t]), over(low.v[2 * t + 1]), over(high.v[2 * t + 1]));
        if constexpr (kAcross) transpose_quad(word);
        return {word[0], word[1], word[2], word[3]};
    }
};

// Eight threads for each 128 columns of a row, 16 columns for each, kEach times; in is [rows, cols], a multiple of 128 columns and
// aligned to 16 bytes.
template <int kThreads, int kEach = 1, typename To>
__device__ void quantise_rows(const To &to, const atlas_act *in, int rows, int cols) {
    const int blocks = cols / 128, first = blockIdx.x * (kThreads / 8 * kEach) + threadIdx.x / 8, chunk = threadIdx.x % 8;
    uint4 x[kEach][2];
    release_next();
    wait_for_previous();
#pragma unroll
    for (int e = 0; e < kEach; e++) {
        const int unit = min(first + e * (kThreads / 8), rows * blocks - 1);
        const uint4 *from = reinterpret_cast<const uint4 *>(in + size_t(unit) * 128 + chunk * 16);
        x[e][0] = from[0], x[e][1] = from[1];
    }
#pragma unroll
    for (int e = 0; e < kEach; e++) {
        const int unit = first + e * (kThreads / 8), row = unit / blocks, block = unit % blocks;
        const e4m3_chunk of(x[e]);
        float most = of.most();
#pragma unroll
        for (int d = 1; d < 8; d *= 2) most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, d));
        const float scale = most / 448;
        const uint4 codes = of.template codes<To::kAcross>(scale);
        if (unit < rows * blocks) {
            *reinterpret_cast<uint4 *>(to.chunk_at(row, block, chunk)) = codes;
            if (chunk == 0) *to.scale_at(row, block) = scale;
        }
    }
}

// One scale for each row, by teams of kTeam threads, of which block number `block` has several. A team holds 16*kTeam*kEach columns,
// and reads others twice.
template <int kThreads, int kTeam, int kEach, typename To>
__device__ void quantise_whole_rows(const To &to, const atlas_act *in, int rows, int cols, int block) {
    constexpr int kHeld = kTeam * kEach;
    const int row = block * (kThreads / kTeam) + threadIdx.x / kTeam, thread = threadIdx.x % kTeam, chunks = cols / 16;
    const uint4 *from = reinterpret_cast<const uint4 *>(in + size_t(row) * cols);
    uint4 x[kEach][2];
    const auto each = [&](int first, const auto &use) {
#pragma unroll
        for (int e = 0; e < kEach; e++)
            if (first + e * kTeam < chunks && first + e * kTeam + thread < chunks) use(first + e * kTeam + thread, x[e]);
    };
    const auto load = [&](int chunk, uint4 (&x)[2]) { x[0] = from[2 * chunk], x[1] = from[2 * chunk + 1]; };
    release_next();
    wait_for_previous();
    float most = 0;
    int first = 0;
    for (; row < rows && first < chunks; first += kHeld) {
        each(first, load);
        each(first, [&](int, const uint4 (&x)[2]) { most = fmaxf(most, e4m3_chunk(x).most()); });
    }
    most = warp_max(most);
    if constexpr (kTeam > 32) {
        __shared__ float mosts[kThreads / 32];
        if (lane() == 0) mosts[warp()] = most;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kTeam / 32; i++) most = fmaxf(most, mosts[threadIdx.x / kTeam * (kTeam / 32) + i]);
    }
    if (row >= rows) return;
    const float scale = most / 448;
    if (thread == 0) *to.scale_at(row, 0) = scale;
    for (bool held = true; first > 0; held = false) {  // the last first, which are held
        first -= kHeld;
        if (!held) each(first, load);
#pragma unroll
        for (int e = 0; e < kEach; e++) {
            if (first + e * kTeam >= chunks) break;
            const int chunk = first + e * kTeam + thread;
            const uint4 codes = e4m3_chunk(x[e]).template codes<To::kAcross>(scale);
            if (chunk < chunks) *reinterpret_cast<uint4 *>(to.chunk_at(row, chunk / 8, chunk % 8)) = codes;
        }
    }
}

}  // namespace atlas
