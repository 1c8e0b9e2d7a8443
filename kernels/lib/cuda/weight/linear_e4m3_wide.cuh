// Linear and GatedLinear for many rows and f8 or f8block weights (layout frag), activations in e4m3, both in shared memory: tiles of
// kRows rows by kOut outputs, 128 or 192. With 128 rows each of two warpgroups has 64 of them, with 64 every other 128 columns.
//
// First a kernel of quantise_linear.cuh, kShared. Then blocks of 384 threads, one to a multiprocessor (min_blocks 1); cluster kCluster, 1
// or 2, blocks next to one another along rows, which share weights; dynamic shared memory atlas::e4m3_shared_pipe<…>::kAll. Grid any
// multiple of the cluster, at most a block per tile, of which there are kCluster*ceil(Rows/(kRows*kCluster))*ceil(W.Rows/kOut).
// W.Cols%128 == 0. Any Rows, OutPitch and alignment of Out. Instances of the same kRows give the same bits.
//
// Gated, a tile is kOut/2 outputs and those they gate: W.Rows%kOut == 0.
#pragma once
#include "lib/cuda/weight/e4m3_wide.cuh"
#include "lib/cuda/weight/linear_wide.cuh"
#include "lib/cuda/weight/quantise_linear.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

// A stage is 128·kParts columns: for each part kRows rows of codes in the 128-byte swizzle; for each 64 columns the codes of all
// strips in the 64-byte swizzle; for each part the scales of rows, for each those of strips; then scales and biases of the tile's
// outputs, in its last stage.
template <int kRows, int kOut, int kStages, int kCluster>
struct e4m3_shared_pipe : wide<2, 128, 128 / kRows * kOut * 128 + kOut / 64 * 1024, kStages, kCluster, true, 32> {
    static constexpr int kParts = 128 / kRows, kStrips = kOut / 16, kUnit = kOut * 64;  // kUnit: bytes of 64 columns
    using base = wide<2, 128, kParts * kOut * 128 + kOut / 64 * 1024, kStages, kCluster, true, 32>;
    // After the stages: sums that a part gives to the other, then 64 outputs of each warp's rows.
    static constexpr int kSumsBytes = kParts > 1 ? kOut * 256 : 0, kAll = base::kShared + kSumsBytes + 16384;
    static_assert(kAll <= 227 * 1024, "fits");

    __device__ static float *sums() { return reinterpret_cast<float *>(wide_shared + base::kShared); }
    __device__ static uint32_t outputs() { return uint32_t(__cvta_generic_to_shared(wide_shared)) + base::kShared + kSumsBytes + warp() * 2048; }
    __device__ static int part() { return kParts > 1 ? base::team() : 0; }
    __device__ static int row() { return warp() % (kRows / 16) * 16; }  // the first of a warp, in the tile
    __device__ uint32_t weights(int slot, int unit) const { return base::weights(slot) + unit * kUnit; }
    __device__ uint32_t row_scales(int slot, int part) const { return weights(slot, 2 * kParts) + part * kRows * 4; }
    __device__ uint32_t strip_scales(int slot, int part) const { return weights(slot, 2 * kParts) + 512 + part * 64; }
    __device__ uint32_t output_scales(int slot) const { return weights(slot, 2 * kParts) + 640; }
    __device__ uint32_t biases(int slot) const { return output_scales(slot) + kOut * 4; }
    static_assert(640 + kOut * 8 <= kOut / 64 * 1024, "scales fit");
};

// Two warpgroups multiply in turn, so that one adds up while the other multiplies: left alone, both come to do the same at the same
// time. Both take as many turns.
struct turns {
    int own, other;  // named barriers

    __device__ explicit turns(int team) : own(1 + team), other(2 - team) {
        if (team == 1) pass();
    }
    __device__ void wait() const { sync_named<256>(own); }
    __device__ void pass() const { arrive_named<256>(other); }
    __device__ void end() const {
        if (own == 1) wait();  // for the last turn that was passed
    }
};

