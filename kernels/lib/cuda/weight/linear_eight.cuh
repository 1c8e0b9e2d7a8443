// Linear, NormLinear, GatedLinear and Logits of at most eight rows, by eight.cuh, which says what shape they want. Rows of up to kCols columns stay in
// shared memory; where kCols is 0 they come with the stages. kSpreads: with bits of its own, see there.
#pragma once
#include "lib/cuda/weight/eight.cuh"

namespace atlas {

// A kernel's eight, of whose kStrips a manifest says nothing where there are gates.
template <class P, int kStrips, int kExtra, int kEarly>
struct eight_of : eight<P::kScheme, P::kRows, P::kTeams, kStrips, P::kUnits, P::kStages, (P::kCols > 0), kExtra | (P::kSpreads ? kSpread : kPlain), kEarly> {
    static_assert(launched<P, eight_of::kThreads, eight_of::template kTaken<P::kCols>>::kFits);
};

}  // namespace atlas

template <class P, typename Args>
__device__ void linear_eight(const Args &a) {
    atlas::eight_of<P, P::kStrips, atlas::kAddsTo<Args> ? atlas::kAdd : 0, P::kEarly>::run(
        a.W, a.Bias, a.Rows, [&](int r) { return a.In + size_t(r) * a.W.Cols; }, {},
        [&](int n, int r, float sum) { a.Out[size_t(r) * a.OutPitch + n] = __float2bfloat16_rn(sum); },
        [&](int n, int r) { return a.Out[size_t(r) * a.OutPitch + n]; });
}

template <class P>
__device__ void norm_linear_eight(const atlas_NormLinear &a) {
    atlas::eight_of<P, P::kStrips, atlas::kNorm, P::kEarly>::run(
        a.W, a.Bias, a.Rows, [&](int r) { return a.In + size_t(r) * a.W.Cols; }, {a.In, a.Residual, a.Scale, a.Sum, a.Eps},
        [&](int n, int r, float sum) { a.Out[size_t(r) * a.OutPitch + n] = __float2bfloat16_rn(sum); });
}

// W.Rows % 32 == 0.
template <class P>
__device__ void gated_linear_eight(const atlas_GatedLinear &a) {
    atlas::eight_of<P, 2, atlas::kNorm | atlas::kGate, P::kEarly>::run(
        a.W, nullptr, a.Rows, [&](int r) { return a.In + size_t(r) * a.W.Cols; }, {a.In, a.Residual, a.Scale, a.Sum, a.Eps},
        [&](int n, int r, float gated) { a.Out[size_t(r) * (a.W.Rows / 2) + n] = __float2bfloat16_rn(gated); });
}

template <class P>
__device__ void logits_eight(const atlas_Logits &a) {
    const auto line = [&](int r) -> const atlas_act * {
        const int from = a.Index[r];
        return from >= 0 && from < a.InRows ? a.In + size_t(from) * a.W.Cols : nullptr;
    };
    atlas::eight_of<P, P::kStrips, 0, P::kStages>::run(
        a.W, nullptr, a.Rows, line, {}, [&](int n, int r, float sum) { a.Out[size_t(r) * a.W.Rows + n] = sum; });
}
