// Linear for many rows and bf16 weights (layout tile64) with wgmma: tiles of kRows rows by kOut outputs.
//
// A cluster is kAcross blocks next to one another along rows, which share weights, times kAlong along outputs, which share rows.
// Block: kRows*2+128 threads; cluster kAcross*kAlong; dynamic shared memory kStages*((kRows+kOut)*128+16)+1024,
// with kOut 256 the block's most. min_blocks 1. Grid: any multiple of the cluster, at most a block per tile, that is kAcross*kAlong*ceil(Rows/(kRows*kAcross))*ceil(W.Rows/(kOut*kAlong)); blocks
// go on to further tiles. Tile of the copy engine: In [Rows,W.Cols], box [kRows/kAlong,64], so that W.Cols%8 == 0.
// kRows 64 or 128; kOut 32, 64, 128, 192 or 256. Any Rows, OutPitch and alignment of Out. All instances give the same bits.
#pragma once
#include "lib/cuda/ptx/store.cuh"
#include "lib/cuda/weight/wide.cuh"

namespace atlas {

// Tile number i: neighbours share weights, and bands of kBand tiles of outputs share rows that the cache still holds.
struct wide_tile {
    int row, out;
};
__device__ inline wide_tile place_tile(int i, int row_tiles, int out_tiles) {
    constexpr int kBand = 8;
    const int band = i / (kBand * row_tiles), rest = i - band * kBand * row_tiles, width = min(kBand, out_tiles - band * kBand);
    return {rest / width, band * kBand + rest % width};
}

// Sums of a lane's outputs n, n+1, n+8, n+9, …: scaled, and with the bias.
template <int kOut>
__device__ void scale_outputs(const atlas_Linear &a, int n, float (&c)[kOut / 2]) {
#pragma unroll
    for (int j = 0; j < kOut / 8; j++, n += 8) {
        const bool one = n < a.W.Rows, two = n + 1 < a.W.Rows;
        const float scale[2] = {one ? row_scale(a.W, 0, n) : 0.0f, two ? row_scale(a.W, 0, n + 1) : 0.0f};
        const float bias[2] = {a.Bias && one ? a.Bias[n] : 0.0f, a.Bias && two ? a.Bias[n + 1] : 0.0f};
#pragma unroll
        for (int e = 0; e < 4; e++) c[j * 4 + e] = fmaf(c[j * 4 + e], scale[e % 2], bias[e % 2]);
    }
}

// Stores a warp's 16 rows of outputs by way of shared memory, 128 at a time, so that tensor cores soon have the next tile. Rows and
// their parts are whole vectors of eight.
constexpr int kStagedPitch = 256 + 16, kStagedBytes = 16 * kStagedPitch;  // of a warp; eight rows meet no bank twice
template <int kSums>
__device__ void store_staged(const atlas_Linear &a, uint32_t stage, int row, int out, const float (&c)[kSums]) {
    const uint32_t to = stage + (lane() % 8 + lane() / 8 % 2 * 8) * kStagedPitch + lane() / 16 * 16;
#pragma unroll
    for (int half = 0; half < kSums / 64; half++, out += 128) {
        wait_stores_read();
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float *x = c + half * 64 + j * 8;
            store_matrices(to + j * 32, narrow(x[0], x[1]), narrow(x[2], x[3]), narrow(x[4], x[5]), narrow(x[6], x[7]));
        }
        fence_shared();
        __syncwarp();
        const int left = min(128, a.W.Rows - out), r = row + lane();
        if (lane() < 16 && r < a.Rows && left > 0) store_bulk(a.Out + size_t(r) * a.OutPitch + out, stage + lane() * kStagedPitch, left * 2);
        commit_stores();
    }
}

}  // namespace atlas

