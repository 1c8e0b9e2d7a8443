// Strips of a frag layout times many rows, with wgmma: weights are the factor in registers, one strip or two for each warp; sums are
// [outputs, rows]. A stage has the 64 columns of 4·kTeams·kStrips strips, each in one piece.
//
// Weights become bf16: exactly in f8, f8block and nvfp4, rounded once in GGUF's formats. In f8block sums are kept in units
// of the scale of the 128 columns they are at, and change units from one such block to the next; in q6_k in those of each row's factor of 256 columns.
#pragma once
#include "lib/cuda/weight/six_wide.cuh"
#include "lib/cuda/weight/wide.cuh"

namespace atlas {

template <atlas_Scheme kScheme>
struct frag_stage {
    static constexpr int kBlocks = 64 / frag<kScheme>::kCols, kStripBytes = kBlocks * frag<kScheme>::kBlock;
    static constexpr int bytes(int strips) { return (strips * kStripBytes + 1023) / 1024 * 1024; }
};
template <atlas_Scheme kScheme, int kTeams, int kRows, int kStages, bool kMapped, int kStrips = 2>
using frag_pipe = wide<kTeams, kRows, frag_stage<kScheme>::bytes(kTeams * 4 * kStrips), kStages, 1, kMapped, true>;

// Copies a stage of strips, by one warp or several: this one copies those from number first on, n of them and kMost at most. In memory they follow
// one another from `from` on; where kPairs, they are pairs, whose second ones lie as much further on as second says. One warp says how many
// bytes come: those of all strips, and others.
template <atlas_Scheme kScheme, int kMost, bool kPairs = false>
struct copy_strips {
    const uint8_t *from;
    size_t second;
    int first, n;
    int cols, strips, others;
    bool says;

    __device__ void operator()(int step, uint32_t to, uint32_t barrier) const {
        using stage_t = frag_stage<kScheme>;
        if (!elected()) return;
        const int bytes = min(stage_t::kBlocks, frag<kScheme>::blocks(cols) - step * stage_t::kBlocks) * frag<kScheme>::kBlock;
        if (says) arrive_expecting(barrier, strips * bytes + others);
        const size_t pitch = frag<kScheme>::strip_bytes(cols);
        const auto copy = [&](int i) {
            const size_t at = (kPairs ? i / 2 * pitch + i % 2 * second : i * pitch) + size_t(step) * stage_t::kStripBytes;
            copy_bulk(to + (first + i) * stage_t::kStripBytes, from + at, bytes, barrier);
        };
        if (n == kMost) {  // instructions in a row
#pragma unroll
            for (int i = 0; i < kMost; i++) copy(i);
        } else {
#pragma unroll 1
            for (int i = 0; i < n; i++) copy(i);
        }
    }
};

// A scale in f16, as pairs of bf16: its first eight bits, and the other three.
struct two_parts {
    uint32_t high, low;
    // Times whole numbers, rounded once: the second product is exact (nibbles), or so small that its rounding hardly matters (bytes).
    __device__ uint32_t times(uint32_t c) const { return multiply_add_pair(c, high, multiply_pair(c, low)); }
};
// Both scales of a word.
__device__ inline void take_apart(uint32_t w, two_parts &first, two_parts &second) {
    const uint32_t most = w & 0xfff8fff8;
    const __half2 rest = __hsub2(reinterpret_cast<const __half2 &>(w), reinterpret_cast<const __half2 &>(most));
    const float2 high = __half22float2(reinterpret_cast<const __half2 &>(most)), low = __half22float2(rest);
    const auto pair = [](float x) { return __byte_perm(__float_as_uint(x), 0, 0x3232); };
    first = {pair(high.x), pair(low.x)}, second = {pair(high.y), pair(low.y)};
}

// Byte i of a word, a nibble, and 128.
template <int i>
__device__ inline float raise_nibble(uint32_t w) {
    return __uint_as_float(__byte_perm(w, 0x00004300, 0x5044 | i << 8));
}
__device__ inline float2 widen_halves(uint32_t x) { return __half22float2(reinterpret_cast<const __half2 &>(x)); }

// The fragments of a strip's 64 columns; in q8_0 of the first 32 only where half, in q6_k in units of its factors.
template <atlas_Scheme kScheme>
__device__ void decode_stage(uint32_t from, bool half, uint32_t (&a)[4][4]) {
    using layout = frag<kScheme>;
    const int g = lane() / 4;
    uint4 codes[layout::kVectors];
    layout::load(from + layout::lane_at(), codes);
    if constexpr (layout::kSix) {
        decode_six_stage(codes, load_shared2(from + kSixScalesAt + g * 8), a);
        return;
    }
    const uint32_t words[4] = {codes[0].x, codes[0].y, codes[0].z, codes[0].w};
    if constexpr (kScheme == ATLAS_SCHEME_Q4_0) {
        const uint2 scales = load_shared2(from + 512 + g * 8);
        two_parts d[2][2];  // of rows g and g+8, in both halves
        take_apart(scales.x, d[0][0], d[0][1]), take_apart(scales.y, d[1][0], d[1][1]);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            decode_nibbles(words[k], a[k]);
#pragma unroll
            for (int i = 0; i < 4; i++) a[k][i] = d[i % 2][k / 2].times(a[k][i]);
        }
    } else if constexpr (kScheme == ATLAS_SCHEME_Q4_1) {  // in f32, where a code's product and the minimum are rounded once
        const uint2 scales = load_shared2(from + 512 + g * 8), minima = load_shared2(from + 576 + g * 8);
        const float2 d[2] = {widen_halves(scales.x), widen_halves(scales.y)}, m[2] = {widen_halves(minima.x), widen_halves(minima.y)};
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint32_t w = words[k] >> 4 * r & 0x0f0f0f0f;
                const float scale = k < 2 ? d[r].x : d[r].y, least = fmaf(-128, scale, k < 2 ? m[r].x : m[r].y);
                a[k][r] = narrow(fmaf(raise_nibble<0>(w), scale, least), fmaf(raise_nibble<2>(w), scale, least));
                a[k][2 + r] = narrow(fmaf(raise_nibble<1>(w), scale, least), fmaf(raise_nibble<3>(w), scale, least));
            }
    } else if constexpr (kScheme == ATLAS_SCHEME_Q8_0) {
#pragma unroll
        for (int b = 0; b < 2; b++) {
            two_parts d[2];
            take_apart(b && half ? 0 : load_shared1(from + b * layout::kBlock + 512 + g * 4), d[0], d[1]);
            const uint32_t pairs[4] = {codes[b].x, codes[b].y, codes[b].z, codes[b].w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint32_t &first = a[2 * b + i / 2][i % 2], &second = a[2 * b + i / 2][i % 2 + 2];
                decode_bytes(pairs[i], first, second);
                first = d[i % 2].times(first), second = d[i % 2].times(second);
            }
        }
    } else {
#pragma unroll
        for (int k = 0; k < 4; k++) layout::codes(codes, k, a[k]);
        if constexpr (kScheme == ATLAS_SCHEME_NVFP4) {
            const nvfp4_scales scales(load_shared2(from + 512 + g * 8));
#pragma unroll
            for (int k = 0; k < 4; k++) scales.apply(k, a[k]);
        }
    }
}

