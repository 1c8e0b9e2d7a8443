// Linear, NormLinear, GatedLinear and Logits of at most eight rows, by eight.cuh, which says what shape they want.
#pragma once
#include "lib/cuda/weight/eight.cuh"

template <class P, typename Args>
__device__ void linear_eight(const Args &a) {
    atlas::eight<P::kScheme, P::kRows, P::kTeams, P::kStrips, P::kUnits, P::kStages, P::kResident, (P::kSpreads ? atlas::kSpread : atlas::kPlain) | (atlas::kAddsTo<Args> ? atlas::kAdd : 0), P::kEarly>::run(
        a.W, a.Bias, a.Rows, [&](int r) { return a.In + size_t(r) * a.W.Cols; }, {},
        [&](int n, int r, float sum) { a.Out[size_t(r) * a.OutPitch + n] = __float2bfloat16_rn(sum); },
        [&](int n, int r) { return a.Out[size_t(r) * a.OutPitch + n]; });
}

template <class P>
__device__ void norm_linear_eight(const atlas_NormLinear &a) {
    atlas::eight<P::kScheme, P::kRows, P::kTeams, P::kStrips, P::kUnits, P::kStages, true, (P::kSpreads ? atlas::kSpread : atlas::kPlain) | atlas::kNorm, P::kEarly>::run(
        a.W, a.Bias, a.Rows, [&](int r) { return a.In + size_t(r) * a.W.Cols; }, {a.In, a.Residual, a.Scale, a.Sum, a.Eps},
        [&](int n, int r, float sum) { a.Out[size_t(r) * a.OutPitch + n] = __float2bfloat16_rn(sum); });
}

// W.Rows % 32 == 0.
template <class P>
__device__ void gated_linear_eight(const atlas_GatedLinear &a) {
    atlas::eight<P::kScheme, P::kRows, P::kTeams, 2, P::kUnits, P::kStages, true, (P::kSpreads ? atlas::kSpread : atlas::kPlain) | atlas::kNorm | atlas::kGate, P::kEarly>::run(
        a.W, nullptr, a.Rows, [&](int r) { return a.In + size_t(r) * a.W.Cols; }, {a.In, a.Residual, a.Scale, a.Sum, a.Eps},
        [&](int n, int r, float gated) { a.Out[size_t(r) * (a.W.Rows / 2) + n] = __float2bfloat16_rn(gated); });
}

template <class P>
__device__ void logits_eight(const atlas_Logits &a) {
    const auto line = [&](int r) -> const atlas_act * {
        const int from = a.Index[r];
        return from >= 0 && from < a.InRows ? a.In + size_t(from) * a.W.Cols : nullptr;
    };
    atlas::eight<P::kScheme, P::kRows, P::kTeams, P::kStrips, P::kUnits, P::kStages, P::kResident, (P::kSpreads ? atlas::kSpread : atlas::kPlain)>::run(
        a.W, nullptr, a.Rows, line, {}, [&](int n, int r, float sum) { a.Out[size_t(r) * a.W.Rows + n] = sum; });
}