template <int kRows, int kOut, int kStages, int kAcross, int kAlong>
__device__ void linear_wide(const atlas_Linear &a, const atlas_TensorMap *in) {
    constexpr int kPieces = (kOut + 63) / 64, kPieceBytes = kOut / kPieces * 128, kShare = kRows / kAlong;
    constexpr bool kStaged = kOut == 256;
    static_assert((kOut == 32 || kOut % 64 == 0) && kPieces % kAcross == 0 && kShare % 8 == 0, "whole pieces for each block");
    using pipe_t = atlas::wide<kRows / 64, kRows, kOut * 128, kStages, kAcross * kAlong, true>;
    static_assert(!kStaged || kStages * (pipe_t::kStageBytes + 16) + kRows / 16 * atlas::kStagedBytes <= kSharedPerBlock, "fits, from an aligned address on");
    const pipe_t pipe;
    const int steps = atlas::tiles64(a.W.Cols), across = pipe.rank % kAcross, along = pipe.rank / kAcross;
    const int row_tiles = (a.Rows + kRows * kAcross - 1) / (kRows * kAcross), out_tiles = (a.W.Rows + kOut * kAlong - 1) / (kOut * kAlong);
    const int first = blockIdx.x / (kAcross * kAlong), stride = gridDim.x / (kAcross * kAlong), tiles = row_tiles * out_tiles;
    atlas::release_next();
    if (pipe_t::copies()) {
        if constexpr (kStaged) atlas::give_registers<56>();
        if (threadIdx.x == kRows * 2) {
            atlas::prefetch_map(in);
            atlas::stage<kStages> now;
            int row = 0, out = 0;
            const auto copy_weights = [&](int slot, int step) {
                const uint32_t full = pipe.full + slot * 8;
                atlas::arrive_expecting(full, pipe_t::kRowBytes + max(0, min(kPieces, (a.W.Rows - out + 63) / 64)) * kPieceBytes);
                const atlas_act *from = atlas::tile64(a.W, 0, out / 64, step) + out % 64 * 64;
#pragma unroll
                for (int i = 0; i < kPieces; i++) {
                    if (out + i * 64 >= a.W.Rows || i % kAcross != across) continue;
                    const uint32_t to = pipe.weights(slot) + i * kPieceBytes;
                    const atlas_act *piece = from + size_t(i) * steps * atlas::kTile64;
                    if constexpr (kAcross > 1)
                        atlas::copy_bulk_to(to, piece, kPieceBytes, full, ((1 << kAcross) - 1) << along * kAcross);
                    else
                        atlas::copy_bulk(to, piece, kPieceBytes, full);
                }
            };
            const auto copy_rows = [&](int slot, int step) {
                const uint32_t full = pipe.full + slot * 8, to = pipe.rows(slot) + along * kShare * 128;
                if constexpr (kAlong > 1) {
                    int blocks = 0;
                    for (int i = 0; i < kAlong; i++) blocks |= 1 << (i * kAcross + across);
                    atlas::copy_box_to(to, in, step * 64, row + along * kShare, full, blocks);
                } else {
                    atlas::copy_box(to, in, step * 64, row, full);
                }
            };
            for (int i = first; i < tiles; i += stride) {
                const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
                row = (at.row * kAcross + across) * kRows, out = (at.out * kAlong + along) * kOut;
                int step = 0;
                if (i == first) {  // weights depend on no kernel before this one
                    const int early = min(steps, kStages);
                    for (; step < early; step++) copy_weights(step, step);
                    atlas::wait_for_previous();
                    for (step = 0; step < early; step++, now.next()) copy_rows(step, step);
                }
                for (; step < steps; step++, now.next()) {
                    atlas::wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    copy_weights(now.slot, step);
                    copy_rows(now.slot, step);
                }
            }
        }
        __syncwarp();
    } else {
        if constexpr (kStaged) atlas::take_registers<224>();
        atlas::stage<kStages> now;
        const bool whole = a.OutPitch % 8 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 16 == 0 && (!kStaged || a.W.Rows % 8 == 0);
        const int t = atlas::lane() % 4;
        atlas::wait_for_previous();
        for (int i = first; i < tiles; i += stride) {
            const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
            float c[kOut / 2];
            atlas::multiply_tile<kOut>(pipe, now, steps, c);
            const int row = (at.row * kAcross + across) * kRows + atlas::warp() * 16 + atlas::lane() / 4, out = (at.out * kAlong + along) * kOut;
            if (a.W.Scale || a.Bias) atlas::scale_outputs<kOut>(a, out + t * 2, c);
            if (kStaged && whole) {
                atlas::store_staged(a, pipe.data + kStages * (pipe_t::kStageBytes + 16) + atlas::warp() * atlas::kStagedBytes, row - atlas::lane() / 4, out, c);
                continue;
            }
#pragma unroll
            for (int j = 0; j < kOut / 8; j += 4) {
                const int n = out + j * 8;
                uint32_t low[4], high[4];
#pragma unroll
                for (int l = 0; l < 4; l++) {
                    const float *x = c + (j + l) * 4;
                    low[l] = atlas::narrow(x[0], x[1]), high[l] = atlas::narrow(x[2], x[3]);
                }
                atlas::transpose_quad(low);
                atlas::transpose_quad(high);
                atlas_act *to = a.Out + size_t(row) * a.OutPitch + n + t * 8;
                const int left = a.W.Rows - n - t * 8;
                if (row < a.Rows) atlas::store_outputs(to, low, left, whole);
                if (row + 8 < a.Rows) atlas::store_outputs(to + size_t(8) * a.OutPitch, high, left, whole);
            }
        }
        if (kStaged) atlas::wait_stores();
    }
    pipe.end();
}