// The units that sums of an f8block strip are in.
struct sum_units {
    const float *scales;  // of the strip
    float now = 1, next;
    bool zero = false;  // weights of this block are too small to count

    __device__ explicit sum_units(const float *scales) : scales(scales), next(scales ? *scales : 0.0f) {}
    // At the first step of a block of columns; what sums are to be multiplied by.
    __device__ float change(int block, int blocks) {
        const float scale = next;
        if (scales && block + 1 < blocks) next = scales[block + 1];
        zero = fabsf(scale) < 1e-30f;
        if (zero) return 1;
        const float ratio = now / scale;
        now = scale;
        return ratio;
    }
};

// Multiplies a tile's steps: two strips of this warp by kRows rows. scales: those of the strips in f8block.
template <atlas_Scheme kScheme, int kRows, typename Pipe, typename Stage>
__device__ void multiply_strips(const Pipe &pipe, Stage &now, int steps, int cols, const float *const (&scales)[2], float (&c)[2][kRows / 2]) {
    constexpr bool kUnits = kScheme == ATLAS_SCHEME_F8BLOCK, kSix = frag<kScheme>::kSix;
    const int blocks = (cols + 127) / 128;
    sum_units units[2] = {sum_units(scales[0]), sum_units(scales[1])};
    row_units of_rows[2];
    uint32_t a[2][4][4];
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int i = 0; i < kRows / 2; i++) c[s][i] = 0;
    int before = 0;
    const auto multiply_step = [&](int step) {
        pipe.wait_full(now);
        const uint32_t from = pipe.weights(now.slot) + warp() * 2 * frag_stage<kScheme>::kStripBytes;
        const uint64_t rows = factor(pipe.rows(now.slot));
        const bool half = step == steps - 1 && cols - step * 64 <= 32;
#pragma unroll
        for (int s = 0; s < 2; s++) {
            wait_products<1>();  // those that used a[s] and c[s]
            if (s == 1 && step) pipe.release(before);
            decode_stage<kScheme>(from + s * frag_stage<kScheme>::kStripBytes, half, a[s]);
            if constexpr (kUnits) {
                const uint32_t keep = units[s].zero ? 0 : 0xffffffffu;
#pragma unroll
                for (int k = 0; k < 4; k++)
#pragma unroll
                    for (int r = 0; r < 4; r++) a[s][k][r] &= keep;
            }
#pragma unroll
            for (int k = 0; k < 4; k++) pin(a[s][k]);
            begin_products();
#pragma unroll
            for (int k = 0; k < 4; k++) multiply(c[s], a[s][k], rows + k * 2);
            commit_products();
        }
        before = now.slot;
        now.next();
    };
    if constexpr (kUnits) {
        for (int block = 0; block < blocks; block++) {
            const float ratio[2] = {units[0].change(block, blocks), units[1].change(block, blocks)};
            wait_products<0>();
#pragma unroll
            for (int s = 0; s < 2; s++) {
                pin(c[s]);
#pragma unroll
                for (int i = 0; i < kRows / 2; i++) c[s][i] *= ratio[s];
                pin(c[s]);
            }
            multiply_step(2 * block);
            if (2 * block + 1 < steps) multiply_step(2 * block + 1);
        }
    } else if constexpr (kSix) {
        for (int step = 0; step < steps; step += 4) {
            pipe.wait_full(now);
            wait_products<0>();
#pragma unroll
            for (int s = 0; s < 2; s++) of_rows[s].change(pipe.weights(now.slot) + (warp() * 2 + s) * frag_stage<kScheme>::kStripBytes, c[s]);
#pragma unroll
            for (int k = 0; k < 4; k++) multiply_step(step + k);
        }
    } else {
        for (int step = 0; step < steps; step++) multiply_step(step);
    }
    wait_products<0>();
    pin(c[0]);
    pin(c[1]);
    pipe.release(before);
