// Linear, LinearAdd and Logits of at most kRows rows, eight at most, any scheme. Eight warps, a team, make kStrips·16 outputs at a time:
// unit u of 64 columns belongs to warp u % 8, and the eight sums are added in order. A warp that copies keeps a ring full: a
// stage is 8·kUnits units of a team's strips. kResident activations stay in shared memory and every team has its ring; others
// come with the stages, which all teams share. Weights are on their way before the kernel before this one has ended, but only kEarly
// stages of a ring at a time until it was full once: rows that stay wait behind all that was asked for before them, and memory needs
// no more than about 40 KB on their way to a multiprocessor. The bits of a row depend on the scheme alone, and are those of
// linear_ring.cuh; kSpread (rows that stay; nvfp4 by spread.cuh, one row of GGUF's formats by fixed.cuh and of FP8 by half.cuh) has bits of its own.
// kNorm: rows are normalised first (at most 4096 columns). kGate: a strip of gates and that of the same outputs' other factor
// at a time, and SwiGLU of both. kAdd: sums are added to what is there.
//
// Grid (any); kTeams·288 threads, kTeams·256 + 32 where not kResident. Dynamic shared memory: eight<…>::kTaken<Cols>. Where
// not kResident Cols % 8 == 0. Ask for so much
// that no more blocks fit a multiprocessor than the grid has for each: where the kernel before still runs, the scheduler would give some
// two shares and others none. By fixed.cuh Cols % 32 == 0, by half.cuh Cols % 16 == 0.
#pragma once
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/weight/add.cuh"
#include "lib/cuda/weight/eight_product.cuh"

namespace atlas {

extern __shared__ __align__(1024) uint8_t eight_shared[];

// What else a kernel does.
enum eight_extra { kPlain = 0, kSpread = 1, kNorm = 2, kGate = 4, kAdd = 8 };

template <atlas_Scheme kScheme, int kRows, int kTeams, int kStrips, int kUnits, int kStages, bool kResident, int kExtra = kPlain, int kEarly = kStages>
struct eight {
    using unit_t = unit<kScheme>;
    static constexpr bool kSpreads = kExtra & kSpread, kNorms = kExtra & kNorm, kGates = kExtra & kGate, kSums = kExtra & kAdd;
    static constexpr bool kMakes = kSpreads && kScheme != ATLAS_SCHEME_NVFP4, kLiftsRows = kResident && !kMakes && (kSpreads || unit_t::kLifts);
    using product_t = eight_product<kScheme, kRows, kStrips, kSpreads, kMakes ? kExact : kResident ? kLifted : kLifts>;
    static constexpr int kRings = kResident ? kTeams : 1, kWarps = 8 * kTeams, kThreads = (kWarps + kRings) * 32;
    static constexpr int kSharers = kTeams / kRings, kGroup = kSharers * kStrips;                    // teams of a ring; strips
    static constexpr int kStrip = 8 * kUnits * unit_t::kBytes, kPitch = 8 * kUnits * 128 + 16;       // bytes of a stage: a strip, a row
    static constexpr int kRowsAt = kGroup * kStrip;
    static constexpr int kBarriersAt = kTeams * 8192;  // after two sides of eight sums of 16·8
    static constexpr int kZerosAt = (kBarriersAt + (2 * kRings * kStages + 4 * kTeams) * 8 + 127) / 128 * 128;
    static constexpr int kZeros = kSpreads && !unit_t::kRaw ? kUnits * 1024 : 0, kStagesAt = kZerosAt + kZeros;  // what spread_product reads as zeros
    static constexpr int kStage = (kRowsAt + (kResident ? 0 : kRows * kPitch) + 127) / 128 * 128, kShared = kStagesAt + kRings * kStages * kStage;
    static constexpr int factor_bytes() {  // of 64 columns of a row that is made
        if constexpr (kMakes) return product_t::form::kUnitFactors;
        return 0;
    }
    // With rows of so many columns, where they stay; fixed.cuh reads a little further.
    template <int kCols>
    static constexpr int kTaken = kShared + (kResident ? kRows * ((kCols + 63) / 64 * 128 + 16) + (kCols + 63) / 64 * factor_bytes() + (kMakes && !unit_t::kRaw ? 256 : 0) : 0);
    static constexpr bool kLate = kResident && kRows > 1 && kScheme != ATLAS_SCHEME_BF16;  // the next kernel's weights would stand in front of rows
    static_assert(kEarly >= 1 && kEarly <= kStages && (kResident || kEarly == kStages), "stages on their way at a time");
    static_assert(kRows >= 1 && kRows <= 8 && kStrips <= 8, "columns of a product; a strip for each warp");
    static_assert((kExtra & ~kAdd) == kPlain || kResident, "rows that stay");
    static_assert(!kMakes || unit_t::kRaw || kUnits % 2 == 0, "two units at a time");
    static_assert(!kGates || kStrips == 2, "a gate and its other factor");