// A warpgroup's sums of 64 rows by all outputs of the tile. Tensor cores add with 14 bits or so: products of each 128 columns, of whole
// rows of each kTogether times as many, are summed by themselves, then added up, in blocks by fma with the product of both scales.
template <bool kBlocks, int kOut, typename Pipe, typename Stage>
struct e4m3_sums {
    static constexpr int kTogether = 4, kSums = kOut / 2;
    // There are registers for two sets of sums, so that the next products run while some are added; else warpgroups take turns.
    static constexpr bool kTwo = kOut == 128, kTurns = kBlocks && !kTwo;

    Pipe pipe;
    Stage &now;
    uint32_t rows_at, weights_at, row_scales_at, strip_scales_at;  // of this warpgroup in the first stage, scales of rows from the lane's on
    float total[kSums];
    int last;  // the slot of the stage that was begun last

    // Addresses are held, where registers are not few, since the compiler would make them anew for every stage while products wait.
    __device__ e4m3_sums(const Pipe &all, Stage &now) : pipe(all), now(now) {
        const auto keep = [](uint32_t x) { return kTurns ? x : held(x); };
        pipe.full = keep(pipe.full), pipe.empty = keep(pipe.empty);
        rows_at = keep(pipe.rows(0) + Pipe::team() * 8192), weights_at = keep(pipe.weights(0, 2 * Pipe::part()));
        row_scales_at = keep(pipe.row_scales(0, Pipe::part()) + (Pipe::row() + lane() / 4) * 4), strip_scales_at = keep(pipe.strip_scales(0, Pipe::part()));
    }

