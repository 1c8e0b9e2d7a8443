// The tile registers of AMX: sixteen rows of up to 64 bytes. Which shapes they have is said once for each block of work.
//
// gcc does not know that its words for loading tiles read memory: what is stored before must be behind a barrier.
#pragma once
#include "lib/cpu/weight/activation.h"

enum { kTile = 16 };  // rows of a tile

// What ldtilecfg reads.
typedef struct {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;
static_assert(sizeof(tile_shapes) == 64, "ldtilecfg reads 64 bytes");

// Tiles 0 … sums-1 hold sums of sixteen rows and outputs, those after them rows' codes and outputs' words in turn; step
// bytes of a row and as many of an output meet in one instruction.
INLINE void shape_tiles(int sums, int step) {
    tile_shapes s = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        const int words = i >= sums && (i - sums) % 2;
        s.rows[i] = words ? step / 4 : kTile;
        s.row_bytes[i] = i >= sums && !words ? step : 4 * kLanes;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(s));  // gcc's own word for it reads eight bytes as gcc sees it
}

INLINE void barrier(void) { __asm__ volatile("" ::: "memory"); }
