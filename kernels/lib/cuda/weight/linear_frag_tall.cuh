// Linear for many rows and weights in a frag layout, with wgmma: tiles of kRows rows by 128 outputs, of which each warp has one strip, so that what is
// decoded serves all rows of a tile. A cluster of kSplit blocks shares out a tile's columns, where tiles alone are too few for the machine, and adds
// up in the order of blocks; each finishes a part of the rows.
//
// Block: 384 threads, one to a multiprocessor (min_blocks 1); cluster kSplit: 1 to 4; dynamic shared memory atlas::tall_pipe<…>::kShared. Grid:
// kSplit times any number of blocks, at most ceil(Rows/kRows)*ceil(W.Rows/128), and all of those where kSplit > 1. Tile of the copy engine: In
// [Rows,W.Cols], box [kRows,64], so that W.Cols%8 == 0. kRows 128, 192 or 256. Any Rows, OutPitch and alignment of Out. All instances of a scheme with the same
// kSplit give the same bits.
#pragma once
#include "lib/cuda/ptx/cluster.cuh"
#include "lib/cuda/weight/frag_wide.cuh"
#include "lib/cuda/weight/linear_wide.cuh"

namespace atlas {

constexpr int kTallOut = 128;

template <atlas_Scheme kScheme, int kRows, int kStages>
using tall_pipe = frag_pipe<kScheme, 2, kRows, kStages, true, 1>;

// A block's part of a tile's rows, the last one perhaps smaller: whole sixteens.
template <int kRows, int kSplit>
constexpr int kPart = (kRows / 16 + kSplit - 1) / kSplit * 16;

// Sums of all blocks for this one's part of the rows: sums of 8 rows are four floats of a thread. memory: what nothing is read from any more; all
// threads of the cluster come together twice. That is one fence for all stores, where stores that count at a barrier would do so thousands of times.
template <int kRows, int kSplit>
__device__ void exchange_sums(uint32_t memory, int rank, const float (&c)[kRows / 2], float (&mine)[kPart<kRows, kSplit> / 2]) {
    constexpr int kQuads = kPart<kRows, kSplit> / 8, kSource = kQuads * 4096;  // of a part; bytes that a block sends another
    const uint32_t own = memory + threadIdx.x * 16;
    arrive_cluster(), wait_cluster();
#pragma unroll
    for (int p = 0; p < kSplit; p++)
#pragma unroll
        for (int i = 0; i < min(kQuads, kRows / 8 - p * kQuads); i++) {
            const float *x = c + (p * kQuads + i) * 4;
            store_in(address_in(own + rank * kSource + i * 4096, p), {x[0], x[1], x[2], x[3]});
        }
    sync_cluster();
#pragma unroll
    for (int i = 0; i < kQuads * 4; i++) mine[i] = 0;
#pragma unroll
    for (int p = 0; p < kSplit; p++)
#pragma unroll
        for (int i = 0; i < kQuads; i++) {
            const uint4 x = load_shared(own + p * kSource + i * 4096);
            mine[i * 4] += __uint_as_float(x.x), mine[i * 4 + 1] += __uint_as_float(x.y);
            mine[i * 4 + 2] += __uint_as_float(x.z), mine[i * 4 + 3] += __uint_as_float(x.w);
        }
}

// What a warp's sums of 16 outputs from out on and kRows rows from row on become, of which those before end are there.
template <int kRows>
__device__ void put_outputs(const atlas_Linear &a, int out, int row, int end, const float (&c)[kRows / 2]) {
    const bool whole = a.OutPitch % 8 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 16 == 0;
    float scale[2], bias[2];  // of outputs out+g and 8 further on
#pragma unroll
    for (int l = 0; l < 2; l++) {
        const int n = out + l * 8 + lane() / 4;
        scale[l] = n < a.W.Rows ? row_scale(a.W, 0, n) : 0.0f;
        bias[l] = a.Bias && n < a.W.Rows ? a.Bias[n] : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < kRows / 8; j += 2) {  // eight rows and eight more, of which a lane has four words
        uint32_t u[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *x = c + (j + i / 2) * 4 + i % 2 * 2;
            u[i] = transpose_matrix(narrow(fmaf(x[0], scale[i % 2], bias[i % 2]), fmaf(x[1], scale[i % 2], bias[i % 2])));
        }
        transpose_quad(u);
        const int r = row + (j + lane() % 4 / 2) * 8 + lane() / 4, n = out + lane() % 2 * 8;
        if (r < end) store_outputs(a.Out + size_t(r) * a.OutPitch + n, u, a.W.Rows - n, whole);
    }
}

}  // namespace atlas

