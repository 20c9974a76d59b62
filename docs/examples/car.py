"""A car on hills: four wheels with motors, two of which steer, a heightfield, rewind.

Up and down drive, left and right steer, z goes back two seconds, r begins again.
Run: python docs/examples/car.py     (pip install pygame-ce)
Without a screen: SDL_VIDEODRIVER=dummy python docs/examples/car.py --frames 240 --screenshot car.png
"""

import argparse
import math
from collections import deque

import numpy as np
import pygame

import carom

RADIUS = 0.35  # [m] of a wheel
TRACK, BASE = 0.75, 1.1  # [m] half the distance of left and right wheels, half that of front and rear
BODY = (1.3, 0.38)  # [m] half its length and width
SPEED, TURN, EFFORT = 22.0, 0.5, 400.0  # [rad/s] of the wheels, [rad] that they steer, [N m] of a motor
VERTICES, CELL = 41, 1.5  # of the hills along each side, [m] between them
SIZE = 820  # pixels
ENDS, SIDES = {"front": BASE, "rear": -BASE}, {"left": TRACK, "right": -TRACK}
WHEELS = {f"{end}_{side}": (x, y) for end, x in ENDS.items() for side, y in SIDES.items()}


def hills() -> np.ndarray:
    """Heights (VERTICES, VERTICES) [m], level in the middle."""
    x, y = np.meshgrid(*2 * [np.linspace(-3, 3, VERTICES)], indexing="ij")
    return 1.6 * np.sin(1.7 * x) * np.cos(1.3 * y + 0.4) * (1 - np.exp(-(x**2 + y**2)))


def scene() -> carom.SceneBuilder:
    b = carom.SceneBuilder()
    b.add_static("hills", [carom.Heightfield(hills(), CELL)], friction=0.9)
    b.add_link("car", joint=carom.Floating(), position=(0, 0, 1.2), mass=600.0, shapes=[carom.Box((*BODY, 0.25))])
    motor = carom.Motor("velocity", kd=200.0, effort=EFFORT)
    steering = carom.Motor("position", kp=1500.0, kd=80.0, effort=2e3)
    for name, (x, y) in WHEELS.items():
        parent, place = "car", (x, y, -0.25)
        if name.startswith("front"):
            knuckle = carom.Revolute((0, 0, 1), motor=steering)
            b.add_link(f"{name}_knuckle", parent, joint=knuckle, position=place, mass=10.0, inertia=(0.1, 0.1, 0.1))
            parent, place = f"{name}_knuckle", (0, 0, 0)
        axle = carom.Revolute((0, 1, 0), motor=motor)
        b.add_link(name, parent, joint=axle, position=place, mass=30.0, shapes=[carom.Sphere(RADIUS, friction=0.9)])
    return b


class Game:
    def __init__(self) -> None:
        self.world = carom.Live(scene())
        self.again()

    def again(self) -> None:
        self.world.reset()
        self.past: deque[bytes] = deque(maxlen=round(2 / self.world.dt))

    def drive(self, ahead: float, left: float) -> None:
        """ahead and left from -1 to 1."""
        for name in WHEELS:
            self.world.motor(name, SPEED * ahead)
            if name.startswith("front"):
                self.world.motor(f"{name}_knuckle", TURN * left)

    def frame(self) -> None:
        self.past.append(self.world.save_state())
        self.world.step()

    def rewind(self) -> None:
        """Two seconds, or as far as the car has come."""
        if self.past:
            self.world.load_state(self.past[0])
            self.past.clear()


def pixel(x: float, y: float) -> tuple[float, float]:
    """From above."""
    scale = SIZE / (CELL * (VERTICES - 1))
    return SIZE / 2 + scale * x, SIZE / 2 - scale * y


def ground() -> pygame.Surface:
    """The hills from above, lit from the left."""
    height = hills()
    slope = np.gradient(height, CELL, axis=0)
    shade = np.clip(0.55 + 0.09 * height + 0.25 * slope, 0, 1)[:, ::-1, None]
    small = pygame.surfarray.make_surface((shade * (150, 190, 120)).astype(np.uint8))
    return pygame.transform.smoothscale(small, (SIZE, SIZE))


def draw(screen: pygame.Surface, below: pygame.Surface, world: carom.Live) -> None:
    screen.blit(below, (0, 0))
    poses = dict(zip(world.bodies, world.poses().tolist(), strict=True))
    x, y, _, qw, qx, qy, qz = poses["car"]
    heading = math.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))
    c, s = math.cos(heading), math.sin(heading)
    a, b = BODY
    corners = [(a, b), (a, -b), (-a, -b), (-a, b)]
    pygame.draw.polygon(screen, (190, 60, 50), [pixel(x + c * u - s * w, y + s * u + c * w) for u, w in corners])
    for name in WHEELS:
        pygame.draw.circle(screen, (30, 30, 34), pixel(*poses[name][:2]), 7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, help="stop after so many, driving by itself")
    parser.add_argument("--screenshot", help="write the last picture to this file")
    options = parser.parse_args()
    pygame.init()
    screen, clock = pygame.display.set_mode((SIZE, SIZE)), pygame.time.Clock()
    below, game, frame = ground(), Game(), 0
    while options.frames is None or frame < options.frames:
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return
            if event.type == pygame.KEYDOWN and event.key in (pygame.K_z, pygame.K_r):
                game.rewind() if event.key == pygame.K_z else game.again()
        keys = pygame.key.get_pressed()
        if options.frames is None:
            game.drive(keys[pygame.K_UP] - keys[pygame.K_DOWN], keys[pygame.K_LEFT] - keys[pygame.K_RIGHT])
            clock.tick(round(1 / game.world.dt))
        else:
            game.drive(0.7, 0.5 if frame > 60 else 0.0)
        game.frame()
        draw(screen, below, game.world)
        pygame.display.flip()
        frame += 1
    x, y, z = game.world.pose("car")[:3]
    speed = np.linalg.norm(game.world.velocity("car")[3:])
    print(f"after {game.world.time:.2f} s at ({x:.2f}, {y:.2f}, {z:.2f}) m, {speed:.2f} m/s")
    if options.screenshot:
        pygame.image.save(screen, options.screenshot)


if __name__ == "__main__":
    main()
