/* Plays WORLD for five seconds, and prints the hash that Python prints:

   world = carom.Live(...); [world.step() for _ in range(300)]; print(world.hash()) */
#include "WORLD.h"
#include <stdio.h>

int main(void) {
    char digits[33];
    WORLD *world = WORLD_create();
    if (!world) return 1;
    for (int frame = 0; frame < 300; frame++) {
        int code = WORLD_step(world, (WORLD_real)(1.0 / 60.0));
        if (code) printf("frame %d: code %d\n", frame, code);
    }
    WORLD_hash(world, digits);
    printf("%g s %s\n", (double)*WORLD_time(world), digits);
    WORLD_free(world);
    return 0;
}
