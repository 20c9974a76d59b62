"""Random calls to a live world, good ones and others: whatever it is told, its state is finite, a call that is refused
says why and changes nothing, and what it saves it loads. Seeds count up until the time is over."""

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import carom
from carom.engine.results import SimulationError

ROOT = str(Path(carom.__file__).resolve().parent)
BRIEF, LONG = 12.0, 300.0  # [s] of each precision: in the slow tests, and by hand
CALLS = 60  # of one seed
FAST = 50.0  # [m, m/s, rad/s, N m] slower worlds must not fail: what turns by several radians a step is not held to

LISTS: list[Any] = []
LISTS.append(LISTS)  # within itself
HOSTILE: list[Any] = [
    None, "x", "", b"x", -1, 0, 3, True, 2**63, 10**400, -(10**5000), np.nan, np.inf, -np.inf, 1e13, 1e39, 1e308,
    -1e308, 1e-320, 1j, object(), type, ..., print, slice(3), {}, {"a": 1}, set(), range(3), [], [[]], [1, 2],
    [[1, 2, 3]], [[1], [2, 3]], LISTS, ["a", "b", "c"], ["1", "2", "3"], [None] * 3, [True] * 3, [1j, 0, 0],
    [10**400, 0, 0], (np.nan, 0, 0), (0, -np.inf, 0), (1e39, 0, 0), (0, 0, 1e308), (1e12,) * 3, (0, 0, 0, 0),
    (np.nan, 1, 0, 0), (1e39, 0, 0, 0), [np.nan] * 1000, np.zeros((3, 3)), np.zeros((0, 3)), np.zeros((2, 0)),
    np.array(["a"] * 3), np.array([1, 2, 3], object), np.array([1, 2, 3], complex), np.array("x"),
    np.datetime64("2000-01-01"), np.float32(3), np.int8(-1), bytearray(50), memoryview(b"abc"), "ball", "arm", "floor",
    "world", "ball.1", "overlap", carom.Sphere(0.1), carom.Sphere(np.nan), carom.Sphere(-1.0), carom.Sphere(1e39),
    carom.Box((1, 2)), carom.Plane(), carom.Sphere(0.1, position=(np.inf, 0, 0)),
    carom.Sphere(0.1, quaternion=None),  # type: ignore
    carom.Capsule(0.1, "x"), carom.Sphere(0.1, group="x"),  # type: ignore
]  # fmt: skip
NAMES = ("ball", "box", "arm", "head", "tail", "ball.1", "ball.2", "floor", "world")


