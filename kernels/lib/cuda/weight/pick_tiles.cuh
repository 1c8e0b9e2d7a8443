// Picks, which are rows with one of their experts each, sorted by expert, in tiles that have one expert each: how many there are is known on the device alone.
#pragma once
#include "lib/cuda/atlas.cuh"

namespace atlas {

constexpr int kMaxExperts = 1024;

// Which tile of kRows sorted picks belongs to which expert.
struct pick_tiles {
    int first[kMaxExperts + 1];  // tile of each expert, and how many there are
};
struct picks {
    int expert, begin, end;  // sorted picks begin … end-1
};

// Every thread of the block calls it; needs a barrier after it.
template <int kRows>
__device__ void count_tiles(pick_tiles &tiles, const int32_t *starts, int experts, int total) {
    if (threadIdx.x >= 32) return;
    int before = 0;
    for (int base = 0; base < experts; base += 32) {
        const int e = base + lane();
        const int begin = e < experts ? max(starts[e], 0) : 0, end = e < experts ? min(starts[e + 1], total) : 0;
        const int mine = end > begin ? (end - begin + kRows - 1) / kRows : 0;
        int sum = mine;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const int y = __shfl_up_sync(kAllLanes, sum, d);
            if (lane() >= d) sum += y;
        }
        if (e < experts) tiles.first[e] = before + sum - mine;
        before += __shfl_sync(kAllLanes, sum, 31);
    }
    if (lane() == 0) tiles.first[experts] = before;
}
template <int kRows>
__device__ picks find_tile(const pick_tiles &tiles, const int32_t *starts, int experts, int total, int tile) {
    int low = 0, high = experts;  // the last expert whose first tile is not after this one
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (tiles.first[middle] <= tile ? low : high) = middle;
    }
    const int begin = max(starts[low], 0) + (tile - tiles.first[low]) * kRows;
    return {low, begin, min(begin + kRows, min(starts[low + 1], total))};
}

}  // namespace atlas
