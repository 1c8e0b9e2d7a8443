// Products of 9 rows and more, any scheme: up to kRows rows cost one pass over the weights, which are wgmma's factor of 64 rows or, with up
// to 16 rows and scales of few columns, that of products of single warps. A tile is 64·kTeams·kStrips outputs; a cluster of kSplit blocks
// shares out its columns and adds up in the order of blocks.
//
// One warp copies: a stage is kUnits·64 columns of the tile's weights and of the rows. kTeams warpgroups multiply, each kStrips times
// 64 outputs. Weights are on their way before the kernel before this one has ended. The bits of a row depend on kSplit, the scheme and
// on whether warps multiply alone.
//
// Block: kTeams·128+32 threads; cluster kSplit; grid (any multiple of it, rows/kRows); dynamic shared memory split<…>::kShared.
#pragma once
#include <type_traits>

#include "lib/cuda/ptx/cluster.cuh"
#include "lib/cuda/weight/add.cuh"
#include "lib/cuda/weight/minima.cuh"
#include "lib/cuda/weight/split_weights.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

template <atlas_Scheme kScheme, int kTeams, int kStrips, int kRows, int kUnits, int kStages, int kSplit, bool kGathered>
struct split {
    using weights_t = split_weights<kScheme>;
    static constexpr int kOut = kTeams * kStrips * 64, kPieces = kOut / weights_t::kPiece;
    static constexpr int kPieceBytes = kUnits * weights_t::kBytes, kWeightBytes = (kPieces * kPieceBytes + 1023) / 1024 * 1024;
    static constexpr int kRowBytes = kRows * 128, kStage = kWeightBytes + kUnits * kRowBytes;
    static constexpr int kQuads = kStrips * kRows / 8, kMine = (kQuads + kSplit - 1) / kSplit;  // of a thread's sums; of one block's share
    static constexpr int kPartsAt = kStages * kStage, kBarriersAt = kPartsAt + (kSplit > 1 ? kSplit * kMine * kTeams * 2048 : 0);
    static constexpr int kShared = kBarriersAt + (2 * kStages + 2) * 8 + 1024;  // dynamic bytes
    static constexpr int kPair = kUnits == 1 ? 1 : 2;  // units that are multiplied in one go
    static constexpr int kSets = kStrips == 2 ? 2 : 1;  // of sums that take turns
    static constexpr bool kBf16 = kScheme == ATLAS_SCHEME_BF16, kScaled = kScheme == ATLAS_SCHEME_F8BLOCK;
    static constexpr bool kSix = kScheme == ATLAS_SCHEME_Q6_K;
    static constexpr bool kWarps = kRows <= 16 && !kBf16 && !kScaled && kScheme != ATLAS_SCHEME_F8;
    static constexpr float kFactor = kWarps ? unit<kScheme>::kLiftedFactor : split_factor<kScheme>();  // of sums
    static_assert(kPieces <= 32 && kShared <= 227 * 1024 && kStages >= 2, "fits");
    static_assert(kUnits == 1 || kUnits == 2 || !kBf16 && kUnits % 2 == 0, "whole pairs, or with bf16 the same in all stages");
    static_assert(kBf16 || kPair * kStrips >= 2, "sets take turns");
    static_assert(!kSix || kUnits == 2, "two stages have a factor's columns");
    static_assert(!kScaled || kPair == 2 && kStrips <= 2, "sums of a strip and a pair have one scale");

    using yes = std::true_type;
    using no = std::false_type;

    uint32_t data;
    uint64_t origin;  // the factor at data
    int rank, cols, units, begin, end, tiles, pieces, row_bytes;  // units of this block: begin … end-1; of a unit's rows that are copied