    // Begins the products of the stage that now is at, and moves on.
    __device__ void begin(float (&c)[kSums], bool adds) {
        last = now.slot;
        const uint64_t rows = factor(rows_at + last * Pipe::kStageBytes), weights = factor_of_64(weights_at + last * Pipe::kStageBytes);
        begin_products();
#pragma unroll
        for (int k = 0; k < 4; k++) multiply_e4m3(c, rows + k * 2, weights + k / 2 * (Pipe::kUnit >> 4) + k % 2 * 2, adds || k > 0);
        commit_products();
        now.next();
    }
    // Adds up a block's sums once at most kLeft products that were begun after them are running, and lets go of its slot.
    template <int kLeft>
    __device__ void add(float (&c)[kSums], int slot, bool keep) {
        float rows[2], strips[kOut / 16];
        const uint32_t at = row_scales_at + slot * Pipe::kStageBytes;
        rows[0] = __uint_as_float(load_shared1(at)), rows[1] = __uint_as_float(load_shared1(at + 32));
#pragma unroll
        for (int s = 0; s < kOut / 16; s += 4) {
            const uint4 x = load_shared(strip_scales_at + slot * Pipe::kStageBytes + s * 4);
            strips[s] = __uint_as_float(x.x), strips[s + 1] = __uint_as_float(x.y), strips[s + 2] = __uint_as_float(x.z), strips[s + 3] = __uint_as_float(x.w);
        }
        wait_products<kLeft>();
        pin(c);
        if (!keep) pipe.release(slot);
#pragma unroll
        for (int s = 0; s < kOut / 16; s++) {
            const float f[2] = {rows[0] * strips[s], rows[1] * strips[s]};
#pragma unroll
            for (int i = s * 8; i < s * 8 + 8; i++) total[i] = fmaf(c[i], f[i / 2 % 2], total[i]);
        }
    }
    // Begins a block's products in c; those in other, begun before, are added.
    __device__ void follow(float (&c)[kSums], float (&other)[kSums]) {
        const int before = last;
        pipe.wait_full(now);
        begin(c, false);
        add<1>(other, before, false);
    }
    __device__ void run_blocks(int own, bool keep) {
        float even[kSums], odd[kSums];
        pipe.wait_full(now);
        begin(even, false);
        for (; own > 2; own -= 2) {
            follow(odd, even);
            follow(even, odd);
        }
        if (own == 2) {
            follow(odd, even);
            add<0>(odd, last, keep);
        } else {
            add<0>(even, last, keep);
        }
    }
    __device__ void run_in_turn(int own, const turns &turn) {
        float c[kSums];
        for (int i = 1; i <= own; i++) {
            pipe.wait_full(now);
            turn.wait();
            begin(c, false);
            turn.pass();
            add<0>(c, last, i == own);
        }
    }
    __device__ void run_rows(int own, bool keep) {
        for (int done = 0; done < own; done += kTogether) {
            const int n = min(kTogether, own - done);
            float c[kSums];
#pragma unroll
            for (int i = 0; i < kSums; i++) c[i] = 0;
            for (int i = 0; i < n; i++) {
                const int before = last;
                pipe.wait_full(now);
                begin(c, true);
                wait_products<1>();
                if (i) pipe.release(before);
            }
            wait_products<0>();
            pin(c);
            if (!keep || done + n < own) pipe.release(last);
#pragma unroll
            for (int i = 0; i < kSums; i++) total[i] += c[i];
        }
    }
    // Where this warpgroup is of the first part, the tile's last stage is not released yet.
    __device__ void run(int blocks, const turns &turn) {
        const int steps = (blocks + Pipe::kParts - 1) / Pipe::kParts, own = (blocks - Pipe::part() + Pipe::kParts - 1) / Pipe::kParts;
        const bool keep = Pipe::part() == 0;
#pragma unroll
        for (int i = 0; i < kSums; i++) total[i] = 0;
        if constexpr (!kBlocks)
            run_rows(own, keep);
        else if constexpr (kTurns)
            run_in_turn(own, turn);
        else if (own > 0)
            run_blocks(own, keep);
        if (own < steps) pipe.skip(now, steps - own);
    }
    // Makes sums results, and lets go of the last stage.
    __device__ void finish(bool scaled) {
        float of_rows[2] = {1, 1};
        if constexpr (!kBlocks) {
            const uint32_t scales = row_scales_at + last * Pipe::kStageBytes;
            of_rows[0] = __uint_as_float(load_shared1(scales)), of_rows[1] = __uint_as_float(load_shared1(scales + 32));
        }
        if (scaled || !kBlocks) {
#pragma unroll
            for (int j = 0; j < kOut / 8; j++) {
                const uint32_t at = (j * 8 + lane() % 4 * 2) * 4;
                const uint2 scale = load_shared2(pipe.output_scales(last) + at), bias = load_shared2(pipe.biases(last) + at);
                const float scales[2] = {__uint_as_float(scale.x), __uint_as_float(scale.y)}, biases[2] = {__uint_as_float(bias.x), __uint_as_float(bias.y)};
#pragma unroll
                for (int i = 0; i < 4; i++) total[j * 4 + i] = fmaf(kBlocks ? total[j * 4 + i] : total[j * 4 + i] * of_rows[i / 2], scales[i % 2], biases[i % 2]);
            }
        }
        __syncwarp();
        pipe.release(last);
    }
};

// A tile's place: its rows, its outputs, and the strips of weights that make them.
template <int kRows, int kOut, int kCluster, bool kGated>
struct e4m3_tile {
    static constexpr int kWidth = kGated ? kOut / 2 : kOut;
    const atlas_Weight &w;
    int row, out;  // the first ones

    __device__ e4m3_tile(const atlas_Weight &w, const wide_tile &at, int rank) : w(w), row((at.row * kCluster + rank) * kRows), out(at.out * kWidth) {}
    __device__ int output(int i) const { return kGated && i >= kWidth ? w.Rows / 2 + out + i - kWidth : out + i; }
    __device__ int strips() const { return kGated ? kOut / 16 : min(kOut / 16, (w.Rows + 15) / 16 - out / 16); }
    __device__ int strip(int i) const { return output(i * 16) / 16; }
};

}  // namespace atlas

