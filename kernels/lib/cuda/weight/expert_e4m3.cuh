// ExpertUp and ExpertDown for many rows and f8block weights (layout frag), activations in e4m3: tiles of kRows picks by 128 weights,
// which in expert_up_e4m3 are 64 gates and the ups that belong to them.
//
// First quantise_up, quantise_down: block kThreads threads, grid ceil(rows*W.Cols/(16*kThreads)); rows are Rows, Rows*TopK; scratch
// rows*W.Cols/32*33 bytes. Then blocks of 384 threads, one to a multiprocessor (min_blocks 1); no cluster; dynamic shared memory
// atlas::expert_up_e4m3_shared<…>, atlas::e4m3_pipe<…>::kShared. Grid: any number of blocks, at most
// ceil(W.Rows/128)*min(Rows*TopK, W.Count+Rows*TopK/kRows). W.Cols%128 == 0, In aligned to 16 bytes; expert_up_e4m3 wants W.Rows%32 == 0. At
// most kMaxExperts experts. expert_down_e4m3 writes products, f32 [Rows*TopK,W.Rows], before the codes in scratch, for
// expert_down_total. Bits of a pick do not depend on its tile.
#pragma once
#include "lib/cuda/weight/e4m3_wide.cuh"
#include "lib/cuda/weight/expert_total.cuh"
#include "lib/cuda/weight/pick_tiles.cuh"

namespace atlas {

template <int kRows>
constexpr int kHalfSums = kRows / 4;  // of a thread: those of half of the rows
template <int kRows, int kStages>
constexpr int expert_up_e4m3_shared = e4m3_pipe<kRows, kStages>::kShared + 256 * kHalfSums<kRows> * 4;

// Copies a tile of picks, by a warpgroup: thread i chunk i%8 of rows i/8, i/8+16, …, and the scale of row i. strip(s) is where strip s of the
// stage begins, or null; row(s) is the row of codes of sorted pick s, or -1.
template <int kRows, typename Pipe, typename Stage, typename Strip, typename Row>
__device__ void gather_e4m3(const Pipe &pipe, Stage &now, const e4m3_list &in, const picks &at, const Strip &strip, int strips, const Row &row) {
    constexpr uint32_t kNone = ~0u;
    const int thread = threadIdx.x % 128, chunk = thread % 8, to = thread / 8 * 128 + (chunk ^ thread / 8 % 8) * 16;
    const auto row_at = [&](int i) { return at.begin + i < at.end ? row(at.begin + i) : -1; };
    const int mine = thread < kRows ? row_at(thread) : -1;
    const float *scale = mine >= 0 ? in.scale_at(mine, 0) : nullptr;
    uint32_t chunks[kRows / 16];  // where they are, in units of 16 bytes
#pragma unroll
    for (int j = 0; j < kRows / 16; j++) {
        const int r = row_at(thread / 8 + j * 16);
        chunks[j] = r >= 0 ? r * (in.cols / 16) + chunk : kNone;
    }
    const int first = warp() % 4 * 2;  // of two strips that this warp copies
    const uint8_t *const from[2] = {strip(first), strip(first + 1)};
    for (int step = 0; step < in.cols / 128; step++, now.next()) {
        const uint32_t full = pipe.full + now.slot * 8;
        wait_barrier(pipe.empty + now.slot * 8, now.phase ^ 1);
        if (elected()) {
            if (first == 0) arrive_expecting(full, strips * 2048);
#pragma unroll
            for (int s = 0; s < 2; s++)
                if (from[s]) copy_bulk(pipe.strip(now.slot, first + s), from[s] + step * 2048, 2048, full);
        }
        if (scale) copy_async4(pipe.scales(now.slot) + scale_place(thread) * 4, scale + step, true);
#pragma unroll
        for (int j = 0; j < kRows / 16; j++)
            copy_async(pipe.rows(now.slot) + to + j * 2048, in.codes + (chunks[j] == kNone ? 0 : size_t(chunks[j] + step * 8) * 16), chunks[j] != kNone);
        arrive_after_copies(full);
    }
}

}  // namespace atlas

