// Prints how fast memory is read, in GB/s: the best of some passes over a buffer of 1 GiB, each thread reading its own part. A pass
// lasts from the first thread's start to the last one's end, by their own clocks: who waits for them may be late.
//
// usage: read THREADS [PASSES]
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { BYTES = 1 << 30, MOST_THREADS = 1024 };

static uint64_t *buffer;
static int threads = 1, passes = 10;
static pthread_barrier_t barrier;
static uint64_t sums[MOST_THREADS];
static double starts[MOST_THREADS], ends[MOST_THREADS];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The compiler makes it a vector a cycle, which is more than memory gives.
static uint64_t sum(const uint64_t *p, size_t n) {
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) total += p[i];
    return total;
}

static void *work(void *argument) {
    int me = (int)(intptr_t)argument;
    size_t n = BYTES / sizeof *buffer / (size_t)threads;
    uint64_t *part = buffer + n * (size_t)me;
    memset(part, me + 1, n * sizeof *part);
    for (int i = 0; i < passes; i++) {
        pthread_barrier_wait(&barrier);
        starts[me] = now();
        sums[me] += sum(part, n);
        ends[me] = now();
        pthread_barrier_wait(&barrier); // main reads the times between this one and the next
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) threads = atoi(argv[1]);
    if (argc > 2) passes = atoi(argv[2]);
    if (threads < 1 || threads > MOST_THREADS || passes < 1) {
        fprintf(stderr, "usage: read THREADS [PASSES]\n");
        return 2;
    }
    buffer = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED) {
        perror("read: no 1 GiB of memory");
        return 1;
    }
    madvise(buffer, BYTES, MADV_HUGEPAGE); // where the kernel allows it
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)i)) {
            fprintf(stderr, "read: cannot start thread %d\n", i);
            return 1;
        }
        pthread_detach(thread);
    }
    double best = 0;
    for (int i = 0; i < passes; i++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        double start = starts[0], end = ends[0];
        for (int t = 1; t < threads; t++) {
            if (starts[t] < start) start = starts[t];
            if (ends[t] > end) end = ends[t];
        }
        double rate = BYTES / (end - start) / 1e9;
        if (rate > best) best = rate;
    }
    uint64_t check = 0;
    for (int i = 0; i < threads; i++) check += sums[i];
    fprintf(stderr, "read: sum %llu\n", (unsigned long long)check); // so that reading cannot be left out
    printf("%.2f\n", best);
    return 0;
}