def scene() -> carom.SceneBuilder:
    b = carom.SceneBuilder()
    b.add_plane(name="floor", restitution=0.5, friction=0.4)
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 0.5), restitution=0.6)
    b.add_body("box", [carom.Box((0.1, 0.2, 0.1))], mass=2.0, position=(1, 0, 0.1))
    hinge = carom.Revolute((0, 1, 0), limits=(-2, 2), motor=carom.Motor("torque"))
    b.add_link("arm", joint=hinge, position=(3, 0, 1), mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.add_link("head", parent="arm", joint=carom.Spherical(), position=(1, 0, 0), shapes=[carom.Sphere(0.1)], mass=1.0)
    b.add_link("tail", parent="box", joint=carom.Fixed(), position=(0, 0, 0.2), mass=0.1, inertia=(0.01,) * 3)
    return b


class Draw:
    """Arguments that are mostly good."""

    def __init__(self, world: carom.Live, seed: int) -> None:
        self.world, self.rng, self.saved = world, np.random.default_rng(seed), world.save_state()

    def body(self) -> str:
        there = self.world.bodies if self.rng.random() < 0.8 else NAMES
        return str(self.rng.choice(there))

    def numbers(self, n: int = 3) -> Any:
        size = 10.0 ** self.rng.choice([-1, 0, 1, 3, 6, 11], p=[0.4, 0.3, 0.15, 0.1, 0.03, 0.02])
        x = self.rng.uniform(-size, size, n)
        return x if self.rng.random() < 0.5 else x.astype(np.float32) if self.rng.random() < 0.5 else x.tolist()

    def place(self) -> Any:
        return self.rng.uniform((-3, -3, 0.2), (3, 3, 2))

    def turn(self) -> Any:
        x = self.rng.normal(size=4)
        return x / np.linalg.norm(x)

    def joint(self) -> tuple[Any, ...]:
        """A link, and coordinates and velocities of its joint."""
        link = self.rng.choice(["ball", "arm", "head", "tail"])
        q = {"arm": self.rng.normal(), "head": self.turn(), "ball": [*self.place(), *self.turn()], "tail": []}[link]
        return link, q, self.numbers({"arm": 1, "head": 3, "ball": 6, "tail": 0}[link])

    def bytes(self) -> bytes:
        """A save, an older one, or one that was damaged."""
        data = bytearray(self.world.save_state() if self.rng.random() < 0.3 else self.saved)
        if self.rng.random() < 0.2:
            self.saved = self.world.save_state()
        if self.rng.random() < 0.5:
            for _ in range(self.rng.integers(1, 4)):
                data[self.rng.integers(len(data))] = self.rng.integers(256)
        return bytes(data[: self.rng.integers(len(data))] if self.rng.random() < 0.1 else data)

    def shape(self) -> Any:
        size = self.rng.uniform(0.05, 0.5)
        return carom.Sphere(size) if self.rng.random() < 0.5 else carom.Box((size,) * 3)

    def some(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    # of each call: how often it is drawn, and its arguments
    CALLS: ClassVar[dict[str, tuple[int, Callable[["Draw"], tuple[Any, ...]]]]] = {
        "step": (30, lambda d: (d.some(None, None, None, 1 / 60, 1 / 240, 0.1),)),
        "apply_force": (6, lambda d: (d.body(), d.numbers(), d.some(None, d.place()))),
        "apply_torque": (3, lambda d: (d.body(), d.numbers())),
        "apply_impulse": (6, lambda d: (d.body(), d.numbers(), d.some(None, d.place()))),
        "set_motors": (2, lambda d: (d.numbers(d.world.model.topology.nv),)),
        "motor": (3, lambda d: (d.some("arm", "head", "box"), d.numbers(1)[0])),
        "add_body": (4, lambda d: ("ball", d.place(), d.turn(), d.numbers(), d.numbers())),
        "remove_body": (2, lambda d: (d.some("ball.1", "ball.2"),)),
        "teleport": (4, lambda d: (d.body(), d.place(), d.some(None, d.turn()), d.some(None, d.numbers()))),
        "set_joint": (4, lambda d: d.joint()),
        "pose": (1, lambda d: (d.body(),)),
        "velocity": (1, lambda d: (d.body(),)),
        "on_contact": (1, lambda d: (lambda contact: None, d.some(None, "ball", "floor"))),
        "raycast": (3, lambda d: (d.place(), d.numbers(), d.some(np.inf, 5.0))),
        "raycasts": (3, lambda d: (d.rng.normal(size=(d.rng.integers(1, 40), 3)), d.numbers(), d.some(np.inf, 5.0))),
        "overlap": (3, lambda d: (d.shape(), d.place(), d.turn())),
        "load_state": (3, lambda d: (d.bytes(),)),
        "reset": (1, lambda d: ()),
    }
    NAMED: ClassVar[dict[str, str]] = {
        "apply_force": "frame", "apply_torque": "frame", "apply_impulse": "frame", "raycast": "ignore",
        "raycasts": "ignore", "overlap": "within",
    }  # fmt: skip

    def call(self) -> tuple[str, list[Any], dict[str, Any]]:
        """One in three has an argument or two of another kind."""
        weights = np.array([weight for weight, _ in self.CALLS.values()], float)
        name = str(self.rng.choice(list(self.CALLS), p=weights / weights.sum()))
        given, named = list(self.CALLS[name][1](self)), dict[str, Any]()
        if self.rng.random() < 0.35:
            for _ in range(self.rng.integers(1, 3)):
                wrong, k = self.some(*HOSTILE), int(self.rng.integers(len(given) + 1))
                if k < len(given):
                    given[k] = wrong
                elif name in self.NAMED:
                    named[self.NAMED[name]] = wrong
        return name, given, named


def standing(world: carom.Live) -> tuple[Any, ...]:
    """All that decides what comes, bit by bit."""
    told = world._motors.tobytes(), world._pushes.tobytes(), tuple(world._callbacks)
    return world.save_state(), world.behind, world.missed, world.windows, world.dt, *told


def check_state(world: carom.Live) -> None:
    for array in (world.state.q, world.state.v, world.state.t, world._motors, world._pushes, world.behind):
        assert np.isfinite(array).all()


def check_refusal(error: Exception, before: tuple[Any, ...], world: carom.Live) -> None:
    """One of ours, at the call, in words, and nothing has changed."""
    assert traceback.extract_tb(error.__traceback__)[-1].filename.startswith(ROOT), "an error of somebody else"
    assert 10 < len(str(error)) < 1000
    assert standing(world) == before


def check_failure(before: tuple[Any, ...], world: carom.Live, saved: bytes) -> None:
    """A frame that failed is as if it had not been asked for, except that forces are forgotten; only worlds that move
    beyond all bounds fail again, and these go on from an earlier save."""
    assert not world._pushes.any()
    assert [x for k, x in enumerate(standing(world)) if k != 6] == [x for k, x in enumerate(before) if k != 6]
    if max(np.abs(x).max() for x in (world.poses(), world.state.v, world._motors)) < FAST:
        world.step()
    world.load_state(saved)
    world.set_motors(np.zeros(world.model.topology.nv))
    world.step()


def check_save(world: carom.Live) -> None:
    data, hashed = world.save_state(), world.hash()
    world.load_state(data)
    assert (world.save_state(), world.hash()) == (data, hashed)


def play(world: carom.Live, seed: int, count: Counter[str]) -> Iterator[str]:
    """The calls of one seed, each told before it is made."""
    world.reset()
    world._callbacks.clear()
    draw, start = Draw(world, seed), world.save_state()
    for _ in range(CALLS):
        name, given, named = draw.call()
        before = standing(world)
        try:
            shown = f"{name}(*{given!r}, **{named!r})"
        except ValueError:  # a number of more digits than Python writes
            shown = name
        yield shown[:500]
        count["tried"] += 1
        try:
            getattr(world, name)(*given, **named)
        except (ValueError, TypeError) as error:
            count["refused"] += 1
            check_refusal(error, before, world)
        except SimulationError:
            assert name == "step"
            count["failed"] += 1
            check_failure(before, world, start)
        check_state(world)
        if draw.rng.random() < 0.2:
            check_save(world)


def fuzz(dtype: str, seconds: float) -> Counter[str]:
    world, count, end = carom.Live(scene(), pool={"ball": 2}, dtype=dtype), Counter[str](), time.monotonic() + seconds
    seed = 0
    while time.monotonic() < end:
        calls: list[str] = []
        try:
            for call in play(world, seed, count):
                calls.append(call)
                if time.monotonic() > end:
                    break
        except BaseException as error:
            error.add_note(f"seed {seed}, {dtype}:\n" + "\n".join(calls[-8:]))
            raise
        seed += 1
    return count


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seconds", [BRIEF, pytest.param(LONG, marks=pytest.mark.exhaustive)])
def test_whatever_a_world_is_told_it_stays_sound(dtype: str, seconds: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count = fuzz(dtype, seconds)
    print(f"{dtype}: {dict(count)}, crashed 0")
    assert count["tried"] > 20 * seconds
    assert 0.1 < count["refused"] / count["tried"] < 0.6
