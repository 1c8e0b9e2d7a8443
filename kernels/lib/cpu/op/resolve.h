// Resolve on a CPU: kWords words per block.

static inline void resolve(const atlas_Resolve *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    const int32_t begin = (int32_t)x * kWords, end = a->Count - begin < kWords ? a->Count : begin + kWords;
    for (int32_t i = begin; i < end; i++) {
        const int32_t word = a->In[i], at = -1 - word;
        a->Out[i] = i >= a->Rows || word >= 0 ? word : at < a->Samples ? a->Sampled[at] : -1;
    }
}
