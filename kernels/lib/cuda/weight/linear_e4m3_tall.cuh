// Linear and GatedLinear for prompts and f8block weights, activations in e4m3. Weights are unpacked into scratch memory first, as
// wgmma reads them: so many rows take them that this costs little, and tensor cores wait for no one's decoding. A tile is 128 rows by
// two times 128 outputs; at 128 by 128, blocks would ask the L2 cache for more than it gives. Gated, the second 128 are what the first gate.
//
// First prepare_linear: block kThreads threads; ceil(Rows*W.Cols/(16*kThreads*kEach)) blocks quantise activations, then blocks of a warp
// for every kEach times 128 columns of a strip unpack weights. Then linear_e4m3_tall: block 384 threads, min_blocks 1; cluster kCluster,
// 1 or 2, blocks next to one another along rows, which share weights; dynamic shared memory atlas::e4m3_tall<…>::kShared; grid any
// multiple of the cluster, at most a block per tile, of which there are kCluster*ceil(Rows/(128*kCluster))*ceil(W.Rows/256).
// W.Cols%128 == 0, In aligned to 16 bytes; gated, W.Rows%256 == 0. Scratch memory: that of linear_e4m3.cuh, then W.Rows rounded up to
// 256, times W.Cols/128*128.25. Bits are those of kParts 1 there.
#pragma once
#include "lib/cuda/weight/e4m3_wide.cuh"
#include "lib/cuda/weight/linear_wide.cuh"

namespace atlas {

// Codes and scales of the weights, after those of the activations: of every 128 columns the rows together, in the 128-byte swizzle; then
// scales as [columns/128, strips]. Rows are rounded up to 256, what is past the matrix holds anything.
struct e4m3_weights {
    uint8_t *codes;
    float *scales;
    int rows;

    __device__ e4m3_weights(const e4m3_tiles &in, int rows, int cols) : rows((rows + 255) / 256 * 256) {
        codes = reinterpret_cast<uint8_t *>(in.scales + size_t(cols / 128) * in.rows);
        scales = reinterpret_cast<float *>(codes + size_t(this->rows) * cols);
    }
    __device__ uint8_t *tile(int block, int row) const { return codes + (size_t(block) * rows + row) * 128; }
    __device__ float *scale(int block, int row) const { return scales + size_t(block) * (rows / 16) + row / 16; }
};

// Unpacks kEach times 128 columns of a strip, by one warp.
template <int kEach>
__device__ void unpack_strip(const e4m3_weights &to, const atlas_Weight &w, int strip, int block) {
    const int blocks = w.Cols / 128, g = lane() / 4, t = lane() % 4;
    const uint4 *from = reinterpret_cast<const uint4 *>(frag<ATLAS_SCHEME_F8BLOCK>::strip(w, 0, strip)) + lane();
    const float scale = lane() < kEach && block + lane() < blocks ? strip_scales<ATLAS_SCHEME_F8BLOCK>(w, 0, strip)[block + lane()] : 0.0f;
    uint4 codes[kEach][4];
#pragma unroll
    for (int e = 0; e < kEach; e++)
#pragma unroll
        for (int k = 0; k < 4; k++) codes[e][k] = from[min(block + e, blocks - 1) * 128 + k * 32];
#pragma unroll
    for (int e = 0; e < kEach; e++) {
        if (block + e >= blocks) return;
        uint32_t a[4][4];
#pragma unroll
        for (int k = 0; k < 4; k++) fragments_e4m3(codes[e][k], a[k]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint8_t *row = to.tile(block + e, strip * 16 + h * 8 + g);
#pragma unroll
            for (int q = 0; q < 2; q++) {  // chunks 4q … 4q+3 of 16 columns, of which each lane has a word
                uint32_t u[4] = {a[2 * q][h], a[2 * q][2 + h], a[2 * q + 1][h], a[2 * q + 1][2 + h]};
                transpose_quad(u);
                *reinterpret_cast<uint4 *>(row + ((4 * q + t) ^ g) * 16) = {u[0], u[1], u[2], u[3]};
            }
        }
        if (lane() == e) *to.scale(block + e, strip * 16) = scale;
    }
}

// A stage is 128 columns: 128 rows, 256 weights, then the scales of both.
template <int kStages, int kCluster>
struct e4m3_tall : wide<2, 128, 256 * 128 + 1024, kStages, kCluster, true> {
    using base = wide<2, 128, 256 * 128 + 1024, kStages, kCluster, true>;
    __device__ uint32_t row_scales(int slot) const { return this->weights(slot) + 256 * 128; }
    __device__ uint32_t weight_scales(int slot) const { return row_scales(slot) + 512; }
};

// A warpgroup's sums of 64 rows by two times 128 outputs. Products of each 128 columns are summed by themselves, then added by fma
// with the product of both scales.
struct tall_sums {
    float part[2][64];

