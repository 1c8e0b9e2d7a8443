// Integer dot products: to each lane the products of its four weight bytes and four codes of a row are added.
//
// Sums are exact. Codes lie in -127…127, so that two products of a signed byte fit 16 bits. Unsigned weights have at most
// six bits. Their offset is in the number that a sum begins with; so two sums of 16 bits, of the lane's bytes 0, 1 and of
// 2, 3, hold 16 products of up to five bits and eight of six, whatever they passed on the way.
#pragma once
#include "activation.h"

// The four codes that meet word w.
INLINE i32x16 codes_at(const activation *x, int w) {
    int32_t codes;
    memcpy(&codes, x->code + 4 * w, sizeof codes);
    return i32x16_set(codes);
}

#ifdef __aarch64__
#include "lib/cpu/arm64/dot.h"
#elif defined __AVX2__
#include "lib/cpu/x86/dot.h"
#else
#include "lib/cpu/portable/dot.h"
#endif

static inline void finish_block(activation *x) {
    for (int s = 0; s < 32 / kShared; s++) {
        const halves sums = sums_of(x->code + s * kShared, kShared);
        const int lower = sums.lower, upper = sums.upper;
        if (kIsQ4_1 || kIsQ4_K)
            x->sum = x->scale * (float)(kIsQ4_K ? -(lower + upper) : lower + upper);
        else
            x->start[s] = kInPairs ? (int)((uint32_t)(-kDotOffset * upper) << 16) | (-kDotOffset * lower & 0xffff) : -kDotOffset * (lower + upper);
    }
}
