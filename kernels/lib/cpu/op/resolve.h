// Resolve on a CPU: kRows rows per block.

static inline void resolve(const atlas_Resolve *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int32_t begin = (int32_t)x * kRows, end = a->Rows - begin < kRows ? a->Rows : begin + kRows;
    for (int32_t r = begin; r < end; r++) {
        const int32_t at = -1 - a->IDs[r];
        if (at >= 0) a->IDs[r] = at < a->Count ? a->Sampled[at] : -1;
    }
}
