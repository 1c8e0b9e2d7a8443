// Accept and DraftRows on a GPU: a thread for each chunk, and for each sequence.
#pragma once
#include "lib/cuda/atlas.cuh"
#include "lib/cuda/uniform.cuh"

namespace atlas::drafts {
constexpr int64_t kAcceptSeed = 0x61636365707400;
}

template <class P>
__device__ void accept_draws(const atlas_Accept &a) {
    const int n = blockIdx.x * P::kThreads + threadIdx.x;
    atlas::wait_for_previous();
    if (n >= a.Chunks) return;
    const int first = a.Starts[n], end = a.Starts[n + 1];
    if (first == end) {
        a.Counts[n] = 0;
        a.Next[n] = a.Last[n] = -1;
        return;
    }
    int d = first;
    for (; d + 1 < end; d++) {
        const int draft = a.Tokens[a.Index[d + 1]];
        if (a.Force > 0) {
            if (!(atlas::uniform(atlas::drafts::kAcceptSeed, a.Position[d]) < a.Force)) break;
            a.Draws[d] = draft;
        } else if (a.Draws[d] < 0 || a.Draws[d] != draft) {
            break;
        }
    }
    a.Counts[n] = d - first + 1;
    a.Next[n] = a.Draws[d];
    a.Last[n] = a.Index[d];
    for (d = first; d < end; d++) a.Behind[a.Index[d]] = a.Draws[d];
}

template <class P>
__device__ void draft_rows(const atlas_DraftRows &a) {
    const int s = blockIdx.x * P::kThreads + threadIdx.x;
    atlas::wait_for_previous();
    if (s >= a.Seqs) return;
    const int n = a.Starts[s], row = n < a.Starts[s + 1], last = row ? a.Last[n] : -1, room = a.Room[s];
    const int of = last < 0 ? 0 : a.StepPositions[last];
    for (int i = 0; i < a.Passes; i++) {
        const size_t pass = size_t(i) * a.Pitch;
        const int p = last < 0 ? 0 : of + i + 1;
        a.Lengths[pass + s] = last < 0 ? 0 : min(p + 1, room);
        if (!row) continue;
        a.Positions[pass + n] = p;
        a.Slots[pass + n] =
            last < 0 || p >= room ? -1 : a.Tables[size_t(s) * a.MaxBlocks + p / a.BlockSize] * a.BlockSize + p % a.BlockSize;
    }
}
