// The pipeline of kernels for many rows: a warpgroup copies, kTeams warpgroups multiply.
//
// A stage is 64 columns: kRows rows of activations, gathered by asynchronous copies into the swizzle, and kWeights bytes of
// weights, copied in large pieces. The blocks of a cluster work on the same outputs: each copies its share of the weights to
// all. Sums run along columns, 16 at a time, in one order, whatever the shape of the tiles.
#pragma once
#include "lib/cuda/ptx/barrier.cuh"
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/ptx/wgmma.cuh"
#include "lib/cuda/weight/tile64.cuh"

namespace atlas {

extern __shared__ __align__(1024) uint8_t wide_shared[];

// Slot and phase of a step.
template <int kStages>
struct stage {
    int slot = 0, phase = 0;
    __device__ void next() {
        if (++slot == kStages) slot = 0, phase ^= 1;
    }
};

template <int kTeams, int kRows, int kWeights, int kStages, int kCluster>
struct wide {
    static_assert(kRows % 64 == 0 && kWeights % 1024 == 0, "whole swizzles");
    static constexpr int kThreads = kTeams * 128 + 128, kRowBytes = kRows * 128, kStageBytes = kRowBytes + kWeights;
    static constexpr int kLag = kStages > 3 ? 2 : 1;  // steps of rows on their way; two more are being multiplied
    static constexpr int kShared = kStages * (kStageBytes + 16) + 1024;  // dynamic bytes
    static_assert(kLag + 2 <= kStages && kShared <= 227 * 1024, "fits");

    uint32_t data, full, empty;
    int rank;

    __device__ wide() : rank(kCluster > 1 ? cluster_rank() : 0) {
        data = (uint32_t(__cvta_generic_to_shared(wide_shared)) + 1023) & ~1023u;
        full = data + kStages * kStageBytes;
        empty = full + kStages * 8;
        if (threadIdx.x == 0) {
            for (int s = 0; s < kStages; s++) init_barrier(full + s * 8, 5), init_barrier(empty + s * 8, kTeams * 4 * kCluster);
            fence_barriers();
        }
        if constexpr (kCluster > 1)
            sync_cluster();
        else
            __syncthreads();
    }
    // No block ends before the others of the cluster stop using its barriers.
    __device__ void end() const {
        if constexpr (kCluster > 1) sync_cluster();
    }
    __device__ static bool copies() { return threadIdx.x >= kTeams * 128; }
    __device__ static int team() { return threadIdx.x / 128; }

    __device__ uint32_t rows(int slot) const { return data + slot * kStageBytes; }
    __device__ uint32_t weights(int slot) const { return rows(slot) + kRowBytes; }
    __device__ void wait_full(const stage<kStages> &now) const { wait_barrier(full + now.slot * 8, now.phase); }

    // Each warp that multiplies calls it once it needs the stage no more.
    __device__ void release(int slot) const {
        if constexpr (kCluster > 1) {
            if (lane() < kCluster) arrive_at(empty + slot * 8, lane());
        } else {
            if (lane() == 0) arrive(empty + slot * 8);
        }
    }
    // A tile of which a warp multiplies nothing.
    __device__ void skip(stage<kStages> &now, int steps) const {
        for (int step = 0; step < steps; step++) {
            wait_full(now);
            release(now.slot);
            now.next();
        }
    }
};

// What the warpgroup that copies keeps.
template <typename Pipe, int kRows, int kStages>
struct wide_copies {
    static constexpr int kPerThread = kRows / 16;  // rows of which a thread copies one chunk each
    const Pipe &pipe;
    const atlas_act *in;  // the activations
    stage<kStages> now, copied;
    int begun = 0, early = 0;  // steps, of all tiles

    __device__ wide_copies(const Pipe &pipe, const atlas_act *in) : pipe(pipe), in(in) {}

