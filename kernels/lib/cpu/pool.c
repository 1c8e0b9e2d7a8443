// Resident threads that run a list of launches: the CPU's counterpart of a GPU queue and of its graphs.
//
// The caller is worker 0. Blocks of a launch are claimed from one counter, so a slow thread takes fewer; the next launch
// starts when all blocks of this one are done. Between lists the others spin for a while and then sleep on a futex.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
    void (*run)(const void *args, uint32_t x, uint32_t y, uint32_t z);
    const void *args;
    uint32_t x, y, z, chunk;  // grid, and how many blocks a thread claims at once
} atlas_command;

enum { kMaxThreads = 256, kSpinsBeforeYield = 1 << 10, kSpinsBeforeSleep = 1 << 14 };

static struct {
    _Alignas(64) _Atomic uint32_t list;     // grows by one with each list; workers wait for it
    _Alignas(64) _Atomic uint32_t sleepers;
    _Alignas(64) _Atomic uint64_t next;     // first unclaimed block of the launch
    _Alignas(64) _Atomic uint32_t arrived;  // threads that have finished the launch
    _Alignas(64) _Atomic uint32_t launch;   // launches that are over
    const atlas_command *commands;
    size_t count;
    int threads;
    _Atomic int stop;
} pool;

// Leaves the core to others for some ten nanoseconds.
static inline void pause_core(void) {
#ifdef __aarch64__
    __asm__ volatile("isb" ::: "memory");
#else
    __builtin_ia32_pause();
#endif
}

static inline void relax(unsigned spin) {
    if (spin % kSpinsBeforeYield == kSpinsBeforeYield - 1)
        sched_yield();
    else
        pause_core();
}

static void blocks(const atlas_command *c) {
    const uint64_t total = (uint64_t)c->x * c->y * c->z;
    for (;;) {
        uint64_t b = atomic_fetch_add_explicit(&pool.next, c->chunk, memory_order_relaxed);
        if (b >= total) return;
        const uint64_t end = b + c->chunk < total ? b + c->chunk : total;
        for (; b < end; b++) c->run(c->args, b % c->x, b / c->x % c->y, b / c->x / c->y);
    }
}

// Runs this thread's share of a list. Every thread returns only when the last launch is over.
static void work(const atlas_command *commands, size_t count, int threads, uint32_t launch) {
    for (size_t i = 0; i < count; i++, launch++) {
        blocks(&commands[i]);
        if (atomic_fetch_add_explicit(&pool.arrived, 1, memory_order_acq_rel) == (uint32_t)threads - 1) {
            atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
            atomic_store_explicit(&pool.arrived, 0, memory_order_relaxed);
            atomic_store_explicit(&pool.launch, launch + 1, memory_order_release);
        } else {
            for (unsigned spin = 0; atomic_load_explicit(&pool.launch, memory_order_acquire) == launch; spin++) relax(spin);
        }
    }
}

static void *worker(void *unused) {
    (void)unused;
    uint32_t seen = 0;
    for (;;) {
        for (unsigned spin = 0; atomic_load_explicit(&pool.list, memory_order_acquire) == seen; spin++) {
            if (spin < kSpinsBeforeSleep) {
                relax(spin);
                continue;
            }
            atomic_fetch_add(&pool.sleepers, 1);
            syscall(SYS_futex, &pool.list, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
            atomic_fetch_sub(&pool.sleepers, 1);
            spin = 0;
        }
        seen++;
        if (atomic_load_explicit(&pool.stop, memory_order_relaxed)) return 0;
        work(pool.commands, pool.count, pool.threads, atomic_load_explicit(&pool.launch, memory_order_acquire));
    }
}

// Starts threads-1 workers beside the caller; called once. Returns 0, or the error of pthread_create.
EXPORT int atlas_pool_start(int threads) {
    if (threads < 1 || threads > kMaxThreads || pool.threads) return -1;
    pool.threads = threads;
    for (int i = 1; i < threads; i++) {
        pthread_t t;
        const int error = pthread_create(&t, 0, worker, 0);
        if (error) return error;
        pthread_detach(t);
    }
    return 0;
}

// Runs count launches in order and returns when the last is over. One caller at a time.
EXPORT void atlas_pool_run(const atlas_command *commands, size_t count) {
    if (!count) return;
    const uint32_t launch = atomic_load_explicit(&pool.launch, memory_order_relaxed);
    pool.commands = commands;
    pool.count = count;
    atomic_fetch_add(&pool.list, 1);
    if (atomic_load(&pool.sleepers)) syscall(SYS_futex, &pool.list, FUTEX_WAKE_PRIVATE, kMaxThreads, 0, 0, 0);
    work(commands, count, pool.threads, launch);
}
