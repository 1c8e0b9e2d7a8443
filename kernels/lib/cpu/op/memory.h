// Copy and Fill on a CPU: kBytes bytes per block.
#include <string.h>

static_assert(kBytes % 4 == 0, "whole words");

static inline void copy_bytes(const atlas_Copy *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int64_t begin = (int64_t)x * kBytes, rest = a->Bytes - begin;
    memcpy(a->Out + begin, a->In + begin, rest < kBytes ? rest : kBytes);
}

static inline void fill_words(const atlas_Fill *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int64_t begin = (int64_t)x * (kBytes / 4), end = a->Count - begin < kBytes / 4 ? a->Count : begin + kBytes / 4;
    for (int64_t i = begin; i < end; i++) a->Out[i] = a->Value;
}
