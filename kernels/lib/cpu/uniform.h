// Random numbers of a seed and a position, as op.Uniform.
INLINE float uniform(int64_t seed, int32_t position) {
    uint64_t x = (uint64_t)seed + 0x9e3779b97f4a7c15u * ((uint64_t)(uint32_t)position + 1);
    for (int round = 0; round < 2; round++) {
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return (float)(x >> 40) / (1 << 24);
}

// As op.Coin.
INLINE float coin(int64_t seed, int32_t position) { return uniform(seed ^ 0x2545f4914f6cdd1d, position); }
