// RotaryAngles on a CPU, one row per block. An angle is rounded to f32 before its cosine and sine are taken.
#include <math.h>

static inline void rotary_angles(const atlas_RotaryAngles *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)y, (void)z;
    float *cosine = a->Out + (size_t)x * 2 * a->Pairs, *sine = cosine + a->Pairs;
    for (int j = 0; j < a->Pairs; j++) {
        const int32_t axis = a->Axis ? a->Axis[j] : 0;
        const float angle = (float)a->Positions[(size_t)axis * a->Rows + x] * a->Frequency[j];
        cosine[j] = a->Scale * cosf(angle);
        sine[j] = a->Scale * sinf(angle);
    }
}
