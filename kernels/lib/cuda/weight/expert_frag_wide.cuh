// ExpertUp and ExpertDown for many rows and weights in a frag layout, with wgmma: tiles of kRows picks by 256 weights, which in
// expert_up_frag_wide are 128 gates and the ups that belong to them.
//
// Block: 384 threads, one to a multiprocessor (min_blocks 1); no cluster; dynamic shared memory atlas::frag_pipe<…, false>::kShared.
// Grid: any number of blocks, at most ceil(W.Rows/256)*min(Rows*TopK, W.Count+Rows*TopK/kRows). expert_up_frag_wide wants
// W.Rows%32 == 0. At most kMaxExperts experts. Any Cols and alignment; fast where Cols%8 == 0. expert_down_frag_wide writes products,
// f32 [Rows*TopK,W.Rows], to scratch, for expert_down_total. Bits of a pick do not depend on its tile.
#pragma once
#include "lib/cuda/weight/expert_wide.cuh"
#include "lib/cuda/weight/frag_wide.cuh"

namespace atlas {

// Copies a tile of picks, and its strips of weights from a number on, of which each warp takes four; where kPairs, every second one is as much
// further on as second says. row(s) is the row of activations of sorted pick s, or -1.
template <atlas_Scheme kScheme, int kRows, bool kPairs, typename Pipe, typename Stage, typename Row>
__device__ void gather_strips(const Pipe &pipe, Stage &now, const atlas_Weight &w, const picks &at, int strip, size_t second, int strips, const atlas_act *in,
                              const Row &row) {
    const int first = warp() % 4 * 4;
    const copy_strips<kScheme, 4, kPairs> weights = {frag<kScheme>::strip(w, at.expert, strip + (kPairs ? first / 2 : first)), second, first, min(4, strips - first), w.Cols, strips, 0, first == 0};
    int rows[kRows / 16];
#pragma unroll
    for (int j = 0; j < kRows / 16; j++) {
        const int s = at.begin + threadIdx.x % 128 / 8 + j * 16;
        rows[j] = s < at.end ? row(s) : -1;
    }
    gather_tile<kRows>(pipe, now, tiles64(w.Cols), w.Cols, in, weights, [&](int j) { return rows[j] >= 0 ? in + size_t(rows[j]) * w.Cols : nullptr; });
}

}  // namespace atlas

template <class P>
__device__ void expert_up_frag_wide(const atlas_ExpertUp &a) {
    using pipe_t = atlas::frag_pipe<P::kScheme, 2, P::kRows, P::kStages, false>;
    static_assert(atlas::launched<P, pipe_t::kThreads, pipe_t::kShared>::kFits);
    using layout = atlas::frag<P::kScheme>;
    __shared__ atlas::pick_tiles tiles;
    const int half = a.W.Rows / 2, total = a.Rows * a.TopK, strips = half / 16, out_tiles = (strips + 7) / 8;
    atlas::release_next();
    atlas::wait_for_previous();
    atlas::count_tiles<P::kRows>(tiles, a.Starts, a.W.Count, total);
    const pipe_t pipe;
    const int work = tiles.first[a.W.Count] * out_tiles;
    if (pipe_t::copies()) {
        atlas::give_registers<56>();
        atlas::stage<P::kStages> now;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            const int first = i % out_tiles * 8;  // of gates, which ups follow
            atlas::gather_strips<P::kScheme, P::kRows, true>(pipe, now, a.W, at, first, strips * layout::strip_bytes(a.W.Cols), 2 * min(8, strips - first), a.In, [&](int s) {
                const int pick = a.Order[s];
                return pick >= 0 && pick < total ? pick / a.TopK : -1;
            });
        }
    } else {
        atlas::take_registers<224>();
        atlas::stage<P::kStages> now;
        const bool whole = reinterpret_cast<uintptr_t>(a.Out) % 16 == 0;
        const int t = atlas::lane() % 4, g = atlas::lane() / 4;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            const int strip = i % out_tiles * 8 + atlas::warp(), first = strip * 16;
            const float *const scales[2] = {atlas::strip_scales<P::kScheme>(a.W, at.expert, strip), atlas::strip_scales<P::kScheme>(a.W, at.expert, strips + strip)};
            float c[2][P::kRows / 2];
            atlas::multiply_strips<P::kScheme, P::kRows>(pipe, now, atlas::tiles64(a.W.Cols), a.W.Cols, scales, c);
            if (strip >= strips) continue;
            float gate[2], up[2];  // factors of outputs first+g and first+g+8
#pragma unroll
            for (int h = 0; h < 2; h++) {
                gate[h] = atlas::row_scale(a.W, at.expert, first + g + h * 8);
                up[h] = atlas::row_scale(a.W, at.expert, half + first + g + h * 8);
            }
#pragma unroll
            for (int j = 0; j < P::kRows / 8; j += 2) {
                uint32_t u[4];
#pragma unroll
                for (int l = 0; l < 4; l++) {
                    const int at_sum = (j + l / 2) * 4 + l % 2 * 2;
                    float x[2];
#pragma unroll
                    for (int e = 0; e < 2; e++) x[e] = atlas::silu(c[0][at_sum + e] * gate[l % 2]) * (c[1][at_sum + e] * up[l % 2]);
                    u[l] = atlas::transpose_matrix(atlas::narrow(x[0], x[1]));
                }
                atlas::transpose_quad(u);
                const int s = at.begin + (j + t / 2) * 8 + g, pick = s < at.end ? a.Order[s] : -1;
                if (pick >= 0 && pick < total) atlas::store_outputs(a.Out + size_t(pick) * half + first + t % 2 * 8, u, 8, whole);
            }
        }
    }
}