template <class P>
__device__ void quantise_up(const atlas_ExpertUp &a, void *scratch) {
    atlas::quantise_rows<P::kThreads>(atlas::e4m3_list(scratch, a.Rows, a.W.Cols), a.In, a.Rows, a.W.Cols);
}

template <class P>
__device__ void quantise_down(const atlas_ExpertDown &a, void *scratch) {
    const int total = a.Rows * a.TopK;
    void *codes = static_cast<float *>(scratch) + size_t(total) * a.W.Rows;
    atlas::quantise_rows<P::kThreads>(atlas::e4m3_list(codes, total, a.W.Cols), a.In, total, a.W.Cols);
}

template <class P>
__device__ void expert_up_e4m3(const atlas_ExpertUp &a, void *scratch) {
    using pipe_t = atlas::e4m3_pipe<P::kRows, P::kStages>;
    static_assert(atlas::launched<P, pipe_t::kThreads, atlas::expert_up_e4m3_shared<P::kRows, P::kStages>>::kFits);
    constexpr int kHalf = atlas::kHalfSums<P::kRows>;
    __shared__ atlas::pick_tiles tiles;
    const atlas::e4m3_list in(scratch, a.Rows, a.W.Cols);
    const int half = a.W.Rows / 2, total = a.Rows * a.TopK, strips = half / 16, out_tiles = (strips + 3) / 4;
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
            const int first = i % out_tiles * 4;
            const auto strip = [&](int s) {  // four gates, then four ups
                return first + s % 4 < strips ? atlas::frag<ATLAS_SCHEME_F8BLOCK>::strip(a.W, at.expert, s / 4 * strips + first + s % 4) : nullptr;
            };
            atlas::gather_e4m3<P::kRows>(pipe, now, in, at, strip, 2 * min(4, strips - first), [&](int s) {
                const int pick = a.Order[s];
                return pick >= 0 && pick < total ? pick / a.TopK : -1;
            });
        }
    } else {
        atlas::take_registers<224>();
        atlas::stage<P::kStages> now;
        const bool whole = reinterpret_cast<uintptr_t>(a.Out) % 16 == 0;
        const int t = atlas::lane() % 4, g = atlas::lane() / 4, team = pipe_t::team();
        float *exchange = reinterpret_cast<float *>(atlas::wide_shared + pipe_t::kShared) + threadIdx.x % 128;
        float *sent = exchange + team * kHalf * 128, *got = exchange + (1 - team) * kHalf * 128;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            const int strip = i % out_tiles * 4 + atlas::warp() % 4, first = strip * 16;
            const float *scales = strip < strips ? atlas::strip_scales<ATLAS_SCHEME_F8BLOCK>(a.W, at.expert, team * strips + strip) : nullptr;
            float sum[P::kRows / 2];
            atlas::multiply_e4m3_strip<P::kRows>(pipe, now, a.W.Cols / 128, scales, sum);
            float factor[2];  // of outputs first+g and first+g+8
#pragma unroll
            for (int h = 0; h < 2; h++) factor[h] = strip < strips ? atlas::row_scale(a.W, at.expert, team * half + first + g + h * 8) : 0.0f;
#pragma unroll
            for (int i = 0; i < P::kRows / 2; i++) sum[i] *= factor[i / 2 % 2];
            // Gates and ups of half of the rows for each team.
            atlas::sync_named<256>(1);  // what was sent before has been read
#pragma unroll
            for (int i = 0; i < kHalf; i++) sent[i * 128] = team ? sum[i] : sum[kHalf + i];
            atlas::sync_named<256>(1);
#pragma unroll
            for (int i = 0; i < kHalf; i++) {
                const float other = got[i * 128];
                sum[i] = team ? atlas::silu(other) * sum[kHalf + i] : atlas::silu(sum[i]) * other;
            }
            if (strip >= strips) continue;
#pragma unroll
            for (int j = 0; j < P::kRows / 16; j += 2) {
                uint32_t u[4];
#pragma unroll
                for (int l = 0; l < 4; l++) {
                    const float *x = sum + (j + l / 2) * 4 + l % 2 * 2;
                    u[l] = atlas::transpose_matrix(atlas::narrow(x[0], x[1]));
                }
                atlas::transpose_quad(u);
                const int s = at.begin + team * (P::kRows / 2) + (j + t / 2) * 8 + g, pick = s < at.end ? a.Order[s] : -1;
                if (pick >= 0 && pick < total) atlas::store_outputs(a.Out + size_t(pick) * half + first + t % 2 * 8, u, 8, whole);
            }
        }
    }
}

