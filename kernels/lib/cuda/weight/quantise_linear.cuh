// What a Linear or GatedLinear multiplies, as codes in scratch memory, ceil(Rows/128)*128*W.Cols/32*33 bytes, or for quantise_linear_rows
// ceil(Rows/128)*128*(W.Cols+4): before the kernel that multiplies.
//
// quantise_linear: block kThreads threads, grid ceil(Rows*W.Cols/(16*kThreads)). quantise_linear_rows: block kThreads threads, grid
// ceil(Rows/(kThreads/kTeam)), or ceil(Rows/(kThreads/32)) for a warp to have a row. W.Cols%128 == 0, In aligned to 16 bytes.
#pragma once
#include "lib/cuda/weight/e4m3_rows.cuh"

template <class P, typename Op>
__device__ void quantise_linear(const Op &a, void *scratch) {
    atlas::quantise_rows<P::kThreads>(atlas::e4m3_tiles(scratch, a.Rows, a.W.Cols), a.In, a.Rows, a.W.Cols);
}

template <class P, typename Op>
__device__ void quantise_linear_rows(const Op &a, void *scratch) {
    const atlas::e4m3_tiles to(scratch, a.Rows, a.W.Cols);
    if (int(gridDim.x) * (P::kThreads / P::kTeam) < a.Rows)
        atlas::quantise_whole_rows<P::kThreads, 32, P::kEach>(to, a.In, a.Rows, a.W.Cols, blockIdx.x);
    else
        atlas::quantise_whole_rows<P::kThreads, P::kTeam, P::kEach>(to, a.In, a.Rows, a.W.Cols, blockIdx.x);
}
