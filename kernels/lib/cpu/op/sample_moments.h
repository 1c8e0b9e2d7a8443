// What the logits of a row are as a whole: how far they lie apart, and how even the distribution is that they make. A chunk's sums
// are of logits less its largest.
#pragma once
#include <float.h>

#include "lib/cpu/op/sample_order.h"

static inline void sum_spread(sample_chunk *c) {
    const f32x8 max = set8(c->max), none = set8(-INFINITY);
    f64x8 squares = {0};
    c->count = c->sum = 0;
    for (int32_t run = 0; run < kRuns; run++) {
        f32x8 sum = set8(0);
        int count = kRun;
        for (int32_t i = run * kRun; i < (run + 1) * kRun; i += kWidth) {
            const f32x8 z = load8(c->logits + i);
            const mask8 out = equal8(z, none);
            const f32x8 less = pick8(out, sub8(z, max), set8(0));
            sum = add8(sum, less);
            squares = add_squares8(squares, less);
            count -= __builtin_popcount(bits_of8(out));
        }
        c->sum += sum8(sum);
        c->count += count;
    }
    c->squares = sum8_f64(squares);
}

static inline void sum_heat(sample_chunk *c) {
    const f32x8 max = set8(c->max), least = set8(-100);  // which adds nothing
    c->heat = c->moment = 0;
    for (int32_t run = 0; run < kRuns; run++) {
        f32x8 heat = set8(0), moment = set8(0);
        for (int32_t i = run * kRun; i < (run + 1) * kRun; i += kWidth) {
            const f32x8 less = max8(least, sub8(load8(c->logits + i), max)), e = exp8(less);
            heat = add8(heat, e);
            moment = add8(moment, mul8(less, e));
        }
        c->heat += sum8(heat);
        c->moment += sum8(moment);
    }
}

// The standard deviation of a row's logits; infinity where it is too large for sums.
static inline double deviation(const sample_row *r) {
    double count = 0, sum = 0, squares = 0;
    for (int32_t i = 0; i < r->chunks; i++) {
        const sample_chunk *c = r->chunk + i;
        if (c->max == -INFINITY) continue;
        const double less = (double)c->max - r->max;
        count += c->count;
        sum += c->sum + c->count * less;
        squares += c->squares + 2 * less * c->sum + c->count * less * less;
    }
    const double variance = squares / count - sum / count * (sum / count);
    return variance <= 0 ? 0 : variance > 0 ? sqrt(variance) : INFINITY;
}

// The entropy of a row's distribution at temperature 1, in nats.
static inline double entropy(const sample_row *r) {
    double heat = 0, moment = 0;
    for (int32_t i = 0; i < r->chunks; i++) {
        const sample_chunk *c = r->chunk + i;
        if (c->max == -INFINITY) continue;
        const double less = (double)c->max - r->max, scale = exp(less);
        heat += scale * c->heat;
        moment += scale * (c->moment + c->heat * less);
    }
    return log(heat) - moment / heat;
}
