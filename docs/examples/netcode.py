"""Rollback netcode: two players, one ragdoll, a network that is late. Nobody waits, and both end in the same world.

Each peer steps at 60 Hz with its own input at once and a guess of the other's: the last one it heard of. When a real
input arrives that was guessed wrong, the peer goes back to the frame it was for, and plays again up to the present.
Inputs are all that travels. Run: python docs/examples/netcode.py [--frames 300] [--scene ragdoll]
"""

import argparse
import random
import statistics
import time
from collections import deque

import carom

DELAY, JITTER = 4, 4  # frames that an input takes: so many, and up to so many more
WINDOW = DELAY + JITTER  # frames that may have to be played again
CHANGES = 12  # frames after which a player pushes another way, on average


class Player:
    """Holds a direction for a while, then another: (x, y, z) [N], one a frame."""

    def __init__(self, seed: int) -> None:
        self.random, self.held = random.Random(seed), (0.0, 0.0, 0.0)

    def input(self) -> tuple[float, float, float]:
        if self.random.random() < 1 / CHANGES:
            self.held = (self.random.uniform(-200, 200), self.random.uniform(-200, 200), 0.0)
        return self.held


class Network:
    """Delivers what was sent some frames later; how many is drawn from a seed, so that every run is the same."""

    def __init__(self, seed: int) -> None:
        self.random, self.under_way = random.Random(seed), []

    def send(self, now: int, message: tuple) -> None:
        self.under_way.append((now + DELAY + self.random.randint(0, JITTER), message))

    def arrived(self, now: int) -> list[tuple]:
        here = [message for due, message in self.under_way if due <= now]
        self.under_way = [(due, message) for due, message in self.under_way if due > now]
        return here


class Peer:
    """One player's machine."""

    def __init__(self, world: carom.Live, bodies: tuple[str, str], me: int, inbox: Network, outbox: Network) -> None:
        self.world, self.bodies, self.me = world, bodies, me
        self.inbox, self.outbox = inbox, outbox
        self.inputs: tuple[dict, dict] = ({}, {})  # of both players, by frame; the other's as far as known
        self.guesses: dict[int, tuple] = {}
        self.saves: deque[tuple[int, bytes]] = deque(maxlen=WINDOW + 1)
        self.rollbacks: list[tuple[int, float]] = []  # frames played again, and how long that took [ms]

    def advance(self, frame: int) -> None:
        """Play one frame with what is known of it."""
        self.saves.append((frame, self.world.save_state()))
        for player, body in enumerate(self.bodies):
            force = self.inputs[player].get(frame)
            if force is None:
                force = self.guesses[frame] = self.last_heard(frame)
            self.world.apply_force(body, force)
        self.world.step()

    def last_heard(self, frame: int) -> tuple:
        heard = self.inputs[1 - self.me]
        known = [k for k in heard if k < frame]
        return heard[max(known)] if known else (0.0, 0.0, 0.0)

    def tick(self, frame: int, mine: tuple) -> None:
        """A frame of the game: hear, correct what was guessed wrong, play on."""
        self.inputs[self.me][frame] = mine
        self.outbox.send(frame, (frame, mine))
        self.hear(frame, frame)
        self.advance(frame)

    def hear(self, now: int, present: int) -> None:
        """Take in what has arrived by `now`, and if it was guessed wrong, play again up to the present frame."""
        wrong = present
        for frame, force in self.inbox.arrived(now):
            self.inputs[1 - self.me][frame] = force
            if frame in self.guesses and self.guesses.pop(frame) != force:
                wrong = min(wrong, frame)
        if wrong == present:
            return
        begin = time.perf_counter()
        while self.saves[-1][0] > wrong:
            self.saves.pop()
        self.world.load_state(self.saves.pop()[1])
        for frame in range(wrong, present):
            self.advance(frame)
        self.rollbacks.append((present - wrong, 1e3 * (time.perf_counter() - begin)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--scene", default="ragdoll")
    parser.add_argument("--bodies", nargs=2, default=("left_hand", "right_hand"))
    options = parser.parse_args()
    there, back = Network(seed=1), Network(seed=2)
    first = carom.Live(options.scene)
    second = carom.Live(options.scene)  # the same program: nothing is compiled again
    bodies = tuple(options.bodies)
    peers = Peer(first, bodies, 0, back, there), Peer(second, bodies, 1, there, back)
    players = Player(seed=10), Player(seed=11)
    for frame in range(options.frames):
        for peer, player in zip(peers, players, strict=True):
            peer.tick(frame, player.input())
    for peer in peers:  # the game is over: what is still under way arrives
        peer.hear(options.frames + WINDOW, options.frames)
    report(peers)


def report(peers: tuple[Peer, Peer]) -> None:
    for peer in peers:
        world = peer.world
        print(f"player {peer.me}: t = {world.time:.3f} s, state {world.hash()}, save {len(world.save_state())} bytes")
    taken = [ms / frames for peer in peers for frames, ms in peer.rollbacks]
    longest = max(frames for peer in peers for frames, _ in peer.rollbacks)
    print(f"{len(taken)} rollbacks, of up to {longest} frames")
    eight = [8 * x for x in taken]
    print(f"8 frames again: {statistics.median(eight):.1f} ms (median); the goal is 16 ms, one frame at 60 Hz")
    same = len({peer.world.hash() for peer in peers}) == 1
    print("both are in the same world" if same else "the worlds differ")
    raise SystemExit(not same)


if __name__ == "__main__":
    main()