    __device__ split(const atlas_Weight &w, int there) : rank(kSplit > 1 ? cluster_rank() : 0), cols(w.Cols), units(tiles64(w.Cols)), row_bytes(there * 128) {
        data = (uint32_t(__cvta_generic_to_shared(wide_shared)) + 1023) & ~1023u;
        origin = factor(data);
        constexpr int kWhole = kSix ? 4 : 2;  // units that stay together
        const int parts = (units + kWhole - 1) / kWhole;
        begin = parts * rank / kSplit * kWhole, end = min(units, parts * (rank + 1) / kSplit * kWhole);
        tiles = (w.Rows + kOut - 1) / kOut, pieces = (w.Rows + weights_t::kPiece - 1) / weights_t::kPiece;
    }
    // Units of the stage from unit u on, made up to pairs.
    __device__ int staged(int u) const { return kUnits == 1 ? 1 : min(kUnits, (end - u + 1) / 2 * 2); }
    __device__ void wait_full(const stage<kStages> &now) const {
        wait_barrier(full(now.slot), now.phase);
        if constexpr (kGathered) fence_shared();
    }
    __device__ uint32_t full(int slot) const { return data + kBarriersAt + slot * 8; }
    __device__ uint32_t empty(int slot) const { return full(kStages + slot); }
    __device__ uint32_t parts_there() const { return full(2 * kStages); }
    __device__ uint32_t parts_taken() const { return full(2 * kStages + 1); }
    __device__ uint32_t weights(int slot) const { return data + slot * kStage; }
    __device__ uint32_t rows(int slot) const { return weights(slot) + kWeightBytes; }
    // The rows of a stage's unit; a sum of what does not change and little takes fewer instructions than a factor made anew.
    __device__ uint64_t rows_factor(int slot, int unit) const { return origin + (slot * kStage + kWeightBytes + unit * kRowBytes) / 16; }

    // copy_rows(to, unit, barrier) begins the copies of 64 columns of the rows that are there: by one lane, with the copy engine, or kGathered, by a
    // warp, with copies of the lanes' own, of all kRows. store(output, row, sums, scales, before) takes sums of outputs n and n+8, of two rows each, what
    // scales them, and what before(output, row) gave.
    template <typename CopyRows, typename Store, typename Before>
    __device__ static void run(const atlas_Weight &w, const float *bias, int there, const CopyRows &copy_rows, const Store &store, const Before &before) {
        const split s(w, there);
        if (warp() == kTeams * 4)
            s.copy(w, copy_rows);
        else
            s.multiply(w, bias, store, before);
    }

  private:
    template <typename CopyRows>
    __device__ void copy(const atlas_Weight &w, const CopyRows &copy_rows) const {
        if (lane() == 0) {
            for (int i = 0; i < kStages; i++) init_barrier(full(i), kGathered ? 33 : 1), init_barrier(empty(i), kTeams * 128);
            init_barrier(parts_there(), 1), init_barrier(parts_taken(), kSplit * kTeams * 4);
            fence_barriers();
        }
        __syncwarp();
        stage<kStages> now;
        int tile = blockIdx.x / kSplit, u = begin;
        const size_t pitch = weights_t::pitch(cols);
        const uint8_t *from;  // where the tile's weights of unit u begin
        const auto find_tile = [&] { u = begin, from = w.Data + tile * kPieces * pitch + size_t(u) * weights_t::kBytes; };
        const auto next_stage = [&] { u += kUnits, from += kUnits * weights_t::kBytes; };
        const auto copy_weights = [&](int slot) {
            const int there = min(kPieces, pieces - tile * kPieces), n = min(kUnits, end - u), bytes = weights_t::bytes(cols, u, n);
            const int again = n % 2 && kUnits > 1 ? weights_t::bytes(cols, u, 1) : 0;  // a unit that is not there: any weights, times zeros
            if (!elected()) return;
            arrive_expecting(full(slot), there * (bytes + again) + (kGathered ? 0 : staged(u) * row_bytes));
            if (there == kPieces && !again) {
#pragma unroll
                for (int i = 0; i < kPieces; i++) copy_bulk(weights(slot) + i * kPieceBytes, from + i * pitch, bytes, full(slot));
            } else {
#pragma unroll 1
                for (int i = 0; i < there; i++) {
                    copy_bulk(weights(slot) + i * kPieceBytes, from + i * pitch, bytes, full(slot));
                    if (again) copy_bulk(weights(slot) + i * kPieceBytes + n * weights_t::kBytes, from + i * pitch, again, full(slot));
                }
            }
        };
        const auto copy_acts = [&](int slot) {
            constexpr int kAtOnce = kGathered ? 1 : kUnits;
            const int n = staged(u);
            if constexpr (kGathered) __syncwarp();  // all lanes copy again, which the compiler would not know
            else if (!elected()) return;
#pragma unroll kAtOnce
            for (int i = 0; i < kUnits; i++)
                if (i < n) copy_rows(rows(slot) + i * kRowBytes, u + i < end ? u + i : units, full(slot));
            if constexpr (kGathered) arrive_after_copies(full(slot));
        };
        int early = 0;
        find_tile();
        if (tile < tiles)
            for (; early < kStages && u < end; early++, next_stage()) copy_weights(early);
        __syncthreads();
        if constexpr (kSplit > 1) arrive_cluster();
        release_next();
        wait_for_previous();
        u = begin;
        for (int i = 0; i < early; i++, u += kUnits, now.next()) copy_acts(i);
        for (; tile < tiles; tile += gridDim.x / kSplit, find_tile())
            for (; u < end; next_stage(), now.next()) {
                wait_barrier(empty(now.slot), now.phase ^ 1);
                copy_weights(now.slot);
                copy_acts(now.slot);
            }
        if constexpr (kSplit > 1) wait_cluster();
    }

