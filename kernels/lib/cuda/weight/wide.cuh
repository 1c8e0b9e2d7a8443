// The pipeline of kernels for many rows: a warpgroup copies, kTeams warpgroups multiply.
//
// A stage is 64 columns: kRows rows of activations in the 128-byte swizzle, and kWeights bytes of weights. Rows that are
// gathered are copied by a warpgroup, 16 bytes at a time; where they follow one another one thread copies boxes of a tensor
// map. Sums run along columns, 16 at a time, in one order, whatever the shape of the tiles.
#pragma once
#include "lib/cuda/ptx/cluster.cuh"
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

// kOthers: threads that arrive for each stage besides the one that says how many bytes come. kReads: lanes read stages, not just tensor
// cores; then each lets go for itself.
template <int kTeams, int kRows, int kWeights, int kStages, int kCluster, bool kMapped, bool kReads = false, int kOthers = kMapped ? 0 : 128>
struct wide {
    static_assert(kRows % 64 == 0 && kWeights % 1024 == 0, "whole swizzles");
    static constexpr int kReleases = kTeams * 4 * (kReads ? 31 + kCluster : kCluster);
    static constexpr int kThreads = kTeams * 128 + 128, kRowBytes = kRows * 128, kStageBytes = kRowBytes + kWeights;
    static constexpr int kShared = kStages * (kStageBytes + 16) + 1024;  // dynamic bytes
    static_assert(kStages > 2 && kShared <= 227 * 1024, "fits");

    uint32_t data, full, empty;
    int rank;

    __device__ wide() : rank(kCluster > 1 ? cluster_rank() : 0) {
        data = (uint32_t(__cvta_generic_to_shared(wide_shared)) + 1023) & ~1023u;
        full = data + kStages * kStageBytes;
        empty = full + kStages * 8;
        if (threadIdx.x == 0) {
            for (int s = 0; s < kStages; s++) init_barrier(full + s * 8, 1 + kOthers), init_barrier(empty + s * 8, kReleases);
            fence_barriers();
        }
        if constexpr (kCluster > 1)
            arrive_cluster(), wait_cluster();
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
    __device__ void wait_full(const stage<kStages> &now) const {
        wait_barrier(full + now.slot * 8, now.phase);
        if constexpr (!kMapped) fence_shared();  // here, since in threads that copy it would wait for copies on their way
    }

    // Each warp that multiplies calls it once it needs the stage no more.
    __device__ void release(int slot) const {
        if constexpr (kReads || kCluster == 1) {
            if (kReads || lane() == 0) arrive(empty + slot * 8);
        }
        if constexpr (kCluster > 1) {
            if (lane() < kCluster && !(kReads && lane() == rank)) arrive_at(empty + slot * 8, lane());
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

// Copies the steps of a tile of gathered rows, by a warpgroup: thread i chunk i%8 of rows i/8, i/8+16, …. row(j) points to row
// i/8+16j, or is null; in points to any memory. All call weights(step, to, barrier), which says how many bytes come and copies
// them.
template <int kRows, typename Pipe, typename Stage, typename Weights, typename Row>
__device__ void gather_tile(const Pipe &pipe, Stage &now, int steps, int cols, const atlas_act *in, const Weights &weights, const Row &row) {
    const bool whole = cols % 8 == 0 && reinterpret_cast<uintptr_t>(in) % 16 == 0;
    const int thread = threadIdx.x % 128, chunk = thread % 8, to = thread / 8 * 128 + (chunk ^ thread / 8 % 8) * 16;
    for (int step = 0, k = chunk * 8; step < steps; step++, k += 64, now.next()) {
        const uint32_t full = pipe.full + now.slot * 8, at = pipe.rows(now.slot) + to;
        wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
        weights(step, pipe.weights(now.slot), full);
        if (whole) {
#pragma unroll
            for (int j = 0; j < kRows / 16; j++) {
                const atlas_act *from = row(j);
                const bool there = from && k < cols;
                copy_async(at + j * 2048, there ? from + k : in, there);
            }
            arrive_after_copies(full);
        } else {
#pragma unroll 1
            for (int j = 0; j < kRows / 16; j++) {
                const atlas_act *from = nullptr;  // row(j), of pointers that lie in registers
#pragma unroll
                for (int l = 0; l < kRows / 16; l++)
                    if (l == j) from = row(l);
                store_shared(at + j * 2048, from && k < cols ? load8_raw(from + k, cols - k, false) : uint4{});
            }
            arrive(full);
        }
    }
}

// Copies bf16 weights of a stage: kOut/64 tiles. tile(i) points to the first column of tile i, or is null.
template <int kOut, typename Tile>
struct copy_tiles {
    static_assert(kOut % 64 == 0, "whole tiles");
    Tile tile;

    __device__ void operator()(int step, uint32_t to, uint32_t barrier) const {
        if (warp() % 4 || !elected()) return;
        int bytes = 0;
#pragma unroll
        for (int i = 0; i < kOut / 64; i++)
            if (tile(i)) bytes += 8192;
        arrive_expecting(barrier, bytes);
#pragma unroll
        for (int i = 0; i < kOut / 64; i++)
            if (const atlas_act *from = tile(i)) copy_bulk(to + i * 8192, from + size_t(step) * kTile64, 8192, barrier);
    }
};
template <int kOut, typename Tile>
__device__ copy_tiles<kOut, Tile> tiles_copied(const Tile &tile) {
    return {tile};
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

// What gates let pass, in their place; all are rounded as they would be stored, by instructions that take two.
__device__ inline void pass_gates(float &gate, float &next_gate, float x, float next) {
    const uint32_t gates = narrow(gate, next_gate), xs = narrow(x, next);
    gate = silu(__uint_as_float(gates << 16)) * __uint_as_float(xs << 16);
    next_gate = silu(__uint_as_float(gates & 0xffff0000u)) * __uint_as_float(xs & 0xffff0000u);
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
