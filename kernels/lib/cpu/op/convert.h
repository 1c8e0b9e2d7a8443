// Convert on a CPU: kElements elements per block, eight at a time through f32, which holds bf16 and f16 exactly.
#include "lib/cpu/vector.h"

static_assert(kElements % kWidth == 0, "only the last block has a tail");

INLINE int element_bytes(atlas_DType type) { return type == ATLAS_F32 ? 4 : 2; }

// Eight elements from and to memory that holds all eight.
INLINE f32x8 load_elements(const void *p, atlas_DType type) {
    if (type == ATLAS_F32) return load8(p);
    if (type == ATLAS_BF16) return load8_bf16(p);
    return load8_f16(p);
}
INLINE void store_elements(void *p, f32x8 x, atlas_DType type) {
    if (type == ATLAS_F32)
        store8(p, x);
    else if (type == ATLAS_BF16)
        store8_bf16(p, x);
    else
        store8_f16(p, x);
}

INLINE void convert_between(char *out, atlas_DType to, const char *in, atlas_DType from, int n) {
    const int to_bytes = element_bytes(to), from_bytes = element_bytes(from);
    int i = 0;
    for (; i + kWidth <= n; i += kWidth) store_elements(out + i * to_bytes, load_elements(in + i * from_bytes, from), to);
    if (i == n) return;
    float in_part[kWidth] = {0}, out_part[kWidth];
    memcpy(in_part, in + i * from_bytes, (n - i) * from_bytes);
    store_elements(out_part, load_elements(in_part, from), to);
    memcpy(out + i * to_bytes, out_part, (n - i) * to_bytes);
}

static inline void convert(const atlas_Convert *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int64_t begin = (int64_t)x * kElements, rest = a->Count - begin;
    const int n = rest < kElements ? rest : kElements;
    const atlas_DType to = a->OutType, from = a->InType;
    char *out = (char *)a->Out + begin * element_bytes(to);
    const char *in = (const char *)a->In + begin * element_bytes(from);
    if (to == from)
        memcpy(out, in, (size_t)n * element_bytes(to));
    else if (from == ATLAS_F32 && to == ATLAS_BF16)
        convert_between(out, ATLAS_BF16, in, ATLAS_F32, n);
    else if (from == ATLAS_F32 && to == ATLAS_F16)
        convert_between(out, ATLAS_F16, in, ATLAS_F32, n);
    else if (from == ATLAS_BF16 && to == ATLAS_F32)
        convert_between(out, ATLAS_F32, in, ATLAS_BF16, n);
    else if (from == ATLAS_F16 && to == ATLAS_F32)
        convert_between(out, ATLAS_F32, in, ATLAS_F16, n);
    else if (from == ATLAS_F16)
        convert_between(out, ATLAS_BF16, in, ATLAS_F16, n);
    else
        convert_between(out, ATLAS_F16, in, ATLAS_BF16, n);
}
