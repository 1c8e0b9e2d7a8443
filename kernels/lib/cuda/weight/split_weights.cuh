// What split.cuh knows of weights: where those of a scheme lie, and what makes sums results.
#pragma once
#include "lib/cuda/weight/frag_wide.cuh"

namespace atlas {

// Where a scheme's weights lie: pieces of kPiece rows have 64 columns, a unit, in kBytes; units follow one another, and so do pieces.
template <atlas_Scheme kScheme>
struct split_weights {
    static constexpr int kPiece = 16, kBytes = frag_stage<kScheme>::kStripBytes;
    __device__ static size_t pitch(int cols) { return frag<kScheme>::strip_bytes(cols); }
    // Of n units from u on.
    __device__ static int bytes(int cols, int u, int n) { return min(n * kBytes, int(frag<kScheme>::strip_bytes(cols)) - u * kBytes); }
};
template <>
struct split_weights<ATLAS_SCHEME_BF16> {
    static constexpr int kPiece = 64, kBytes = 8192;
    __device__ static size_t pitch(int cols) { return size_t(tiles64(cols)) * kBytes; }
    __device__ static int bytes(int, int, int n) { return n * kBytes; }
};

// Sums are to be multiplied by this.
template <atlas_Scheme kScheme>
__device__ constexpr float split_factor() {
    if constexpr (kScheme == ATLAS_SCHEME_BF16)
        return 1;
    else
        return frag<kScheme>::kFactor;
}

// What makes sums of outputs n and n+8 results: scales, and what is added.
struct output_scales {
    float scale[2] = {1, 1}, bias[2] = {};
    __device__ void load(const atlas_Weight &w, const float *biases, int n) {
#pragma unroll
        for (int i = 0; i < 2; i++, n += 8) {
            if (n < w.Rows) scale[i] = row_scale(w, 0, n);
            if (biases && n < w.Rows) bias[i] = biases[n];
        }
    }
    __device__ output_scales or_those(bool others, const output_scales &o) const {
        return {{others ? o.scale[0] : scale[0], others ? o.scale[1] : scale[1]}, {others ? o.bias[0] : bias[0], others ? o.bias[1] : bias[1]}};
    }
};

}  // namespace atlas