    __device__ static uint32_t barrier(int i) { return shared_address(eight_shared) + kBarriersAt + i * 8; }
    // Slots are those of all rings.
    __device__ static uint32_t full(int slot) { return barrier(slot); }
    __device__ static uint32_t empty(int slot) { return barrier(kRings * kStages + slot); }
    __device__ static uint32_t put(int team, int side) { return barrier(2 * kRings * kStages + team * 4 + side); }
    __device__ static uint32_t taken(int team, int side) { return barrier(2 * kRings * kStages + team * 4 + 2 + side); }
    __device__ static uint32_t at_slot(int slot) { return shared_address(eight_shared) + kStagesAt + slot * kStage; }
    __device__ static uint32_t resident_rows() { return shared_address(eight_shared) + kShared; }

    int rows, cols, units, strips, groups, stages, pitch;  // stages of a group; pitch of resident rows
    int first, step, ring;                                 // groups of the ring: the first, and from one to the next

    // Multiplies, adds bias if there is one; calls store(output, row, sum) for what lies in the matrix. line(r) is row r; null
    // counts as zeros; where kNorm, rows are norm's. Where kAdd, before(output, row) is added.
    template <typename Line, typename Store, typename Before = nothing>
    __device__ static void run(const atlas_Weight &w, const float *bias, int rows, const Line &line, const row_norm &norm, const Store &store, const Before &before = {}) {
        if constexpr (!kLate) release_next();
        const int units = (w.Cols + 63) / 64, strips = (w.Rows + 15) / 16, ring = warp() < kWarps ? warp() / (8 * kSharers) : warp() - kWarps;
        const eight f = {rows, w.Cols, units, strips, (strips + kGroup - 1) / kGroup, (units + 8 * kUnits - 1) / (8 * kUnits), units * 128 + 16,
                         int(blockIdx.x) + ring * int(gridDim.x), kRings * int(gridDim.x), ring};
        if (warp() >= kWarps) {
            if (warp() == kWarps && lane() == 0) {
                for (int s = 0; s < kRings * kStages; s++) init_barrier(full(s), kResident ? 1 : 2), init_barrier(empty(s), 8 * kSharers * 32);
                for (int t = 0; t < kTeams; t++)
                    for (int s = 0; s < 2; s++) init_barrier(put(t, s), 8 * 32), init_barrier(taken(t, s), 32);
                fence_barriers();
            }
            if constexpr (kRings > 1) sync_named<kRings * 32>(2);
            else __syncwarp();
            f.copy(w, line);
        } else {
            if constexpr (!kResident) f.clear_rows();
            for (int i = threadIdx.x; i < kZeros / 16; i += kWarps * 32) store_shared(shared_address(eight_shared) + kZerosAt + i * 16, {});
            __syncthreads();
            f.multiply(w, bias, line, norm, store, before);
        }
    }

  private:
    // Strip s of a ring's group.
    __device__ int strip_of(int group, int s) const { return kGates ? group + s * groups : group * kGroup + s; }

    // Rows that come with stages: zeros where no copy writes before what follows the last column is read. Later it is an
    // earlier stage's part of the same row.
    __device__ void clear_rows() const {
        if (cols % 64 == 0) return;
        for (int slot = 0; slot < kStages; slot++)
            for (int i = threadIdx.x; i < rows * (kPitch / 16); i += kWarps * 32) store_shared(at_slot(slot) + kRowsAt + i * 16, {});
        fence_shared();
    }

    // A stage of a group that is to be copied: its strips, and where they begin. All is worked out before a wait, so that copies begin right after it.
    struct place {
        int group, stage, there, n, bytes;  // strips; units and bytes of each
        const uint8_t *from[kGroup];

