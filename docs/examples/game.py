"""Marbles: a small game on Carom's live world. Aim with the mouse, press to shoot, knock marbles off the table.

The line shows what the shot would meet first. Space brings a new marble, z takes the last shot back, r begins again.
Run: python docs/examples/game.py     (pip install pygame-ce)
Without a screen: SDL_VIDEODRIVER=dummy python docs/examples/game.py --frames 200 --screenshot marbles.png
"""

import argparse
import math

import pygame

import carom

RADIUS, TABLE, SPEED = 0.05, (1.2, 0.8), 4.0  # [m] of marbles, half the table, [m/s] of a shot
SIZE, SCALE = (960, 640), 340  # pixels, pixels a metre
WOOD, EDGE, INK = (40, 70, 60), (90, 60, 40), (240, 236, 224)
COLOURS = [(214, 96, 77), (244, 165, 90), (247, 220, 111), (125, 206, 160), (93, 173, 226), (165, 105, 189)]


def scene() -> carom.SceneBuilder:
    b = carom.SceneBuilder()
    b.add_static("table", [carom.Box((*TABLE, 0.05))], position=(0, 0, -0.05), friction=0.3, restitution=0.4)
    b.add_static("post", [carom.Cylinder(0.07, 0.1)], position=(0.2, 0.25, 0.1), restitution=0.9)
    how = {"shapes": [carom.Sphere(RADIUS)], "mass": 0.1, "friction": 0.2, "restitution": 0.9}
    b.add_body("shooter", position=(-0.8, 0, RADIUS), **how)
    for k in range(6):
        row, place = ((0, 0), (1, -0.5), (1, 0.5), (2, -1), (2, 0), (2, 1))[k]
        b.add_body(f"marble{k}", position=(0.4 + 0.11 * row, 0.12 * place, RADIUS), **how)
    return b


class Game:
    def __init__(self) -> None:
        self.world = carom.Live(scene(), pool={"marble0": 6}, max_ticks=32)
        self.world.on_contact(self.heard, "shooter")
        self.again()

    def again(self) -> None:
        self.world.reset()
        self.score, self.clicks, self.undo, self.gone = 0, 0, [], set()

    def heard(self, contact) -> None:
        """The shooter's hits click; resting on the table does not."""
        if contact.speed > 0.2 and contact.b != "table":
            self.clicks += 1

    def aim(self, mouse: tuple[int, int]) -> tuple[float, float, float]:
        x, y, _ = self.world.pose("shooter")[:3]
        dx, dy = (mouse[0] - SIZE[0] / 2) / SCALE - x, (SIZE[1] / 2 - mouse[1]) / SCALE - y
        length = math.hypot(dx, dy) or 1.0
        return dx / length, dy / length, 0.0

    def shoot(self, mouse: tuple[int, int]) -> None:
        self.undo.append((self.world.save_state(), self.score, set(self.gone)))
        impulse = [0.1 * SPEED * x for x in self.aim(mouse)]
        self.world.apply_impulse("shooter", impulse)

    def take_back(self) -> None:
        if self.undo:
            saved, self.score, self.gone = self.undo.pop()
            self.world.load_state(saved)

    def new_marble(self) -> None:
        if not self.world.overlap(carom.Sphere(RADIUS), (0.4, 0, RADIUS), within=-0.01):
            self.world.add_body("marble0", (0.4, 0, RADIUS + 0.001))

    def step(self) -> None:
        x, y, _ = self.world.pose("shooter")[:3]
        self.world.apply_force("shooter", (-0.02 * x, -0.02 * y, 0))  # the table is a little hollow
        self.world.step()
        for name in self.world.bodies:
            height = self.world.pose(name)[2]
            if name == "shooter" and height < -1:
                self.world.teleport(name, (-0.8, 0, RADIUS), (1, 0, 0, 0), (0, 0, 0), (0, 0, 0))
            elif name != "shooter" and height < -0.2 and name not in self.gone:
                self.score += 1
                self.gone.add(name)
            if height < -3 and "." in name:
                self.world.remove_body(name)
                self.gone.discard(name)

    def draw(self, screen: pygame.Surface, mouse: tuple[int, int], font: pygame.font.Font) -> None:
        screen.fill((24, 26, 32))
        for colour, rim in ((EDGE, 0.03), (WOOD, 0.0)):
            wide, deep = (t + rim for t in TABLE)
            pygame.draw.rect(screen, colour, (*at(-wide, deep), 2 * SCALE * wide, 2 * SCALE * deep))
        pygame.draw.circle(screen, EDGE, at(0.2, 0.25), 0.07 * SCALE)
        place, way = self.world.pose("shooter")[:3], self.aim(mouse)
        hit = self.world.raycast(place, way, 3.0, ignore=["shooter"])
        end = place + [3.0 * x for x in way] if hit is None else hit.point
        pygame.draw.line(screen, INK, at(*place[:2]), at(*end[:2]), 1)
        if hit is not None:
            pygame.draw.circle(screen, INK, at(*end[:2]), 5, 1)
        for k, (name, pose) in enumerate(zip(self.world.bodies, self.world.poses(), strict=True)):
            if pose[2] > -0.5:
                size = RADIUS * SCALE * (1 if pose[2] > 0 else 1 + pose[2])
                colour = INK if name == "shooter" else COLOURS[k % 6]
                pygame.draw.circle(screen, colour, at(*pose[:2]), float(size))
        text = f"off the table: {self.score}    hits: {self.clicks}    shots: {len(self.undo)}"
        screen.blit(font.render(text, True, INK), (16, 12))


def at(x: float, y: float) -> tuple[float, float]:
    """Pixels of a place on the table [m], seen from above."""
    return SIZE[0] / 2 + SCALE * float(x), SIZE[1] / 2 - SCALE * float(y)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, help="stop after so many; a shot is played by itself")
    parser.add_argument("--screenshot", metavar="FILE", help="of the last frame")
    options = parser.parse_args()
    pygame.init()
    screen, clock, font = pygame.display.set_mode(SIZE), pygame.time.Clock(), pygame.font.Font(None, 26)
    pygame.display.set_caption("marbles")
    game, frame, alone = Game(), 0, options.frames is not None
    mouse = (800, 310)
    while options.frames is None or frame < options.frames:
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return
            if event.type == pygame.MOUSEBUTTONDOWN:
                game.shoot(mouse)
            if event.type == pygame.KEYDOWN:
                actions = {pygame.K_SPACE: game.new_marble, pygame.K_z: game.take_back, pygame.K_r: game.again}
                actions.get(event.key, lambda: None)()
        if alone and frame % 60 == 10:
            game.shoot(mouse)
        if alone and frame == 90:
            game.new_marble()
        mouse = mouse if alone else pygame.mouse.get_pos()
        game.step()
        game.draw(screen, mouse, font)
        pygame.display.flip()
        frame += 1
        if not alone:
            clock.tick(60)
    if options.screenshot:
        pygame.image.save(screen, options.screenshot)
    print(f"{frame} frames, {game.score} off the table, {game.clicks} hits, state {game.world.hash()}")


if __name__ == "__main__":
    main()
