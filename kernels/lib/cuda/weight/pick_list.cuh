// Which experts the picks of a few rows have, in tiles of at most kWidth picks of one expert, in shared memory; and their rows.
#pragma once
#include "lib/cuda/weight/resident.cuh"

namespace atlas {

template <int kPicks, int kWidth>
struct pick_list {
    static_assert(kPicks <= 32, "a lane per pick");
    struct tile {
        int expert, pick[kWidth], line[kWidth];  // line: where a pick's row of activations lies. Where there is no pick: -1, and the first's line.
    };
    tile tiles[kPicks];
    int count;

    // All lanes of a warp, a pick each; expert < 0 where there is none.
    __device__ void make(int expert, int pick, int line) {
        const uint32_t below = (1u << lane()) - 1, same = __match_any_sync(kAllLanes, expert);
        uint32_t before = same & below;
        const int number = __popc(before) % kWidth;  // in its tile
        int first = lane();
#pragma unroll 1
        for (int i = 0; i < number; i++) first = 31 - __clz(before), before ^= 1u << first;
        const uint32_t firsts = __ballot_sync(kAllLanes, expert >= 0 && number == 0);
        if (expert >= 0) {
            tile &t = tiles[__popc(firsts & (1u << first) - 1)];
            t.pick[number] = pick, t.line[number] = line;
            if (number == 0) {
                t.expert = expert;
#pragma unroll
                for (int i = 1; i < kWidth; i++)
                    if (i >= __popc(same & ~below)) t.pick[i] = -1, t.line[i] = line;
            }
        }
        if (lane() == 0) count = __popc(firsts);
    }
};

// Rows of activations into shared memory, times 2⁶⁴ where kLifts: this thread has chunks thread, thread+kThreads, … of rows first,
// first+step, …, kEach of them. All blocks read the same rows at the same time, so each begins `turn` chunks later: memory serves one block
// after the other where they ask for the same bytes.
template <int kEach, int kTurns, int kThreads, bool kLifts>
__device__ void keep_lines(uint32_t to, int pitch, const atlas_act *from, int first, int step, int rows, int cols, int thread, int turn) {
    const int chunks = cols / 8;
    const auto place = [&](int c) { return c + turn < chunks ? c + turn : c + turn - chunks; };
#pragma unroll 1
    for (int base = thread; base < chunks; base += kThreads * kTurns) {
        uint4 x[kTurns][kEach];
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int i = 0; i < kEach; i++) {
                const int c = base + t * kThreads, r = first + i * step;
                if (c < chunks && r < rows) x[t][i] = __ldcg(reinterpret_cast<const uint4 *>(from + size_t(r) * cols) + place(c));
            }
#pragma unroll
        for (int t = 0; t < kTurns; t++)
#pragma unroll
            for (int i = 0; i < kEach; i++) {
                const int c = base + t * kThreads, r = first + i * step;
                if (c < chunks && r < rows) keep<kLifts>(to + r * pitch, place(c), x[t][i]);
            }
    }
}

// Zeros what follows the last column in rows of pitch bytes, the last 16 of which are not used.
template <int kThreads>
__device__ void zero_tails(uint32_t rows_at, int rows, int pitch, int cols) {
    const int tail = pitch / 16 - 1 - cols / 8;
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * tail; i += kThreads) store_shared(rows_at + i / tail * pitch + cols * 2 + i % tail * 16, uint4{});
}

}  // namespace atlas
