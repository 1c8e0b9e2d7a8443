// Strips of 16 weight rows times up to 8·kTiles rows of activations with mma.m16n8k16, weights first.
//
// A warp walks over pieces of weights: up to kUnits units of kStrips strips each. It copies them itself (copy engine) into a
// ring of kStages slots of its own, and multiplies them in order; no other warp waits for it. Activations lie in shared
// memory in tiles of 64 columns, 128 bytes a row, chunks turned by row % 8; either all of them from the start, or those of
// a piece come with it. A sum runs along columns, 16 at a time, from the first to the last of the warp's share; how many rows
// there are, and how many strips are multiplied at a time, changes no bit.
#pragma once
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/ptx/cluster.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

extern __shared__ __align__(1024) uint8_t strip_shared[];

__device__ inline uint32_t shared_address(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }

// kRows: activation rows that come with each piece; none where they are there from the start.
template <atlas_Scheme kScheme, int kTiles, int kStrips, int kUnits, int kStages, int kRows = 0>
struct strip_ring {
    using unit_t = unit<kScheme>;
    static constexpr int kCopies = unit_t::kPitch == unit_t::kBytes ? 1 : kUnits;  // of a strip's part of a piece
    static constexpr int kStrip = kUnits * unit_t::kBytes;                        // bytes of a strip's part
    static constexpr int kRowTile = kRows * 128, kWeights = (kStrips * kStrip + 127) / 128 * 128;
    static constexpr int kSlot = kWeights + kUnits * kRowTile;
    static constexpr int kBytes = kStages * kSlot;
    static_assert(kCopies * kStrips <= 32, "a lane per copy");

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
    // The strip of a piece, and its unit, of which this lane starts the copy.
    __device__ static int strip() { return lane() / kCopies; }
    __device__ static int copy() { return lane() % kCopies; }
    // Starts copying n units from unit u on of so many strips; from: unit u of strip().
    __device__ void fill(const atlas_Weight &w, const uint8_t *from, int strips, int u, int n) {
        const int bytes = unit_t::bytes(w.Cols, u, n);
        const uint32_t barrier = barriers + next * 8;
        if (lane() == 0) arrive_expecting(barrier, strips * bytes);
        __syncwarp();
        if (strip() < strips && (kCopies == 1 || copy() < n))
            copy_bulk(shared_address(slots + next * kSlot + strip() * kStrip + copy() * unit_t::kBytes), from + size_t(copy()) * unit_t::kPitch,
                      kCopies == 1 ? bytes : unit_t::kBytes, barrier);
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

// Where a lane finds, for ldmatrix, the rows of each tile in a tile of activations; row r of it is lines(r).
template <int kTiles>
struct row_lanes {
    uint32_t at[kTiles];
    template <typename Lines>
    __device__ explicit row_lanes(const Lines &lines) {
#pragma unroll
        for (int j = 0; j < kTiles; j++) {
            const int r = lines(j * 8 + lane() % 8);
            at[j] = r * 128 + ((lane() / 8) ^ (r % 8)) * 16;
        }
    }
};

// c += a unit of strips times activations. left: columns that there are; block: f8block's scale of each strip.
template <atlas_Scheme kScheme, int kTiles, int kStrips>
__device__ void multiply_unit(const uint8_t *weights, int strip_bytes, uint32_t rows, const row_lanes<kTiles> &lanes, int left,
                              const float (&block)[kStrips], float (&c)[kStrips][kTiles][4]) {
    using unit_t = unit<kScheme>;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (unit_t::kHalves && half && left <= 32) break;
        uint32_t x[kTiles][4];
#pragma unroll
        for (int j = 0; j < kTiles; j++) load_matrices(x[j], rows + (lanes.at[j] ^ half * 64));
#pragma unroll
        for (int s = 0; s < kStrips; s++) {
            unit_t u;
            u.load(weights + s * strip_bytes);
            uint32_t a[2][4];
            u.fragments(half, a);
            const float2 factor = u.factors(half, block[s]);
#pragma unroll
            for (int j = 0; j < kTiles; j++) {
                if constexpr (!unit_t::kPartial) {
                    mma(c[s][j], a[0][0], a[0][1], a[0][2], a[0][3], x[j][0], x[j][1]);
                    mma(c[s][j], a[1][0], a[1][1], a[1][2], a[1][3], x[j][2], x[j][3]);
                } else {
                    float p[4] = {};
                    mma(p, a[0][0], a[0][1], a[0][2], a[0][3], x[j][0], x[j][1]);
                    mma(p, a[1][0], a[1][1], a[1][2], a[1][3], x[j][2], x[j][3]);
#pragma unroll
                    for (int i = 0; i < 4; i++) c[s][j][i] = fmaf(p[i], i < 2 ? factor.x : factor.y, c[s][j][i]);
                    if constexpr (kScheme == ATLAS_SCHEME_Q4_1) {
                        constexpr uint32_t kOnes = 0x3f803f80;
                        const float2 least = u.minima(half);
                        float sums[4] = {};  // of activations, the same in all rows
                        mma(sums, kOnes, kOnes, kOnes, kOnes, x[j][0], x[j][1]);
                        mma(sums, kOnes, kOnes, kOnes, kOnes, x[j][2], x[j][3]);
#pragma unroll
                        for (int i = 0; i < 4; i++) c[s][j][i] = fmaf(sums[i], i < 2 ? least.x : least.y, c[s][j][i]);
                    }
                }
            }
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
    uint8_t *to = tile + r * 128 + (chunk ^ r % 8) * 16;
    k += chunk * 8;
    const bool there = row && k < cols;
    if (whole)
        copy_async(shared_address(to), there ? row + k : nullptr, there);
    else
        *reinterpret_cast<uint4 *>(to) = there ? load8_raw(row + k, cols - k, false) : uint4{};
}

}  // namespace atlas
