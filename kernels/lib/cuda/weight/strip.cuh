// A strip: 16 rows of weights (layout rows8) times up to 8·kTiles rows of activations, by one warp with mma.m16n8k16.
//
// Lanes load vectors of eight along k straight from memory, weights and activations alike; which k an mma calls its
// first does not matter as long as both sides agree. So no shared memory, and a row's sum depends on no other row.
// Reads kSlabs slabs of 32 columns ahead: the loads that fill the memory system.
#pragma once
#include "lib/cuda/ptx/mma.cuh"
#include "lib/cuda/weight/rows8.cuh"

namespace atlas {

constexpr int kSlabs = 4;
constexpr int kGroup = kSlabs * 32;  // columns of one step

// Two weight rows of a lane, g and g+8 of the strip, and what was loaded of them.
struct strip_weights {
    const atlas_act *low, *high;
    int pitch;
    uint4 w[kSlabs][2];

    __device__ void load(int group) {
#pragma unroll
        for (int s = 0; s < kSlabs; s++) {
            const int k = group * kGroup + s * 32 + lane() % 4 * 8;
            const bool there = k < pitch;
            w[s][0] = there ? load_once(low + k) : uint4{};
            w[s][1] = there ? load_once(high + k) : uint4{};
        }
    }
};

// Row lane()/4 of each tile; null reads as zeros.
template <int kTiles>
struct strip_rows {
    const atlas_act *row[kTiles];
};

// Adds the products over groups group, group+step, …; the first of them is loaded already.
template <int kTiles>
__device__ void multiply_strip(strip_weights &weights, const strip_rows<kTiles> &rows, int cols, int group, int step, float (&c)[kTiles][4]) {
    const int groups = (weights.pitch + kGroup - 1) / kGroup;
    const bool whole = cols % 8 == 0;
    for (; group < groups; group += step) {
        uint4 w[kSlabs][2];
#pragma unroll
        for (int s = 0; s < kSlabs; s++) w[s][0] = weights.w[s][0], w[s][1] = weights.w[s][1];
        if (group + step < groups) weights.load(group + step);
#pragma unroll
        for (int s = 0; s < kSlabs; s++) {
            const int k = group * kGroup + s * 32 + lane() % 4 * 8;
#pragma unroll
            for (int j = 0; j < kTiles; j++) {
                const uint4 x = rows.row[j] && k < cols ? load8_raw(rows.row[j] + k, cols - k, whole) : uint4{};
                mma(c[j], w[s][0].x, w[s][1].x, w[s][0].y, w[s][1].y, x.x, x.y);
                mma(c[j], w[s][0].z, w[s][1].z, w[s][0].w, w[s][1].w, x.z, x.w);
            }
        }
    }
}

// Where element i of a tile's 128 results lies: lane i%32 holds it in register i/32.
__device__ inline int strip_row(int i) { return i % 32 / 4 + i / 64 * 8; }
__device__ inline int strip_column(int i) { return i % 4 * 2 + i / 32 % 2; }

// Partial sums of kWarps warps that share out the groups.
template <int kWarps, int kTiles>
struct strip_sums {
    float part[kWarps][kTiles * 128];

    __device__ void put(const float (&c)[kTiles][4]) {
#pragma unroll
        for (int j = 0; j < kTiles; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) part[warp()][j * 128 + r * 32 + lane()] = c[j][r];
        __syncthreads();
    }
    // In the order of warps.
    __device__ float get(int tile, int i) const {
        float sum = 0;
        for (int w = 0; w < kWarps; w++) sum += part[w][tile * 128 + i];
        return sum;
    }
};

}  // namespace atlas