template <class P>
__device__ void expert_down_e4m3(const atlas_ExpertDown &a, void *scratch) {
    using pipe_t = atlas::e4m3_pipe<P::kRows, P::kStages>;
    static_assert(atlas::launched<P, pipe_t::kThreads, pipe_t::kShared>::kFits);
    __shared__ atlas::pick_tiles tiles;
    const int total = a.Rows * a.TopK, strips = (a.W.Rows + 15) / 16, out_tiles = (strips + 7) / 8;
    float *products = static_cast<float *>(scratch);
    const atlas::e4m3_list in(products + size_t(total) * a.W.Rows, total, a.W.Cols);
    atlas::wait_for_previous();
    atlas::release_next();  // not sooner: expert_down_total reads at once what is older than this kernel
    atlas::count_tiles<P::kRows>(tiles, a.Starts, a.W.Count, total);
    const pipe_t pipe;
    const int work = tiles.first[a.W.Count] * out_tiles;
    if (pipe_t::copies()) {
        atlas::give_registers<56>();
        atlas::stage<P::kStages> now;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            const int first = i % out_tiles * 8;
            const auto strip = [&](int s) { return first + s < strips ? atlas::frag<ATLAS_SCHEME_F8BLOCK>::strip(a.W, at.expert, first + s) : nullptr; };
            atlas::gather_e4m3<P::kRows>(pipe, now, in, at, strip, min(8, strips - first), [&](int s) {
                const int pick = a.Order[s];
                return pick >= 0 && pick < total ? pick : -1;
            });
        }
    } else {
        atlas::take_registers<224>();
        atlas::stage<P::kStages> now;
        const int t = atlas::lane() % 4, g = atlas::lane() / 4;
        for (int i = blockIdx.x; i < work; i += gridDim.x) {
            const atlas::picks at = atlas::find_tile<P::kRows>(tiles, a.Starts, a.W.Count, total, i / out_tiles);
            const int strip = i % out_tiles * 8 + atlas::warp(), n = strip * 16 + g;
            float sum[P::kRows / 2];
            atlas::multiply_e4m3_strip<P::kRows>(pipe, now, a.W.Cols / 128, atlas::strip_scales<ATLAS_SCHEME_F8BLOCK>(a.W, at.expert, strip), sum);
            float scale[2];  // of outputs n and n+8
#pragma unroll
            for (int h = 0; h < 2; h++) scale[h] = n + h * 8 < a.W.Rows ? atlas::row_scale(a.W, at.expert, n + h * 8) : 0.0f;
#pragma unroll
            for (int j = 0; j < P::kRows / 4; j++) {  // eight lanes write 32 bytes of a pick
                const int s = at.begin + j / 2 * 8 + t * 2 + j % 2, pick = s < at.end ? a.Order[s] : -1;
                if (pick < 0 || pick >= total) continue;
                float *out = products + size_t(pick) * a.W.Rows + n;
#pragma unroll
                for (int h = 0; h < 2; h++)
                    if (n + h * 8 < a.W.Rows) out[h * 8] = sum[j / 2 * 4 + h * 2 + j % 2] * scale[h];
            }
        }
    }
}
