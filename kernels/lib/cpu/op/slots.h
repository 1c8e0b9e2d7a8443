// The rows of one sequence in recurrent layers: see op.Recurrent.
#pragma once
#include <stdint.h>

typedef struct {
    int64_t slot;              // negative: there is nothing to do
    int32_t first, rows;       // of the step
    int32_t position;          // of the first row
    int32_t drafts, accepted;  // the last rows, and rows of the journal that lead to the state
} sequence_rows;

// The rows of sequence s in the arrays of an argument block; those of one with drafts.
#define SEQUENCE_ROWS(a, s) \
    ((sequence_rows){(a)->Slot[s], (a)->Starts[s], (a)->Starts[(s) + 1] - (a)->Starts[s], (a)->Lengths[s] - ((a)->Starts[(s) + 1] - (a)->Starts[s]), 0, 0})

#define DRAFTED_ROWS(a, r, s)                                    \
    do {                                                         \
        if ((a)->Drafts) (r).drafts = (a)->Drafts[s];            \
        if ((a)->Accepted && (r).position > 0) (r).accepted = (a)->Accepted[s]; \
    } while (0)
