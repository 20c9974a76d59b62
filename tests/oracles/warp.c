/* A warp, one thread at a time: 32 stacks, between which control goes at shuffles and syncs alone.

   Between two of these the threads run one after another, in an order that is drawn anew each time: what would hang on
   an order that the program does not ask for comes out differently. All threads must come to the same place. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 32, STACK = 1 << 18 };

static __thread struct {
    void *here, *stacks[THREADS];
    uint32_t held[2][THREADS];
    void *at[THREADS];
    void (*function)(void *);
    void *argument;
    char *memory;
    uint64_t random, rounds, warp;
    int thread, done[THREADS], diverged;
} w;

static uint64_t seed;
static uint64_t count;
static int wrong;

void switch_stack(void **from, void *to);
__asm__(".text\n.globl switch_stack\nswitch_stack:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

static void wait_at(void *place)
{
    w.at[w.thread] = place;
    switch_stack(&w.stacks[w.thread], w.here);
}

uint32_t warp_shuffle(uint32_t x, uint32_t source)
{
    int round = w.rounds & 1, thread = w.thread;
    w.held[round][thread] = x;
    wait_at(__builtin_return_address(0));
    return w.held[round][source & (THREADS - 1)];
}

void warp_sync(void) { wait_at(__builtin_return_address(0)); }

uint32_t warp_thread(void) { return w.thread; }

uint64_t warp_number(void) { return w.warp; }

static void begin(void)
{
    w.function(w.argument);
    w.done[w.thread] = 1;
    wait_at(0);
}

static uint64_t draw(void)
{
    w.random ^= w.random << 13;
    w.random ^= w.random >> 7;
    w.random ^= w.random << 17;
    return w.random;
}

/* function(argument) on all threads. */
void warp_run(void (*function)(void *), void *argument)
{
    if (!w.memory)
        w.memory = aligned_alloc(64, (size_t)STACK * THREADS);
    w.function = function, w.argument = argument, w.random = seed * 2654435769u + 88172645463325252u, w.rounds = 0;
    for (int t = 0; t < THREADS; t++) {
        uintptr_t *top = (uintptr_t *)(w.memory + (size_t)STACK * (t + 1));
        top -= 1; /* as a call leaves the stack */
        *--top = (uintptr_t)begin;
        w.stacks[t] = top - 6;
        w.done[t] = 0;
    }
    for (int order[THREADS], running = 1; running; w.rounds++, count++) {
        for (int t = 0; t < THREADS; t++) {
            int k = draw() % (t + 1);
            order[t] = order[k], order[k] = t;
        }
        for (int k = 0; k < THREADS; k++) {
            w.thread = order[k];
            switch_stack(&w.here, w.stacks[w.thread]);
        }
        for (int t = 1; t < THREADS; t++)
            wrong |= w.at[t] != w.at[0];
        running = !w.done[0];
        if (wrong)
            return;
    }
}

/* What the numbers of threads are drawn from; and of the runs since: how often threads waited, -1 if they went apart. */
void warp_begin(uint64_t number) { seed = number, count = 0, wrong = 0; }

int64_t warp_waits(void) { return wrong ? -1 : (int64_t)count; }

/* How often the first thread came through a block of the program. */

uint64_t warp_tallies[1 << 20];

void warp_tally(uint32_t block) { warp_tallies[block] += w.thread == 0; }

/* A mark, and how often threads came to it. That they meet there on a GPU must not be needed: here they do not. */

uint64_t warp_marks[THREADS][1 << 12];

void warp_mark(uint32_t phase) { warp_marks[w.thread][phase]++; }

/* In place of NVIDIA's driver. */

int cuCtxGetDevice(int *device) { return *device = 0; }

int cuMemsetD32Async(uint32_t *to, uint32_t x, size_t n, void *stream)
{
    for (size_t k = 0; k < n; k++)
        to[k] = x;
    return stream != (void *)1;
}

/* A lane a warp, in turn, as long as there are any: a warp that finds none is done. */
int cuLaunchKernel(void (*kernel)(void *), unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                   unsigned threads_z, unsigned shared, void *stream, void **parameters, void **extra)
{
    for (w.warp = 0; w.warp < blocks * (threads / THREADS); w.warp++)
        warp_run(kernel, parameters[0]);
    w.warp = 0;
    return !threads || threads % THREADS || y * z * threads_y * threads_z != 1 || shared || extra || stream != (void *)1;
}

/* In place of XLA on a GPU: a call of a handler on a CPU, which has no stream to give. */

static void *give_stream(void **args)
{
    args[3] = (void *)1;
    return 0;
}

void *warp_call(void *(*handler)(void *), void **frame)
{
    enum { EXTENSION = 1, API = 2, STREAM = 10 };
    if (frame[EXTENSION])
        return handler(frame);
    void **real = frame[API];
    size_t size = (size_t)real[0];
    void **api = malloc(size);
    memcpy(api, real, size);
    api[STREAM] = (void *)give_stream;
    frame[API] = api;
    void *failed = handler(frame);
    frame[API] = real;
    free(api);
    return failed;
}
