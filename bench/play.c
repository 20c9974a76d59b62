/* Random play of an exported world, for valgrind, sanitizers and the clock: pushes, blows, motors, bodies put elsewhere,
   rays, contacts, saves taken back, materials, layers, joints, spare bodies, triggers, and arguments that cannot be.
   Built with -DWORLD=name -DHEADER='"name.h"', and -DHAS_function for each that the header has. Tells on stderr how far
   it is.

   play FRAMES SEED: exits with 1 where a call does not do what it says. With seed 0 the world is left alone. */
#include HEADER
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define JOINED(a, b) a##_##b
#define NAMED(a, b) JOINED(a, b)
#define W(f) NAMED(WORLD, f)
#define MAY(x) do { code = (x); CHECK(code == 0 || code == 1000); code = 0; } while (0)
#define CHECK(x) do { if (!(x)) { fprintf(stderr, "frame %d: %s does not hold\n", frame, #x); exit(1); } } while (0)

typedef W(real) real;

static unsigned long long state;
static real uniform(void) { /* from -1 to 1 */
    if (!state) return 0;
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (real)((double)(state >> 33) / 1073741824.0 - 1.0);
}
static int below(int n) { return (int)((uniform() + 1) / 2 * (real)0.999999 * n); }
static void vector(real *out, real size) { for (int k = 0; k < 3; k++) out[k] = size * uniform(); }
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv) {
    int frames = argc > 1 ? atoi(argv[1]) : 1000, frame = 0, size = 0, refused = 0, loads = 0, touches = 0, hits = 0;
    static char save[W(save_most)], other[W(save_most)];
    double start = now(), begun, longest = 0, spent = 0;
    state = argc > 2 ? strtoull(argv[2], 0, 10) : 1;
    WORLD *world = W(create)();
    if (!world) return 1;
    begun = now() - start;
    for (frame = 0; frame < frames; frame++) {
        int body = below(W(bodies)), code = 0;
        real f[3], p[3], near[3], q[4] = {1, 0, 0, 0}, bad[3] = {0, (real)NAN, 0};
        const real *at = W(poses)(world) + 7 * body;
        vector(f, (real)0.1);
        vector(near, (real)0.1); /* in the body's axes */
        vector(p, (real)0.1);
        for (int k = 0; k < 3; k++) p[k] += at[k];
        if (frames >= 10 && frame % (frames / 10) == 0) fprintf(stderr, "%d of %d frames\n", frame, frames);
        switch (state ? below(48) : 48) {
            case 0: MAY(W(apply_force)(world, body, f, NULL)); break; /* a spare body may wait */
            case 1: MAY(W(apply_force)(world, body, f, p)); break;
            case 2: for (int k = 0; k < 3; k++) f[k] /= 20; MAY(W(apply_torque)(world, body, f)); break;
            case 3: MAY(W(apply_impulse)(world, body, f, NULL)); break;
            case 4: MAY(W(apply_impulse)(world, body, f, p)); break;
            case 5: W(motors)(world)[below(W(dofs))] = uniform() / 1000; break; /* free bodies obey as well */
            case 6: p[2] += 1; MAY(W(put)(world, body, p, q, f, NULL)); break;
            case 7: CHECK(W(apply_force)(world, W(bodies), f, NULL) == 1000); break;
            case 8: CHECK(W(apply_impulse)(world, -1, f, p) == 1000); break;
            case 9: CHECK(W(apply_impulse)(world, body, bad, NULL) == 1000); break;
            case 10: CHECK(W(step)(world, (real)-1) == 1000 && W(step)(world, bad[1]) == 1000); break;
            case 11: { /* a save and the same again */
                char a[33], b[33];
                size = W(save)(world, save);
                W(hash)(world, a);
                CHECK(W(load)(world, save, size) == 0);
                W(hash)(world, b);
                CHECK(!strcmp(a, b) && W(save)(world, other) == size && !memcmp(save, other, size));
                break;
            }
            case 12: if (size) { CHECK(W(load)(world, save, size) == 0); loads++; } break;
            case 13: if (size) { /* a damaged one changes nothing, or is one that might have been */
                int n = W(save)(world, other), where = below(size);
                char whole = save[where];
                save[where] ^= (char)(1 << below(8));
                code = W(load)(world, save, size);
                CHECK(code == 0 || code == 1001 || code == 1002);
                CHECK(W(load)(world, save, size - 1) == 1001);
                save[where] = whole;
                CHECK(W(load)(world, other, n) == 0);
                code = 0;
            }
            break;
            case 14: { W(hit) hit; hits += W(ray)(world, p, f, 100, below(2), ~0u, &hit); break; }
            case 15: { W(contact) rows[2]; touches += W(contacts)(world, rows, below(3)); break; }
            case 16: if (below(10) == 0) W(reset)(world); break;
            case 17: vector(f, (real)0.005); MAY(W(apply_own_impulse)(world, body, f, below(2) ? near : NULL)); break;
            case 18: MAY(W(apply_own_force)(world, body, f, near)); MAY(W(apply_own_torque)(world, body, bad)); break;
#ifdef HAS_set_material
            case 19: { /* of some thing, or none */
                real numbers[2] = {(real)0.6 * uniform() + (real)0.5, uniform()};
                MAY(W(set_material)(world, below(W(bodies) + 4), numbers, below(2) ? numbers + 1 : NULL, NULL));
                MAY(W(set_pair_material)(world, below(W(bodies) + 4), body, numbers, NULL, below(2) ? bad : NULL));
                break;
            }
#endif
#ifdef HAS_set_surface_velocity
            case 20: MAY(W(set_surface_velocity)(world, below(W(bodies) + 4), f, below(2) ? p : NULL)); break;
#endif
#ifdef HAS_move_joint
            case 21: MAY(W(move_joint)(world, below(W(dofs) + 2) - 1, (uniform() + 1) / 2)); break;
#endif
#ifdef HAS_set_layers
            case 22: {
                uint32_t group = 1u << below(2), mask = below(4) ? ~0u : 1u;
                MAY(W(set_layers)(world, below(W(bodies) + 4), &group, below(2) ? &mask : NULL));
                MAY(W(ignore_collision)(world, below(W(bodies) + 4), body, below(2)));
                break;
            }
#endif
#ifdef HAS_attach
            case 23: MAY(W(attach)(world, below(6) - 1, below(2) ? p : NULL)); break;
            case 24: if (below(3) == 0) MAY(W(detach)(world, below(6) - 1)); break;
            case 25: MAY(W(joint_force)(world, below(6) - 1, f)); CHECK(isfinite(f[0] + f[1] + f[2])); break;
#endif
#ifdef HAS_add_body
            case 26: p[2] = fabs(p[2]) < 100 ? p[2] + 1 : 2; CHECK( /* not where spare bodies wait */
                (code = W(add_body)(world, below(3) - 1, p, NULL, f, NULL)) >= -1000); code = 0; break;
            case 27: MAY(W(remove_body)(world, body)); break;
#endif
#ifdef HAS_overlap
            case 28: {
                int found[2], count = W(overlap)(world, below(3), p, q, (uniform() + 1) / 2, ~0u, found, 2);
                CHECK(count >= 0 ? count <= W(bodies) + 4 : count == -1000);
                break;
            }
#endif
            default: break;
        }
        CHECK(code == 0);
        start = now();
        code = W(step)(world, (real)(1.0 / 60.0));
        start = now() - start;
        spent += start;
        longest = start > longest ? start : longest;
        refused += code >= 100;
        if (code >= 100) W(reset)(world);
#ifdef HAS_inside
        for (int k = 0; k < W(triggers) * W(bodies); k++) CHECK((W(inside)(world)[k] & ~1) == 0 && abs(W(crossed)(world)[k]) < 2);
#endif
        for (int k = 0; k < 7 * W(bodies); k++) CHECK(isfinite(W(poses)(world)[k]));
    }
    W(hash)(world, other);
    printf("%d frames %s: start %.3f ms, frame %.3f ms, longest %.3f ms; %d refused, %d loads, %d touches, %d hits\n", frames,
        other, 1e3 * begun, 1e3 * spent / frames, 1e3 * longest, refused, loads, touches, hits);
    W(free)(world);
    return 0;
}
