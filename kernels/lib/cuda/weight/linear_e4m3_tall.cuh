// Linear and GatedLinear for prompts and f8 or f8block weights, activations in e4m3. Weights are unpacked into scratch memory first, as
// wgmma reads them: so many rows take them that this costs little, and tensor cores wait for no one's decoding. A tile is 128 rows by
// two times 128 outputs; at 128 by 128, blocks would ask the L2 cache for more than it gives. Gated, the second 128 are what the first gate.
//
// First, for f8block, prepare_linear: block kThreads threads; ceil(Rows*W.Cols/(16*kThreads*kEach)) blocks quantise activations, then
// blocks of a warp for every kEach times 128 columns of a strip unpack weights. For f8 prepare_linear_rows, where
// ceil(Rows/(kThreads/kTeam)) blocks quantise. Then linear_e4m3_tall: block 384 threads, min_blocks 1; cluster kCluster,
// 1 or 2, blocks next to one another along rows, which share weights; dynamic shared memory atlas::e4m3_tall<…>::kShared; grid any
// multiple of the cluster, at most a block per tile, of which there are kCluster*ceil(Rows/(128*kCluster))*ceil(W.Rows/256).
// W.Cols%128 == 0, for f8 W.Cols%256 == 0; In aligned to 16 bytes; gated, W.Rows%256 == 0. Scratch memory: that of linear_e4m3.cuh, then W.Rows rounded up to
// 256, times W.Cols/128*128.25, or W.Cols for f8. For f8block bits are those of kParts 1 there.
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

    __device__ e4m3_weights(const e4m3_tiles &in, int rows, int cols, bool blocks) : rows((rows + 255) / 256 * 256) {
        codes = reinterpret_cast<uint8_t *>(in.scales + size_t(blocks ? cols / 128 : 1) * in.rows);
        scales = reinterpret_cast<float *>(codes + size_t(this->rows) * cols);
    }
    __device__ uint8_t *tile(int block, int row) const { return codes + (size_t(block) * rows + row) * 128; }
    __device__ float *scale(int block, int row) const { return scales + size_t(block) * (rows / 16) + row / 16; }
};

// Unpacks kEach times 128 columns of a strip, by one warp.
template <atlas_Scheme kScheme, int kEach>
__device__ void unpack_strip(const e4m3_weights &to, const atlas_Weight &w, int strip, int block) {
    const int blocks = w.Cols / 128, g = lane() / 4, t = lane() % 4;
    const uint4 *from = reinterpret_cast<const uint4 *>(frag<kScheme>::strip(w, 0, strip)) + lane();
    constexpr bool kBlocks = kScheme == ATLAS_SCHEME_F8BLOCK;
    const float scale = kBlocks && lane() < kEach && block + lane() < blocks ? strip_scales<kScheme>(w, 0, strip)[block + lane()] : 0.0f;
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
        if (kBlocks && lane() == e) *to.scale(block + e, strip * 16) = scale;
    }
}

// A warp for each kEach times 128 columns; block counts from the first that unpacks.
template <atlas_Scheme kScheme, int kThreads, int kEach>
__device__ void unpack_weights(const e4m3_tiles &in, const atlas_Weight &w, int block) {
    const e4m3_weights to(in, w.Rows, w.Cols, kScheme == ATLAS_SCHEME_F8BLOCK);
    const int unit = block * (kThreads / 32) + warp(), units = (w.Cols / 128 + kEach - 1) / kEach;
    release_next();
    wait_for_previous();
    if (unit / units < (w.Rows + 15) / 16) unpack_strip<kScheme, kEach>(to, w, unit / units, unit % units * kEach);
}

// A stage is 128 columns: 128 rows, 256 weights, then the scales of both where blocks have some.
template <bool kBlocks, int kStages, int kCluster>
struct e4m3_tall : wide<2, 128, 256 * 128 + (kBlocks ? 1024 : 0), kStages, kCluster, true> {
    __device__ uint32_t row_scales(int slot) const { return this->weights(slot) + 256 * 128; }
    __device__ uint32_t weight_scales(int slot) const { return row_scales(slot) + 512; }
};

// A warpgroup's sums of 64 rows by two times 128 outputs. Products of kTogether times 128 columns are summed by themselves, then added, in
// blocks by fma with the product of both scales: tensor cores add with 14 bits or so.
template <bool kBlocks>
struct tall_sums {
    static constexpr int kTogether = kBlocks ? 1 : 2;

    float part[2][64];

