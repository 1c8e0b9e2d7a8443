// Linear and Logits for rows of any number, any scheme and any number of columns. Eight warps, a team, make kStrips·16 outputs of up
// to 8·kTiles rows: unit u of 64 columns belongs to warp u % 8, and the eight sums are added in order. One more warp copies: a
// stage is 8·kUnits units of the strips of all kTeams teams, and of the activations. Weights are on their way before the kernel
// before this one has ended. The bits of a row depend on the scheme alone.
//
// Grid (any, rows/(8·kTiles)); one block per multiprocessor is meant. kTeams·256 + 32 threads. Dynamic shared memory: few<…>::kShared.
#pragma once
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

extern __shared__ __align__(1024) uint8_t few_shared[];

template <atlas_Scheme kScheme, int kTeams, int kTiles, int kStrips, int kUnits, int kStages>
struct few {
    using unit_t = unit<kScheme>;
    static constexpr int kWarps = 8 * kTeams, kThreads = kWarps * 32 + 32, kGroup = kTeams * kStrips;  // strips
    static constexpr int kStrip = 8 * kUnits * unit_t::kBytes, kPitch = 8 * kUnits * 128 + 16;       // bytes of a stage: a strip, a row
    static constexpr int kRowsAt = kGroup * kStrip, kStage = (kRowsAt + 8 * kTiles * kPitch + 127) / 128 * 128;
    static constexpr int kChunk = kStrips * kTiles <= 2 ? 1 : 2, kChunks = kStrips * kTiles / kChunk;  // tiles whose sums are added at a time
    static constexpr int kPart = kChunk * 128;                                                       // floats
    static constexpr int kPartsAt = kStages * kStage, kBarriersAt = kPartsAt + kTeams * 2 * 8 * kPart * 4;
    static constexpr int kShared = (kBarriersAt + (2 * kStages + 4 * kTeams) * 8 + 127) / 128 * 128;
    static_assert(kStrips * kTiles % kChunk == 0, "whole chunks");

    __device__ static uint32_t barrier(int i) { return shared_address(few_shared + kBarriersAt) + i * 8; }
    __device__ static uint32_t full(int slot) { return barrier(slot); }
    __device__ static uint32_t empty(int slot) { return barrier(kStages + slot); }
    __device__ static uint32_t put(int team, int side) { return barrier(2 * kStages + team * 4 + side); }
    __device__ static uint32_t taken(int team, int side) { return barrier(2 * kStages + team * 4 + 2 + side); }

    int rows, cols, units, strips, groups, stages;  // stages of a group
    bool whole;                                     // rows that the copy engine can bring

    // Multiplies; calls store(output, row of the tile, sum) for what lies in the matrix. line(r) is row r; null counts as zeros.
    template <typename Line, typename Store>
    __device__ static void run(const atlas_Weight &w, int rows, const Line &line, const Store &store) {
        const int units = (w.Cols + 63) / 64, strips = (w.Rows + 15) / 16;
        const few f = {rows, w.Cols, units, strips, (strips + kGroup - 1) / kGroup, (units + 8 * kUnits - 1) / (8 * kUnits), w.Cols % 8 == 0};
        if (warp() == kWarps) {
            if (lane() == 0) {
                for (int s = 0; s < kStages; s++) init_barrier(full(s), f.whole ? 2 : 1 + 32), init_barrier(empty(s), kWarps * 32);
                for (int t = 0; t < kTeams; t++)
                    for (int s = 0; s < 2; s++) init_barrier(put(t, s), 8 * 32), init_barrier(taken(t, s), 32);
                fence_barriers();
            }
            __syncwarp();
            f.copy(w, line);
        } else {
            f.clear_rows();
            __syncthreads();
            f.multiply(w, line, store);
        }
    }

