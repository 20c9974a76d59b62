/* Calls a program's handler as XLA does. Read: how many arguments and results; the bytes of each; of each result which
 * argument it is, -1 for none; then the arguments. Written: the results. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *called(void *frame);

static void numbers(FILE *file, int64_t *to, size_t count) {
    if (fread(to, sizeof *to, count, file) != count) exit(2);
}

static char *room(int64_t bytes) {
    return aligned_alloc(64, (bytes / 64 + 1) * 64);
}

static char *buffer(char *data) {
    char *made = calloc(1, 64);
    memcpy(made + DATA, &data, sizeof data);
    return made;
}

int main(int count, char **names) {
    FILE *in = count == 3 ? fopen(names[1], "rb") : NULL, *out = count == 3 ? fopen(names[2], "wb") : NULL;
    if (!in || !out) return 1;
    int64_t n[2];
    numbers(in, n, 2);
    int64_t all = n[0] + n[1], sizes[all], same[n[1] + 1];
    numbers(in, sizes, all);
    numbers(in, same, n[1]);
    char *data[all], *buffers[all];
    for (int64_t k = 0; k < all; k++) {
        int64_t other = k < n[0] ? -1 : same[k - n[0]];
        data[k] = other < 0 ? room(sizes[k]) : data[other];
        if (k < n[0] && fread(data[k], 1, sizes[k], in) != (size_t)sizes[k]) return 2;
        buffers[k] = buffer(data[k]);
    }
    char frame[512] = {0}, **arguments = buffers, **results = buffers + n[0];
    memcpy(frame + ARGS, &arguments, sizeof arguments);
    memcpy(frame + RESULTS, &results, sizeof results);
    if (called(frame)) return 3;
    for (int64_t k = n[0]; k < all; k++)
        if (fwrite(data[k], 1, sizes[k], out) != (size_t)sizes[k]) return 4;
    return fclose(out) ? 4 : 0;
}