    template <typename Pipe, typename Stage>
    __device__ void multiply(const Pipe &pipe, Stage &now, const turns &turn, int blocks) {
#pragma unroll
        for (int i = 0; i < 64; i++) part[0][i] = part[1][i] = 0;
        float c[64];
        for (int block = 0; block < blocks; block += kTogether) add(pipe, now, turn, c);
    }
    template <typename Pipe, typename Stage>
    __device__ void add(const Pipe &pipe, Stage &now, const turns &turn, float (&c)[64]) {
        const int place = scale_place(warp() * 16 + lane() / 4);  // of row g; row g+8 is two further
        int slots[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; i++) {
            pipe.wait_full(now);
            slots[i] = now.slot;
            now.next();
        }
        float of_rows[2];
#pragma unroll
        for (int h = 0; kBlocks && h < 2; h++) of_rows[h] = __uint_as_float(load_shared1(pipe.row_scales(slots[0]) + place * 4 + h * 8));
#pragma unroll
        for (int p = 0; p < 2; p++) {
            turn.wait();
            begin_products();
#pragma unroll
            for (int i = 0; i < kTogether; i++) {
                const uint64_t rows = factor(pipe.rows(slots[i]) + Pipe::team() * 8192), weights = factor(pipe.weights(slots[i]) + p * 16384);
#pragma unroll
                for (int k = 0; k < 4; k++) multiply_e4m3(c, rows + k * 2, weights + k * 2, i + k > 0);
            }
            commit_products();
            turn.pass();
            uint32_t of_strips[8];
#pragma unroll
            for (int h = 0; kBlocks && h < 2; h++) {
                const uint4 x = load_shared(pipe.weight_scales(slots[0]) + p * 32 + h * 16);
                of_strips[4 * h] = x.x, of_strips[4 * h + 1] = x.y, of_strips[4 * h + 2] = x.z, of_strips[4 * h + 3] = x.w;
            }
            wait_products<0>();
            pin(c);
#pragma unroll
            for (int i = 0; i < kTogether; i++)
                if (p == 1) pipe.release(slots[i]);
            if constexpr (kBlocks) {
#pragma unroll
                for (int s = 0; s < 8; s++) {
                    const float strip = __uint_as_float(of_strips[s]), f[2] = {of_rows[0] * strip, of_rows[1] * strip};
#pragma unroll
                    for (int i = 0; i < 8; i++) part[p][s * 8 + i] = fmaf(c[s * 8 + i], f[i / 2 % 2], part[p][s * 8 + i]);
                }
            } else {
#pragma unroll
                for (int i = 0; i < 64; i++) part[p][i] += c[i];
            }
        }
    }
    // Where a scale is of a whole row.
    __device__ void scale_rows(const e4m3_tiles &in, int row) {
        const float *scales = in.scale(0, row) + scale_place(lane() / 4), of_rows[2] = {scales[0], scales[2]};
#pragma unroll
        for (int i = 0; i < 64; i++) part[0][i] *= of_rows[i / 2 % 2], part[1][i] *= of_rows[i / 2 % 2];
    }
};

// Copies, multiplies, and gives the sums of each tile to done(row, tile, sums): of the warp's first row and the tile of outputs. Weights
// of a tile are 128 from tile*kStep on and 128 from there plus second on.
template <bool kBlocks, int kStages, int kCluster, int kStep, typename Done>
__device__ void multiply_tall(const e4m3_tiles &in, const e4m3_weights &w, int blocks, int out_tiles, int second, const Done &done) {
    using pipe_t = e4m3_tall<kBlocks, kStages, kCluster>;
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
                    arrive_expecting(full, 128 * 128 + 256 * 128 + (kBlocks ? 512 + 64 : 0));
                    copy_bulk(pipe.rows(now.slot), in.tile(block, row), 128 * 128, full);
                    if (kBlocks) copy_bulk(pipe.row_scales(now.slot), in.scale(block, row), 512, full);
#pragma unroll
                    for (int p = 0; p < 2; p++) {
                        const int n = at.out * kStep + p * second;
                        const uint32_t codes = pipe.weights(now.slot) + p * 16384, scales = pipe.weight_scales(now.slot) + p * 32;
                        if constexpr (kCluster == 1) {
                            copy_bulk(codes, w.tile(block, n), 16384, full);
                            if (kBlocks) copy_bulk(scales, w.scale(block, n), 32, full);
                        } else if (p == pipe.rank) {
                            copy_bulk_to(codes, w.tile(block, n), 16384, full, 3);
                            if (kBlocks) copy_bulk_to(scales, w.scale(block, n), 32, full, 3);
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
        tall_sums<kBlocks> sums;
        for (int i = first; i < tiles; i += stride) {
            const wide_tile at = place_tile(i, row_tiles, out_tiles);
            sums.multiply(pipe, now, turn, blocks);
            const int row = (at.row * kCluster + pipe.rank) * 128 + warp() * 16;
            if (!kBlocks && row < in.rows) sums.scale_rows(in, row);
            done(row, at.out, sums);
        }
        turn.end();
    }
    pipe.end();
}

}  // namespace atlas

