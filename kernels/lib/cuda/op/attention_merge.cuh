// What blocks of attention_few.cuh leave of a group of query vectors that they share, and how the last of them merges it.
#pragma once
#include "lib/cuda/op/attention_walk.cuh"

namespace atlas::attention {

// Scratch: what was summed, and the maximum and sum of the weights, for each slot, head and tile. Slots are sequences or rows.
template <int kDim, bool kSequences>
struct parts {
    float *values;
    float2 *sums;
    size_t tiles;
    __device__ parts(const atlas_PagedAttention &a, void *scratch)
        : values(static_cast<float *>(scratch)), tiles((size_t(a.MaxBlocks) * a.BlockSize + kKeysOf<kDim> - 1) / kKeysOf<kDim>) {
        sums = reinterpret_cast<float2 *>(values + size_t(kSequences ? a.Seqs : a.Rows) * a.Heads * tiles * kDim);
    }
    // Of a query vector's first tile, in tiles.
    __device__ size_t place(const atlas_PagedAttention &a, const tile &t, int q, int first) const {
        return (size_t(kSequences ? t.seq : t.query_row(q)) * a.Heads + t.query_head(q)) * tiles + first;
    }
};

// A lane's columns of values.
template <int kOwn>
__device__ void load_part(float (&x)[kOwn], const float *from) {
    if constexpr (kOwn == 1) {
        x[0] = __ldcg(from);
    } else if constexpr (kOwn == 2) {
        const float2 v = __ldcg(reinterpret_cast<const float2 *>(from));
        x[0] = v.x, x[1] = v.y;
    } else {
#pragma unroll
        for (int i = 0; i < kOwn; i += 4) {
            const float4 v = __ldcg(reinterpret_cast<const float4 *>(from + i));
            x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
        }
    }
}

// Folds what is left of a group that is cut at a tile first, by grains of a tile or a chunk: each half of the four warps one query vector at a
// time.
template <int kDim, bool kSequences>
__device__ void merge(const atlas_PagedAttention &a, const parts<kDim, kSequences> &partial, const share &of, const tile &t, int cut, int size) {
    constexpr int kLanes = 16, kOwn = kDim / kLanes, kAtOnce = kOwn > 8 ? 4 : 8;
    const int l = lane() % kLanes;
    // Entries are grains, own of them a chunk: those of a chunk for what is at tile 0, where the first cut is not in the first
    // chunk, and then those from its chunk on, of which the ones before the cut are there as one.
    const int own = kChunk / size, begin = cut - cut % kChunk, entries = own + grains(of.tiles - begin, size);
    const auto tile_of = [&](int e) { return e < own ? 0 : begin + (e - own) * size; };
    const auto there = [&](int e) { return e < own ? e == 0 && begin > 0 : e < entries && (e == own || tile_of(e) >= cut); };
    const auto from_lane = [](float x, int lane) { return __shfl_sync(kAllLanes, x, lane, kLanes); };
    const auto from_before = [](float x, int d) { return __shfl_up_sync(kAllLanes, x, d, kLanes); };
    for (int of_warp = warp() * 2; of_warp < t.count; of_warp += kFewWarps * 2) {
        const int q = of_warp + lane() / kLanes;
        const bool mine = q < t.count;
        const size_t at = mine ? partial.place(a, t, q, of.first) : 0;
        float value[kOwn] = {};
        running all;
        for (int base = 0; base < entries; base += kAtOnce) {
            const float2 part = mine && l < kAtOnce && there(base + l) ? __ldcg(partial.sums + at + tile_of(base + l)) : float2{-INFINITY, 0};
            float x[kAtOnce][kOwn] = {};
#pragma unroll
            for (int i = 0; i < kAtOnce; i++)
                if (mine && there(base + i)) load_part(x[i], partial.values + (at + tile_of(base + i)) * kDim + l * kOwn);
            // The greatest so far in a chunk, and in all chunks up to this one.
            float inner = part.x;
            const int of_chunk = l & (own - 1);
            for (int d = 1; d < own; d *= 2) {
                const float y = from_before(inner, d);
                if (of_chunk >= d) inner = fmaxf(inner, y);
            }
            float outer = inner;
#pragma unroll
            for (int d = 1; d < kAtOnce; d *= 2) {
                const float y = from_before(outer, d);
                if (l >= d) outer = fmaxf(outer, y);
            }
            const float in_chunk = from_before(inner, 1), chunks = from_lane(outer, max(l - of_chunk - 1, 0));
            running of_mine = {of_chunk ? in_chunk : -INFINITY, 0}, total = {l < own ? all.max : fmaxf(chunks, all.max), 0};
            const joint to_chunk = join(of_mine, part.x, 0), to_all = join(total, inner, 0);
            all.max = fmaxf(from_lane(outer, kAtOnce - 1), all.max);
            float chunk[kOwn] = {}, sum = 0;
#pragma unroll
            for (int i = 0; i < kAtOnce; i++) {
                if (base + i >= entries) break;
                const auto of_lane = [&](const joint &j) { return joint{from_lane(j.keep, i), from_lane(j.add, i)}; };
                const joint j = of_lane(to_chunk), k = of_lane(to_all);
                sum = j.fold(sum, from_lane(part.y, i));
#pragma unroll
                for (int c = 0; c < kOwn; c++) chunk[c] = j.fold(chunk[c], x[i][c]);
                if (((i + 1) & (own - 1)) && base + i + 1 < entries) continue;
                all.sum = k.fold(all.sum, sum), sum = 0;
#pragma unroll
                for (int c = 0; c < kOwn; c++) value[c] = k.fold(value[c], chunk[c]), chunk[c] = 0;
            }
        }
        if (!mine) continue;
        atlas_act *out = a.Out + (size_t(t.query_row(q)) * a.Heads + t.query_head(q)) * kDim + l * kOwn;
#pragma unroll
        for (int c = 0; c < kOwn; c++) out[c] = __float2bfloat16_rn(value[c] * inverse(all.sum));
    }
}

}  // namespace atlas::attention
