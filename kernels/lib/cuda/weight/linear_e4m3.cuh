// Linear for some 64 rows and f8 or f8block weights (layout frag), activations in e4m3: tiles of kRows rows by 64·kTeams outputs, so
// that there are many; weights come to the tensor cores by registers.
//
// First a kernel of quantise_linear.cuh, not kShared. Then linear_e4m3: block (kTeams*kParts+1)*128 threads, one to a multiprocessor (min_blocks
// 1); cluster kCluster, blocks next to one another along outputs, which share rows; dynamic shared memory atlas::linear_e4m3_shared<…>.
// Grid: any multiple of the cluster, at most a block per tile, that is kCluster*ceil(Rows/kRows)*ceil(W.Rows/(64*kTeams*kCluster)).
// W.Cols%128 == 0, In aligned to 16 bytes. Any Rows, OutPitch and alignment of Out. Instances of the same kParts give the same bits.
#pragma once
#include "lib/cuda/weight/e4m3_wide.cuh"
#include "lib/cuda/weight/linear_wide.cuh"
#include "lib/cuda/weight/quantise_linear.cuh"

namespace atlas {

template <int kTeams, int kParts, int kRows>
constexpr int kExchange = kTeams * (kParts - 1) * kRows / 2 * 128 * 4;  // bytes
template <int kTeams, int kParts, int kRows, int kStages>
constexpr int linear_e4m3_shared = kExchange<kTeams, kParts, kRows> + e4m3_pipe<kTeams, kParts, kRows, kStages, 1, true>::kShared;

}  // namespace atlas

template <atlas_Scheme kScheme, int kTeams, int kParts, int kRows, int kStages, int kCluster>
__device__ void linear_e4m3(const atlas_Linear &a, void *scratch) {
    constexpr int kOut = kTeams * 64, kTeamCount = kTeams * kParts, kShare = kRows / kCluster;
    constexpr bool kBlocks = kScheme == ATLAS_SCHEME_F8BLOCK;  // which have scales
    static_assert(kTeamCount == 2, "two warpgroups multiply");
    using pipe_t = atlas::e4m3_pipe<kTeams, kParts, kRows, kStages, kCluster, true>;
    const pipe_t pipe;
    const atlas::e4m3_tiles<false> in(scratch, a.Rows, a.W.Cols);
    const int blocks = a.W.Cols / 128, steps = (blocks + kParts - 1) / kParts, strips = (a.W.Rows + 15) / 16;
    const int row_tiles = (a.Rows + kRows - 1) / kRows, out_tiles = (a.W.Rows + kOut * kCluster - 1) / (kOut * kCluster), tiles = row_tiles * out_tiles;
    const int first_tile = blockIdx.x / kCluster, stride = gridDim.x / kCluster;
    atlas::release_next();
    if (pipe_t::copies()) {
        atlas::give_registers<56>();
        // Each warp copies kTeams strips, be their outputs there or not, and codes or scales of a part of the columns. So each is waited for in
        // every stage, and never a round of the pipe behind.
        const int piece = atlas::warp() % 4;
        atlas::stage<kStages> now;
        for (int i = first_tile; i < tiles; i += stride) {
            const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
            const int first = (at.out * kCluster + pipe.rank) * (kOut / 16);
            const auto copy_weights = [&](int slot, int step) {
                const uint32_t full = pipe.full + slot * 8;
                const int parts = min(kParts, blocks - step * kParts);
                if (!atlas::elected()) return;
                if (piece == 0) atlas::arrive_expecting(full, parts * (kOut / 16 * 2048 + kRows * (kBlocks ? 132 : 128)));
#pragma unroll
                for (int s = piece * kTeams; s < (piece + 1) * kTeams; s++)
                    atlas::copy_bulk(pipe.strip(slot, s), atlas::frag<kScheme>::strip(a.W, 0, min(first + s, strips - 1)) + size_t(step) * pipe_t::kStrip, parts * 2048, full);
            };
            const auto copy_rows = [&](int slot, int step) {
                const int part = piece / 2, block = step * kParts + part, row = pipe.rank * kShare;
                if (part >= kParts || block >= blocks || !kBlocks && piece % 2 || !atlas::elected()) return;
                const uint32_t full = pipe.full + slot * 8, to = piece % 2 ? pipe.scales(slot) + (part * kRows + row) * 4 : pipe.rows(slot) + (part * kRows + row) * 128;
                const void *from = piece % 2 ? static_cast<const void *>(in.scale(block, at.row * kRows + row)) : in.tile(block, at.row * kRows + row);
                const int bytes = piece % 2 ? kShare * 4 : kShare * 128;
                if constexpr (kCluster > 1)
                    atlas::copy_bulk_to(to, from, bytes, full, (1 << kCluster) - 1);
                else
                    atlas::copy_bulk(to, from, bytes, full);
            };
            int step = 0;
            if (i == first_tile) {  // weights depend on no kernel before this one
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
    } else {
        atlas::take_registers<224>();
        atlas::stage<kStages> now;
        const bool whole = a.OutPitch % 8 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 16 == 0;
        const int t = atlas::lane() % 4, g = atlas::lane() / 4;
        float *exchange = reinterpret_cast<float *>(atlas::wide_shared + pipe_t::kShared);
        atlas::wait_for_previous();
        for (int i = first_tile; i < tiles; i += stride) {
            const atlas::wide_tile at = atlas::place_tile(i, row_tiles, out_tiles);
            const int strip = (at.out * kCluster + pipe.rank) * (kOut / 16) + pipe.team() * 4 + atlas::warp() % 4, first = strip * 16;
            const float *scales = atlas::strip_scales<kScheme>(a.W, 0, strip);
            float sum[kRows / 2];
            atlas::multiply_e4m3_strip<kParts, kRows, kBlocks>(pipe, now, blocks, scales, sum);
            atlas::add_parts<kTeams, kParts>(exchange, pipe.team(), pipe.part(), sum);
            if (pipe.part()) continue;
#pragma unroll
            for (int q = 0; !kBlocks && q < kRows / 16; q++) {
                const float4 x = *reinterpret_cast<const float4 *>(in.scale(0, at.row * kRows + q * 16 + t * 4));
                const float of_rows[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
                for (int i = 0; i < 8; i++) sum[q * 8 + i] *= of_rows[i / 4 * 2 + i % 2];
            }
            float scale[2], bias[2];  // of outputs first+g and first+g+8
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int n = first + h * 8 + g;
                scale[h] = n < a.W.Rows ? atlas::row_scale(a.W, 0, n) : 0.0f;
                bias[h] = a.Bias && n < a.W.Rows ? a.Bias[n] : 0.0f;
            }
            const int n = first + t % 2 * 8;
#pragma unroll
            for (int j = 0; j < kRows / 8; j += 2) {
                uint32_t u[4];
#pragma unroll
                for (int l = 0; l < 4; l++) {
                    const float *x = sum + (j + l / 2) * 4 + l % 2 * 2;
                    u[l] = atlas::transpose_matrix(atlas::narrow(fmaf(x[0], scale[l % 2], bias[l % 2]), fmaf(x[1], scale[l % 2], bias[l % 2])));
                }
                atlas::transpose_quad(u);
                const int row = at.row * kRows + (j + t / 2) * 8 + g;
                if (row < a.Rows && n < a.W.Rows) atlas::store_outputs(a.Out + size_t(row) * a.OutPitch + n, u, a.W.Rows - n, whole);
            }
        }
    }
    pipe.end();
}