    // Before anything else: weights of the first tile, which depend on no kernel before this one. The first warp calls
    // weights(step, to, barrier), which says how many bytes come and copies them.
    template <typename Weights>
    __device__ void start(int steps, const Weights &weights) {
        early = min(steps, kStages);
        if (threadIdx.x % 128 < 32)
            for (int s = 0; s < early; s++) weights(s, pipe.weights(s), pipe.full + s * 8);
    }
    // A tile. Thread i copies chunk i%8 of rows i/8, i/8+16, …: row(j) points to row i/8+16j, or is null.
    template <typename Weights, typename Row>
    __device__ void tile(int steps, int cols, bool whole, const Weights &weights, const Row &row) {
        const int thread = threadIdx.x % 128, chunk = thread % 8, to = thread / 8 * 128 + (chunk ^ thread / 8 % 8) * 16;
        for (int step = 0, k = chunk * 8; step < steps; step++, k += 64) {
            wait_barrier_cluster(pipe.empty + now.slot * 8, now.phase ^ 1);
            if (begun >= early && thread < 32) weights(step, pipe.weights(now.slot), pipe.full + now.slot * 8);
            const uint32_t at = pipe.rows(now.slot) + to;
            if (whole) {
#pragma unroll
                for (int j = 0; j < kPerThread; j++) {
                    const atlas_act *from = row(j);
                    const bool there = from && k < cols;
                    copy_async(at + j * 2048, there ? from + k : in, there);
                }
            } else {
#pragma unroll 1
                for (int j = 0; j < kPerThread; j++) {
                    const atlas_act *from = nullptr;  // row(j), of pointers that lie in registers
#pragma unroll
                    for (int l = 0; l < kPerThread; l++)
                        if (l == j) from = row(l);
                    store_shared(at + j * 2048, from && k < cols ? load8_raw(from + k, cols - k, false) : uint4{});
                }
            }
            commit_copies();
            if (begun++ >= Pipe::kLag) {
                wait_copies<Pipe::kLag>();
                arrived();
            }
            now.next();
        }
    }
    // After the last tile.
    __device__ void finish() {
        wait_copies<0>();
        for (int i = min(begun, Pipe::kLag); i > 0; i--) arrived();
    }

  private:
    __device__ void arrived() {
        fence_shared();
        __syncwarp();
        if (lane() == 0) arrive(pipe.full + copied.slot * 8);
        copied.next();
    }
};

// bf16 weights of a stage: kOut/64 tiles, each block of the cluster copying its share. tile(i) is tile i at column 0, or null.
template <int kOut, int kCluster, typename Tile>
struct copy_tiles {
    int rank;
    Tile tile;

    __device__ void operator()(int step, uint32_t to, uint32_t barrier) const {
        static_assert(kOut % 64 == 0 && kOut / 64 % kCluster == 0, "whole tiles for each block");
        if (lane() != 0) return;
        int bytes = 0;
#pragma unroll
        for (int i = 0; i < kOut / 64; i++)
            if (tile(i)) bytes += 8192;
        arrive_expecting(barrier, bytes);
#pragma unroll
        for (int i = 0; i < kOut / 64; i++) {
            const atlas_act *from = tile(i);
            if (!from || (kCluster > 1 && i % kCluster != rank)) continue;
            if constexpr (kCluster > 1)
                copy_bulk_to(to + i * 8192, from + size_t(step) * kTile64, 8192, barrier, (1 << kCluster) - 1);
            else
                copy_bulk(to + i * 8192, from + size_t(step) * kTile64, 8192, barrier);
        }
    }
};
template <int kOut, int kCluster, typename Tile>
__device__ copy_tiles<kOut, kCluster, Tile> tiles_copied(int rank, const Tile &tile) {
    return {rank, tile};
}

// Multiplies a tile's steps, 64 rows of this warpgroup by kOut outputs.
template <int kOut, typename Pipe, typename Stage>
__device__ void multiply_tile(const Pipe &pipe, Stage &now, int steps, float (&c)[kOut / 2]) {
#pragma unroll
    for (int i = 0; i < kOut / 2; i++) c[i] = 0;
    int before = 0;
    for (int step = 0; step < steps; step++) {
        pipe.wait_full(now);
        const uint64_t rows = factor(pipe.rows(now.slot) + Pipe::team() * 8192), weights = factor(pipe.weights(now.slot));
        begin_products();
#pragma unroll
        for (int k = 0; k < 4; k++) multiply(c, rows + k * 2, weights + k * 2);
        commit_products();
        wait_products<1>();
        if (step) pipe.release(before);
        before = now.slot;
        now.next();
    }
    wait_products<0>();
    pin(c);
    pipe.release(before);
}

// Between the four lanes of a quad: word w of lane t becomes word t of lane w.
__device__ inline void transpose_quad(uint32_t (&u)[4]) {
    const int t = lane() % 4;
#pragma unroll
    for (int d = 1; d <= 2; d *= 2)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t &low = u[d == 1 ? 2 * i : i], &high = u[d == 1 ? 2 * i + 1 : i + 2];
            const uint32_t got = __shfl_xor_sync(kAllLanes, t & d ? low : high, d);
            (t & d ? low : high) = got;
        }
}

// Eight outputs from out on, of which left are in the matrix.
__device__ inline void store_outputs(atlas_act *out, const uint32_t (&u)[4], int left, bool whole) {
    if (whole && left >= 8) {
        *reinterpret_cast<uint4 *>(out) = {u[0], u[1], u[2], u[3]};
        return;
    }
    uint16_t *to = reinterpret_cast<uint16_t *>(out);
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < left) to[i] = uint16_t(u[i / 2] >> i % 2 * 16);
}

}  // namespace atlas
