// Linear and GatedLinear for prompts and weights in a frag layout: these are unpacked into scratch memory, in the layout of bf16 weights,
// and multiplied as such. So many rows take them that this costs less than decoding in each tile.
//
// First unpack_tiles: block kThreads threads, a warp for every 64 columns of a strip, grid
// ceil(ceil(W.Rows/16)*ceil(W.Cols/64)/(kThreads/32)). Then linear_unpacked: as linear_wide with tiles of 256 by 128. Scratch memory:
// ceil(W.Rows/64)*ceil(W.Cols/64)*8192.
#pragma once
#include "lib/cuda/weight/frag_wide.cuh"
#include "lib/cuda/weight/linear_wide.cuh"

namespace atlas {

// What bf16 weights in scratch memory are a matrix of.
__device__ inline atlas_Weight unpacked(const atlas_Weight &w, void *scratch) {
    atlas_Weight to = w;
    to.Data = static_cast<uint8_t *>(scratch), to.Scheme = ATLAS_SCHEME_BF16;
    return to;
}

// Where the schemes' fragments are in other units than their weights.
template <atlas_Scheme kScheme>
__device__ uint32_t in_units(uint32_t pair) {
    constexpr float kFactor = frag<kScheme>::kSix ? 1 : frag<kScheme>::kFactor;
    static_assert(kFactor == 1 || kFactor == 64 || kFactor == 256, "a power of two");
    return kFactor == 1 ? pair : multiply_pair(pair, kFactor == 64 ? 0x42804280 : 0x43804380);
}

}  // namespace atlas

template <atlas_Scheme kScheme, int kThreads, typename Op>
__device__ void unpack_tiles(const Op &a, void *scratch) {
    static_assert(kScheme != ATLAS_SCHEME_F8BLOCK, "blocks have scales of f32");
    using stage_t = atlas::frag_stage<kScheme>;
    constexpr int kWords = stage_t::kStripBytes / 16;
    __shared__ uint4 strips[kThreads / 32][kWords];
    const int lane = atlas::lane(), g = lane / 4, t = lane % 4, steps = atlas::tiles64(a.W.Cols);
    const int unit = blockIdx.x * (kThreads / 32) + atlas::warp(), strip = unit / steps, step = unit % steps;
    atlas::release_next();
    atlas::wait_for_previous();
    if (strip >= (a.W.Rows + 15) / 16) return;
    const bool half = a.W.Cols - step * 64 <= 32;  // the strip ends before the next 32 columns
    const uint4 *from = reinterpret_cast<const uint4 *>(atlas::frag<kScheme>::strip(a.W, 0, strip) + size_t(step) * stage_t::kStripBytes);
    const int there = min(stage_t::kBlocks, atlas::frag<kScheme>::blocks(a.W.Cols) - step * stage_t::kBlocks) * (atlas::frag<kScheme>::kBlock / 16);
    uint4 *own = strips[atlas::warp()];
    for (int i = lane; i < kWords; i += 32) own[i] = i < there ? from[i] : uint4{};
    __syncwarp();
    uint32_t x[4][4];
    if constexpr (atlas::frag<kScheme>::kSix) atlas::widen_six_stage(__cvta_generic_to_shared(own), x);
    else atlas::decode_stage<kScheme>(__cvta_generic_to_shared(own), half, x);
    const atlas_Weight w = atlas::unpacked(a.W, scratch);
    atlas_act *tile = const_cast<atlas_act *>(atlas::tile64(w, 0, strip / 4, step));
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int q = 0; q < 2; q++) {  // chunks 4q … 4q+3 of eight columns, of which each lane has a word
            uint32_t u[4] = {x[2 * q][h], x[2 * q][2 + h], x[2 * q + 1][h], x[2 * q + 1][2 + h]};
            atlas::transpose_quad(u);
            const uint4 chunk = {atlas::in_units<kScheme>(u[0]), atlas::in_units<kScheme>(u[1]), atlas::in_units<kScheme>(u[2]), atlas::in_units<kScheme>(u[3])};
            *reinterpret_cast<uint4 *>(tile + atlas::tile64_at(strip % 4 * 16 + h * 8 + g, 4 * q + t)) = chunk;
        }
}

template <int kStages>
__device__ void linear_unpacked(const atlas_Linear &a, void *scratch, const atlas_TensorMap *in) {
    atlas_Linear plain = a;
    plain.W = atlas::unpacked(a.W, scratch);
    linear_wide<256, 128, kStages, 1, 2, false, true>(plain, in);
}

template <int kStages>
__device__ void gated_linear_unpacked(const atlas_GatedLinear &a, void *scratch, const atlas_TensorMap *in) {
    atlas_GatedLinear plain = a;
    plain.W = atlas::unpacked(a.W, scratch);
    gated_linear_wide<kStages, true>(plain, in);
}
