// Products of several matrices in one kernel, rows of activations kept in shared memory, any scheme. A team of kParts warps makes
// a group of one or two strips at a time: unit u of 64 columns belongs to warp u % kParts, and the warps' sums are added in order,
// so that a row's bits depend on the scheme and kParts alone. Beside each team a warp copies the weights of all matrices, one after
// another, into the team's ring: it waits for nothing but room, and while the team waits for activations its ring fills up.
//
// Teams and copying warps walk the same list of matrices with the same kStrips and kGates, teams by multiply(), the others by
// copy(). A slot of a ring is 2·kUnits units for each warp: of one strip, or half of them of each of two.
//
// Any grid along x; kThreads threads, the copying warps last. Columns are multiples of 64. Dynamic shared memory: kRowsAt bytes, then
// what the kernel wants for rows.
#pragma once
#include "lib/cuda/weight/linear_eight.cuh"

namespace atlas {

extern __shared__ __align__(1024) uint8_t products_shared[];

template <atlas_Scheme kScheme, int kRows, int kTeams, int kParts, int kUnits, int kSlots, bool kSpreads>
struct products {
    using unit_t = unit<kScheme>;
    static constexpr int kWarps = kTeams * kParts, kConsumers = kWarps * 32, kThreads = kConsumers + kTeams * 32;
    static constexpr int kSlot = 2 * kUnits * kParts * unit_t::kBytes, kSide = kParts * 512;  // bytes of a slot; of a strip's sums
    static constexpr int kBarriersAt = kTeams * 2 * kSide, kBarriers = kTeams * (2 * kSlots + 4);
    static constexpr int kZerosAt = (kBarriersAt + kBarriers * 8 + 127) / 128 * 128;
    static constexpr int kZeros = kSpreads ? (2 * kUnits - 1) * kParts * 128 + 128 : 0;  // what spread_product reads as zeros
    static constexpr int kSlotsAt = kZerosAt + kZeros, kRowsAt = kSlotsAt + kTeams * kSlots * kSlot;
    static_assert(kSlot % 128 == 0 && kRows <= 8, "slots are aligned; columns of a product");

    // Groups of a matrix, strips of a group. kGates: a strip of gates and that of the same outputs' other factor.
    template <int kStrips, bool kGates>
    struct list {
        static constexpr int kTurns = 2 * kUnits / kStrips, kStage = kTurns * kParts, kStrip = kStage * unit_t::kBytes;  // units of a warp, of a stage; bytes
        static_assert(kStrips == 1 || (kStrips == 2 && kTurns > 0), "strips of a slot");
        static_assert(!kGates || kStrips == 2, "a gate and its other factor");
        int units, strips, groups, stages;
        __device__ explicit list(const atlas_Weight &w)
            : units(w.Cols / 64), strips((w.Rows + 15) / 16), groups((strips + kStrips - 1) / kStrips), stages((units + kStage - 1) / kStage) {}
        __device__ int strip(int group, int s) const { return kGates ? group + s * groups : group * kStrips + s; }
    };

    // A place in the list: what is next for this warp.
    int team, part, slot = 0, phase = 0;
    int count = 0;  // strips whose sums the team has put

    // Makes barriers and zeros; all threads call it, before anything else.
    __device__ static products begin() {
        const int w = warp();
        if (w == kWarps && lane() == 0) {
            for (int t = 0; t < kTeams; t++) {
                for (int s = 0; s < kSlots; s++) init_barrier(full(t) + s * 8, 1), init_barrier(empty(t) + s * 8, kParts * 32);
                for (int side = 0; side < 2; side++) init_barrier(put(t, side), kParts * 32), init_barrier(taken(t, side), 32);
            }
            fence_barriers();
        }
        for (int i = threadIdx.x; i < kZeros / 16; i += kThreads) store_shared(memory() + kZerosAt + i * 16, {});
        __syncthreads();
        return {w < kWarps ? w / kParts : w - kWarps, w % kParts};
    }
    __device__ static bool copies() { return warp() >= kWarps; }
    __device__ static uint32_t rows_at() { return memory() + kRowsAt; }
    // Room for floats of a block while no strip's sums lie there.
    __device__ static float *between() { return reinterpret_cast<float *>(products_shared); }