    template <typename Pipe, typename Stage>
    __device__ void multiply(const Pipe &pipe, Stage &now, const turns &turn, int blocks) {
#pragma unroll
        for (int i = 0; i < 64; i++) part[0][i] = part[1][i] = 0;
        const int place = scale_place(warp() * 16 + lane() / 4);  // of row g; row g+8 is two further
        float c[64];
        for (int block = 0; block < blocks; block++) {
            pipe.wait_full(now);
            const uint64_t rows = factor(pipe.rows(now.slot) + Pipe::team() * 8192);
            const float of_rows[2] = {__uint_as_float(load_shared1(pipe.row_scales(now.slot) + place * 4)), __uint_as_float(load_shared1(pipe.row_scales(now.slot) + place * 4 + 8))};
#pragma unroll
            for (int p = 0; p < 2; p++) {
                const uint64_t weights = factor(pipe.weights(now.slot) + p * 16384);
                turn.wait();
                begin_products();
#pragma unroll
                for (int k = 0; k < 4; k++) multiply_e4m3(c, rows + k * 2, weights + k * 2, k > 0);
                commit_products();
                turn.pass();
                const uint4 low = load_shared(pipe.weight_scales(now.slot) + p * 32), high = load_shared(pipe.weight_scales(now.slot) + p * 32 + 16);
                const uint32_t of_strips[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
                wait_products<0>();
                pin(c);
                if (p == 1) pipe.release(now.slot);
#pragma unroll
                for (int s = 0; s < 8; s++) {
                    const float strip = __uint_as_float(of_strips[s]), f[2] = {of_rows[0] * strip, of_rows[1] * strip};
#pragma unroll
                    for (int i = 0; i < 8; i++) part[p][s * 8 + i] = fmaf(c[s * 8 + i], f[i / 2 % 2], part[p][s * 8 + i]);
                }
            }
            now.next();
        }
    }
};

// Copies, multiplies, and gives the sums of each tile to done(row, tile, sums): of the warp's first row and the tile of outputs. Weights
// of a tile are 128 from tile*kStep on and 128 from there plus second on.
template <int kStages, int kCluster, int kStep, typename Done>
__device__ void multiply_tall(const e4m3_tiles &in, const e4m3_weights &w, int blocks, int out_tiles, int second, const Done &done) {
    using pipe_t = e4m3_tall<kStages, kCluster>;
    const pipe_t pipe;
    const int row_tiles = (in.rows / 128 + kCluster - 1) / kCluster, tiles = row_tiles * out_tiles;
    const int first = blockIdx.x / kCluster, stride = gridDim.x / kCluster;
    release_next();
    if (pipe_t::copies()) {
        give_registers<56>();
        if (threadIdx.x == 256) {
            wait_for_previous();
            stage<kStages> now;
            for (int i = first; i < tiles; i += stride) {
                const wide_tile at = place_tile(i, row_tiles, out_tiles);
                const int row = min((at.row * kCluster + pipe.rank) * 128, in.rows - 128);
#pragma unroll 1
                for (int block = 0; block < blocks; block++, now.next()) {
                    const uint32_t full = pipe.full + now.slot * 8;
                    wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
                    arrive_expecting(full, 128 * 128 + 512 + 256 * 128 + 64);
                    copy_bulk(pipe.rows(now.slot), in.tile(block, row), 128 * 128, full);
                    copy_bulk(pipe.row_scales(now.slot), in.scale(block, row), 512, full);
#pragma unroll
                    for (int p = 0; p < 2; p++) {
                        const int n = at.out * kStep + p * second;
                        const uint32_t codes = pipe.weights(now.slot) + p * 16384, scales = pipe.weight_scales(now.slot) + p * 32;
                        if constexpr (kCluster == 1) {
                            copy_bulk(codes, w.tile(block, n), 16384, full);
                            copy_bulk(scales, w.scale(block, n), 32, full);
                        } else if (p == pipe.rank) {
                            copy_bulk_to(codes, w.tile(block, n), 16384, full, 3);
                            copy_bulk_to(scales, w.scale(block, n), 32, full, 3);
                        }
                    }
                }
            }
        }
        __syncwarp();
    } else {
        take_registers<224>();
        wait_for_previous();
        stage<kStages> now;
        const turns turn(pipe_t::team());
        tall_sums sums;
        for (int i = first; i < tiles; i += stride) {
            const wide_tile at = place_tile(i, row_tiles, out_tiles);
            sums.multiply(pipe, now, turn, blocks);
            done((at.row * kCluster + pipe.rank) * 128 + warp() * 16, at.out, sums);
        }
        turn.end();
    }
    pipe.end();
}

}  // namespace atlas

template <int kThreads, int kEach, typename Op>
__device__ void prepare_linear(const Op &a, void *scratch) {
    const atlas::e4m3_tiles in(scratch, a.Rows, a.W.Cols);
    const atlas::e4m3_weights w(in, a.W.Rows, a.W.Cols);
    const int quantising = (a.Rows * (a.W.Cols / 16) + kThreads * kEach - 1) / (kThreads * kEach);
    if (int(blockIdx.x) < quantising) {
        atlas::quantise_rows<kThreads, kEach>(in, a.In, a.Rows, a.W.Cols);
    } else {
        atlas::release_next();
        atlas::wait_for_previous();
        const int unit = (blockIdx.x - quantising) * (kThreads / 32) + atlas::warp(), units = (a.W.Cols / 128 + kEach - 1) / kEach;
        if (unit / units < (a.W.Rows + 15) / 16) atlas::unpack_strip<kEach>(w, a.W, unit / units, unit % units * kEach);
    }
}

template <int kStages, int kCluster>
__device__ void linear_e4m3_tall(const atlas_Linear &a, void *scratch) {
    const atlas::e4m3_tiles in(scratch, a.Rows, a.W.Cols);
    const atlas::e4m3_weights w(in, a.W.Rows, a.W.Cols);
    const atlas::wide_outputs to(a.Out, a.Rows, a.OutPitch, a.W.Rows, true);
    atlas::multiply_tall<kStages, kCluster, 256>(in, w, a.W.Cols / 128, w.rows / 256, 128, [&](int row, int tile, atlas::tall_sums &sums) {
#pragma unroll
        for (int p = 0; p < 2; p++) {
            const int n = tile * 256 + p * 128;
            if (a.W.Scale || a.Bias) atlas::scale_outputs<128>(a, n + atlas::lane() % 4 * 2, sums.part[p]);
            to.store<128>(row, n, sums.part[p]);
        }
    });
}

template <int kStages, int kCluster>
__device__ void gated_linear_e4m3_tall(const atlas_GatedLinear &a, void *scratch) {
    const atlas::e4m3_tiles in(scratch, a.Rows, a.W.Cols);
    const atlas::e4m3_weights w(in, a.W.Rows, a.W.Cols);
    const int outs = a.W.Rows / 2;
    const atlas::wide_outputs to(a.Out, a.Rows, outs, outs, true);
    atlas::multiply_tall<kStages, kCluster, 128>(in, w, a.W.Cols / 128, (outs + 127) / 128, outs, [&](int row, int tile, atlas::tall_sums &sums) {
#pragma unroll
        for (int i = 0; i < 64; i += 2) atlas::pass_gates(sums.part[0][i], sums.part[0][i + 1], sums.part[1][i], sums.part[1][i + 1]);
        to.store<128>(row, tile * 128, sums.part[0]);
    });
}
