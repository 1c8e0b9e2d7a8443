// Strips of 16 weight rows times up to 8·kTiles rows of activations with mma.m16n8k16, weights first.
//
// A warp walks over pieces of weights: up to kUnits units of kStrips strips each. It copies them itself (copy engine) into a
// ring of kStages slots of its own, and multiplies them in order; no other warp waits for it. Activations lie in shared
// memory in tiles of 64 columns, kRowBytes a row; either all of them from the start, or those of
// a piece come with it. A sum runs along columns, 16 at a time, from the first to the last of the warp's share; how many rows
// there are, and how many strips are multiplied at a time, changes no bit.
#pragma once
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

extern __shared__ __align__(1024) uint8_t strip_shared[];

constexpr int kRowBytes = 128 + 16;  // so that eight rows meet no bank twice

// kRows: activation rows that come with each piece; none where they are there from the start.
template <atlas_Scheme kScheme, int kTiles, int kStrips, int kUnits, int kStages, int kRows = 0>
struct strip_ring {
    using unit_t = unit<kScheme>;
    static constexpr int kStrip = kUnits * unit_t::kBytes;  // bytes of a strip's part
    static constexpr int kRowTile = kRows * kRowBytes, kWeights = (kStrips * kStrip + 127) / 128 * 128;
    static constexpr int kSlot = (kWeights + kUnits * kRowTile + 127) / 128 * 128;
    static constexpr int kBytes = kStages * kSlot;

    uint8_t *slots;
    uint32_t barriers;
    int next = 0, now = 0, phase = 0;

    // ring: kBytes of this warp; barrier: 8·kStages bytes of it.
    __device__ strip_ring(uint8_t *ring, uint8_t *barrier) : slots(ring), barriers(shared_address(barrier)) {
        if (lane() == 0) {
            for (int s = 0; s < kStages; s++) init_barrier(barriers + s * 8, 1);
            fence_barriers();
        }
        __syncwarp();
    }
    // Starts copying n units from unit u on of so many strips; from(s): unit u of strip s.
    template <typename From>
    __device__ void fill(const atlas_Weight &w, const From &from, int strips, int u, int n) {
        const int bytes = unit_t::bytes(w.Cols, u, n);
        const uint32_t barrier = barriers + next * 8, slot = shared_address(slots + next * kSlot);
        if (elected()) {
            arrive_expecting(barrier, strips * bytes);
#pragma unroll
            for (int s = 0; s < kStrips; s++)
                if (s < strips) copy_units<kScheme, kUnits>(slot + s * kStrip, from(s), n, bytes, barrier);
        }
        if (++next == kStages) next = 0;
    }
    __device__ uint8_t *wait() const {
        wait_barrier(barriers + now * 8, phase);
        return slots + now * kSlot;
    }
    // All lanes are done with the slot.
    __device__ void drop() {
        __syncwarp();
        if (++now == kStages) now = 0, phase ^= 1;
    }
};

// Where a lane finds, for ldmatrix, the rows of each tile in activations that are pitch bytes a row; row r of it is lines(r).
template <int kTiles>
struct row_lanes {
    uint32_t at[kTiles];
    template <typename Lines>
    __device__ explicit row_lanes(const Lines &lines, int pitch = kRowBytes) {
#pragma unroll
        for (int j = 0; j < kTiles; j++) {
            const int r = lines(j * 8 + lane() % 8);
            at[j] = r * pitch + lane() / 8 * 16;
        }
    }
};

// c += n units of a piece, of which full is the usual number. scale(s, i) is f8block's of strip s and unit i.
template <atlas_Scheme kScheme, int kTiles, int kStrips, int kUnits, typename Scale>
__device__ void multiply_piece(const ones<kScheme> &one, const uint8_t *weights, uint32_t rows, int row_tile, const row_lanes<kTiles> &lanes, int n, int left, const Scale &scale,
                               float (&c)[kStrips][kTiles][4]) {
    constexpr int kBytes = unit<kScheme>::kBytes;
    unit_product<kScheme, kTiles, kStrips> p[2];
    const auto times = [&](unit_product<kScheme, kTiles, kStrips> &p, int i) {
        float block[kStrips];
#pragma unroll
        for (int s = 0; s < kStrips; s++) block[s] = scale(s, i);
        p.multiply(one, rows + i * row_tile, lanes.at, left - i * 64, block, c);
    };
    p[0].load(weights, kUnits * kBytes, rows, lanes.at);
    if (n == kUnits) {
#pragma unroll
        for (int i = 0; i < kUnits; i++) {
            if (i + 1 < kUnits) p[(i + 1) % 2].load(weights + (i + 1) * kBytes, kUnits * kBytes, rows + (i + 1) * row_tile, lanes.at);
            times(p[i % 2], i);
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < n; i++) {
            if (i) p[0].load(weights + i * kBytes, kUnits * kBytes, rows + i * row_tile, lanes.at);
            times(p[0], i);
        }
    }
}

// Where element i of a tile's 128 results lies: lane i%32 holds it in register i/32.
__device__ inline int strip_row(int i) { return i % 32 / 4 + i / 64 * 8; }
__device__ inline int strip_column(int i) { return i % 4 * 2 + i / 32 % 2; }

// One warp's part of the sums, 128 floats a tile.
template <int kStrips, int kTiles>
__device__ void put_sums(float *part, const float (&c)[kStrips][kTiles][4]) {
#pragma unroll
    for (int s = 0; s < kStrips; s++)
#pragma unroll
        for (int j = 0; j < kTiles; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) part[(s * kTiles + j) * 128 + r * 32 + lane()] = c[s][j][r];
}

// f8block's scales of a warp's units of a strip: lane l keeps that of unit begin+l.
template <atlas_Scheme kScheme>
struct block_scales {
    float mine = 0;
    __device__ void load(const atlas_Weight &w, int m, int strip, int begin, int end) {
        if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK)
            if (begin + lane() < end) mine = frag<kScheme>::block_scale(w, m, strip, (begin + lane()) / 2);
    }
    __device__ float of(const atlas_Weight &w, int m, int strip, int begin, int u) const {
        if constexpr (kScheme == ATLAS_SCHEME_F8BLOCK)
            return u - begin < 32 ? __shfl_sync(kAllLanes, mine, u - begin) : frag<kScheme>::block_scale(w, m, strip, u / 2);
        return 0;
    }
};

// Copies 64 columns of a row, from column k on, into a tile of activations: eight lanes, chunk each. Null reads as zeros.
__device__ inline void stage_chunk(uint8_t *tile, int r, int chunk, const atlas_act *row, int k, int cols, bool whole) {
    uint8_t *to = tile + r * kRowBytes + chunk * 16;
    k += chunk * 8;
    const bool there = row && k < cols;
    if (whole)
        copy_async(shared_address(to), there ? row + k : nullptr, there);
    else
        *reinterpret_cast<uint4 *>(to) = there ? load8_raw(row + k, cols - k, false) : uint4{};
}

}  // namespace atlas