        __device__ void find(const eight &f, const atlas_Weight &w, int in_group, int number) {
            group = in_group, stage = number, there = min(kGroup, f.strips - group * kGroup);
            const int u = stage * 8 * kUnits;
            n = min(8 * kUnits, f.units - u), bytes = unit_t::bytes(f.cols, u, n);
#pragma unroll
            for (int s = 0; s < kGroup; s++) {
                from[s] = unit_t::at(w, 0, f.strip_of(group, s), u);
                asm volatile("" : "+l"(from[s]));  // or it would be found after the wait
            }
        }
        __device__ void advance(const eight &f, const atlas_Weight &w) {
            const bool more = stage + 1 < f.stages;
            find(f, w, more ? group : group + f.step, more ? stage + 1 : 0);
        }
    };
    // Starts the copies of a stage's weights and says how many bytes will come to its barrier.
    __device__ void copy_weights(int slot, const place &p) const {
        if (!elected()) return;
        arrive_expecting(full(slot), p.there * p.bytes);
#pragma unroll
        for (int s = 0; s < kGroup; s++) {
            if (s >= p.there) break;
            copy_units<kScheme, 8 * kUnits>(at_slot(slot) + s * kStrip, p.from[s], p.n, p.bytes, full(slot));
        }
    }
    // Those of the rows' part. lines: where rows begin, or null; present: how many are there.
    __device__ void copy_rows(const atlas_act *const (&lines)[kRows], int slot, int stage, int present) const {
        const int u = stage * 8 * kUnits, row = min(8 * kUnits * 64, cols - u * 64) * 2;
        if (!elected()) return;
        arrive_expecting(full(slot), present * row);
#pragma unroll
        for (int r = 0; r < kRows; r++)
            if (lines[r]) copy_bulk(at_slot(slot) + kRowsAt + r * kPitch, lines[r] + u * 64, row, full(slot));
    }
    template <typename Line>
    __device__ void copy(const atlas_Weight &w, const Line &line) const {
        const int all = first < groups ? ((groups - 1 - first) / step + 1) * stages : 0, slots = ring * kStages;
        int early = min(kEarly, all);
        place next;  // to be copied
        next.find(*this, w, first, 0);
        for (int slot = 0; slot < early; slot++, next.advance(*this, w)) copy_weights(slots + slot, next);
        __syncthreads();
        if constexpr (kResident)
            for (; early < min(kStages, all); early++, next.advance(*this, w)) {
                wait_barrier(full(slots + early - kEarly), 0);
                copy_weights(slots + early, next);
            }
        const atlas_act *lines[kRows] = {};
        int present = 0, row_stage = 0;
        if constexpr (!kResident) {
            wait_for_previous();
#pragma unroll
            for (int r = 0; r < kRows; r++) {
                if (r < rows) lines[r] = line(r);
                present += lines[r] != nullptr;
            }
        }
        const auto next_rows = [&](int slot) {
            copy_rows(lines, slot, row_stage, present);
            if (++row_stage == stages) row_stage = 0;
        };
        if constexpr (!kResident)
            for (int slot = 0; slot < early; slot++) next_rows(slot);
        for (int begun = early, slot = early % kStages, phase = early / kStages ^ 1; begun < all; begun++, next.advance(*this, w)) {
            wait_barrier(empty(slots + slot), phase);
            copy_weights(slots + slot, next);
            if constexpr (!kResident) next_rows(slot);
            if (++slot == kStages) slot = 0, phase ^= 1;
        }
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

    __device__ static float4 *parts_of(int team, int side) { return reinterpret_cast<float4 *>(eight_shared) + (team * 2 + side) * 256 + lane(); }
    // The sums of a strip that all warps of the team have put.
    __device__ static void add_parts(int team, int side, float (&sum)[4]) {
        const float4 *parts = parts_of(team, side);
#pragma unroll
        for (int p = 0; p < 8; p++) {
            const float4 v = parts[p * 32];
            sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
        }
        product_t::gather(sum);
    }

    template <typename Line, typename Store, typename Before>
    __device__ void multiply(const atlas_Weight &w, const float *bias, const Line &line, const row_norm &norm, const Store &store, const Before &before) const {
        const int team = warp() / 8, part = warp() % 8;
        block_scales scales[kStrips], next_scales[kStrips];
        finish end[kGates ? 2 : 1];  // of the strip whose parts this warp will add
        int count = 0;               // strips of the team
        const auto strip_at = [&](int group, int s) { return strip_of(group, team % kSharers * kStrips + s); };
        // What comes from memory into registers is asked for long before it is used.
        const auto load_scales = [&](int group) {
#pragma unroll
            for (int s = 0; s < kStrips; s++)
                if (group < groups) next_scales[s].load(w, strip_at(group, s), part, 0, units);
        };
        const auto load_finish = [&](int group) {
            if constexpr (kGates) {
                if (group < groups && count / 2 % 8 == part)
                    for (int s = 0; s < 2; s++) end[s].load(w, bias, strip_at(group, s) * 16 + lane() / 4);
            } else {
                const int mine = (part - count) & 7;
                if (group < groups && mine < kStrips) end[0].load(w, bias, strip_at(group, mine) * 16 + lane() / 4);
            }
        };
        atlas_act there[4];  // before
        const auto load_there = [&](int group) {
            if constexpr (kSums) {
                const int mine = (part - count) & 7;
                if (group >= groups || mine >= kStrips) return;
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int out = strip_at(group, mine) * 16 + lane() / 4 + i / 2 * 8, r = product_t::row_of(i);
                    if (r < rows && out < w.Rows) there[i] = before(out, r);
                }
            }
        };
        load_scales(first), load_finish(first);
        const uint32_t memory = shared_address(eight_shared);
        const uint32_t ring_at = memory + kStagesAt + ring * kStages * kStage, own = (team % kSharers * kStrips * kStrip) + part * unit_t::kBytes;
        const uint32_t codes_at = held(ring_at + own + product_t::codes_at()), scales_at = held(ring_at + own + product_t::scales_at());
        const uint32_t full_at = held(memory + kBarriersAt + ring * kStages * 8);
        const auto lines = [&] {
            const uint32_t row = (kResident ? memory + kShared : ring_at + kRowsAt) + part * 128;
            if constexpr (kMakes) return typename product_t::lines(row, memory + kShared + pitch + part * product_t::form::kUnitFactors, memory + kZerosAt);
            else return typename product_t::lines(row, rows, kResident ? pitch : kPitch, memory + kZerosAt);
        }();
        make_rows(line, norm, codes_at ^ scales_at ^ full_at ^ lines.ready());
        if constexpr (kLate) release_next();
        load_there(first);
        const int whole = cols / (8 * kUnits * 64);  // stages whose units are all there
        int slot = 0, phase = 0;
        for (int group = first; group < groups; group += step) {
            float c[kStrips][1][4] = {};
#pragma unroll
            for (int s = 0; s < kStrips; s++) scales[s] = next_scales[s];
            load_scales(group + step);
            int stage = 0;
            typename product_t::lines x = lines;
            uint32_t codes, weight_scales;
            const auto begin = [&] {
                codes = codes_at + slot * kStage, weight_scales = scales_at + slot * kStage;
                if constexpr (!kResident) x = lines.moved(slot * kStage);
                if (stage && stage * kUnits % 32 == 0)
#pragma unroll
                    for (int s = 0; s < kStrips; s++) scales[s].load(w, strip_at(group, s), part, stage * kUnits, units);
                wait_barrier(full_at + slot * 8, phase);
            };
            const auto next = [&] {
                if constexpr (kResident) x = x.moved(8 * kUnits * 128);
                if (++slot == kStages) slot = 0, phase ^= 1;
            };
            for (; stage < whole; stage++, next()) {
                begin();
                product_t p[kUnits];
                float block[kUnits][kStrips];
#pragma unroll
                for (int i = 0; i < kUnits; i++) {
                    p[i].load(codes + i * 8 * unit_t::kBytes, weight_scales + i * 8 * unit_t::kBytes, kStrip, x, i * 1024);
#pragma unroll
                    for (int s = 0; s < kStrips; s++) block[i][s] = scales[s].of(stage * kUnits + i);
                }
                arrive(full_at + (kRings * kStages + slot) * 8);
                product_t::multiply(p, x, 0, 64, block, c);
            }
            if (stage < stages) {
                begin();
#pragma unroll 1
                for (int i = 0; (stage * kUnits + i) * 8 + part < units; i++) {
                    product_t p;
                    float block[1][kStrips];
                    p.load(codes + i * 8 * unit_t::kBytes, weight_scales + i * 8 * unit_t::kBytes, kStrip, x, 0);
#pragma unroll
                    for (int s = 0; s < kStrips; s++) block[0][s] = scales[s].of(stage * kUnits + i);
                    product_t::multiply(&p, x, 0, cols - ((stage * kUnits + i) * 8 + part) * 64, block, c);
                    x = x.moved(1024);
                }
                arrive(full_at + (kRings * kStages + slot) * 8);
                next();
            }
#pragma unroll
            for (int s = 0; s < kStrips; s++, count++) {
                const int side = count % 2;
                wait_barrier(taken(team, side), count / 2 % 2 ^ 1);
                parts_of(team, side)[part * 32] = {c[s][0][0], c[s][0][1], c[s][0][2], c[s][0][3]};
                arrive(put(team, side));
                if (kGates ? s == 0 || count / 2 % 8 != part : count % 8 != part) continue;
                float sum[kGates ? 2 : 1][4] = {};
#pragma unroll
                for (int f = 0; f < (kGates ? 2 : 1); f++) {
                    const int from = kGates ? f : side;
                    wait_barrier(put(team, from), count / 2 % 2);
                    add_parts(team, from, sum[f]);
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        sum[f][i] = __fmul_rn(sum[f][i], end[f].scale[i / 2] * product_t::kFactor);
                        if (bias) sum[f][i] = __fadd_rn(sum[f][i], end[f].moved[i / 2]);
                    }
                }
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int out = strip_at(group, kGates ? 0 : s) * 16 + lane() / 4 + i / 2 * 8, r = product_t::row_of(i);
                    if (r >= rows || out >= w.Rows) continue;
                    if constexpr (kGates) {
                        const float gate = __bfloat162float(__float2bfloat16_rn(sum[0][i])), up = __bfloat162float(__float2bfloat16_rn(sum[1][i]));
                        store(out, r, silu(gate) * up);
                    } else {
                        const float result = kResident || line(r) ? sum[0][i] : bias ? end[0].moved[i / 2] : 0.0f;
                        store(out, r, kSums ? plus(there[i], result) : result);
                    }
                }
                if (kGates) arrive(taken(team, 0));
                arrive(taken(team, kGates ? 1 : side));
            }
            load_finish(group + step), load_there(group + step);
        }
    }

    // Waits for the kernel before this one and makes the rows that stay. ready: what is to be there before.
    template <typename Line>
    __device__ void make_rows(const Line &line, const row_norm &norm, uint32_t ready) const {
        if constexpr (kMakes) {
            const bool norms = kNorms && norm.scale;
            made_row<typename product_t::form, kWarps * 32, kNorms> row(resident_rows(), resident_rows() + pitch, cols, norms ? norm.in : line(0));
            if (norms) row.prepare(norm);
            settle(row.ready() ^ ready);
            wait_for_previous();
            if (norms) row.keep(norm, reinterpret_cast<float *>(eight_shared));
            else row.keep();
            return;
        }
        if constexpr (!kLate) settle(ready);
        if constexpr (kNorms) {
            if (norm.scale) {
                normed_rows<kRows, kWarps * 32, kLiftsRows, kSpreads> normed = {norm, cols};
                normed.prepare();
                wait_for_previous();
                normed.make(resident_rows(), pitch, rows, reinterpret_cast<float *>(eight_shared));
                return;
            }
        }
        wait_for_previous();  // not by looking at a barrier again and again
        if constexpr (kResident) keep_rows<kRows, kWarps * 32, kLiftsRows>(resident_rows(), pitch, rows, cols, line);
    }

    // f8block's scales of 32 of a warp's units of a strip, from the warp's unit number `from` on.
    struct block_scales {
        static_assert(32 % kUnits == 0, "a stage's units are kept at once");
        float mine = 0;
        __device__ void load(const atlas_Weight &w, int strip, int part, int from, int units) {
            const int u = (from + lane()) * 8 + part;
            if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK)
                if (u < units && strip * 16 < w.Rows) mine = frag<kScheme>::block_scale(w, 0, strip, u / 2);
        }
        __device__ float of(int i) const {
            if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK) return __shfl_sync(kAllLanes, mine, i % 32);
            return 0;
        }
    };
};

}  // namespace atlas
