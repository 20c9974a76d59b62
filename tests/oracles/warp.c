/* A warp, one thread at a time: 32 stacks, between which control goes at shuffles and syncs alone.

   Between two of these the threads run one after another, in an order that is drawn anew each time: what would hang on
   an order that the program does not ask for comes out differently. All threads must come to the same place. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

/* A kernel on several warps, one after another: what the first takes none other finds. */
void warp_launch(void (*kernel)(void *), void *buffers, uint64_t warps)
{
    for (w.warp = 0; w.warp < warps; w.warp++)
        warp_run(kernel, buffers);
    w.warp = 0;
}