    // Makes zeros of the rows that nobody copies. No sum that is stored needs them, but steps take a little less time with zeros than with what was there.
    __device__ void clear_rows() const {
        if (row_bytes == kRowBytes) return;
#pragma unroll 1
        for (int i = 0; i < kStages * kUnits; i++)
#pragma unroll 1
            for (int at = row_bytes + threadIdx.x * 16; at < kRowBytes; at += kTeams * 2048) store_shared(rows(i / kUnits) + i % kUnits * kRowBytes + at, {});
        fence_shared();
    }

    template <typename Store, typename Before>
    __device__ void multiply(const atlas_Weight &w, const float *bias, const Store &store, const Before &before) const {
        stage<kStages> now;
        const int first = warp() / 4 * kStrips * 64 + warp() % 4 * 16;
        if constexpr (!kGathered) clear_rows();
        __syncthreads();
        if constexpr (kSplit > 1) arrive_cluster();
        wait_for_previous();
        int count = 0;
        for (int tile = blockIdx.x / kSplit; tile < tiles; tile += gridDim.x / kSplit, count++) {
            const int n = tile * kOut + first + lane() / 4;
            float c[kStrips][kRows / 2];
            output_scales scales[kStrips];
#pragma unroll
            for (int s = 0; s < kStrips; s++) {
                scales[s].load(w, bias, n + s * 64);  // now: it takes long
#pragma unroll
                for (int i = 0; i < kRows / 2; i++) c[s][i] = 0;
            }
            const auto row_of = [](int q) { return q % (kRows / 8) * 8 + lane() % 4 * 2; };
            decltype(before(0, 0)) there[kMine];
#pragma unroll
            for (int i = 0; i < kMine; i++) {
                const int q = i * kSplit + rank;
                if (q < kQuads) there[i] = before(n + q / (kRows / 8) * 64, row_of(q));
            }
            if (begin < end) {
                if constexpr (kBf16)
                    multiply_bf16(now, c);
                else if constexpr (kWarps)
                    multiply_warps(now, c);
                else
                    multiply_frag(now, w, tile * (kOut / 16) + first / 16, c);
            }
            const auto put = [&](int i, const float(&x)[4]) {  // of what is this block's, number i
                const int q = i * kSplit + rank, s = q / (kRows / 8);
                store(n + s * 64, row_of(q), x, scales[0].or_those(s, scales[kStrips - 1]), there[i]);
            };
            if constexpr (kSplit == 1) {
#pragma unroll
                for (int q = 0; q < kQuads; q++) {
                    const float *x = c[q / (kRows / 8)] + q % (kRows / 8) * 4;
                    put(q, {x[0], x[1], x[2], x[3]});
                }
            } else {
                exchange(count, c, put);
            }
        }
        if constexpr (kSplit > 1) {
            if (count)
                wait_barrier(parts_taken(), (count ^ 1) & 1);  // then nobody stores or arrives here any more, and the block may end
            else
                wait_cluster();
        }
    }

