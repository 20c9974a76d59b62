/* A break of sixteen billiard balls, without Python:

   carom export pool_break --library out
   cc docs/examples/pool_break.c -Iout out/libpool_break.a -o pool_break && ./pool_break

   The last line is the hash that Python prints: world = carom.Live("pool_break"), 300 times world.step(), world.hash(). */
#include "pool_break.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DT ((pool_break_real)(1.0 / 60.0))
#define SECONDS 5

static void play(pool_break *world, int frames) {
    while (frames--) {
        int code = pool_break_step(world, DT);
        if (code) {
            fprintf(stderr, "%g s: code %d\n", (double)*pool_break_time(world), code);
            if (code >= 100) exit(1);
        }
    }
}

int main(void) {
    static char save[pool_break_save_most];
    char first[33], again[33];
    int bounces = 0, size;
    pool_break_real hardest = 0, down[3] = {0, 0, -1}, above[3] = {0, 0, 1};
    pool_break_hit hit;
    pool_break *world = pool_break_create();
    if (!world) return 1;

    /* what touches in a frame */
    for (int frame = 0; frame < 60; frame++) {
        pool_break_contact contacts[64];
        play(world, 1);
        int count = pool_break_contacts(world, contacts, 64);
        for (int k = 0; k < count; k++) {
            bounces += contacts[k].impacts;
            if (contacts[k].speed > hardest) hardest = contacts[k].speed;
        }
    }
    printf("%d impacts in a second, the hardest at %.2f m/s\n", bounces, (double)hardest);

    /* where the cue ball is, and that a ray from above finds it */
    const pool_break_real *cue = pool_break_poses(world) + 7 * pool_break_body_cue;
    above[0] = cue[0], above[1] = cue[1];
    if (pool_break_ray(world, above, down, 10, 0, ~0u, &hit))
        printf("cue ball at %.3f %.3f, body %d under the ray\n", (double)cue[0], (double)cue[1], (int)hit.body);

    /* on from here twice: with a push that is taken back by loading what was saved, and without */
    size = pool_break_save(world, save);
    pool_break_apply_impulse(world, pool_break_body_cue, (pool_break_real[3]){0.1f, 0, 0}, NULL);
    play(world, 60 * (SECONDS - 1));
    pool_break_hash(world, again);
    if (pool_break_load(world, save, size)) return 1;
    play(world, 60 * (SECONDS - 1));
    pool_break_hash(world, first);
    printf("%d bytes saved; a push changed the end: %s\n%s\n", size, strcmp(first, again) ? "yes" : "no", first);
    pool_break_free(world);
    return 0;
}
