// Tiles of 64 rows by 16·kStrips outputs with mma.m16n8k16, for weights in a frag layout: what GPUs without wgmma do with many
// rows. A warp multiplies two strips by 32 rows; a stage is 64 columns of all strips and rows, copied asynchronously.
//
// Columns are multiplied part by part, as the kernels for few rows share them out among warps, and the parts' sums are added in
// order: so that a row has the same bits, however many there are. kTurns: units take turns among the parts, as in linear_eight.cuh;
// otherwise a part is a run of units, as in expert_tiles.cuh.
//
// 32·kStrips threads, kStrips 4 or 8. Dynamic shared memory: kShared. Any shape and alignment; fast where Cols%8 == 0.
#pragma once
#include "lib/cuda/weight/ring.cuh"

namespace atlas {

// Units in the order in which they are multiplied.
template <int kParts, bool kTurns>
struct unit_walk {
    int units, u, part;

    __device__ explicit unit_walk(int units, int part = 0) : units(units), u(part), part(part) { settle(); }
    __device__ bool ends_part() const { return kTurns ? u + kParts >= units : u + 1 == part_end(); }
    __device__ void next() {
        if constexpr (kTurns) {
            u = ends_part() ? ++part : u + kParts;
        } else {
            u++;
            settle();
        }
    }

  private:
    __device__ int part_end() const { return units * (part + 1) / kParts; }
    __device__ void settle() {  // some parts may have no units
        if constexpr (!kTurns)
            while (part + 1 < kParts && u >= part_end()) part++;
    }
};

template <atlas_Scheme kScheme, int kStrips, int kParts, bool kTurns, int kStages>
struct frag_tile {
    using unit_t = unit<kScheme>;
    static constexpr int kRows = 64, kTiles = 4, kOut = 16 * kStrips, kThreads = 32 * kStrips;
    static constexpr int kWeights = kStrips * unit_t::kBytes, kStage = kWeights + kRows * kRowBytes;
    static constexpr int kPitch = kOut + 4;  // floats of a row of sums, so that lanes meet no bank twice
    static constexpr int kShared = kStages * kStage > kRows * kPitch * 4 ? kStages * kStage : kRows * kPitch * 4;
    static_assert(kThreads % kRows == 0 && kStrips * 2 <= kThreads, "whole passes");

    // Sums of a row, once multiply has ended.
    __device__ static const float *sums(int r) { return reinterpret_cast<const float *>(strip_shared) + r * kPitch; }