template <bool kBlocks, int kRows, int kOut, int kStages, int kCluster, bool kGated>
__device__ void multiply_e4m3_wide(const atlas_Linear &a, void *scratch) {
    constexpr atlas_Scheme kScheme = kBlocks ? ATLAS_SCHEME_F8BLOCK : ATLAS_SCHEME_F8;
    using pipe_t = atlas::e4m3_shared_pipe<kRows, kOut, kStages, kCluster>;
    using tile_t = atlas::e4m3_tile<kRows, kOut, kCluster, kGated>;
    constexpr int kParts = pipe_t::kParts, kStrips = pipe_t::kStrips;
    const pipe_t pipe;
    const atlas::e4m3_tiles<true> in(scratch, a.Rows, a.W.Cols);
    const int blocks = a.W.Cols / 128, steps = (blocks + kParts - 1) / kParts, outs = kGated ? a.W.Rows / 2 : a.W.Rows, lane = atlas::lane();
    const int row_tiles = (a.Rows + kRows * kCluster - 1) / (kRows * kCluster), out_tiles = (outs + tile_t::kWidth - 1) / tile_t::kWidth, tiles = row_tiles * out_tiles;
    const int first = blockIdx.x / kCluster, stride = gridDim.x / kCluster;
    atlas::release_next();
    if (pipe_t::copies()) {
        atlas::give_registers<56>();
        atlas::stage<kStages> now;
        if (atlas::warp() == 8) {  // copies rows and their scales
            atlas::wait_for_previous();
            for (int i = first; i < tiles; i += stride) {
                const tile_t tile(a.W, atlas::place_tile<16>(i, row_tiles, out_tiles), pipe.rank);
                const int strips = tile.strips(), row = min(tile.row, in.rows - kRows), part = lane % kParts;
#pragma unroll 1
                for (int step = 0; step < steps; step++, now.next()) {
                    const uint32_t full = pipe.full + now.slot * 8;
                    const int block = step * kParts + part, parts = min(kParts, blocks - step * kParts), scaled = kBlocks ? parts : step == steps - 1;
                    atlas::wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    if (lane == 0) atlas::arrive_expecting(full, parts * (kRows * 128 + strips * 2048) + scaled * kRows * 4);
                    __syncwarp();
                    if (lane < parts) atlas::copy_bulk(pipe.rows(now.slot) + part * kRows * 128, in.tile(block, row), kRows * 128, full);
                    if (lane >= kParts && lane < kParts + scaled) atlas::copy_bulk(pipe.row_scales(now.slot, part), in.scale(kBlocks ? block : 0, row), kRows * 4, full);
                }
            }
        } else if (atlas::warp() == 9) {  // the scales of weights
            for (int i = first; i < tiles; i += stride) {
                const tile_t tile(a.W, atlas::place_tile<16>(i, row_tiles, out_tiles), pipe.rank);
                const int strip = lane % 16, part = lane / 16;
                const float *scales = part < kParts && strip < tile.strips() ? atlas::strip_scales<kScheme>(a.W, 0, tile.strip(strip)) : nullptr;
                const auto load = [&](int step) { return scales && step * kParts + part < blocks ? scales[step * kParts + part] : 0.0f; };
                float next = load(0);
#pragma unroll 1
                for (int step = 0; step < steps; step++, now.next()) {
                    const float own = next;
                    next = load(step + 1);
                    atlas::wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    if constexpr (kBlocks) {
                        if (part < kParts) atlas::store_shared1(pipe.strip_scales(now.slot, part) + strip * 4, __float_as_uint(own));
                    }
                    if (step == steps - 1) {
#pragma unroll 1
                        for (int j = 0; j < kOut / 32; j++) {
                            const int n = tile.output(j * 32 + lane);
                            atlas::store_shared1(pipe.output_scales(now.slot) + (j * 32 + lane) * 4, __float_as_uint(n < a.W.Rows ? atlas::row_scale(a.W, 0, n) : 0.0f));
                            atlas::store_shared1(pipe.biases(now.slot) + (j * 32 + lane) * 4, __float_as_uint(a.Bias && n < a.W.Rows ? a.Bias[n] : 0.0f));
                        }
                    }
                    atlas::arrive(pipe.full + now.slot * 8);
                }
            }
        } else {  // copies weights, which depend on no kernel before this one: of every 64 columns' strips a lane for each
            const int strip = lane % kStrips, unit = (atlas::warp() - 10) * kParts + lane / kStrips;
            for (int i = first; i < tiles; i += stride) {
                const tile_t tile(a.W, atlas::place_tile<16>(i, row_tiles, out_tiles), pipe.rank);
                const bool copies = lane < kStrips * kParts && strip < tile.strips() && strip % kCluster == pipe.rank;
                const uint8_t *from = copies ? atlas::frag<kScheme>::strip(a.W, 0, tile.strip(strip)) + unit * 1024 : nullptr;
#pragma unroll 1
                for (int step = 0; step < steps; step++, now.next()) {
                    atlas::wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    if (!from || step * kParts + unit / 2 >= blocks) continue;
                    const uint32_t full = pipe.full + now.slot * 8, to = pipe.weights(now.slot, unit) + strip * 1024;
                    if constexpr (kCluster > 1)
                        atlas::copy_bulk_to(to, from + size_t(step) * kParts * 2048, 1024, full, (1 << kCluster) - 1);
                    else
                        atlas::copy_bulk(to, from + size_t(step) * kParts * 2048, 1024, full);
                }
            }
        }
        __syncwarp();
    } else {
        atlas::take_registers<224>();
        using sums_t = atlas::e4m3_sums<kBlocks, kOut, pipe_t, atlas::stage<kStages>>;
        atlas::stage<kStages> now;
        const atlas::turns turn(sums_t::kTurns ? pipe_t::team() : 0);
        sums_t sums(pipe, now);
        const atlas::wide_outputs to(a.Out, a.Rows, a.OutPitch, outs);
        atlas::wait_for_previous();
        for (int i = first; i < tiles; i += stride) {
            const tile_t tile(a.W, atlas::place_tile<16>(i, row_tiles, out_tiles), pipe.rank);
            sums.run(blocks, turn);
            if constexpr (kParts > 1) atlas::add_parts<1, kParts>(pipe_t::sums(), 0, pipe_t::part(), sums.total);
            if (pipe_t::part()) continue;
            sums.finish(a.W.Scale || a.Bias);
            float(&x)[kOut / 2] = sums.total;
            if constexpr (kGated) {
#pragma unroll
                for (int i = 0; i < kOut / 4; i += 2) atlas::pass_gates(x[i], x[i + 1], x[kOut / 4 + i], x[kOut / 4 + i + 1]);
            }
#pragma unroll
            for (int j = 0; j < tile_t::kWidth; j += 64) to.store_through<64>(pipe_t::outputs(), tile.row + pipe_t::row(), tile.out + j, x + j / 2);
        }
        if constexpr (sums_t::kTurns) turn.end();
    }
    pipe.end();
}

template <atlas_Scheme kScheme, int kRows, int kOut, int kStages, int kCluster>
__device__ void linear_e4m3_wide(const atlas_Linear &a, void *scratch) {
    multiply_e4m3_wide<kScheme == ATLAS_SCHEME_F8BLOCK, kRows, kOut, kStages, kCluster, false>(a, scratch);
}

template <atlas_Scheme kScheme, int kRows, int kOut, int kStages, int kCluster>
__device__ void gated_linear_e4m3_wide(const atlas_GatedLinear &a, void *scratch) {
    atlas_Linear plain = {};
    plain.Out = a.Out, plain.In = a.In, plain.W = a.W, plain.Rows = a.Rows, plain.OutPitch = a.W.Rows / 2;
    multiply_e4m3_wide<kScheme == ATLAS_SCHEME_F8BLOCK, kRows, kOut, kStages, kCluster, true>(plain, scratch);
}
