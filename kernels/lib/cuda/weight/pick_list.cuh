// Which experts the picks of a few rows have, in tiles of at most kWidth picks of one expert, in shared memory; and their rows.
#pragma once
#include <type_traits>

#include "lib/cuda/weight/resident.cuh"

namespace atlas {

template <int kPicks, int kWidth>
struct pick_list {
    static_assert(kPicks <= 64, "two picks of a lane");
    static constexpr int kEach = (kPicks + 31) / 32;                 // picks of a lane: lane() and lane()+32
    using set = std::conditional_t<kEach == 1, uint32_t, uint64_t>;  // of picks, a bit each
    struct tile {
        int expert, pick[kWidth], line[kWidth];  // line: where a pick's row of activations lies. Where there is no pick: -1, and the first's line.
    };
    tile tiles[kPicks];
    int count;

    // All lanes of a warp, each with the experts of its picks, below 0 where there is none, and where their rows lie.
    __device__ void make(const int (&expert)[kEach], const int (&line)[kEach]) {
        set same[kEach], firsts = 0;  // picks of a pick's expert; the first of each tile
        int number[kEach], first[kEach];
        find_same(expert, same);
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            set before = same[i] & below(pick(i));
            number[i] = size(before) % kWidth, first[i] = pick(i);  // its place in its tile, and the tile's first
#pragma unroll 1
            for (int n = 0; n < number[i]; n++) first[i] = last(before), before ^= set(1) << first[i];
            firsts |= set(__ballot_sync(kAllLanes, expert[i] >= 0 && number[i] == 0)) << i * 32;
        }
#pragma unroll
        for (int i = 0; i < kEach; i++) {
            if (expert[i] < 0) continue;
            tile &t = tiles[size(firsts & below(first[i]))];
            t.pick[number[i]] = pick(i), t.line[number[i]] = line[i];
            if (number[i] > 0) continue;
            t.expert = expert[i];
#pragma unroll
            for (int k = 1; k < kWidth; k++)
                if (k >= size(same[i] & ~below(pick(i)))) t.pick[k] = -1, t.line[k] = line[i];
        }
        if (lane() == 0) count = size(firsts);
    }

  private:
    __device__ static int pick(int i) { return i * 32 + lane(); }
    __device__ static set below(int pick) { return (set(1) << pick) - 1; }
    __device__ static int size(uint32_t picks) { return __popc(picks); }
    __device__ static int size(uint64_t picks) { return __popcll(picks); }
    __device__ static int last(uint32_t picks) { return 31 - __clz(picks); }
    __device__ static int last(uint64_t picks) { return 63 - __clzll(picks); }
    __device__ static void find_same(const int (&expert)[kEach], set (&same)[kEach]) {
#pragma unroll
        for (int i = 0; i < kEach; i++) same[i] = set(__match_any_sync(kAllLanes, expert[i])) << i * 32;
        if constexpr (kEach == 2)
#pragma unroll
            for (int p = 32; p < kPicks; p++) {  // one lane's second pick and all first ones
                const bool mine = expert[0] == __shfl_sync(kAllLanes, expert[1], p - 32);
                const uint32_t firsts = __ballot_sync(kAllLanes, mine);
                same[0] |= set(mine) << p;
                if (lane() == p - 32) same[1] |= firsts;
            }
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