    // Adds the sums of all blocks: quad q of a thread goes to block q % kSplit, which adds and puts it. A block's shared memory holds what the
    // others sent until it has said that it took it.
    template <typename Put>
    __device__ void exchange(int count, const float (&c)[kStrips][kRows / 2], const Put &put) const {
        constexpr int kSource = kMine * kTeams * 2048;  // bytes that a block sends another
        const uint32_t parts = data + kPartsAt + threadIdx.x * 16;
        const int mine = (kQuads - rank + kSplit - 1) / kSplit;  // quads
        if (count == 0)
            wait_cluster();
        else
            wait_barrier(parts_taken(), (count ^ 1) & 1);
        // Not before: a block that is sent nothing ends this phase here, and a warp of it that waited for the last one would miss both.
        if (threadIdx.x == 0) arrive_expecting(parts_there(), kSplit * mine * kTeams * 2048);
#pragma unroll
        for (int q = 0; q < kQuads; q++) {
            const float *x = c[q / (kRows / 8)] + q % (kRows / 8) * 4;
            store_counted(address_in(parts + rank * kSource + q / kSplit * (kTeams * 2048), q % kSplit), {x[0], x[1], x[2], x[3]},
                          address_in(parts_there(), q % kSplit));
        }
        wait_barrier(parts_there(), count & 1);
#pragma unroll
        for (int i = 0; i < kMine; i++) {
            if (i >= mine) break;
            float sum[4] = {};
#pragma unroll
            for (int b = 0; b < kSplit; b++) {
                const uint4 x = load_shared(parts + b * kSource + i * (kTeams * 2048));
                sum[0] += __uint_as_float(x.x), sum[1] += __uint_as_float(x.y), sum[2] += __uint_as_float(x.z), sum[3] += __uint_as_float(x.w);
            }
            put(i, sum);
        }
        __syncwarp();
        if (lane() < kSplit) arrive_at(parts_taken(), lane());
    }

    // Each lane says so for itself: it has read.
    __device__ void release(int slot) const { arrive(empty(slot)); }

    __device__ void multiply_bf16(stage<kStages> &now, float (&c)[kStrips][kRows / 2]) const {
        int before = 0;
        for (int u = begin; u < end; u += kUnits) {
            wait_full(now);
            begin_products();
#pragma unroll
            for (int i = 0; i < kUnits; i++) {
                const uint64_t x = rows_factor(now.slot, i);
#pragma unroll
                for (int s = 0; s < kStrips; s++) {
                    const uint64_t y = origin + (now.slot * kStage + ((warp() / 4 * kStrips + s) * kUnits + i) * 8192) / 16;
#pragma unroll
                    for (int k = 0; k < 4; k++) atlas::multiply(c[s], y + k * 2, x + k * 2);
                }
            }
            commit_products();
            wait_products<1>();
            if (u > begin) release(before);
            before = now.slot;
            now.next();
        }
        wait_products<0>();
#pragma unroll
        for (int s = 0; s < kStrips; s++) pin(c[s]);
        release(before);
    }

    // Products of single warps, which wait for no others: what takes time here is decoding, and scales of 32 columns can be those of sums.
    __device__ void multiply_warps(stage<kStages> &now, float (&c)[kStrips][kRows / 2]) const {
        using unit_t = unit<kScheme>;
        using product_t = unit_product<kScheme, kRows / 8, kStrips, kLifts, true, false>;
        static_assert(kScheme != ATLAS_SCHEME_Q4_1 || kUnits == 2 && kRows == 16, "minima of two units at once");
        constexpr float kNone[kStrips] = {};
        auto &sums = reinterpret_cast<float(&)[kStrips][kRows / 8][4]>(c);  // of the same lanes in the same order
        const uint32_t own = (warp() / 4 * kStrips * 4 + warp() % 4) * kPieceBytes;
        const uint32_t codes = held(own + unit_t::codes_at()), scales = held(own + unit_t::scales_at());
        minima<kScheme> least;
        uint32_t lines[kRows / 8];
#pragma unroll
        for (int j = 0; j < kRows / 8; j++) lines[j] = held(lane() % 8 * 128 + (lane() / 8 ^ lane() % 8) * 16) + j * 1024;
        for (int u = begin; u < end; u += kUnits, now.next()) {
            wait_full(now);
            least.begin();
            const auto times = [&](int i) {
                const uint32_t at = weights(now.slot) + i * unit_t::kBytes, x = rows(now.slot) + i * kRowBytes;
                product_t p;
                p.load(at + codes, at + scales, 4 * kPieceBytes, x, lines);
                p.multiply(least.unit_of(i), x, lines, cols - (u + i) * 64, kNone, sums);
            };
            if (u + kUnits <= end) {
#pragma unroll
                for (int i = 0; i < kUnits; i++) times(i);
            } else {
#pragma unroll
                for (int i = 0; i < kUnits - 1; i++)
                    if (u + i < end) times(i);
            }
#pragma unroll
            for (int s = 0; s < kStrips; s++) least.multiply(weights(now.slot) + own + s * 4 * kPieceBytes, sums[s]);
            release(now.slot);
        }
    }

