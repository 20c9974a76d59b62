"""An arena for two: walk, jump, shoot the other one, push crates, go through the door, and take it all back.

Red: w a s d walk, f jumps, g shoots.  Blue: arrows walk, right shift jumps, return shoots.
Who stands in the other's corner scores. Backspace goes back in time, F1 shows what the world does, r begins again.
Run: python docs/examples/arena.py     (pip install pygame-ce)
Without a screen: SDL_VIDEODRIVER=dummy python docs/examples/arena.py --frames 600 --screenshot arena.png
"""

import argparse
import math
import random
import time
from collections import deque

import numpy as np
import pygame

import carom

HALF, WALL = 7.0, 1.2  # [m] half the arena, height of its walls
SPEED, JUMP, SHOT = 4.0, 4.5, 14.0  # [m/s]
SIZE, SCALE = (1000, 760), 900  # pixels, of the focal length
EYE, PITCH = np.array([0.0, -15.0, 13.0]), 0.78  # [m], [rad] down
COLOURS = {"red": (226, 88, 70), "blue": (86, 140, 230)}
STARTS = {"red": (-5.0, -5.0), "blue": (5.0, 5.0)}


def scene() -> carom.SceneBuilder:
    b = carom.SceneBuilder()
    b.add_plane(name="floor", friction=0.7)
    for name, x, y, along in (("west", -1, 0, 0), ("east", 1, 0, 0), ("south", 0, -1, 1), ("north", 0, 1, 1)):
        half = (HALF, 0.2, WALL / 2) if along else (0.2, HALF, WALL / 2)
        b.add_static(name, [carom.Box(half)], position=(HALF * x, HALF * y, WALL / 2), restitution=0.4)
    for name, y in (("fence_a", -4.0), ("fence_b", 4.0)):  # with a gap in the middle, where the door is
        b.add_static(name, [carom.Box((0.15, 3.0 - 0.2, WALL / 2))], position=(0, y, WALL / 2))
    door = carom.Revolute((0, 0, 1), limits=(-2.2, 2.2), damping=6.0, stiffness=4.0)
    leaf = carom.Box((0.08, 0.95, WALL / 2), position=(0, 1.0, WALL / 2))
    b.add_link("door", joint=door, position=(0, -1.0, 0.05), mass=25.0, shapes=[leaf])
    b.exclude("door", "fence_a")
    b.exclude("door", "fence_b")
    for k, (x, y) in enumerate(((-3, 1), (-3, 1.9), (3, -1), (3, -1.9), (2, 3), (-2, -3))):
        size = carom.Box((0.4, 0.4, 0.4), friction=0.5)
        b.add_body(f"crate{k}", [size], mass=12.0, position=(x, y, 0.4))
    for name, (x, y) in STARTS.items():
        b.add_body(name, [carom.Capsule(0.35, 0.4)], mass=70.0, position=(x, y, 1.05), friction=0.0)
    return b


class Game:
    def __init__(self) -> None:
        shot = carom.BodySpec("shot", (carom.Sphere(0.12, restitution=0.7),), mass=1.0)
        begin = time.perf_counter()
        self.world = carom.Live(scene(), pool={"shot": (shot, 12)}, probes=[carom.Box((1, 1, 1))])
        self.start = time.perf_counter() - begin
        self.heroes = {name: carom.Character(self.world, name, step=0.3) for name in STARTS}
        corner = carom.Box((1.2, 1.2, 1.0))
        for name, (x, y) in STARTS.items():
            self.world.add_trigger(corner, (x, y, 1.0), on_enter=lambda body, of=name: self.entered(body, of))
        self.world.on_contact(self.touched)
        self.past: deque[tuple[bytes, dict, list]] = deque(maxlen=600)
        self.frames: list[float] = []
        self.again()

    def again(self) -> None:
        self.world.reset()
        self.score, self.hits, self.facing = {"red": 0, "blue": 0}, 0, {"red": 0.8, "blue": -2.3}
        self.shots: list[str] = []
        self.past.clear()

    def entered(self, body: str, corner: str) -> None:
        if body in STARTS and body != corner:
            self.score[body] += 1

    def touched(self, contact: carom.Contact) -> None:
        if {contact.a.split(".")[0], contact.b.split(".")[0]} & {"shot"} and {contact.a, contact.b} & {*STARTS}:
            self.hits += contact.phase in ("begin", "bounce")

    def shoot(self, name: str) -> None:
        """At the other one; of those that fly the first one is taken when all do."""
        if len(self.shots) == 12:
            self.world.remove_body(self.shots.pop(0))
        here, there = (self.world.pose(hero)[:3] for hero in (name, *(STARTS.keys() - {name})))
        way = (there - here) / np.linalg.norm(there - here) + (0, 0, 0.08)
        place = here + 0.6 * way
        if not self.world.overlap(carom.Sphere(0.12), place, ignore=[name]):
            own = self.world.velocity(name)[3:]
            self.shots.append(self.world.add_body("shot", place, linear_velocity=own + SHOT * way))
            self.world.apply_impulse(name, -1.0 * SHOT * way)

    def step(self, commands: dict[str, tuple[float, float, bool, bool]]) -> None:
        """commands: for each player the direction to walk (x, y), whether to jump and whether to shoot."""
        self.past.append((self.world.save_state(), dict(self.score), list(self.shots)))
        begin = time.perf_counter()
        for name, (x, y, jump, shoot) in commands.items():
            size = math.hypot(x, y)
            if size:
                self.facing[name] = math.atan2(y, x)
            walk = (SPEED * x / size, SPEED * y / size, 0) if size else (0, 0, 0)
            self.heroes[name].walk(walk, facing=self.facing[name])
            if jump:
                self.heroes[name].jump(JUMP)
            if shoot:
                self.shoot(name)
            self.heroes[name].update()
        self.world.step()
        self.frames.append(time.perf_counter() - begin)

    def take_back(self) -> None:
        if self.past:
            saved, self.score, self.shots = self.past.pop()
            self.world.load_state(saved)

    def draw(self, screen: pygame.Surface, font: pygame.font.Font, debug: bool) -> None:
        screen.fill((20, 22, 28))
        lines = self.world.debug_lines(contacts=debug, per_impulse=0.02)
        ends, depth = seen(lines.ends)
        for (a, b), z, colour in zip(ends, depth, lines.colours, strict=True):
            if z > 0.5:
                pygame.draw.aaline(screen, colour * 255, a, b)
        for name, colour in COLOURS.items():
            at, z = seen(self.world.pose(name)[None, None, :3])
            pygame.draw.circle(screen, colour, at[0, 0], 320 / z[0])
        for shot in self.shots:
            at, z = seen(self.world.pose(shot)[None, None, :3])
            pygame.draw.circle(screen, (250, 220, 120), at[0, 0], 110 / z[0])
        text = "   ".join(f"{name} {score}" for name, score in self.score.items())
        said = [f"{text}   hits {self.hits}   {self.world.time:6.2f} s"]
        said += self.world.explain().splitlines() if debug else []
        for k, line in enumerate(said):
            screen.blit(font.render(line, True, (230, 230, 230)), (16, 12 + 22 * k))


