// Advance on a CPU: one block for all sequences.

static inline void advance(const atlas_Advance *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)x, (void)y, (void)z;
    for (int32_t s = 0; s < a->Seqs; s++) {
        const int32_t chunk = a->Follows[s];
        if (chunk < 0 || chunk >= a->Chunks) continue;
        const int32_t n = a->Counts[chunk] - 1, *const table = a->Tables + (size_t)s * a->MaxBlocks;
        a->Lengths[s] += n;
        a->Accepted[s] = n;
        for (int32_t r = a->Starts[s]; r < a->Starts[s + 1]; r++) {
            const int32_t p = a->Positions[r] + n;
            a->Positions[r] = p;
            a->DrawPositions[r] += n;
            a->Slots[r] = table[p / a->BlockSize] * a->BlockSize + p % a->BlockSize;
        }
    }
}
