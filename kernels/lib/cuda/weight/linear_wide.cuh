// Linear and GatedLinear for many rows and bf16 weights (layout tile64) with wgmma: tiles of kRows rows by kOut outputs.
//
// A cluster is kAcross blocks next to one another along rows, which share weights, times kAlong along outputs, which share rows.
// Block: min(kRows,128)*2+128 threads, or 512 of 192 rows; cluster kAcross*kAlong; dynamic shared memory kStages*((kRows+kOut)*128+16)+1024. min_blocks 1.
// Grid: any multiple of the cluster, at most a block per tile, of which there are
// kAcross*kAlong*ceil(Rows/(kRows*kAcross))*ceil(W.Rows/(kOut*kAlong)); blocks go on to further tiles. Tile of the copy engine:
// In [Rows,W.Cols], box [kRows/kAlong,64], so that W.Cols%8 == 0. kRows 64, 128, or 192 or 256 with kOut at most 128; kOut 32, 64, 128 or 192.
// Any Rows, OutPitch and alignment of Out. All instances give the same bits.
//
// Gated, kOut is 128: 64 outputs and those they gate, so that W.Rows%128 == 0.
#pragma once
#include "lib/cuda/weight/wide.cuh"

namespace atlas {

// Tile number i: neighbours share weights, and bands of kBand tiles of outputs share rows that the cache still holds.
struct wide_tile {
    int row, out;
};
template <int kBand = 8>
__device__ wide_tile place_tile(int i, int row_tiles, int out_tiles) {
    const int band = i / (kBand * row_tiles), rest = i - band * kBand * row_tiles, width = min(kBand, out_tiles - band * kBand);
    return {rest / width, band * kBand + rest % width};
}

// The first row that tile number i copies. Of few rows, a last tile ends with the last one, for the copy engine is slow where many rows of a box are not
// there; of many, zeros cost less than rows that are multiplied twice. Rows that two tiles have come out alike.
template <int kRows>
__device__ int first_row(int i, int rows) {
    return rows - i * kRows < kRows / 2 ? max(rows - kRows, 0) : i * kRows;
}

// Sums of a lane's outputs n, n+1, n+8, n+9, …: scaled, and with the bias. The first of kOut is number kFrom of c.
template <int kOut, int kFrom = 0, int kSums>
__device__ void scale_outputs(const atlas_Linear &a, int n, float (&c)[kSums]) {
#pragma unroll
    for (int j = kFrom / 8; j < (kFrom + kOut) / 8; j++, n += 8) {
        const bool one = n < a.W.Rows, two = n + 1 < a.W.Rows;
        const float scale[2] = {one ? row_scale(a.W, 0, n) : 0.0f, two ? row_scale(a.W, 0, n + 1) : 0.0f};
        const float bias[2] = {a.Bias && one ? a.Bias[n] : 0.0f, a.Bias && two ? a.Bias[n + 1] : 0.0f};
#pragma unroll
        for (int e = 0; e < 4; e++) c[j * 4 + e] = fmaf(c[j * 4 + e], scale[e % 2], bias[e % 2]);
    }
}

// Where outputs go: a matrix of outs columns.
struct wide_outputs {
    atlas_act *to;
    int rows, pitch, outs;
    bool whole;  // rows begin at whole vectors of eight

    __device__ wide_outputs(atlas_act *to, int rows, int pitch, int outs) : to(to), rows(rows), pitch(pitch), outs(outs) {
        whole = pitch % 8 == 0 && reinterpret_cast<uintptr_t>(to) % 16 == 0;
    }

