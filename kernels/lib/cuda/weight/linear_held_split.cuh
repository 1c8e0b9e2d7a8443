// Linear and LinearAdd of at most 16 rows, any scheme, for matrices that fit the registers of the whole device. As in linear_held.cuh, weights
// are loaded and decoded while the kernel before this one runs. A cluster of kSplit blocks shares out the columns, so that a block reads
// a part of the rows alone.
//
// A tile is kStrips strips of 16 outputs, which are a cluster's. In a block kTeams warps share a strip's columns, kUnits units of 64 each,
// of which kReady are decoded before there are rows. Sums of 16 outputs and eight rows, a quad, meet in block quad % kSplit of the cluster,
// which adds them in the order of columns.
//
// Grid kSplit·⌈W.Rows/(16·kStrips)⌉; cluster kSplit; 32·kStrips·kTeams threads. W.Cols%64 == 0, at most kSplit·kTeams·kUnits·64; W.Rows%16 == 0.
// Dynamic shared memory: held_split<…>::kShared.
#pragma once
#include "lib/cuda/ptx/cluster.cuh"
#include "lib/cuda/ptx/wgmma.cuh"
#include "lib/cuda/weight/linear_held.cuh"

namespace atlas {

template <int kStrips, int kTeams, int kUnits, int kSplit>
struct held_split {
    static constexpr int kRows = 16, kTiles = kRows / 8, kThreads = kStrips * kTeams * 32;
    static constexpr int kCols = kTeams * kUnits * 64, kPitch = kCols * 2 + 16;  // of a block
    static constexpr int kQuads = kStrips * kTiles, kMine = (kQuads + kSplit - 1) / kSplit, kParts = kSplit * kTeams;
    static constexpr int kPartsAt = kRows * kPitch, kBarrierAt = kPartsAt + kMine * kParts * 512, kShared = kBarrierAt + 16;
    static_assert(kQuads >= kSplit && kMine <= kStrips * kTeams, "every block finishes quads, a warp one at most");
};

}  // namespace atlas

template <class P, typename Args>
__device__ void linear_held_split(const Args &a) {
    using namespace atlas;
    using shape = held_split<P::kStrips, P::kTeams, P::kUnits, P::kSplit>;
    static_assert(launched<P, shape::kThreads, shape::kShared, P::kSplit>::kFits);
    constexpr int kTiles = shape::kTiles;
    const atlas_Weight &w = a.W;
    const int rank = cluster_rank(), tile = blockIdx.x / P::kSplit, team = warp() % P::kTeams, part = rank * P::kTeams + team;
    const int strip = tile * P::kStrips + warp() / P::kTeams, first = part * P::kUnits;
    const uint32_t rows_at = shared_address(held_shared), parts_at = rows_at + shape::kPartsAt;
    const uint32_t parts_there = rows_at + shape::kBarrierAt, rows_there = parts_there + 8;
    const int column = rank * shape::kCols;  // the block's first
    release_next();
    held_units<P::kScheme, P::kUnits, P::kReady> weights;
    weights.load(w, 0, strip, strip * 16 < w.Rows, [&](int i) { return min(first + i, w.Cols / 64 - 1); });
    if (threadIdx.x == 0) {
        init_barrier(parts_there, 1), init_barrier(rows_there, 1), fence_barriers();
        if (column < w.Cols) arrive_expecting(rows_there, a.Rows * min(shape::kCols, w.Cols - column) * 2);
        arrive_expecting(parts_there, (shape::kQuads - rank + P::kSplit - 1) / P::kSplit * shape::kParts * 512);
    }
    __syncwarp();
    arrive_cluster();
    // What this warp finishes: a lane has outputs n and n+8 of two rows, and stores outputs at, at+1 and the same plus eight of row r.
    const int quad = warp() * P::kSplit + rank, t = lane() % 4, g = lane() / 4;
    const int base = (tile * P::kStrips + quad / kTiles) * 16, n = base + g, r = quad % kTiles * 8 + g;
    const bool finishes = warp() < shape::kMine && quad < shape::kQuads && base < w.Rows;
    const bool pairs = a.OutPitch % 2 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 4 == 0;
    uint16_t *const out = reinterpret_cast<uint16_t *>(a.Out + size_t(r) * a.OutPitch + base + 2 * t);
    float scale[2] = {}, bias[2] = {};
    if (finishes)
#pragma unroll
        for (int h = 0; h < 2; h++) scale[h] = row_scale(w, 0, n + h * 8) * unit<P::kScheme>::kFactor, bias[h] = a.Bias ? a.Bias[n + h * 8] : 0.0f;
    weights.decode();
    wait_cluster();  // barriers are there

    wait_for_previous();
    if (warp() == 0 && lane() < a.Rows && column < w.Cols)
        copy_bulk(rows_at + lane() * shape::kPitch, a.In + size_t(lane()) * w.Cols + column, min(shape::kCols, w.Cols - column) * 2, rows_there);
    uint32_t before[2] = {};
    if (kAddsTo<Args> && finishes && r < a.Rows)
#pragma unroll
        for (int h = 0; h < 2; h++) before[h] = pairs ? *reinterpret_cast<const uint32_t *>(out + h * 8) : out[h * 8] | uint32_t(out[h * 8 + 1]) << 16;
    if (column < w.Cols) wait_barrier(rows_there, 0);

    float c[kTiles][4] = {};
    const uint32_t lane_at = rows_at + lane() % 8 * shape::kPitch + lane() / 8 * 16 + team * P::kUnits * 128;
#pragma unroll
    for (int i = 0; i < P::kUnits; i++) {
        if ((first + i) * 64 >= w.Cols) break;  // nobody stored rows there
#pragma unroll
        for (int j = 0; j < kTiles; j++) {
            uint32_t x[2][4];
            load_matrices(x[0], lane_at + j * 8 * shape::kPitch + i * 128), load_matrices(x[1], lane_at + j * 8 * shape::kPitch + i * 128 + 64);
            weights.multiply(i, x, c[j]);
        }
    }
#pragma unroll
    for (int j = 0; j < kTiles; j++) {
        const int q = warp() / P::kTeams * kTiles + j;
        store_counted(address_in(parts_at + ((q / P::kSplit * shape::kParts + part) * 32 + lane()) * 16, q % P::kSplit), c[j], address_in(parts_there, q % P::kSplit));
    }
    if (!(warp() < shape::kMine && quad < shape::kQuads)) return;
    wait_barrier(parts_there, 0);
    float sum[4] = {};
#pragma unroll
    for (int p = 0; p < shape::kParts; p++) {
        const uint4 x = load_shared(parts_at + ((warp() * shape::kParts + p) * 32 + lane()) * 16);
        sum[0] += __uint_as_float(x.x), sum[1] += __uint_as_float(x.y), sum[2] += __uint_as_float(x.z), sum[3] += __uint_as_float(x.w);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t u = transpose_matrix(narrow(fmaf(sum[2 * h], scale[h], bias[h]), fmaf(sum[2 * h + 1], scale[h], bias[h])));
        if (kAddsTo<Args>) u = plus(before[h], u);
        if (!finishes || r >= a.Rows) continue;
        if (pairs) {
            *reinterpret_cast<uint32_t *>(out + h * 8) = u;
        } else {
            out[h * 8] = uint16_t(u), out[h * 8 + 1] = uint16_t(u >> 16);
        }
    }
}