template <class P>
__device__ void expert_down_frag_wide(const atlas_ExpertDown &a, void *scratch) {
    using pipe_t = atlas::frag_pipe<P::kScheme, 2, P::kRows, P::kStages, false>;
    static_assert(atlas::launched<P, pipe_t::kThreads, pipe_t::kShared>::kFits);
    __shared__ atlas::pick_tiles tiles;
    const int total = a.Rows * a.TopK, strips = (a.W.Rows + 15) / 16, out_tiles = (strips + 15) / 16;
    atlas::wait_for_previous();
    atlas::release_next();
    atlas::count_tiles<P::kRows>(tiles, a.Starts, a.W.Count, total);
    const pipe_t pipe;
    const int work = tiles.first[a.W.Count] * out_tiles;
    if (pipe_t::copies()) {
        atlas::give_registers<56>();
        atlas::stage<P::kStages> now;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            const int first = i % out_tiles * 16;
            atlas::gather_strips<P::kScheme, P::kRows, false>(pipe, now, a.W, at, first, 0, min(16, strips - first), a.In, [&](int s) {
                const int pick = a.Order[s];
                return pick >= 0 && pick < total ? pick : -1;
            });
        }
    } else {
        atlas::take_registers<224>();
        atlas::stage<P::kStages> now;
        float *products = static_cast<float *>(scratch);
        const int t = atlas::lane() % 4, g = atlas::lane() / 4;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            const int strip = i % out_tiles * 16 + atlas::warp() * 2, n = strip * 16 + g;
            const float *const scales[2] = {atlas::strip_scales<P::kScheme>(a.W, at.expert, strip), atlas::strip_scales<P::kScheme>(a.W, at.expert, strip + 1)};
            float c[2][P::kRows / 2];
            atlas::multiply_strips<P::kScheme, P::kRows>(pipe, now, atlas::tiles64(a.W.Cols), a.W.Cols, scales, c);
            float scale[4];  // of outputs n, n+8, n+16, n+24
#pragma unroll
            for (int l = 0; l < 4; l++) scale[l] = n + l * 8 < a.W.Rows ? atlas::row_scale(a.W, at.expert, n + l * 8) : 0.0f;
#pragma unroll
            for (int j = 0; j < P::kRows / 4; j++) {  // eight lanes write 32 bytes of a pick
                const int s = at.begin + j / 2 * 8 + t * 2 + j % 2, pick = s < at.end ? a.Order[s] : -1;
                if (pick < 0 || pick >= total) continue;
                float *out = products + size_t(pick) * a.W.Rows + n;
#pragma unroll
                for (int l = 0; l < 4; l++)
                    if (n + l * 8 < a.W.Rows) out[l * 8] = c[l / 2][j / 2 * 4 + l % 2 * 2 + j % 2] * scale[l];
            }
        }
    }
}