#pragma unroll
    for (int s = 0; s < 2; s++) {
        if constexpr (kSix) {
#pragma unroll
            for (int i = 0; i < kRows / 2; i++) c[s][i] *= of_rows[s].of(i) * frag<kScheme>::kFactor;
            continue;
        }
        const float factor = kUnits ? units[s].now : frag<kScheme>::kFactor;
        if (kUnits || frag<kScheme>::kFactor != 1.0f) {
#pragma unroll
            for (int i = 0; i < kRows / 2; i++) c[s][i] *= factor;
        }
    }
}

// The same of one strip, so that there may be twice as many rows, from a step to another: fragments of even and odd steps take turns.
template <atlas_Scheme kScheme, int kRows, typename Pipe, typename Stage>
__device__ void multiply_strip(const Pipe &pipe, Stage &now, int begin, int end, int cols, float (&c)[1][kRows / 2]) {
    constexpr bool kSix = frag<kScheme>::kSix;
    static_assert(kScheme != ATLAS_SCHEME_F8BLOCK, "sums have no units");
    row_units of_rows;
    uint32_t a[2][4][4];
#pragma unroll
    for (int i = 0; i < kRows / 2; i++) c[0][i] = 0;
    int before[2] = {};
    const auto multiply_step = [&](int step, int s) {
        pipe.wait_full(now);
        wait_products<1>();  // those that used a[s]
        if (step > begin + 1) pipe.release(before[s]);
        decode_stage<kScheme>(pipe.weights(now.slot) + warp() * frag_stage<kScheme>::kStripBytes, cols - step * 64 <= 32, a[s]);
#pragma unroll
        for (int k = 0; k < 4; k++) pin(a[s][k]);
        begin_products();
        const uint64_t rows = factor(pipe.rows(now.slot));
#pragma unroll
        for (int k = 0; k < 4; k++) multiply(c[0], a[s][k], rows + k * 2);
        commit_products();
        before[s] = now.slot;
        now.next();
    };
    int step = begin;
    if constexpr (kSix) {
        for (; step < end; step += 4) {
            pipe.wait_full(now);
            of_rows.change(pipe.weights(now.slot) + warp() * frag_stage<kScheme>::kStripBytes, c[0]);
#pragma unroll
            for (int k = 0; k < 4; k++) multiply_step(step + k, k % 2);
            wait_products<0>();  // here, or the compiler has tensor cores wait for all that is decoded
        }
    } else {
        for (; step + 1 < end; step += 2) multiply_step(step, 0), multiply_step(step + 1, 1);
        if (step < end) multiply_step(step, 0);
    }
    wait_products<0>();
    pin(c[0]);
    if (end > begin) pipe.release(before[0]);
    if (end > begin + 1) pipe.release(before[1]);
#pragma unroll
    for (int i = 0; i < kRows / 2; i++) c[0][i] *= kSix ? of_rows.of(i) * frag<kScheme>::kFactor : frag<kScheme>::kFactor;
}

// Where the block scales of a strip begin, in f8block.
template <atlas_Scheme kScheme>
__device__ const float *strip_scales(const atlas_Weight &w, int m, int strip) {
    if (kScheme != ATLAS_SCHEME_F8BLOCK || strip >= (w.Rows + 15) / 16) return nullptr;
    return reinterpret_cast<const float *>(frag<kScheme>::strip(w, m, (w.Rows + 15) / 16)) + size_t(strip) * ((w.Cols + 127) / 128);
}

}  // namespace atlas