template <class P>
__device__ void linear_frag_tall(const atlas_Linear &a, const atlas_TensorMap *in) {
    using namespace atlas;
    using pipe_t = tall_pipe<P::kScheme, P::kRows, P::kStages>;
    static_assert(launched<P, pipe_t::kThreads, pipe_t::kShared, P::kSplit>::kFits);
    static_assert(P::kStages * pipe_t::kStageBytes >= P::kSplit * kPart<P::kRows, P::kSplit> * 512, "sums take the place of stages");
    const pipe_t pipe;
    const int rank = P::kSplit > 1 ? cluster_rank() : 0, strips = (a.W.Rows + 15) / 16;
    const int row_tiles = (a.Rows + P::kRows - 1) / P::kRows, out_tiles = (a.W.Rows + kTallOut - 1) / kTallOut, tiles = row_tiles * out_tiles;
    constexpr int kWhole = frag<P::kScheme>::kSix ? 4 : 1;  // steps that stay together
    const int parts = (tiles64(a.W.Cols) + kWhole - 1) / kWhole, begin = parts * rank / P::kSplit * kWhole, end = parts * (rank + 1) / P::kSplit * kWhole;
    release_next();
    if (pipe_t::copies()) {
        give_registers<40>();
        if (warp() == 8) {
            stage<P::kStages> now;
            for (int i = blockIdx.x / P::kSplit; i < tiles; i += gridDim.x / P::kSplit) {
                const wide_tile at = place_tile(i, row_tiles, out_tiles);
                const int row = first_row<P::kRows>(at.row, a.Rows), first = at.out * (kTallOut / 16), n = min(kTallOut / 16, strips - first);
                const copy_strips<P::kScheme, kTallOut / 16> weights = {
                    frag<P::kScheme>::strip(a.W, 0, first), 0, 0, n, a.W.Cols, n, box_rows(P::kRows, a.Rows) * 128, true};
                const auto copy_rows = [&](int slot, int step) {
                    if (elected()) copy_box(pipe.rows(slot), in, step * 64, row, pipe.full + slot * 8);
                };
                int step = begin;
                if (i == int(blockIdx.x) / P::kSplit) {  // weights depend on no kernel before this one
                    const int early = min(end - begin, P::kStages);
                    for (int s = 0; s < early; s++) weights(begin + s, pipe.weights(s), pipe.full + s * 8);
                    wait_for_previous();
                    for (int s = 0; s < early; s++, step++, now.next()) copy_rows(s, step);
                }
                for (; step < end; step++, now.next()) {
                    wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    weights(step, pipe.weights(now.slot), pipe.full + now.slot * 8);
                    copy_rows(now.slot, step);
                }
            }
        }
        __syncwarp();
        if constexpr (P::kSplit > 1) arrive_cluster(), wait_cluster(), sync_cluster();
    } else {
        take_registers<232>();
        stage<P::kStages> now;
        wait_for_previous();
        for (int i = blockIdx.x / P::kSplit; i < tiles; i += gridDim.x / P::kSplit) {
            const wide_tile at = place_tile(i, row_tiles, out_tiles);
            const int out = at.out * kTallOut + warp() * 16;
            float c[1][P::kRows / 2];
            multiply_strip<P::kScheme, P::kRows>(pipe, now, begin, end, a.W.Cols, c);
            const int row = first_row<P::kRows>(at.row, a.Rows);
            if constexpr (P::kSplit == 1) {
                put_outputs<P::kRows>(a, out, row, a.Rows, c[0]);
            } else {
                constexpr int kMine = kPart<P::kRows, P::kSplit>;
                float mine[kMine / 2];
                exchange_sums<P::kRows, P::kSplit>(pipe.data, rank, c[0], mine);
                put_outputs<kMine>(a, out, row + rank * kMine, min(row + min((rank + 1) * kMine, P::kRows), a.Rows), mine);
            }
        }
    }
}
