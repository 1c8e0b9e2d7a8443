// What activation.h asks for, for any processor. Pairs of bf16 need instructions that only some have.
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

// Codes of four columns.
INLINE void store_codes(int8_t *code, f32x4 x) {
    const i32x4 q = __builtin_convertvector(round4(x), i32x4);
    for (int j = 0; j < 4; j++) code[j] = (int8_t)q[j];
}

// Codes of 32 columns, and the largest of those.
INLINE float make_codes(const float *in, int8_t *code) {
    i32x4 largest = set4_int(0);
    for (int i = 0; i < 8; i++) {
        const i32x4 magnitude = (i32x4)load4(in + 4 * i) & 0x7fffffff, more = magnitude > largest;
        largest = (magnitude & more) | (largest & ~more);
    }
    int32_t bits = largest[0];
    for (int i = 1; i < 4; i++) bits = largest[i] > bits ? largest[i] : bits;
    float top;
    memcpy(&top, &bits, sizeof top);
    const float inverse = top < 0x1p-100f ? 0 : 127 / top;
    for (int i = 0; i < 8; i++) store_codes(code + 4 * i, load4(in + 4 * i) * inverse);
    return top;
}

// Codes of what those leave.
INLINE void make_rest(const float *in, float inverse, int8_t *code) {
    for (int i = 0; i < 8; i++) {
        const f32x4 x = load4(in + 4 * i) * inverse;
        store_codes(code + 4 * i, (x - round4(x)) * (float)kFiner);
    }
}
#elif kForm == 2
#error "kForm 2 needs a processor with products of bf16 pairs: take a kernel with kForm 0"
#endif