    template <int kStrips, bool kGates>
    __device__ void copy(const atlas_Weight &w) {
        using list_t = list<kStrips, kGates>;
        constexpr int kCopies = unit_t::kPitch == unit_t::kBytes ? 1 : list_t::kStage;  // pieces of a stage's strip
        const list_t m(w);
        for (int group = first(); group < m.groups; group += kTeams * gridDim.x)
            for (int stage = 0; stage < m.stages; stage++) {
                const int u = stage * list_t::kStage, n = min(list_t::kStage, m.units - u), bytes = unit_t::bytes(w.Cols, u, n);
                const int there = kGates ? 2 : min(kStrips, m.strips - group * kStrips);
                const uint32_t to = slots() + slot * kSlot, barrier = full(team) + slot * 8;
                wait_barrier(empty(team) + slot * 8, phase ^ 1);
                if (lane() == 0) arrive_expecting(barrier, there * bytes);
                __syncwarp();
                for (int i = lane(); i < there * kCopies; i += 32) {
                    const int s = i / kCopies, c = i % kCopies;
                    if (c < n) copy_bulk(to + s * list_t::kStrip + c * unit_t::kBytes, unit_t::at(w, 0, m.strip(group, s), u + c), kCopies == 1 ? bytes : unit_t::kBytes, barrier);
                }
                move_on();
            }
    }

