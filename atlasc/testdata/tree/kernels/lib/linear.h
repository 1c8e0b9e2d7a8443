static inline void quantise(const atlas_Linear *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)a, (void)y, (void)z;
    ((uint8_t *)scratch)[x] = kTile;
}

static inline void linear(const atlas_Linear *a, void *scratch, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    a->Out[(size_t)y * a->W.Rows + x] = ((uint8_t *)scratch)[x];
}

static inline void linear_few(const atlas_Linear *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)z;
    a->Out[(size_t)y * a->W.Rows + x] = a->W.Data[x];
}