    // Multiplies strips of matrix m, of which strip(i) is the number, or -1, by rows of activations: row(r) is where one lies, or
    // null, which counts as zeros. row may read what the kernel before this one wrote. part: the only part that is multiplied; -1: all are.
    template <typename Strip, typename Row>
    __device__ static void multiply(const atlas_Weight &w, int m, int rows, const Strip &strip, const Row &row, int part = -1) {
        __shared__ const uint8_t *strips[kStrips];
        __shared__ const atlas_act *lines[kRows];
        const int units = (w.Cols + 63) / 64, all = (w.Rows + 15) / 16;
        const bool whole = w.Cols % 8 == 0;
        __syncthreads();  // another tile's sums are no longer read
        if (threadIdx.x < kStrips) {
            const int i = strip(threadIdx.x);
            strips[threadIdx.x] = i >= 0 && i < all ? unit_t::at(w, m, i, 0) : nullptr;
        }
        __syncthreads();
        const auto copy_weights = [&](int stage, int u) {
            constexpr int kChunks = unit_t::kBytes / 16;
            const int there = unit_t::bytes(w.Cols, u, 1);
            for (int i = threadIdx.x; i < kStrips * kChunks; i += kThreads) {
                const uint8_t *from = i % kChunks * 16 < there ? strips[i / kChunks] : nullptr;
                copy_async(stage_at(stage) + i * 16, from ? from + size_t(u) * unit_t::kBytes + i % kChunks * 16 : w.Data, from);
            }
        };
        const auto copy_rows = [&](int stage, int u) {
            const int r = threadIdx.x / 8, k = u * 64 + threadIdx.x % 8 * 8;
#pragma unroll
            for (int i = 0; i < kRows; i += kThreads / 8) {
                const atlas_act *from = k < w.Cols ? lines[i + r] : nullptr;
                const uint32_t to = stage_at(stage) + kWeights + (i + r) * kRowBytes + threadIdx.x % 8 * 16;
                if (whole) copy_async(to, from ? from + k : reinterpret_cast<const atlas_act *>(w.Data), from);
                else store_shared(to, from ? load8_raw(from + k, w.Cols - k, false) : uint4{});
            }
        };
        const int steps = part < 0 ? units : (units - part + kParts - 1) / kParts;
        unit_walk<kParts, kTurns> now(units, max(part, 0)), ahead = now, row_ahead = now;
        for (int s = 0; s < kStages - 1 && s < steps; s++, ahead.next()) copy_weights(s, ahead.u);
        wait_for_previous();
        release_next();
        if (threadIdx.x < kRows) lines[threadIdx.x] = int(threadIdx.x) < rows ? row(threadIdx.x) : nullptr;
        __syncthreads();
        for (int s = 0; s < kStages - 1; s++) {
            if (s < steps) copy_rows(s, row_ahead.u), row_ahead.next();
            commit_copies();
        }

        // Strips of a warp are neighbours, and so are its rows.
        const int pair = warp() / 2 * 2, first_row = warp() % 2 * 32;
        const float *scales[2] = {};
        if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                const int i = strip(pair + s);
                if (i >= 0 && i < all) scales[s] = reinterpret_cast<const float *>(frag<kScheme>::strip(w, m, all)) + size_t(i) * ((w.Cols + 127) / 128);
            }
        const auto scale = [&](int s, int u) { return scales[s] && u < units ? scales[s][u / 2] : 0.0f; };
        const uint32_t lane_row = (first_row + lane() % 8) * kRowBytes + lane() / 8 * 16;
        const ones<kScheme> one;
        float total[2][kTiles][4] = {}, c[2][kTiles][4] = {}, block[2] = {scale(0, now.u), scale(1, now.u)};
        for (int step = 0; step < steps; step++) {
            wait_copies<kStages - 2>();
            __syncthreads();
            if (step + kStages - 1 < steps) {
                const int stage = (step + kStages - 1) % kStages;
                copy_weights(stage, ahead.u), copy_rows(stage, ahead.u);
                ahead.next();
            }
            commit_copies();
            unit_walk<kParts, kTurns> after = now;
            after.next();
            const float next[2] = {scale(0, after.u), scale(1, after.u)};
            if (first_row < rows) {
                const int at = step % kStages;
                multiply_unit(one, strip_shared + at * kStage + pair * unit_t::kBytes, stage_at(at) + kWeights + lane_row, w.Cols - now.u * 64, block, c);
                if (now.ends_part()) {
#pragma unroll
                    for (int s = 0; s < 2; s++)
#pragma unroll
                        for (int j = 0; j < kTiles; j++)
#pragma unroll
                            for (int i = 0; i < 4; i++) total[s][j][i] += c[s][j][i], c[s][j][i] = 0;
                }
            }
            now.next();
            block[0] = next[0], block[1] = next[1];
        }
        wait_copies<0>();
        __syncthreads();
        float *out = reinterpret_cast<float *>(strip_shared) + pair * 16 + lane() / 4;
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int j = 0; j < kTiles; j++)
#pragma unroll
                for (int i = 0; i < 4; i++) out[(first_row + j * 8 + lane() % 4 * 2 + i % 2) * kPitch + s * 16 + i / 2 * 8] = total[s][j][i];
        __syncthreads();
    }

  private:
    // c += a unit of two strips times rows, in the order of unit_product, but with fewer registers: weights are loaded once for each
    // half, and rows as they are needed.
    __device__ static void multiply_unit(const ones<kScheme> &one, const uint8_t *strips, uint32_t rows, int left, const float (&block)[2], float (&c)[2][kTiles][4]) {
        constexpr int kAtOnce = unit_t::kApart ? 1 : 2;  // halves: two take more registers than there are
#pragma unroll kAtOnce
        for (int half = 0; half < 2; half++) {
            if (unit_t::kHalves && half && left <= 32) break;
            uint32_t a[2][2][4];
            float2 factor[2][unit_t::kParts], least[2];
#pragma unroll
            for (int s = 0; s < 2; s++) {
                unit_t weights;
                weights.load_half(strips + s * unit_t::kBytes, half, a[s]);
                weights.factors(half, block[s], factor[s]);
                least[s] = weights.minima(half);
            }
#pragma unroll
            for (int j = 0; j < kTiles; j++) {
                uint32_t x[4];
                load_matrices(x, rows + j * 8 * kRowBytes + half * 64);
                if constexpr (unit_t::kLifts) lift(x);
                float of_row[4] = {};
                one.take(half, j, x, of_row);
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    float(&sum)[4] = c[s][j];
                    if constexpr (!unit_t::kPartial) {
                        product(sum, a[s][0], x[0], x[1]);
                        product(sum, a[s][1], x[2], x[3]);
                    } else {
                        add_part<kScheme == ATLAS_SCHEME_Q4_1>(a[s], x, of_row, factor[s], least[s], sum);
                    }
                }
            }
        }
    }
    __device__ static uint32_t stage_at(int stage) { return shared_address(strip_shared) + stage * kStage; }
};

}  // namespace atlas
