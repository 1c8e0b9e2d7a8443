// Linear and GatedLinear for many rows and f8 or f8block weights (layout frag), activations in e4m3, both in shared memory: tiles of
// kRows rows by kOut outputs, 128 or 192. With 128 rows each of two warpgroups has 64 of them, with 64 every other 128 columns.
//
// First a kernel of quantise_linear.cuh. Then blocks of 384 threads, one to a multiprocessor (min_blocks 1); cluster kCluster, 1
// or 2, blocks next to one another along rows, which share weights; dynamic shared memory atlas::e4m3_shared_pipe<…>::kAll. Grid any
// multiple of the cluster, at most a block per tile, of which there are kCluster*ceil(Rows/(kRows*kCluster))*ceil(W.Rows/kOut).
// W.Cols%(128*128/kRows) == 0, for f8 of 256 or more times 128/kRows. Any Rows, OutPitch and alignment of Out. Instances of the same kRows
// give the same bits. 192 outputs are for f8block.
//
// Gated, a tile is kOut/2 outputs and those they gate: W.Rows%kOut == 0.
#pragma once
#include "lib/cuda/weight/e4m3_sums.cuh"
#include "lib/cuda/weight/linear_wide.cuh"
#include "lib/cuda/weight/quantise_linear.cuh"

#include <type_traits>

namespace atlas {

// A tile's place: its rows, its outputs, and the strips of weights that make them.
template <int kRows, int kOut, int kCluster, bool kGated>
struct e4m3_tile {
    static constexpr int kWidth = kGated ? kOut / 2 : kOut;
    const atlas_Weight &w;
    int row, out;  // the first ones

    __device__ e4m3_tile(const atlas_Weight &w, const wide_tile &at, int rank) : w(w), row((at.row * kCluster + rank) * kRows), out(at.out * kWidth) {}
    __device__ int output(int i) const { return kGated && i >= kWidth ? w.Rows / 2 + out + i - kWidth : out + i; }
    // One for each 16 outputs, be they there or not: whoever copies them is waited for in every stage, and so never a round of the pipe behind.
    __device__ int strip(int i) const { return min(output(i * 16), w.Rows - 1) / 16; }
};

}  // namespace atlas