template <int kThreads, int kEach, typename Op>
__device__ void prepare_linear(const Op &a, void *scratch) {
    const atlas::e4m3_tiles in(scratch, a.Rows, a.W.Cols);
    const int quantising = (a.Rows * (a.W.Cols / 16) + kThreads * kEach - 1) / (kThreads * kEach);
    if (int(blockIdx.x) < quantising)
        atlas::quantise_rows<kThreads, kEach>(in, a.In, a.Rows, a.W.Cols);
    else
        atlas::unpack_weights<ATLAS_SCHEME_F8BLOCK, kThreads, kEach>(in, a.W, blockIdx.x - quantising);
}

template <int kThreads, int kTeam, int kEach, int kUnpacked, typename Op>
__device__ void prepare_linear_rows(const Op &a, void *scratch) {
    const atlas::e4m3_tiles in(scratch, a.Rows, a.W.Cols);
    const int quantising = (a.Rows + kThreads / kTeam - 1) / (kThreads / kTeam);
    if (int(blockIdx.x) < quantising)
        atlas::quantise_whole_rows<kThreads, kTeam, kEach>(in, a.In, a.Rows, a.W.Cols, blockIdx.x);
    else
        atlas::unpack_weights<ATLAS_SCHEME_F8, kThreads, kUnpacked>(in, a.W, blockIdx.x - quantising);
}

template <atlas_Scheme kScheme, int kStages, int kCluster>
__device__ void linear_e4m3_tall(const atlas_Linear &a, void *scratch) {
    constexpr bool kBlocks = kScheme == ATLAS_SCHEME_F8BLOCK;
    const atlas::e4m3_tiles in(scratch, a.Rows, a.W.Cols);
    const atlas::e4m3_weights w(in, a.W.Rows, a.W.Cols, kBlocks);
    const atlas::wide_outputs to(a.Out, a.Rows, a.OutPitch, a.W.Rows);
    atlas::multiply_tall<kBlocks, kStages, kCluster, 256>(in, w, a.W.Cols / 128, w.rows / 256, 128, [&](int row, int tile, atlas::tall_sums<kBlocks> &sums) {
#pragma unroll
        for (int p = 0; p < 2; p++) {
            const int n = tile * 256 + p * 128;
            if (a.W.Scale || a.Bias) atlas::scale_outputs<128>(a, n + atlas::lane() % 4 * 2, sums.part[p]);
            to.store<128>(row, n, sums.part[p]);
        }
    });
}

template <atlas_Scheme kScheme, int kStages, int kCluster>
__device__ void gated_linear_e4m3_tall(const atlas_GatedLinear &a, void *scratch) {
    constexpr bool kBlocks = kScheme == ATLAS_SCHEME_F8BLOCK;
    const atlas::e4m3_tiles in(scratch, a.Rows, a.W.Cols);
    const atlas::e4m3_weights w(in, a.W.Rows, a.W.Cols, kBlocks);
    const int outs = a.W.Rows / 2;
    atlas_Linear plain = {};
    plain.W = a.W;
    const atlas::wide_outputs to(a.Out, a.Rows, outs, outs);
    atlas::multiply_tall<kBlocks, kStages, kCluster, 128>(in, w, a.W.Cols / 128, (outs + 127) / 128, outs, [&](int row, int tile, atlas::tall_sums<kBlocks> &sums) {
#pragma unroll
        for (int p = 0; p < 2 && a.W.Scale; p++) atlas::scale_outputs<128>(plain, p * outs + tile * 128 + atlas::lane() % 4 * 2, sums.part[p]);
#pragma unroll
        for (int i = 0; i < 64; i += 2) atlas::pass_gates(sums.part[0][i], sums.part[0][i + 1], sums.part[1][i], sums.part[1][i + 1]);
        to.store<128>(row, tile * 128, sums.part[0]);
    });
}
