// Accept and DraftRows on a CPU: one block for all sequences.
#include "lib/cpu/vector.h"
#include "lib/cpu/uniform.h"

#define kAcceptSeed 0x61636365707400

static inline void accept_draws(const atlas_Accept *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)x, (void)y, (void)z;
    for (int32_t n = 0; n < a->Chunks; n++) {
        const int32_t first = a->Starts[n], end = a->Starts[n + 1];
        a->Counts[n] = 0, a->Next[n] = a->Last[n] = -1;
        if (first == end) continue;
        int32_t d = first;
        for (; d + 1 < end; d++) {
            const int32_t draft = a->Tokens[a->Index[d + 1]];
            if (a->Force > 0) {
                if (!(uniform(kAcceptSeed, a->Position[d]) < a->Force)) break;
                a->Draws[d] = draft;
            } else if (a->Draws[d] < 0 || a->Draws[d] != draft) {
                break;
            }
        }
        a->Counts[n] = d - first + 1, a->Next[n] = a->Draws[d], a->Last[n] = a->Index[d];
        for (d = first; d < end; d++) a->Behind[a->Index[d]] = a->Draws[d];
    }
}

static inline void draft_rows(const atlas_DraftRows *a, uint32_t x, uint32_t y, uint32_t z) {
    (void)x, (void)y, (void)z;
    for (int32_t s = 0; s < a->Seqs; s++) {
        const int32_t n = a->Starts[s], row = n < a->Starts[s + 1], last = row ? a->Last[n] : -1;
        const int32_t room = a->Room[s], *const table = a->Tables + (size_t)s * a->MaxBlocks;
        for (int32_t i = 0; i < a->Passes; i++) {
            const size_t pass = (size_t)i * a->Pitch;
            const int32_t p = last < 0 ? 0 : a->StepPositions[last] + i + 1;
            a->Lengths[pass + s] = last < 0 ? 0 : p < room ? p + 1 : room;
            if (!row) continue;
            a->Positions[pass + n] = p;
            a->Slots[pass + n] = last < 0 || p >= room ? -1 : table[p / a->BlockSize] * a->BlockSize + p % a->BlockSize;
        }
    }
}