    // Two sets of fragments and sums take turns, those of two strips or of even and odd units: one is made while the other is multiplied.
    // f8block: sums of 128 columns are scaled and added to those before once they are done. q6_k: sums change what they are counted in from 256 columns
    // to the next.
    __device__ void multiply_frag(stage<kStages> &now, const atlas_Weight &w, int strip, float (&c)[kStrips][kRows / 2]) const {
        uint32_t a[2][4][4];
        float p[kSets][kRows / 2];
        const column_scales scales(w, strip, begin, end);
        row_units of_rows[kSets];
#pragma unroll
        for (int s = 0; s < kSets; s++)
#pragma unroll
            for (int i = 0; i < kRows / 2; i++) p[s][i] = 0;
        const auto add = [&](int s, int b) {
            const float d = scales.of(w, strip, s, begin / 2 + b, b);
            pin(p[s]);
#pragma unroll
            for (int i = 0; i < kRows / 2; i++)
                c[s % kStrips][i] = kScaled || kSix ? fmaf(p[s][i], kSix ? of_rows[s].of(i) : d, c[s % kStrips][i]) : c[s % kStrips][i] + p[s][i];
            pin(c[s % kStrips]);
        };
        int before = 0, b = 0;
        const auto times = [&](int u, auto changes) {
            wait_full(now);
            const uint32_t from = weights(now.slot) + (warp() / 4 * kStrips * 4 + warp() % 4) * kPieceBytes;
            if constexpr (changes.value) {
                wait_products<0>();
#pragma unroll
                for (int s = 0; s < kSets; s++) of_rows[s].change(from + s % kStrips * 4 * kPieceBytes, p[s]);
            }
            for (int pair = 0; pair < staged(u); pair += kPair, b++)
#pragma unroll
                for (int g = 0; g < kPair * kStrips; g++) {
                    const int i = pair + g / kStrips, s = g % 2;
                    if constexpr (!kScaled) wait_products<1>();  // those that used this set
                    if (g == 1 && pair == 0 && u > begin) release(before);
                    decode_stage<kScheme>(from + g % kStrips * 4 * kPieceBytes + i * weights_t::kBytes, cols - (u + i) * 64 <= 32, a[s]);
#pragma unroll
                    for (int k = 0; k < 4; k++) pin(a[s][k]);
                    if constexpr (kScaled) wait_products<0>();
                    if (kScaled && g == 0) {
                        add(0, b - 1);
                        if (kSets > 1) add(kSets - 1, b - 1);
                    }
                    begin_products();
                    const uint64_t x = rows_factor(now.slot, i);
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        if (kScaled && g < kStrips && k == 0)
                            multiply_anew(p[s % kSets], a[s][k], x);
                        else
                            atlas::multiply(p[s % kSets], a[s][k], x + k * 2);
                    }
                    commit_products();
                }
            before = now.slot;
            now.next();
        };
        if constexpr (kSix) {
            for (int u = begin; u < end; u += 2 * kUnits) times(u, yes{}), times(u + kUnits, no{});
        } else {
            for (int u = begin; u < end; u += kUnits) times(u, no{});
        }
        wait_products<0>();
        add(0, b - 1);
        if (kSets > 1) add(kSets - 1, b - 1);
        release(before);
    }

    // f8block's scales of a warp's two strips: lane l keeps those of the block's columns from 128·l on.
    struct column_scales {
        float mine[2] = {};
        __device__ column_scales(const atlas_Weight &w, int strip, int begin, int end) {
            if constexpr (kScaled)
#pragma unroll
                for (int s = 0; s < kStrips; s++)
                    if (begin + lane() * 2 < end) mine[s] = load(w, strip + s * 4, begin / 2 + lane());
        }
        __device__ float of(const atlas_Weight &w, int strip, int s, int block, int i) const {
            if constexpr (!kScaled) return 1;
            return i < 32 ? __shfl_sync(kAllLanes, mine[s], max(i, 0)) : load(w, strip + s * 4, block);
        }
        __device__ static float load(const atlas_Weight &w, int strip, int block) {
            if constexpr (!kScaled) return 1;
            return strip * 16 < w.Rows ? frag<kScheme>::block_scale(w, 0, strip, block) : 0.0f;
        }
    };
};

}  // namespace atlas