    // Stores kOuts sums of each of a warp's 16 rows.
    template <int kOuts, int kSums>
    __device__ void store(int row, int out, const float (&c)[kSums]) const {
        const int g = lane() / 4, t = lane() % 4;
#pragma unroll
        for (int j = 0; j < kOuts / 8; j += 4) {
            uint32_t low[4], high[4];
#pragma unroll
            for (int l = 0; l < 4; l++) {
                const float *x = c + (j + l) * 4;
                low[l] = narrow(x[0], x[1]), high[l] = narrow(x[2], x[3]);
            }
            transpose_quad(low);
            transpose_quad(high);
            const int n = out + j * 8 + t * 8;
            atlas_act *at = to + size_t(row + g) * pitch + n;
            if (row + g < rows) store_outputs(at, low, outs - n, whole);
            if (row + g + 8 < rows) store_outputs(at + size_t(8) * pitch, high, outs - n, whole);
        }
    }
    // The same through 32·kOuts bytes of shared memory of this warp, so that whole lines are stored.
    template <int kOuts>
    __device__ void store_through(uint32_t shared, int row, int out, const float *c) const {
        constexpr int kChunks = kOuts / 8;  // of a row, in an order that meets no bank twice
        static_assert(kChunks == 8 || kChunks == 4, "has one");
        const auto at_chunk = [&](int r, int chunk) { return shared + r * kOuts * 2 + (chunk ^ (kChunks == 8 ? r % 8 : r / 2 % 4)) * 16; };
        __syncwarp();  // what was there before has been read
#pragma unroll
        for (int j = 0; j < kChunks; j += 2) {
            const float *x = c + j * 4;
            const uint32_t words[4] = {narrow(x[0], x[1]), narrow(x[2], x[3]), narrow(x[4], x[5]), narrow(x[6], x[7])};
            const int r = lane() % 16, chunk = j + lane() / 16;
            store_matrices(at_chunk(r, chunk), words);
        }
        __syncwarp();
        const int chunk = lane() % kChunks, first = lane() / kChunks, n = out + chunk * 8;
        const auto chunk_of = [&](int r) { return load_shared(at_chunk(r, chunk)); };
        atlas_act *at = to + size_t(row + first) * pitch + n;
        if (whole && row + 16 <= rows && out + kOuts <= outs) {
#pragma unroll
            for (int i = 0; i < 16; i += 32 / kChunks) *reinterpret_cast<uint4 *>(at + size_t(i) * pitch) = chunk_of(first + i);
            return;
        }
#pragma unroll 1
        for (int r = first; r < 16 && row + r < rows; r += 32 / kChunks, at += size_t(32 / kChunks) * pitch) {
            const uint4 x = chunk_of(r);
            store_outputs(at, {x.x, x.y, x.z, x.w}, outs - n, whole);
        }
    }
};

// Multiplies a tile's steps, kParts times 64 rows of this warpgroup by kOut outputs, as multiply_tile does one.
template <int kOut, int kParts, typename Pipe, typename Stage>
__device__ void multiply_parts(const Pipe &pipe, Stage &now, int steps, float (&c)[kParts][kOut / 2]) {
#pragma unroll
    for (int p = 0; p < kParts; p++)
#pragma unroll
        for (int i = 0; i < kOut / 2; i++) c[p][i] = 0;
    int before = 0;
    for (int step = 0; step < steps; step++) {
        pipe.wait_full(now);
        const uint64_t rows = factor(pipe.rows(now.slot) + Pipe::team() * kParts * 8192), weights = factor(pipe.weights(now.slot));
        begin_products();
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int p = 0; p < kParts; p++) multiply(c[p], rows + p * 512 + k * 2, weights + k * 2);
        commit_products();
        wait_products<1>();
        if (step) pipe.release(before);
        before = now.slot;
        now.next();
    }
    wait_products<0>();
#pragma unroll
    for (int p = 0; p < kParts; p++) pin(c[p]);
    pipe.release(before);
}

}  // namespace atlas

