#pragma once

static inline float twice(float x) { return 2 * x; }
