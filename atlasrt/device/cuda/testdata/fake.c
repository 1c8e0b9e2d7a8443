// A driver without a GPU: queues run when somebody waits, memory is the host's and dirty, kernels are C functions. Every
// call counts itself, wants a context on its thread, can be told to fail, and knows which thread may end a capture.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;

enum { OUT_OF_MEMORY = 2, INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201,
       NO_BINARY = 209, INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, CAPTURE_UNSUPPORTED = 900,
       CAPTURE_INVALIDATED = 901, CAPTURE_WRONG_THREAD = 908 };

typedef struct { uint32_t grid[3], block[3], shared, pad; void *stream; struct attribute *attributes; uint32_t count; } config;
struct attribute { uint32_t id, pad; uint32_t value[16]; };

typedef struct { uint64_t out; uint32_t columns, planes, value, pad; } mark_args;
typedef struct { const char *name; int bytes; void (*run)(const void *args, const uint32_t *grid); } kernel;
typedef struct { const kernel *kernel; uint32_t dynamic, shared_percent; } function;
typedef struct { char code[64]; } module;
typedef struct { struct stream *stream; int pending; } event;

typedef struct {
    enum { COPY, CLEAR, LAUNCH, RECORD } kind;
    void *to; const void *from; size_t bytes;
    const kernel *kernel; char args[64]; uint32_t grid[3];
    event *event;
} command;

typedef struct { command *commands; int count, first; } list;
typedef struct stream { list queue; list *capture; int invalid; pthread_t thread; } stream;

// What tests set and read.
int fake_version = 13000, fake_devices = 1;
long fake_live, fake_strangers; // objects not given back; calls on a thread without a context
uint32_t fake_launch[16];       // of the last launch: grid, block, shared, cooperative, programmatic, cluster, percent of memory to share

