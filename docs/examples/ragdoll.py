"""A ragdoll to throw: take hold of a limb with the mouse, drag, let go; down stairs, over a seesaw.

Left button holds, right button bursts, z goes back two seconds, F1 shows contacts, r begins again.
Run: python docs/examples/ragdoll.py     (pip install pygame-ce)
Without a screen: SDL_VIDEODRIVER=dummy python docs/examples/ragdoll.py --frames 240 --screenshot ragdoll.png
"""

import argparse
import math
import time
from collections import deque

import numpy as np
import pygame

import carom

SIZE, SCALE, MIDDLE = (1100, 620), 120.0, (2.0, 2.2)  # pixels, pixels a metre, what is in the middle of the picture
STRONG, FAST = 3000.0, 8.0  # [N], [m/s] of the hand that is the mouse
HOLDS = ("head", "left_hand", "right_hand", "left_shin", "right_shin")  # what it can take hold of
PARTS = {  # parent, joint, place in the parent, shape
    "chest": ("torso", carom.Spherical(), (0, 0, 0.15), carom.Box((0.12, 0.17, 0.16), position=(0, 0, 0.17))),
    "head": ("chest", carom.Spherical(), (0, 0, 0.36), carom.Sphere(0.12, position=(0, 0, 0.13))),
}
for side, y in (("left", 1), ("right", -1)):
    down = carom.Capsule(0.05, 0.11, position=(0, 0, -0.15))
    long = carom.Capsule(0.07, 0.14, position=(0, 0, -0.2))
    elbow, knee = (carom.Revolute((0, 1, 0), limits=x, damping=0.5) for x in ((-2.3, 0.0), (0.0, 2.4)))
    PARTS[f"{side}_arm"] = ("chest", carom.Spherical(), (0, 0.24 * y, 0.28), down)
    PARTS[f"{side}_hand"] = (f"{side}_arm", elbow, (0, 0, -0.32), down)
    PARTS[f"{side}_thigh"] = ("torso", carom.Spherical(), (0, 0.1 * y, -0.13), long)
    PARTS[f"{side}_shin"] = (f"{side}_thigh", knee, (0, 0, -0.42), long)


def scene() -> carom.SceneBuilder:
    b = carom.SceneBuilder()
    b.add_plane(name="floor", friction=0.8)
    for k in range(5):
        high, x = 0.1 * (5 - k), 0.4 * k - 1.6
        b.add_static(f"stair{k}", [carom.Box((0.2, 1, high))], position=(x, 0, high), friction=0.6)
    b.add_link(
        "seesaw",
        joint=carom.Revolute((0, 1, 0), limits=(-0.25, 0.25), damping=4.0),
        position=(3.4, 0, 0.35),
        mass=25.0,
        shapes=[carom.Box((1.1, 0.6, 0.04), friction=0.8)],
    )
    b.add_link("torso", joint=carom.Floating(), position=(-1.3, 0, 2.1), shapes=[carom.Box((0.11, 0.16, 0.14))])
    for name, (parent, joint, place, shape) in PARTS.items():
        b.add_link(name, parent, joint=joint, position=place, shapes=[shape])
    for name in PARTS:  # neighbours of neighbours
        if name not in ("chest", "head"):
            b.exclude(name, "torso")
            b.exclude(name, "chest")
    motor = carom.Motor("velocity", kd=math.inf, effort=STRONG)
    mouse = carom.Planar((0, 1, 0), (1, 0, 0), motor=(motor, motor, motor))
    b.add_link("mouse", joint=mouse, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, 3))
    for name in HOLDS:
        b.add_loop("mouse", None, name, joint=carom.Spherical(), name=f"hold {name}", active=False)
    for side in ("left", "right"):
        b.exclude(f"{side}_thigh", "right_thigh" if side == "left" else "left_thigh")
    return b