  private:
    // Rows that come with stages: zeros where no copy writes before what follows the last column is read. Later it is an
    // earlier stage's part of the same row.
    __device__ void clear_rows() const {
        if (cols % 64 == 0) return;
        for (int i = threadIdx.x; i < kStages * 8 * kTiles * (kPitch / 16); i += kWarps * 32) {
            const int slot = i / (8 * kTiles * (kPitch / 16)), at = i % (8 * kTiles * (kPitch / 16));
            *reinterpret_cast<uint4 *>(few_shared + slot * kStage + kRowsAt + at * 16) = {};
        }
        fence_shared();
    }
    // Starts the copies of a stage's weights and says how many bytes will come to its barrier.
    __device__ void copy_weights(const atlas_Weight &w, int slot, int group, int stage) const {
        const int u = stage * 8 * kUnits, n = min(8 * kUnits, units - u), there = min(kGroup, strips - group * kGroup);
        const int bytes = unit_t::bytes(w.Cols, u, n);
        if (!elected()) return;
        arrive_expecting(full(slot), there * bytes);
        for (int s = 0; s < there; s++) copy_units<kScheme, 8 * kUnits>(shared_address(few_shared) + slot * kStage + s * kStrip, unit_t::at(w, 0, group * kGroup + s, u), n, bytes, full(slot));
    }
    template <typename Line>
    __device__ void copy_rows(const Line &line, int slot, int stage, int present) const {
        const int first = stage * 8 * kUnits * 64, some = min(8 * kUnits * 64, cols - first);
        if (!whole) {
            for (int r = 0; r < rows; r++) {
                const atlas_act *from = line(r);
                atlas_act *to = reinterpret_cast<atlas_act *>(few_shared + slot * kStage + kRowsAt + r * kPitch);
                for (int k = lane(); from && k < some; k += 32) to[k] = from[first + k];
            }
            arrive(full(slot));
            return;
        }
        if (lane() == 0) arrive_expecting(full(slot), present * some * 2);
        __syncwarp();
        for (int r = lane(); r < rows; r += 32)
            if (const atlas_act *from = line(r)) copy_bulk(shared_address(few_shared) + slot * kStage + kRowsAt + r * kPitch, from + first, some * 2, full(slot));
    }
    template <typename Line>
    __device__ void copy(const atlas_Weight &w, const Line &line) const {
        int group = blockIdx.x, stage = 0, row_stage = 0;
        const int all = int(blockIdx.x) < groups ? ((groups - 1 - int(blockIdx.x)) / int(gridDim.x) + 1) * stages : 0, early = min(kStages, all);
        const auto next_weights = [&](int slot) {
            copy_weights(w, slot, group, stage);
            if (++stage == stages) stage = 0, group += gridDim.x;
        };
        for (int slot = 0; slot < early; slot++) next_weights(slot);
        __syncthreads();
        release_next();
        wait_for_previous();
        int present = 0;  // rows
        for (int r = lane(); r < rows; r += 32) present += line(r) != nullptr;
        present = __reduce_add_sync(kAllLanes, present);
        const auto next_rows = [&](int slot) {
            copy_rows(line, slot, row_stage, present);
            if (++row_stage == stages) row_stage = 0;
        };
        for (int slot = 0; slot < early; slot++) next_rows(slot);
        for (int begun = early, slot = 0, phase = 0; begun < all; begun++) {
            wait_barrier(empty(slot), phase);
            next_weights(slot);
            next_rows(slot);
            if (++slot == kStages) slot = 0, phase ^= 1;
        }
    }