static struct { const char *name; long calls; int fail; long after; } functions[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int dead; // the error of a kernel that went wrong
static int context;
static __thread void *current;

static int slot(const char *name) {
    int i = 0;
    while (functions[i].name && strcmp(functions[i].name, name)) i++;
    functions[i].name = name;
    return i;
}

static CUresult enter(const char *name, int wants_context) {
    pthread_mutex_lock(&lock);
    int i = slot(name), r = 0;
    functions[i].calls++;
    if (functions[i].fail && functions[i].after-- <= 0) { r = functions[i].fail; functions[i].fail = 0; }
    if (wants_context && current != &context) { fake_strangers++; r = INVALID_CONTEXT; }
    if (!r && wants_context) r = dead;
    pthread_mutex_unlock(&lock);
    return r;
}
#define ENTER(wants) { int r_ = enter(__func__, wants); if (r_) return r_; }
#define LIVE(n) __atomic_add_fetch(&fake_live, n, __ATOMIC_RELAXED)

void fake_fail(const char *name, int code, long after) {
    pthread_mutex_lock(&lock);
    int i = slot(strdup(name));
    functions[i].fail = code, functions[i].after = after;
    pthread_mutex_unlock(&lock);
}
long fake_calls(const char *name) {
    pthread_mutex_lock(&lock);
    long n = functions[slot(strdup(name))].calls;
    pthread_mutex_unlock(&lock);
    return n;
}

static void mark(const void *p, const uint32_t *grid) {
    const mark_args *a = p;
    uint32_t *out = (uint32_t *)a->out;
    for (uint32_t z = 0; z < grid[2]; z++)
        for (uint32_t y = 0; y < grid[1]; y++)
            for (uint32_t x = 0; x < grid[0]; x++) out[(z * a->planes + y) * a->columns + x] += a->value;
}
static void twice(const void *p, const uint32_t *grid) {
    const mark_args *a = p;
    for (uint32_t i = 0; i < grid[0] * grid[1] * grid[2]; i++) ((uint32_t *)a->out)[i] *= 2;
}
static void fault(const void *p, const uint32_t *grid) { (void)p, (void)grid; dead = ILLEGAL_ADDRESS; }
static const kernel kernels[] = {
    {"test_mark", sizeof(mark_args), mark}, {"test_double", sizeof(mark_args), twice}, {"test_fault", sizeof(mark_args), fault}};

// queues guards what is queued, as a driver does: several threads may queue copies on one stream.
static pthread_mutex_t queues = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static CUresult push(stream *s, command c) {
    pthread_mutex_lock(&queues);
    list *l = s->capture ? s->capture : &s->queue;
    l->commands = realloc(l->commands, (l->count + 1) * sizeof c);
    l->commands[l->count++] = c;
    pthread_mutex_unlock(&queues);
    return 0;
}
static void run(command *c) {
    if (dead) return;
    switch (c->kind) {
    case COPY: memcpy(c->to, c->from, c->bytes); break;
    case CLEAR: memset(c->to, 0, c->bytes); break;
    case LAUNCH: c->kernel->run(c->args, c->grid); break;
    case RECORD: c->event->pending--; break;
    }
}
static CUresult drain(stream *s, event *until) {
    pthread_mutex_lock(&queues);
    while (s->queue.first < s->queue.count && !(until && until->pending == 0)) run(&s->queue.commands[s->queue.first++]);
    if (s->queue.first == s->queue.count) s->queue.first = s->queue.count = 0;
    pthread_mutex_unlock(&queues);
    return dead;
}

CUresult cuInit(unsigned flags) { ENTER(0) return flags ? INVALID_VALUE : 0; }
CUresult cuDriverGetVersion(int *v) { ENTER(0) *v = fake_version; return 0; }
CUresult cuGetErrorName(CUresult r, const char **s) {
    *s = r == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : r == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : 0;
    return *s ? 0 : INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult r, const char **s) { *s = "the driver's words"; return r == OUT_OF_MEMORY ? 0 : INVALID_VALUE; }
CUresult cuDeviceGetCount(int *n) { ENTER(0) *n = fake_devices; return 0; }
CUresult cuDeviceGet(int *d, int i) { ENTER(0) *d = 7; return i == 0 ? 0 : INVALID_DEVICE; }
CUresult cuDeviceGetName(char *name, int n, int d) { ENTER(0) strncpy(name, "Fake GPU", n); return d == 7 ? 0 : INVALID_DEVICE; }
CUresult cuDeviceGetAttribute(int *v, int a, int d) {
    ENTER(0)
    *v = a == 16 ? 132 : a == 38 ? 60 << 20 : a == 75 ? 9 : a == 76 ? 0 : a == 81 ? 233472 : a == 97 ? 232448 : -1;
    return d == 7 ? 0 : INVALID_DEVICE;
}
CUresult cuDevicePrimaryCtxRetain(void **c, int d) { ENTER(0) *c = &context; LIVE(1); return d == 7 ? 0 : INVALID_DEVICE; }
CUresult cuDevicePrimaryCtxRelease_v2(int d) { ENTER(0) LIVE(-1); return d == 7 ? 0 : INVALID_DEVICE; }
CUresult cuCtxSetCurrent(void *c) { ENTER(0) current = c; return 0; }

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) { ENTER(1) *free = 1000, *total = 2000; return 0; }
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
    ENTER(1)
    void *m;
    if (n > 1ull << 40 || posix_memalign(&m, 256, n)) return OUT_OF_MEMORY;
    memset(m, 0xA5, n);
    LIVE(1);
    *p = (CUdeviceptr)m;
    return 0;
}
CUresult cuMemFree_v2(CUdeviceptr p) { ENTER(1) free((void *)p); LIVE(-1); return 0; }
CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) { ENTER(1) *p = malloc(n); LIVE(1); return flags; }
CUresult cuMemFreeHost(void *p) { ENTER(1) free(p); LIVE(-1); return 0; }
CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, stream *s) {
    ENTER(1)
    return v ? INVALID_VALUE : push(s, (command){.kind = CLEAR, .to = (void *)p, .bytes = n});
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, stream *s) {
    ENTER(1) return push(s, (command){.kind = COPY, .to = (void *)to, .from = from, .bytes = n});
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, stream *s) {
    ENTER(1) return push(s, (command){.kind = COPY, .to = to, .from = (void *)from, .bytes = n});
}

CUresult cuModuleLoadData(module **m, const void *code) {
    ENTER(1)
    if (strncmp(code, "fake sm_", 8)) return INVALID_IMAGE;
    if (strncmp(code, "fake sm_90 ", 11)) return NO_BINARY;
    *m = malloc(sizeof **m);
    strncpy((*m)->code, code, 63);
    (*m)->code[63] = 0;
    LIVE(1);
    return 0;
}
CUresult cuModuleUnload(module *m) { ENTER(1) free(m); LIVE(-1); return 0; }
CUresult cuModuleGetFunction(function **f, module *m, const char *name) {
    ENTER(1)
    for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].name, name) && strstr(m->code, name)) {
            *f = malloc(sizeof **f);
            **f = (function){&kernels[i]};
            return 0;
        }
    return NOT_FOUND;
}
CUresult cuFuncGetAttribute(int *v, int a, function *f) { ENTER(1) *v = a == 0 ? 512 : a == 4 ? 128 : -1; return f ? 0 : INVALID_HANDLE; }
CUresult cuFuncSetAttribute(function *f, int a, int v) {
    ENTER(1)
    if (a == 8) f->dynamic = v;
    if (a == 9) f->shared_percent = v;
    return a == 8 && v > 232448 ? INVALID_VALUE : 0;
}

