// Linear, LinearAdd and Logits for 9 rows and more, any scheme: split.cuh, whose block, cluster, grid and shared memory these have.
//
// W.Cols%8 == 0. Linear has a tile of the copy engine: In, box [kRows,64]. kRows: 16, 32, 64, 128 or 192.
#pragma once
#include "lib/cuda/weight/split.cuh"

template <class P, typename Args>
__device__ void linear_split(const Args &a, const atlas_TensorMap *in) {
    const int first = blockIdx.y * P::kRows;
    const bool pairs = a.OutPitch % 2 == 0 && reinterpret_cast<uintptr_t>(a.Out) % 4 == 0;
    struct place {  // of two outputs of a row
        uint16_t *at;
        bool one, two;
    };
    const auto place_of = [&](int n, int row) {  // once transposed
        const int r = first + row - atlas::lane() % 4 * 2 + atlas::lane() / 4, out = n - atlas::lane() / 4 + atlas::lane() % 4 * 2;
        return place{reinterpret_cast<uint16_t *>(a.Out + size_t(r) * a.OutPitch + out), r < a.Rows && out < a.W.Rows, r < a.Rows && out + 1 < a.W.Rows};
    };
    struct before {
        uint32_t pair[2];
    };
    using split_t = atlas::split<P::kScheme, P::kTeams, P::kStrips, P::kRows, P::kUnits, P::kStages, P::kSplit, false>;
    static_assert(atlas::launched<P, P::kTeams * 128 + 32, split_t::kShared, P::kSplit>::kFits);
    split_t::run(
        a.W, a.Bias, atlas::box_rows(P::kRows, a.Rows),
        [&](uint32_t to, int unit, uint32_t barrier) { atlas::copy_box(to, in, unit * 64, first, barrier); },
        [&](int n, int row, const float(&x)[4], const atlas::output_scales &o, const before &there) {
#pragma unroll
            for (int half = 0; half < 2; half++, n += 8) {
                const float scale = o.scale[half] * split_t::kFactor;
                const uint32_t pair = atlas::narrow(fmaf(x[2 * half], scale, o.bias[half]), fmaf(x[2 * half + 1], scale, o.bias[half]));
                uint32_t u = atlas::transpose_matrix(pair);
                if (atlas::kAddsTo<Args>) u = atlas::plus(there.pair[half], u);
                const place to = place_of(n, row);
                if (pairs && to.two) *reinterpret_cast<uint32_t *>(to.at) = u;
                if (!pairs && to.one) to.at[0] = uint16_t(u);
                if (!pairs && to.two) to.at[1] = uint16_t(u >> 16);
                if (pairs && to.one && !to.two) to.at[0] = uint16_t(u);
            }
        },
        [&](int n, int row) {
            before there = {};
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const place from = place_of(n + half * 8, row);
                if (atlas::kAddsTo<Args> && pairs && from.two)
                    there.pair[half] = *reinterpret_cast<const uint32_t *>(from.at);
                else if (atlas::kAddsTo<Args>)
                    there.pair[half] = (from.one ? from.at[0] : 0u) | (from.two ? from.at[1] : 0u) << 16;
            }
            return there;
        });
}

template <class P>
__device__ void logits_split(const atlas_Logits &a) {
    constexpr int kEach = P::kRows / 4;  // rows that a lane copies a chunk of: lane/8, lane/8+4, …
    const int first = blockIdx.y * P::kRows, chunk = atlas::lane() % 8, top = atlas::lane() / 8;
    uint32_t chunks[kEach], there = 0;  // where rows have this lane's chunk, in units of it; and which are there: others read as zeros
    bool known = false;
    using split_t = atlas::split<P::kScheme, P::kTeams, P::kStrips, P::kRows, P::kUnits, P::kStages, P::kSplit, true>;
    static_assert(atlas::launched<P, P::kTeams * 128 + 32, split_t::kShared, P::kSplit>::kFits);
    split_t::run(
        a.W, nullptr, P::kRows,
        [&](uint32_t to, int unit, uint32_t) {
            if (!known) {
                int line[kEach];
#pragma unroll
                for (int i = 0; i < kEach; i++) line[i] = atlas::load_here(a.Index + min(first + top + i * 4, a.Rows - 1));
#pragma unroll
                for (int i = 0; i < kEach; i++) {
                    const bool is = first + top + i * 4 < a.Rows && line[i] >= 0 && line[i] < a.InRows;
                    chunks[i] = is ? uint32_t(line[i]) * (a.W.Cols / 8) + chunk : 0;
                    there |= uint32_t(is) << i;
                }
                known = true;
            }
            const bool inside = unit * 64 + chunk * 8 < a.W.Cols;
            const uint32_t now = inside ? there : 0;
            const atlas_act *const from = a.In + (inside ? unit * 64 : 0);
            const uint32_t at[2] = {to + top * 128 + (chunk ^ top) * 16, to + top * 128 + (chunk ^ top ^ 4) * 16 + 512};
#pragma unroll
            for (int i = 0; i < kEach; i++) atlas::copy_async(at[i % 2] + i / 2 * 1024, from + size_t(chunks[i]) * 8, now >> i & 1);
        },
        [&](int n, int row, const float(&x)[4], const atlas::output_scales &o, atlas_act) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int out = n + i / 2 * 8, r = first + row + i % 2;
                if (r < a.Rows && out < a.W.Rows) a.Out[size_t(r) * a.W.Rows + out] = x[i] * (o.scale[i / 2] * split_t::kFactor);
            }
        },
        atlas::nothing{});
}
