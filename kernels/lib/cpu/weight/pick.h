// The picks of a routing step: each row chose some experts, and Order lists the picks expert by expert.
//
// Order and Starts lie in memory that another kernel wrote: whatever they hold, no index leaves its buffer.
#pragma once
#include <stdint.h>

// Picks in order, [begin, end) of one expert.
typedef struct { int begin, end; } picks;

static inline picks picks_of(const int32_t *starts, int expert, int count) {
    const int begin = starts[expert] < 0 ? 0 : starts[expert], end = starts[expert + 1];
    return (picks){begin, end < count ? end : count};
}

// The expert that place s of Order belongs to; the last one or the first where no expert holds it.
static inline int expert_at(const int32_t *starts, int experts, int s) {
    int low = 0, high = experts - 1;
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (starts[middle] <= s)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}