CUresult cuStreamCreate(stream **s, unsigned flags) { ENTER(1) *s = calloc(1, sizeof **s); LIVE(1); return flags == 1 ? 0 : INVALID_VALUE; }
CUresult cuStreamDestroy_v2(stream *s) { ENTER(1) free(s->queue.commands); free(s); LIVE(-1); return 0; }
CUresult cuStreamSynchronize(stream *s) {
    ENTER(1)
    if (s->capture) { s->invalid = 1; return CAPTURE_UNSUPPORTED; }
    return drain(s, 0);
}
CUresult cuEventCreate(event **e, unsigned flags) { ENTER(1) *e = calloc(1, sizeof **e); LIVE(1); return flags == 2 ? 0 : INVALID_VALUE; }
CUresult cuEventDestroy_v2(event *e) { ENTER(1) free(e); LIVE(-1); return 0; }
CUresult cuEventRecord(event *e, stream *s) {
    ENTER(1)
    pthread_mutex_lock(&queues);
    e->stream = s, e->pending++;
    CUresult r = push(s, (command){.kind = RECORD, .event = e});
    pthread_mutex_unlock(&queues);
    return r;
}
CUresult cuEventSynchronize(event *e) { ENTER(1) return e->stream ? drain(e->stream, e) : 0; }

CUresult cuLaunchKernelEx(const config *c, function *f, void **params, void **extra) {
    stream *s = c->stream;
    int r = enter(__func__, 1);
    if (!r && (extra || c->shared > f->dynamic || c->grid[1] > 65535 || c->grid[2] > 65535)) r = INVALID_VALUE;
    if (r) { s->invalid = 1; return r; }
    memset(fake_launch, 0, sizeof fake_launch);
    memcpy(fake_launch, c->grid, 12), memcpy(fake_launch + 3, c->block, 12), fake_launch[6] = c->shared, fake_launch[12] = f->shared_percent;
    for (uint32_t i = 0; i < c->count; i++) {
        struct attribute a = c->attributes[i];
        if (a.id == 2) fake_launch[7] = a.value[0];
        if (a.id == 6) fake_launch[8] = a.value[0];
        if (a.id == 4) memcpy(fake_launch + 9, a.value, 12);
    }
    command k = {.kind = LAUNCH, .kernel = f->kernel};
    memcpy(k.args, params[0], f->kernel->bytes), memcpy(k.grid, c->grid, 12);
    return push(s, k);
}

CUresult cuStreamBeginCapture_v2(stream *s, int mode) {
    ENTER(1)
    if (mode != 1 || s->capture || s->queue.count) return INVALID_VALUE;
    s->capture = calloc(1, sizeof *s->capture), s->thread = pthread_self(), s->invalid = 0;
    LIVE(1);
    return 0;
}
CUresult cuStreamEndCapture(stream *s, list **graph) {
    ENTER(1)
    if (!s->capture) return INVALID_VALUE;
    if (!pthread_equal(s->thread, pthread_self())) return CAPTURE_WRONG_THREAD;
    *graph = s->invalid ? 0 : s->capture;
    if (s->invalid) LIVE(-1);
    s->capture = 0;
    return s->invalid ? CAPTURE_INVALIDATED : 0;
}
CUresult cuGraphInstantiateWithFlags(list **exec, list *graph, unsigned long long flags) {
    ENTER(1)
    *exec = malloc(sizeof **exec), **exec = *graph;
    LIVE(1);
    return flags ? INVALID_VALUE : 0;
}
CUresult cuGraphDestroy(list *g) { ENTER(1) free(g); LIVE(-1); return 0; }
CUresult cuGraphExecDestroy(list *g) { ENTER(1) free(g->commands); free(g); LIVE(-1); return 0; }
// Keeps what it is told, in the order of its arguments.
CUresult cuTensorMapEncodeTiled(uint64_t *map, int type, uint32_t rank, uint64_t address, const uint64_t *sizes, const uint64_t *strides,
                                const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
    ENTER(1)
    if ((uintptr_t)map % 64 || address % 16 || rank != 2 || strides[0] % 16) return INVALID_VALUE;
    const uint64_t all[16] = {type, address, sizes[0], sizes[1], strides[0], box[0], box[1], steps[0], steps[1], interleave, swizzle, promotion, fill};
    memcpy(map, all, sizeof all);
    return 0;
}
#ifndef WITHOUT_GRAPHS
CUresult cuGraphLaunch(list *g, stream *s) {
    ENTER(1)
    for (int i = 0; i < g->count; i++) push(s, g->commands[i]);
    return 0;
}
#endif
