"""Joint forces of mechanisms with loops: the same ones wherever the loop is cut, and what moves the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import carom

pytestmark = pytest.mark.slow  # runs with reports of four mechanisms compile for a minute

G, DT = 9.81, 0.02
A, B, C, D = (np.array(x) for x in ((0.0, 0.0, 1.0), (0.2, 0.0, 1.5), (1.1, 0.0, 1.7), (1.2, 0.0, 0.9)))
HINGE = carom.Revolute((0.0, 1.0, 0.0))
BARS = {"crank": (A, B, 1.3), "coupler": (B, C, 0.7), "rocker": (C, D, 2.1)}
REPORTED = ("joint_forces", "joint_impulses")


def four_bar(cut: str, **how: Any) -> Any:
    """A four-bar that falls and strikes the floor with a ball of its coupler; a spring pulls at its crank. The pin that
    closes it is at C or at A, and tells no motion across the plane twice."""
    b = carom.SceneBuilder(gravity=(0.0, 0.0, -G))
    b.add_plane(friction=0.4, restitution=0.5)
    parents = {"crank": "world", "coupler": "crank", "rocker": "world"}
    roots = {"crank": A, "coupler": B, "rocker": D}
    if cut == "A":
        parents = {"rocker": "world", "coupler": "rocker", "crank": "coupler"}
        roots = {"rocker": D, "coupler": C, "crank": B}
    for name, parent in parents.items():
        first, second, mass = BARS[name]
        middle, root = (first + second) / 2, roots[name]
        shapes = [carom.Sphere(0.05, position=tuple(np.array((0.6, 0.0, 0.7)) - root))] if name == "coupler" else []
        b.add_link(
            name, joint=HINGE, parent=parent, position=tuple(root - (roots[parent] if parent != "world" else 0)),
            mass=mass, com=tuple(middle - root), inertia=tuple(np.diag((0.02, 0.03, 0.05)) * mass), shapes=shapes,
            friction=0.4, restitution=0.5,
        )  # fmt: skip
    pin = carom.Cylindrical((0.0, 1.0, 0.0))
    if cut == "A":
        b.add_loop("crank", tuple(A - B), "world", joint=pin)
    else:
        b.add_loop("coupler", tuple(C - B), "rocker", tuple(C - D), joint=pin)
    middle = (A + B) / 2 - roots["crank"]
    b.add_loop("crank", tuple(middle), "world", (0.8, 0.0, 1.2), joint=carom.Spring(30.0, 0.2, 0.5))
    return carom.compile_scene(b, **how)


def report(cut: str, max_dt: float, lanes: int = 1, **how: Any) -> dict[str, np.ndarray]:
    """(frames, links, 6) of each name, of the last lane."""
    model, state = four_bar(cut, **how)
    state = carom.tile(state, lanes) if lanes > 1 else state
    ran = carom.rollout(model, state, duration=0.8, frame_dt=DT, max_dt=max_dt, report=REPORTED)
    assert np.asarray(ran.stats.impacts).min() >= 1
    return {name: np.asarray(x)[-1] if lanes > 1 else np.asarray(x) for name, x in ran.report.items()}


@pytest.mark.parametrize(("max_dt", "off"), [(4e-3, 2e-3), (1e-3, 1e-4)])
def test_it_is_the_same_wherever_the_loop_is_cut(max_dt: float, off: float) -> None:
    """The pin at D holds the rocker in both, and that at B the coupler in one, the crank in the other. Forces are those
    of the middle of each step."""
    at_a, at_c = report("A", max_dt, lanes=2), report("C", max_dt)
    for name, part in (("joint_forces", off), ("joint_impulses", 1e-6)):
        scale = np.abs(at_c[name]).max()
        assert scale > {"joint_forces": 40, "joint_impulses": 2}[name]  # N, N s
        np.testing.assert_allclose(at_a[name][:, 0], at_c[name][:, 2], rtol=0, atol=part * scale)
        np.testing.assert_allclose(at_a[name][:, 2], -at_c[name][:, 1], rtol=0, atol=part * scale)


@pytest.mark.parametrize("coordinates", ["maximal", "penalty"])
def test_free_links_are_moved_by_loops_and_contacts_alone(coordinates: str) -> None:
    """Where every link floats, all its joints are loops, and nothing is left for the joint of the tree."""
    left = report("C", 1e-3, coordinates=coordinates)
    assert np.abs(left["joint_forces"]).max() < 1e-3 * 40
    assert np.abs(left["joint_impulses"]).max() < 1e-6 * 2


def test_what_drives_a_slider_crank_and_what_its_pin_bears() -> None:
    """By the balance of energy and of momentum, from frame to frame: the drive's moment does the work that changes the
    kinetic energy, and the pin alone pushes the slider along its guide."""
    r, rod, rate, mass = 0.1, 0.3, 10.0, 2.0
    b, axis = carom.SceneBuilder(gravity=(0, 0, 0)), (0, -1, 0)
    turn = 0.3
    back = -np.arcsin(r * np.sin(turn) / rod) - turn
    inertia = (0.01, 0.01, 0.01)
    b.add_link("crank", joint=carom.Revolute(axis), mass=1.0, com=(0, 0, 0), inertia=inertia, q0=turn, v0=rate)
    b.add_link("rod", "crank", joint=carom.Revolute(axis), position=(r, 0, 0), mass=1.0, com=(rod / 2, 0, 0),
               inertia=inertia, q0=back)  # fmt: skip
    b.add_link("slider", joint=carom.Prismatic((1, 0, 0)), mass=mass, com=(0, 0, 0), inertia=inertia, q0=0.39)
    b.add_loop("rod", (rod, 0, 0), "slider", (0, 0, 0), joint=carom.Cylindrical(axis), name="pin")
    b.add_loop("crank", joint=carom.Driven(rate=rate, start=turn), name="drive")
    model, state = carom.compile_scene(b, dtype="float64")
    run = carom.rollout(model, state, duration=0.5, frame_dt=DT, max_dt=1e-3, report=("loop_forces", "loop_impulses"))
    forces, v = run.report["loop_forces"][1:], np.asarray(run.v)
    assert forces.shape == (25, 2, 6)
    kinetic = [float(carom.energy(model, carom.State(*x)).kinetic) for x in zip(run.q, run.v, run.t, strict=True)]
    moment = np.diff(kinetic) / (rate * DT)
    assert np.abs(moment).max() > 1  # N m
    np.testing.assert_allclose(forces[:, 1, 1], -moment, rtol=0, atol=1e-4 * np.abs(moment).max())
    push = mass * np.diff(v[:, 2]) / DT
    np.testing.assert_allclose(forces[:, 0, 3], -push, rtol=0, atol=1e-4 * np.abs(push).max())
    assert not np.asarray(run.report["loop_impulses"]).any()
    with pytest.raises(ValueError, match="report has 'loop_forces', and the scene has no loops"):
        carom.rollout(*carom.compile_scene(carom.load("bouncing_ball")), duration=0.1, report="loop_forces")