    template <typename Line, typename Store>
    __device__ void multiply(const atlas_Weight &w, const Line &line, const Store &store) const {
        const int team = warp() / 8, part = warp() % 8;
        block_scales scales[kStrips];
        const auto first_strip = [&](int group) { return group * kGroup + team * kStrips; };
        const auto load_scales = [&](int group) {
#pragma unroll
            for (int s = 0; s < kStrips; s++) scales[s].load(w, first_strip(group) + s, part, units);
        };
        if (int(blockIdx.x) < groups) load_scales(blockIdx.x);
        wait_for_previous();  // not by looking at a barrier again and again
        uint32_t lanes[kTiles];
#pragma unroll
        for (int j = 0; j < kTiles; j++) lanes[j] = min(j * 8 + lane() % 8, rows - 1) * kPitch + lane() / 8 * 16;
        const ones<kScheme> one;
        int slot = 0, phase = 0, count = 0;
        for (int group = blockIdx.x; group < groups; group += gridDim.x) {
            float c[kStrips][kTiles][4] = {};
            for (int stage = 0; stage < stages; stage++) {
                const uint8_t *at = few_shared + slot * kStage + team * kStrips * kStrip + part * unit_t::kBytes;
                const uint32_t x = shared_address(few_shared) + slot * kStage + kRowsAt + part * 128;
                const auto times = [&](unit_product<kScheme, kTiles, kStrips> &p, int i) {
                    float block[kStrips];
#pragma unroll
                    for (int s = 0; s < kStrips; s++) block[s] = scales[s].of(w, first_strip(group) + s, part, stage * kUnits + i);
                    p.multiply(one, x + i * 1024, lanes, w.Cols - ((stage * kUnits + i) * 8 + part) * 64, block, c);
                };
                wait_barrier(full(slot), phase);
                unit_product<kScheme, kTiles, kStrips> p[2];
                if ((stage + 1) * 8 * kUnits <= units) {
                    p[0].load(at, kStrip, x, lanes);
#pragma unroll
                    for (int i = 0; i < kUnits; i++) {
                        if (i + 1 < kUnits) p[(i + 1) % 2].load(at + (i + 1) * 8 * unit_t::kBytes, kStrip, x + (i + 1) * 1024, lanes);
                        times(p[i % 2], i);
                    }
                } else {
#pragma unroll 1
                    for (int i = 0; (stage * kUnits + i) * 8 + part < units; i++) {
                        p[0].load(at + i * 8 * unit_t::kBytes, kStrip, x + i * 1024, lanes);
                        times(p[0], i);
                    }
                }
                arrive(empty(slot));
                if (++slot == kStages) slot = 0, phase ^= 1;
            }
            if (group + int(gridDim.x) < groups) load_scales(group + gridDim.x);
#pragma unroll
            for (int q = 0; q < kChunks; q++, count++) {
                const int side = count % 2;
                float4 *parts = reinterpret_cast<float4 *>(few_shared + kPartsAt) + (team * 2 + side) * 8 * (kPart / 4) + lane();
                wait_barrier(taken(team, side), count / 2 % 2 ^ 1);
#pragma unroll
                for (int e = 0; e < kChunk; e++) {
                    const float(&v)[4] = c[(q * kChunk + e) / kTiles][(q * kChunk + e) % kTiles];
                    parts[part * (kPart / 4) + e * 32] = {v[0], v[1], v[2], v[3]};
                }
                arrive(put(team, side));
                if (count % 8 != part) continue;
                wait_barrier(put(team, side), count / 2 % 2);
#pragma unroll
                for (int e = 0; e < kChunk; e++) {
                    const int n = (first_strip(group) + (q * kChunk + e) / kTiles) * 16 + lane() / 4, first = (q * kChunk + e) % kTiles * 8 + lane() % 4 * 2;
                    float sum[4] = {};
#pragma unroll
                    for (int p = 0; p < 8; p++) {
                        const float4 v = parts[p * (kPart / 4) + e * 32];
                        sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
                    }
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const int out = n + i / 2 * 8, r = first + i % 2;
                        if (r < rows && out < w.Rows) store(out, r, line(r) ? sum[i] * (row_scale(w, 0, out) * unit_product<kScheme, kTiles, kStrips>::kFactor) : 0.0f);
                    }
                }
                arrive(taken(team, side));
            }
        }
    }

    // f8block's scales of a warp's units of a strip: lane l keeps that of the warp's unit number l.
    struct block_scales {
        float mine = 0;
        __device__ void load(const atlas_Weight &w, int strip, int part, int units) {
            if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK)
                if (lane() * 8 + part < units && strip * 16 < w.Rows) mine = frag<kScheme>::block_scale(w, 0, strip, (lane() * 8 + part) / 2);
        }
        __device__ float of(const atlas_Weight &w, int strip, int part, int i) const {
            if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK) {
                if (i < 32) return __shfl_sync(kAllLanes, mine, i);
                return strip * 16 < w.Rows ? frag<kScheme>::block_scale(w, 0, strip, (i * 8 + part) / 2) : 0;
            }
            return 0;
        }
    };
};

}  // namespace atlas

template <class P>
__device__ void linear_few(const atlas_Linear &a) {
    const int first = blockIdx.y * 8 * P::kTiles;
    using few_t = atlas::few<P::kScheme, P::kTeams, P::kTiles, P::kStrips, P::kUnits, P::kStages>;
    static_assert(atlas::launched<P, few_t::kThreads, few_t::kShared>::kFits);
    few_t::run(
        a.W, min(8 * P::kTiles, a.Rows - first), [&](int r) { return a.In + size_t(first + r) * a.W.Cols; },
        [&](int n, int r, float sum) { a.Out[size_t(first + r) * a.OutPitch + n] = __float2bfloat16_rn(a.Bias ? sum + a.Bias[n] : sum); });
}

template <class P>
__device__ void logits_few(const atlas_Logits &a) {
    const int first = blockIdx.y * 8 * P::kTiles;
    const auto line = [&](int r) -> const atlas_act * {
        const int from = a.Index[first + r];
        return from >= 0 && from < a.InRows ? a.In + size_t(from) * a.W.Cols : nullptr;
    };
    using few_t = atlas::few<P::kScheme, P::kTeams, P::kTiles, P::kStrips, P::kUnits, P::kStages>;
    static_assert(atlas::launched<P, few_t::kThreads, few_t::kShared>::kFits);
    few_t::run(
        a.W, min(8 * P::kTiles, a.Rows - first), line, [&](int n, int r, float sum) { a.Out[size_t(first + r) * a.W.Rows + n] = sum; });
}