class Game:
    def __init__(self) -> None:
        begin = time.perf_counter()
        self.world = carom.Live(scene())
        self.start = time.perf_counter() - begin
        self.frames: list[float] = []
        self.again()

    def again(self) -> None:
        self.world.reset()
        self.world.apply_impulse("chest", (70, 0, 0))
        self.aim: np.ndarray | None = None
        self.past: deque[bytes] = deque(maxlen=120)

    def take_hold(self, at: np.ndarray) -> None:
        """Of the limb nearest to a point (3,), if there is one near."""
        apart = {name: float(np.linalg.norm((self.world.pose(name)[:3] - at)[[0, 2]])) for name in HOLDS}
        name = min(apart, key=lambda limb: apart[limb])
        if apart[name] < 0.5 and not self.world.attached:
            limb = self.world.pose(name)[:3]
            self.world.set_joint("mouse", (0, limb[0], 3 - limb[2]), (0, 0, 0))
            self.world.attach(f"hold {name}", limb)
            self.aim = limb

    def let_go(self) -> None:
        for joint in self.world.attached:
            self.world.detach(joint)
        self.aim = None

    def burst(self, at: np.ndarray) -> None:
        """Everything flies away from a point (3,)."""
        for name in self.world.bodies:
            away = self.world.pose(name)[:3] - at
            distance = float(np.linalg.norm(away)) + 0.3
            self.world.apply_impulse(name, 6.0 * away / distance**2)

    def step(self) -> None:
        self.past.append(self.world.save_state())
        begin = time.perf_counter()
        if self.aim is not None:
            way = (self.aim - self.world.pose("mouse")[:3]) * 10
            way *= min(1.0, FAST / (float(np.linalg.norm(way)) or 1.0))
            self.world.motor("mouse", (0, way[0], -way[2]))
        self.world.step()
        self.frames.append(time.perf_counter() - begin)

    def take_back(self) -> None:
        if self.past:
            self.let_go()
            self.world.load_state(self.past[0])
            self.past.clear()

    def draw(self, screen: pygame.Surface, font: pygame.font.Font, debug: bool) -> None:
        screen.fill((247, 245, 240))
        lines = self.world.debug_lines(contacts=debug, per_impulse=0.03)
        x, y = pixels(lines.ends[..., 0], lines.ends[..., 2] + 0.25 * lines.ends[..., 1])
        for a, b, colour in zip(np.stack([x, y], -1)[:, 0], np.stack([x, y], -1)[:, 1], lines.colours, strict=True):
            pygame.draw.aaline(screen, 190 * colour, a, b)
        if self.aim is not None:
            pygame.draw.circle(screen, (200, 60, 50), pixels(self.aim[0], self.aim[2]), 7, 2)
        for k, line in enumerate(self.world.explain().splitlines() if debug else ()):
            screen.blit(font.render(line, True, (60, 70, 80)), (14, 10 + 20 * k))


def pixels(x: float, z: float) -> tuple[float, float]:
    return SIZE[0] / 2 + SCALE * (x - MIDDLE[0]), SIZE[1] / 2 - SCALE * (z - MIDDLE[1])


def place(mouse: tuple[int, int]) -> np.ndarray:
    """(3,) of the mouse, in the plane of the picture [m]."""
    return np.array([(mouse[0] - SIZE[0] / 2) / SCALE + MIDDLE[0], 0.0, (SIZE[1] / 2 - mouse[1]) / SCALE + MIDDLE[1]])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, help="stop after so many; the figure is held and let go by itself")
    parser.add_argument("--screenshot", metavar="FILE", help="of the last frame")
    options = parser.parse_args()
    pygame.init()
    screen, clock, font = pygame.display.set_mode(SIZE), pygame.time.Clock(), pygame.font.Font(None, 22)
    pygame.display.set_caption("ragdoll")
    game, frame, debug, alone = Game(), 0, False, options.frames is not None
    while options.frames is None or frame < options.frames:
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return
            if event.type == pygame.MOUSEBUTTONDOWN:
                (game.take_hold if event.button == 1 else game.burst)(place(event.pos))
            if event.type == pygame.MOUSEBUTTONUP and event.button == 1:
                game.let_go()
            if event.type == pygame.KEYDOWN:
                debug = debug != (event.key == pygame.K_F1)
                {pygame.K_z: game.take_back, pygame.K_r: game.again}.get(event.key, lambda: None)()
        if alone and 90 <= frame < 180:  # lift it up by what is nearest, over the seesaw, and let it fall
            if frame == 90:
                game.take_hold(game.world.pose("right_hand")[:3])
            at = math.pi * (frame - 90) / 90
            game.aim = np.array([2.2 + 0.4 * (1 - math.cos(at)), 0.0, 1.0 + 0.8 * (1 - math.cos(at))])
        elif alone:
            game.let_go()
        elif game.aim is not None:
            game.aim = place(pygame.mouse.get_pos())
        game.step()
        if not alone or frame == options.frames - 1:
            game.draw(screen, font, debug or alone)
            pygame.display.flip()
        frame += 1
        if not alone:
            clock.tick(60)
    if options.screenshot:
        pygame.image.save(screen, options.screenshot)
    p50, p99 = (1e3 * float(np.percentile(game.frames, p)) for p in (50, 99))
    x, _, z = game.world.pose("head")[:3]
    print(f"{frame} frames, the head at {x:.2f} m, {z:.2f} m high, state {game.world.hash()}")
    print(f"start {game.start:.1f} s, frames {p50:.2f} ms (p50), {p99:.2f} ms (p99)")


if __name__ == "__main__":
    main()
