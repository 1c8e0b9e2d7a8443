// RotaryAngles on a GPU, one row per block of kThreads. An angle is rounded to f32; its turns are counted in f64, so that
// large positions lose nothing and no slow path is needed.
#pragma once
#include "lib/cuda/atlas.cuh"

template <class P>
__device__ void rotary_angles(const atlas_RotaryAngles &a) {
    constexpr double kHalfTurns = 0.31830988618379067154;  // 1/π
    float *cosine = a.Out + size_t(blockIdx.x) * 2 * a.Pairs, *sine = cosine + a.Pairs;
    atlas::release_next();
    atlas::wait_for_previous();
    for (int j = threadIdx.x; j < a.Pairs; j += P::kThreads) {
        const int axis = a.Axis ? a.Axis[j] : 0;
        const float angle = __fmul_rn(float(a.Positions[size_t(axis) * a.Rows + blockIdx.x]), a.Frequency[j]);
        double half_turns = angle * kHalfTurns;
        half_turns -= 2 * rint(half_turns / 2);
        float s, c;
        sincospif(float(half_turns), &s, &c);
        cosine[j] = a.Scale * c;
        sine[j] = a.Scale * s;
    }
}
