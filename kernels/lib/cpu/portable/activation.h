// prepare_row of activation.h for any processor. Pairs of bf16 need instructions that only some have.
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

static inline void prepare_row(const float *in, activation *out, int cols) {
    for (int b = 0; b < cols / 32; b++, in += 32, out++) {
        f32x4 x[8];
        i32x4 largest = set4_int(0);
        for (int i = 0; i < 8; i++) {
            x[i] = load4(in + 4 * i);
            const i32x4 magnitude = (i32x4)x[i] & 0x7fffffff, more = magnitude > largest;
            largest = (magnitude & more) | (largest & ~more);
        }
        int32_t bits = largest[0];
        for (int i = 1; i < 4; i++) bits = largest[i] > bits ? largest[i] : bits;
        float top;
        memcpy(&top, &bits, sizeof top);
        const int tiny = top < 0x1p-100f;  // 127/top would overflow
        const float inverse = tiny ? 0 : 127 / top;
        for (int i = 0; i < 8; i++) {
            const i32x4 codes = __builtin_convertvector(round4(x[i] * inverse), i32x4);
            for (int j = 0; j < 4; j++) out->code[4 * i + j] = (int8_t)codes[j];
        }
        out->scale = tiny ? 0 : top / 127;
        finish_block(out);
    }
}
#elif kForm == 2
#error "kForm 2 needs a processor with products of bf16 pairs: take a kernel with kForm 0"
#endif
