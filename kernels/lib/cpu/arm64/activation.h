// What activation.h asks for in NEON.
#pragma once

#if kForm == 1
INLINE halves sums_of(const int8_t *code, int count) {
    halves sum = {0, 0};
    for (int c = 0; c < count; c += 4) {
        sum.lower += code[c] + code[c + 1];
        sum.upper += code[c + 2] + code[c + 3];
    }
    return sum;
}

// Codes of eight columns.
INLINE void store_codes(int8_t *code, float32x4_t lo, float32x4_t hi) {
    vst1_s8(code, vqmovn_s16(vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(lo)), vqmovn_s32(vcvtnq_s32_f32(hi)))));
}

// Codes of 32 columns, and the largest of those.
INLINE float make_codes(const float *in, int8_t *code) {
    float32x4_t x[8];
    int32x4_t largest = vdupq_n_s32(0);
    for (int i = 0; i < 8; i++) {
        x[i] = vld1q_f32(in + 4 * i);
        largest = vmaxq_s32(largest, (int32x4_t)x[i] & 0x7fffffff);
    }
    const int32_t bits = vmaxvq_s32(largest);
    float top;
    memcpy(&top, &bits, sizeof top);
    const float inverse = top < 0x1p-100f ? 0 : 127 / top;
    for (int i = 0; i < 8; i += 2) store_codes(code + 4 * i, x[i] * inverse, x[i + 1] * inverse);
    return top;
}

// Codes of what those leave.
INLINE void make_rest(const float *in, float inverse, int8_t *code) {
    for (int i = 0; i < 8; i += 2) {
        const float32x4_t lo = vld1q_f32(in + 4 * i) * inverse, hi = vld1q_f32(in + 4 * i + 4) * inverse;
        store_codes(code + 4 * i, (lo - vrndnq_f32(lo)) * (float)kFiner, (hi - vrndnq_f32(hi)) * (float)kFiner);
    }
}
#elif kForm == 2
typedef struct {
    uint16_t top[4];   // four columns, rounded
    uint16_t rest[4];  // what the rounding left, rounded
} activation;
static_assert(sizeof(activation) == 16, "manifests size the scratch by it");
enum { kGroup = 4 };

// One bf16 has eight bits, which small models notice; with a second one for the rest there are sixteen. Columns past
// the last are zero.
static inline void prepare_row(const float *in, activation *out, int cols) {
    for (int c = 0; c < cols; c += 4, out++) {
        float part[4] = {0};
        memcpy(part, in + c, (cols - c < 4 ? cols - c : 4) * sizeof *in);
        const float32x4_t x = vld1q_f32(part);
        const bfloat16x4_t top = vcvt_bf16_f32(x);
        vst1_bf16((bfloat16_t *)out->top, top);
        vst1_bf16((bfloat16_t *)out->rest, vcvt_bf16_f32(x - vcvt_f32_bf16(top)));
    }
}
#endif
