// CausalConv on a CPU: kChannels channels of one sequence per block, eight at a time through all of its rows. Limit: Width at most kMost.
#include "lib/cpu/op/slots.h"
#include "lib/cpu/vector.h"

static_assert(sizeof(atlas_act) == sizeof(float), "activations are f32");
static_assert(kChannels % kWidth == 0, "only the last block has a tail");

static inline void causal_conv(const atlas_CausalConv *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    const sequence_rows r = SEQUENCE_ROWS(a, y);
    if (r.slot < 0 || r.rows == 0) return;
    const int begin = x * kChannels, end = a->Channels - begin < kChannels ? a->Channels : begin + kChannels, width = a->Width, ring = width + a->MaxDrafts;
    float *const state = a->State + (size_t)r.slot * ring * a->Channels;
    for (int c = begin; c < end; c += kWidth) {
        const int n = end - c;
        const float *in = a->In + (size_t)r.first * a->InPitch + c;
        float *out = a->Out + (size_t)r.first * a->Channels + c;
        f32x8 filter[kMost], latest[kMost];  // of the latter the oldest first
        for (int j = 0; j < width; j++) {
            float taps[kWidth] = {0};
            for (int l = 0; l < kWidth && l < n; l++) taps[l] = a->Filter[(size_t)(c + l) * width + j];
            filter[j] = load8(taps);
        }
        for (int j = 1; j < width; j++) {
            const int position = r.position - width + j;
            latest[j] = position < 0 ? set8(0) : load_up_to8(state + (size_t)(position % ring) * a->Channels + c, n);
        }
        const f32x8 bias = a->Bias ? load_up_to8(a->Bias + c, n) : set8(0);
        for (int i = 0; i < r.rows; i++, in += a->InPitch, out += a->Channels) {
            for (int j = 0; j + 1 < width; j++) latest[j] = latest[j + 1];
            latest[width - 1] = load_up_to8(in, n);
            f32x8 sum = bias;
            for (int j = 0; j < width; j++) sum = fma8(filter[j], latest[j], sum);
            store_up_to8(out, div8(sum, add8(set8(1), exp8(neg8(sum)))), n);
            if (i >= r.rows - ring) store_up_to8(state + (size_t)((r.position + i) % ring) * a->Channels + c, latest[width - 1], n);
        }
    }
}