template <class P, bool kGated = false>
__device__ void linear_wide(const atlas_Linear &a, const atlas_TensorMap *in) {
    constexpr int kPieces = (P::kOut + 63) / 64, kPieceBytes = P::kOut / kPieces * 128, kShare = P::kRows / P::kAlong;
    constexpr int kTeams = P::kRows == 192 ? 3 : P::kRows > 64 ? 2 : 1, kParts = P::kRows / 64 / kTeams;
    constexpr bool kMany = kParts * P::kOut > 128, kMost = kParts * P::kOut == 256 && !kGated;  // sums that take more than a thread's share of registers
    constexpr int kWidth = kGated ? P::kOut / 2 : P::kOut;  // outputs of a tile
    static_assert((P::kOut == 32 || P::kOut % 64 == 0) && kPieces % P::kAcross == 0 && kShare % 8 == 0, "whole pieces for each block");
    using pipe_t = atlas::wide<kTeams, P::kRows, P::kOut * 128, P::kStages, P::kAcross * P::kAlong, true>;
    static_assert(atlas::launched<P, pipe_t::kThreads, pipe_t::kShared, P::kAcross * P::kAlong>::kFits);
    const pipe_t pipe;
    const int steps = atlas::tiles64(a.W.Cols), across = pipe.rank % P::kAcross, along = pipe.rank / P::kAcross;
    const int row_tiles = (a.Rows + P::kRows * P::kAcross - 1) / (P::kRows * P::kAcross), outs = kGated ? a.W.Rows / 2 : a.W.Rows, out_tiles = (outs + kWidth * P::kAlong - 1) / (kWidth * P::kAlong);
    const int first = blockIdx.x / (P::kAcross * P::kAlong), stride = gridDim.x / (P::kAcross * P::kAlong), tiles = row_tiles * out_tiles;
    atlas::release_next();
    if (pipe_t::copies()) {
        if constexpr (kMany) atlas::give_registers<kMost ? 40 : 56>();
        if (atlas::warp() == kTeams * 4 && atlas::elected()) {
            atlas::prefetch_map(in);
            atlas::stage<P::kStages> now;
            for (int i = first; i < tiles; i += stride) {
                const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
                const int row = atlas::first_row<P::kRows>(at.row * P::kAcross + across, a.Rows), out = (at.out * P::kAlong + along) * kWidth;
                const int pieces = kGated ? kPieces : max(0, min(kPieces, (outs - out + 63) / 64));
                const atlas_act *from = atlas::tile64(a.W, 0, out / 64, 0) + out % 64 * 64;
                const auto copy_weights = [&](int slot, int step) {
                    const uint32_t full = pipe.full + slot * 8;
#pragma unroll
                    for (int j = 0; j < kPieces; j++) {
                        if (j >= pieces || j % P::kAcross != across) continue;
                        const uint32_t to = pipe.weights(slot) + j * kPieceBytes;
                        const int further = kGated && j >= kPieces / 2 ? outs / 64 - kPieces / 2 : 0;
                        const atlas_act *piece = from + (size_t(j + further) * steps + step) * atlas::kTile64;
                        if constexpr (P::kAcross > 1)
                            atlas::copy_bulk_to(to, piece, kPieceBytes, full, ((1 << P::kAcross) - 1) << along * P::kAcross);
                        else
                            atlas::copy_bulk(to, piece, kPieceBytes, full);
                    }
                };
                const auto copy_rows = [&](int slot, int step) {
                    const uint32_t full = pipe.full + slot * 8, to = pipe.rows(slot) + along * kShare * 128;
                    if constexpr (P::kAlong > 1) {
                        int blocks = 0;
                        for (int j = 0; j < P::kAlong; j++) blocks |= 1 << (j * P::kAcross + across);
                        atlas::copy_box_to(to, in, step * 64, row + along * kShare, full, blocks);
                    } else {
                        atlas::copy_box(to, in, step * 64, row, full);
                    }
                };
                const int bytes = P::kAlong * atlas::box_rows(kShare, a.Rows) * 128 + pieces * kPieceBytes;
                int step = 0;
                if (i == first) {  // weights depend on no kernel before this one, if not made by it
                    const int early = min(steps, P::kStages);
                    for (; step < early; step++) {
                        atlas::arrive_expecting(pipe.full + step * 8, bytes);
                        copy_weights(step, step);
                    }
                    atlas::wait_for_previous();
                    for (step = 0; step < early; step++, now.next()) copy_rows(step, step);
                }
                for (; step < steps; step++, now.next()) {
                    atlas::wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    atlas::arrive_expecting(pipe.full + now.slot * 8, bytes);
                    copy_rows(now.slot, step);
                    copy_weights(now.slot, step);
                }
            }
        }
        __syncwarp();
    } else {
        if constexpr (kMany) atlas::take_registers<kMost ? 232 : 224>();
        atlas::stage<P::kStages> now;
        const atlas::wide_outputs to(a.Out, a.Rows, a.OutPitch, outs);
        const int t = atlas::lane() % 4;
        atlas::wait_for_previous();
        for (int i = first; i < tiles; i += stride) {
            const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
            const int number = at.row * P::kAcross + across, out = (at.out * P::kAlong + along) * kWidth;
            int row = atlas::first_row<P::kRows>(number, a.Rows) + pipe_t::team() * kParts * 64;
            if (row >= a.Rows || row + kParts * 64 <= number * P::kRows) {  // no rows, or only those of the tile before
                pipe.skip(now, steps);
                continue;
            }
            float c[kParts][P::kOut / 2];
            atlas::multiply_parts<P::kOut>(pipe, now, steps, c);
            row += atlas::warp() % 4 * 16;
#pragma unroll
            for (int p = 0; p < kParts; p++, row += 64) {
                if (a.W.Scale || a.Bias) atlas::scale_outputs<kWidth>(a, out + t * 2, c[p]);
                if constexpr (kGated) {
                    if (a.W.Scale) atlas::scale_outputs<kWidth, kWidth>(a, outs + out + t * 2, c[p]);
#pragma unroll
                    for (int j = 0; j < kWidth / 2; j += 2) atlas::pass_gates(c[p][j], c[p][j + 1], c[p][kWidth / 2 + j], c[p][kWidth / 2 + j + 1]);
                }
                to.store<kWidth>(row, out, c[p]);
            }
        }
    }
    pipe.end();
}

template <class P>
__device__ void gated_linear_wide(const atlas_GatedLinear &a, const atlas_TensorMap *in) {
    atlas_Linear plain = {};
    plain.Out = a.Out, plain.In = a.In, plain.W = a.W, plain.Rows = a.Rows, plain.OutPitch = a.W.Rows / 2;
    linear_wide<P, true>(plain, in);
}
