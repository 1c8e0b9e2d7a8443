#include "lib/common.h"

static inline void norm(const atlas_Norm *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    for (int c = 0; c < a->Cols; c++) a->Out[(size_t)x * a->Cols + c] = twice(a->Eps);
}
