// CausalConv on a CPU: a block has kChannels channels of kSeqs sequences, and goes through the rows of each. The filter's taps are brought into the
// order of channels once for all of them. Limit: Width at most kMost.
#include "lib/cpu/op/slots.h"
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");
static_assert(kChannels % kWidth == 0, "only the last block has a tail");

// taps[j] of n channels; zeros follow.
INLINE void order_taps(float taps[][kChannels], const float *filter, int n, int width) {
    for (int j = 0; j < width; j++) {
        for (int c = 0; c < n; c++) taps[j][c] = filter[(size_t)c * width + j];
        for (int c = n; c < kChannels; c++) taps[j][c] = 0;
    }
}

// One row of n channels. inputs are the rows that it sees, the oldest first; NULL: zeros.
INLINE void convolve_row(float *out, float *const *inputs, float taps[][kChannels], const float *bias, int n, int width) {
    for (int c = 0; c < n; c += kWidth) {
        f32x8 sum = bias ? load_up_to8(bias + c, n - c) : set8(0);
        for (int j = 0; j < width; j++)
            if (inputs[j]) sum = fma8(load8(taps[j] + c), load_up_to8(inputs[j] + c, n - c), sum);
        store_up_to8(out + c, div8(sum, add8(set8(1), exp8(neg8(sum)))), n - c);
    }
}

INLINE void convolve_sequence(const atlas_CausalConv *a, float taps[][kChannels], sequence_rows r, int begin, int n) {
    const int width = a->Width, ring = width + a->MaxDrafts;
    const float *bias = a->Bias ? a->Bias + begin : NULL;
    float *const in = (float *)a->In + (size_t)r.first * a->InPitch + begin, *const state = a->State + (size_t)r.slot * ring * a->Channels + begin;
    for (int i = 0; i < r.rows; i++) {
        float *inputs[kMost];
        for (int j = 0; j < width; j++) {
            const int back = width - 1 - j;  // from this row's position
            if (back <= i)
                inputs[j] = in + (size_t)(i - back) * a->InPitch;
            else
                inputs[j] = back > r.position + i ? NULL : state + (size_t)((r.position + i - back) % ring) * a->Channels;
        }
        float *out = a->Out + (size_t)(r.first + i) * a->Channels + begin;
        if (width == 4 && inputs[0])
            convolve_row(out, inputs, taps, bias, n, 4);
        else
            convolve_row(out, inputs, taps, bias, n, width);
        // The row of the ring is that of an input which no later row sees.
        if (i >= r.rows - ring) memcpy(state + (size_t)((r.position + i) % ring) * a->Channels, inputs[width - 1], n * sizeof(float));
    }
}

static inline void causal_conv(const atlas_CausalConv *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    const int begin = x * kChannels, n = a->Channels - begin < kChannels ? a->Channels - begin : kChannels;
    const int64_t end = ((int64_t)y + 1) * kSeqs < a->Seqs ? ((int64_t)y + 1) * kSeqs : a->Seqs;
    float taps[kMost][kChannels];
    if (a->Width == 4)
        order_taps(taps, a->Filter + (size_t)begin * 4, n, 4);
    else
        order_taps(taps, a->Filter + (size_t)begin * a->Width, n, a->Width);
    for (int64_t s = (int64_t)y * kSeqs; s < end; s++) {
        const sequence_rows r = SEQUENCE_ROWS(a, s);
        if (r.slot >= 0) convolve_sequence(a, taps, r, begin, n);
    }
}