template <bool kBlocks, int kRows, int kOut, int kStages, int kCluster, bool kGated>
__device__ void multiply_e4m3_wide(const atlas_Linear &a, void *scratch) {
    constexpr atlas_Scheme kScheme = kBlocks ? ATLAS_SCHEME_F8BLOCK : ATLAS_SCHEME_F8;
    using pipe_t = atlas::e4m3_shared_pipe<kRows, kOut, kStages, kCluster, (kGated && kOut > 128 ? 32 : 64)>;
    using tile_t = atlas::e4m3_tile<kRows, kOut, kCluster, kGated>;
    constexpr int kParts = pipe_t::kParts, kStrips = pipe_t::kStrips;
    const pipe_t pipe;
    const atlas::e4m3_tiles in(scratch, a.Rows, a.W.Cols);
    const int blocks = a.W.Cols / 128, steps = blocks / kParts, outs = kGated ? a.W.Rows / 2 : a.W.Rows, lane = atlas::lane();
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
                const int row = min(tile.row, in.rows - kRows), part = lane % kParts;
#pragma unroll 1
                for (int step = 0; step < steps; step++, now.next()) {
                    const uint32_t full = pipe.full + now.slot * 8;
                    const int block = step * kParts + part, scaled = kBlocks ? kParts : step == steps - 1;
                    atlas::wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    if (lane == 0) atlas::arrive_expecting(full, kParts * (kRows * 128 + kStrips * 2048) + scaled * kRows * 4);
                    __syncwarp();
                    if (lane < kParts) atlas::copy_bulk(pipe.rows(now.slot) + part * kRows * 128, in.tile(block, row), kRows * 128, full);
                    if (lane >= kParts && lane < kParts + scaled) atlas::copy_bulk(pipe.row_scales(now.slot, part), in.scale(kBlocks ? block : 0, row), kRows * 4, full);
                }
            }
        } else if (atlas::warp() == 9) {  // the scales of weights
            for (int i = first; i < tiles; i += stride) {
                const tile_t tile(a.W, atlas::place_tile<16>(i, row_tiles, out_tiles), pipe.rank);
                const int strip = lane % 16, part = lane / 16;
                const float *scales = part < kParts && strip < kStrips ? atlas::strip_scales<kScheme>(a.W, 0, tile.strip(strip)) : nullptr;
                const auto load = [&](int step) { return scales && step * kParts + part < blocks ? scales[step * kParts + part] : 0.0f; };
                float next = load(0);
#pragma unroll 1
                for (int step = 0; step < steps; step++, now.next()) {
                    const float own = next;
                    next = load(step + 1);
                    atlas::wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    if constexpr (kBlocks) {
                        const float first_of_group = __shfl_sync(atlas::kAllLanes, own, lane & ~(pipe_t::kGroupStrips - 1));
                        const unsigned differ = __ballot_sync(atlas::kAllLanes, scales && own != first_of_group);
                        if (part < kParts) {
                            atlas::store_shared1(pipe.strip_scales(now.slot, part) + strip * 4, __float_as_uint(own));
                            if (strip % pipe_t::kGroupStrips == 0) atlas::store_shared1(pipe.group_scales(now.slot, part) + strip / pipe_t::kGroupStrips * 4, strip == pipe_t::kMixed * pipe_t::kGroupStrips ? differ >> part * 16 & 0xffff : __float_as_uint(own));
                        }
                    }
                    if (step == steps - 1) {
                        if (lane < 2) atlas::store_shared1(pipe.place(now.slot) + lane * 4, lane ? tile.out : tile.row);
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
                const bool copies = lane < kStrips * kParts && strip % kCluster == pipe.rank;
                const uint8_t *from = copies ? atlas::frag<kScheme>::strip(a.W, 0, tile.strip(strip)) + unit * 1024 : nullptr;
#pragma unroll 1
                for (int step = 0; step < steps; step++, now.next()) {
                    atlas::wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    if (!from) continue;
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
        atlas::stage<kStages> now;
        using stage_t = atlas::stage<kStages>;
        using sums_t = std::conditional_t<(kOut > 128), atlas::e4m3_half_sums<kOut, pipe_t, stage_t>, atlas::e4m3_whole_sums<kBlocks, kOut, pipe_t, stage_t>>;
        sums_t sums(pipe, now);
        const atlas::wide_outputs to(a.Out, a.Rows, a.OutPitch, outs);
        atlas::wait_for_previous();
        sums.run((tiles - first + stride - 1) / stride, steps, [&](int slot) {
            if constexpr (kParts > 1) atlas::add_parts<kParts>(pipe_t::sums(), pipe_t::part(), sums.total);
            if (pipe_t::part()) return pipe.release(slot);
            const uint2 place = atlas::load_shared2(pipe.place(slot));
            sums.finish(slot, a.W.Scale, a.Bias);
            float(&x)[kOut / 2] = sums.total;
            if constexpr (kGated) {
#pragma unroll
                for (int i = 0; i < kOut / 4; i += 2) atlas::pass_gates(x[i], x[i + 1], x[kOut / 4 + i], x[kOut / 4 + i + 1]);
            }
#pragma unroll
            for (int j = 0; j + 64 <= tile_t::kWidth; j += 64) to.store_through<64>(pipe_t::outputs(), place.x + pipe_t::row(), place.y + j, x + j / 2);
            if constexpr (tile_t::kWidth % 64) to.store_through<32>(pipe_t::outputs(), place.x + pipe_t::row(), place.y + tile_t::kWidth - 32, x + (tile_t::kWidth - 32) / 2);
        });
    }
    pipe.end();
}

template <class P>
__device__ void linear_e4m3_wide(const atlas_Linear &a, void *scratch) {
    multiply_e4m3_wide<P::kScheme == ATLAS_SCHEME_F8BLOCK, P::kRows, P::kOut, P::kStages, P::kCluster, false>(a, scratch);
}

template <class P>
__device__ void gated_linear_e4m3_wide(const atlas_GatedLinear &a, void *scratch) {
    atlas_Linear plain = {};
    plain.Out = a.Out, plain.In = a.In, plain.W = a.W, plain.Rows = a.Rows, plain.OutPitch = a.W.Rows / 2;
    multiply_e4m3_wide<P::kScheme == ATLAS_SCHEME_F8BLOCK, P::kRows, P::kOut, P::kStages, P::kCluster, true>(plain, scratch);
}