    // Multiplies rows that lie pitch bytes apart from `from` on, and calls store(output, row, sum), where kGates for SwiGLU of the
    // pair's sums. prepare() comes before anything is read there, after what does not depend on it is asked for; ready(stage) before
    // a stage's columns are read.
    template <int kStrips, bool kGates, typename Prepare, typename Ready, typename Store>
    __device__ void multiply(const atlas_Weight &w, const float *bias, uint32_t from, int rows, int pitch, const Prepare &prepare, const Ready &ready, const Store &store) {
        using list_t = list<kStrips, kGates>;
        using product_t = eight_product<kScheme, kRows, kStrips, kSpreads>;
        constexpr int kUnit = kParts * unit_t::kBytes, kMove = kParts * 128;  // from a warp's unit to its next: weights, activations
        const list_t m(w);
        const int step = kTeams * gridDim.x;
        strip_scales scales[kStrips], next_scales[kStrips];
        finish end[kGates ? 2 : 1];  // of the strip whose sums this warp will add
        const auto load_scales = [&](int group) {
#pragma unroll
            for (int s = 0; s < kStrips; s++)
                if (group < m.groups) next_scales[s].load(w, m.strip(group, s), part, m.units);
        };
        const auto load_finish = [&](int group) {
            if constexpr (kGates) {
                if (group < m.groups && count / 2 % kParts == part)
                    for (int s = 0; s < 2; s++) end[s].load(w, bias, m.strip(group, s) * 16 + lane() / 4);
            } else {
                const int mine = (part - count) & (kParts - 1);
                if (group < m.groups && mine < kStrips) end[0].load(w, bias, m.strip(group, mine) * 16 + lane() / 4);
            }
        };
        load_scales(first()), load_finish(first());
        prepare();
        const uint32_t own = slots() + part * unit_t::kBytes, codes_at = held(own + lane() * 16), scales_at = held(own + product_t::scales_at()), full_at = held(full(team));
        const typename product_t::lines lines(from + part * 128, rows, pitch, memory() + kZerosAt);
        for (int group = first(); group < m.groups; group += step) {
            float c[kStrips][1][4] = {};
#pragma unroll
            for (int s = 0; s < kStrips; s++) scales[s] = next_scales[s];
            load_scales(group + step);
            for (int stage = 0; stage < m.stages; stage++) {
                const uint32_t codes = codes_at + slot * kSlot, unit_scales = scales_at + slot * kSlot;
                const typename product_t::lines x = lines.moved(stage * list_t::kStage * 128);
                const auto times = [&](product_t &p, int i) {
                    const int turn = stage * list_t::kTurns + i;
                    float block[kStrips];
#pragma unroll
                    for (int s = 0; s < kStrips; s++) block[s] = scales[s].of(w, m.strip(group, s), part, turn);
                    p.multiply(x, i * kMove, 64, block, c);
                };
                ready(stage);
                wait_barrier(full_at + slot * 8, phase);
                product_t p[2];
                if ((stage + 1) * list_t::kStage <= m.units) {
                    p[0].load(codes, unit_scales, list_t::kStrip, x, 0);
#pragma unroll
                    for (int i = 0; i < list_t::kTurns; i++) {
                        if (i + 1 < list_t::kTurns) p[(i + 1) % 2].load(codes + (i + 1) * kUnit, unit_scales + (i + 1) * kUnit, list_t::kStrip, x, (i + 1) * kMove);
                        times(p[i % 2], i);
                    }
                } else {
#pragma unroll 1
                    for (int i = 0; stage * list_t::kStage + i * kParts + part < m.units; i++) {
                        p[0].load(codes + i * kUnit, unit_scales + i * kUnit, list_t::kStrip, x, i * kMove);
                        times(p[0], i);
                    }
                }
                arrive(full_at + (kSlots + slot) * 8);
                move_on();
            }
#pragma unroll
            for (int s = 0; s < kStrips; s++, count++) {
                wait_barrier(taken(team, count % 2), count / 2 % 2 ^ 1);
                sums_of(count)[part * 32] = {c[s][0][0], c[s][0][1], c[s][0][2], c[s][0][3]};
                arrive(put(team, count % 2));
                if (kGates ? s == 0 || count / 2 % kParts != part : count % kParts != part) continue;
                float sum[kGates ? 2 : 1][4] = {};
#pragma unroll
                for (int f = 0; f < (kGates ? 2 : 1); f++) {
                    const int strip = kGates ? count - 1 + f : count;
                    wait_barrier(put(team, strip % 2), strip / 2 % 2);
                    add_sums(strip, sum[f]);
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        sum[f][i] = __fmul_rn(sum[f][i], end[f].scale[i / 2] * product_t::kFactor);
                        if (bias) sum[f][i] = __fadd_rn(sum[f][i], end[f].moved[i / 2]);
                    }
                }
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int out = m.strip(group, kGates ? 0 : s) * 16 + lane() / 4 + i / 2 * 8, r = row_of(i);
                    if (r >= rows || out >= w.Rows) continue;
                    if constexpr (kGates) {
                        const float gate = __bfloat162float(__float2bfloat16_rn(sum[0][i])), up = __bfloat162float(__float2bfloat16_rn(sum[1][i]));
                        store(out, r, silu(gate) * up);
                    } else {
                        store(out, r, sum[0][i]);
                    }
                }
                if (kGates) arrive(taken(team, (count - 1) % 2));
                arrive(taken(team, count % 2));
            }
            load_finish(group + step);
        }
    }

  private:
    __device__ products(int team, int part) : team(team), part(part) {}
    __device__ static uint32_t memory() { return shared_address(products_shared); }
    // Of a team's first slot; barriers of its slots, full and then empty, and of its two sides.
    __device__ static uint32_t full(int team) { return memory() + kBarriersAt + team * (2 * kSlots + 4) * 8; }
    __device__ static uint32_t empty(int team) { return full(team) + kSlots * 8; }
    __device__ static uint32_t put(int team, int side) { return full(team) + (2 * kSlots + side) * 8; }
    __device__ static uint32_t taken(int team, int side) { return full(team) + (2 * kSlots + 2 + side) * 8; }
    __device__ uint32_t slots() const { return memory() + kSlotsAt + team * kSlots * kSlot; }
    __device__ int first() const { return blockIdx.x + team * gridDim.x; }
    __device__ void move_on() {
        if (++slot == kSlots) slot = 0, phase ^= 1;
    }

    // What a lane's sums of a strip are scaled and moved by: of outputs n and n+8.
    struct finish {
        float scale[2], moved[2];
        __device__ void load(const atlas_Weight &w, const float *bias, int n) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int out = min(n + i * 8, w.Rows - 1);
                scale[i] = row_scale(w, 0, out), moved[i] = bias ? bias[out] : 0;  // nothing waits for them here
            }
        }
    };

    // f8block's scales of a warp's units of a strip: lane l keeps that of the warp's unit number l.
    struct strip_scales {
        float mine = 0;
        __device__ void load(const atlas_Weight &w, int strip, int part, int units) {
            if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK)
                if (lane() * kParts + part < units && strip * 16 < w.Rows) mine = frag<kScheme>::block_scale(w, 0, strip, (lane() * kParts + part) / 2);
        }
        __device__ float of(const atlas_Weight &w, int strip, int part, int i) const {
            if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK) {
                if (i < 32) return __shfl_sync(kAllLanes, mine, i);
                return strip * 16 < w.Rows ? frag<kScheme>::block_scale(w, 0, strip, (i * kParts + part) / 2) : 0;
            }
            return 0;
        }
    };

    // This lane's part of what the team's first warp puts for its strip of that number.
    __device__ float4 *sums_of(int number) const { return reinterpret_cast<float4 *>(products_shared + (team * 2 + number % 2) * kSide) + lane(); }
    __device__ void add_sums(int number, float (&sum)[4]) const {
        const float4 *parts = sums_of(number);
#pragma unroll
        for (int p = 0; p < kParts; p++) {
            const float4 v = parts[p * 32];
            sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
        }
        if constexpr (kSpreads)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sum[i] += __shfl_xor_sync(kAllLanes, sum[i], 1);
                sum[i] += __shfl_xor_sync(kAllLanes, sum[i], 2);
            }
    }
    // The row of a lane's sum i, or one past the last where another lane has the same sum.
    __device__ static int row_of(int i) {
        if (kSpreads) return lane() % 4 ? kRows : i % 2;
        return lane() % 4 * 2 + i % 2;
    }
};

}  // namespace atlas
