// Kernels for the tests of the device: what a list of launches must get right.
#include <stdatomic.h>
#include <stdint.h>

typedef struct {
    uint32_t *out;
    uint32_t columns, planes, value;
    uint32_t pad;
} mark;

// Each block adds to its own cell, so that a block that runs twice or never shows.
__attribute__((visibility("default"))) void test_mark(const mark *a, uint32_t x, uint32_t y, uint32_t z) {
    a->out[(z * a->planes + y) * a->columns + x] += a->value;
}

// Doubles after whatever came before: shows launches that overlap or change places.
__attribute__((visibility("default"))) void test_double(const mark *a, uint32_t x, uint32_t y, uint32_t z) {
    a->out[(z * a->planes + y) * a->columns + x] *= 2;
}
