// Integer dot products: to each lane the products of its four weight bytes and four codes of a row are added.
//
// Sums are exact. Codes lie in -127…127, so that two products of a signed byte fit 16 bits, and so do 16 of a nibble.
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