def seen(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of lines (n, k, 3) [m], and how far away each is at its nearest [m]."""
    away = points - EYE
    c, s = math.cos(PITCH), math.sin(PITCH)
    depth, height = away[..., 1] * c - away[..., 2] * s, away[..., 1] * s + away[..., 2] * c
    z = np.maximum(depth, 0.1)
    return np.stack([SIZE[0] / 2 + SCALE * away[..., 0] / z, SIZE[1] / 2 - SCALE * height / z], -1), depth.min(-1)


def keys() -> dict[str, tuple[float, float, bool, bool]]:
    held = pygame.key.get_pressed()
    k = pygame
    red = held[k.K_d] - held[k.K_a], held[k.K_w] - held[k.K_s], held[k.K_f], held[k.K_g]
    blue = held[k.K_RIGHT] - held[k.K_LEFT], held[k.K_UP] - held[k.K_DOWN], held[k.K_RSHIFT], held[k.K_RETURN]
    return {"red": red, "blue": blue}


class Player:
    """Plays by itself: runs for the other's corner and back by way of the door, jumps now and then, and shoots."""

    def __init__(self, name: str, seed: int) -> None:
        side, other = math.copysign(1.8, STARTS[name][0]), next(x for x in STARTS if x != name)
        self.name, self.dice = name, random.Random(seed)
        self.way = deque([(side, 0.0), (-side, 0.0), STARTS[other], (-side, 0.0), (side, 0.0), STARTS[name]])

    def commands(self, game: Game) -> tuple[float, float, bool, bool]:
        x, y, _ = game.world.pose(self.name)[:3]
        if math.hypot(self.way[0][0] - x, self.way[0][1] - y) < 0.6:
            self.way.rotate(-1)
        ahead = self.way[0][0] - x, self.way[0][1] - y
        return *ahead, self.dice.random() < 0.01, self.dice.random() < 0.03


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, help="stop after so many; both players play by themselves")
    parser.add_argument("--screenshot", metavar="FILE", help="of the last frame")
    options = parser.parse_args()
    pygame.init()
    screen, clock, font = pygame.display.set_mode(SIZE), pygame.time.Clock(), pygame.font.Font(None, 24)
    pygame.display.set_caption("arena")
    game, frame, debug = Game(), 0, False
    players = [Player(name, seed) for seed, name in enumerate(STARTS)]
    while options.frames is None or frame < options.frames:
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return
            if event.type == pygame.KEYDOWN and event.key == pygame.K_F1:
                debug = not debug
            if event.type == pygame.KEYDOWN and event.key == pygame.K_r:
                game.again()
        if options.frames is None and pygame.key.get_pressed()[pygame.K_BACKSPACE]:
            game.take_back()
        else:
            game.step(keys() if options.frames is None else {player.name: player.commands(game) for player in players})
        if options.frames is None or frame == options.frames - 1:
            game.draw(screen, font, debug or options.frames is not None)
            pygame.display.flip()
        frame += 1
        if options.frames is None:
            clock.tick(60)
    if options.screenshot:
        pygame.image.save(screen, options.screenshot)
    p50, p99 = (1e3 * float(np.percentile(game.frames, p)) for p in (50, 99))
    print(f"{frame} frames, score {game.score}, {game.hits} hits, state {game.world.hash()}")
    print(f"start {game.start:.1f} s, frames {p50:.2f} ms (p50), {p99:.2f} ms (p99)")


if __name__ == "__main__":
    main()
