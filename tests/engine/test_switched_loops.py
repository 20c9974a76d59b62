"""Loops that can be cut: one that is cut is not there, one that holds is as one that always does."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom

KINDS = {
    "spherical": carom.Spherical(),
    "revolute": carom.Revolute((0, 1, 0)),
    "fixed": carom.Fixed(),
    "distance": carom.Distance(),
    "spring": carom.Spring(30.0, 0.2, 0.5),
}
FIRST = (("spherical", "reduced"), ("distance", "penalty"), ("spring", "reduced"))


def compiled(joint: Any, active: bool | None, tied: bool = True, form: str = "reduced") -> Any:
    """Two bodies that fly and turn, a pendulum, and a joint between one and the other; a second one always holds."""
    b = carom.SceneBuilder()
    how: dict[str, Any] = {"mass": 1.0, "inertia": (0.02, 0.03, 0.04)}
    b.add_body("a", position=(0, 0, 1), **how)
    b.add_body("b", position=(0.5, 0, 1), **how)
    b.add_link("pendulum", joint=carom.Revolute((0, 1, 0)), com=(0, 0, -0.3), q0=0.5, v0=1.0, **how)
    b.add_loop("b", (0, 0, 0.1), "pendulum", (0, 0, -0.2), joint=carom.Spring(5.0, 0.1))
    if tied:
        there = (-0.3, 0, 0.2 if joint.kind in ("distance", "spring") else 0.1)
        b.add_loop("a", (0.2, 0, 0.1), "b", there, joint=joint, active=active)
    return carom.compile_scene(b, coordinates=form)


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        pytest.param(kind, form, marks=() if (kind, form) in FIRST else pytest.mark.exhaustive)
        for kind in KINDS
        for form in ("reduced", "maximal", "penalty")
    ],
)
def test_it_holds_as_others_do_or_is_not_there(kind: str, form: str) -> None:
    how: dict[str, Any] = {"duration": 0.2, "scheme": "semi_implicit", "max_dt": 1e-3}
    runs = {}
    for name, active, tied in (("always", None, True), ("on", True, True), ("off", False, True), ("none", None, False)):
        model, state = compiled(KINDS[kind], active, tied, form)
        runs[name] = carom.rollout(model, state, **how), carom.energy(model, state)
        if name == "on":
            cut = carom.rollout(
                model.replace(loop_active=np.r_[1.0, 0.0, np.ones(len(model.loop_active) - 2)]), state, **how
            )
    (always, stored), (on, stored_on), (off, loose), (none, without) = runs.values()
    assert np.array_equal(always.state.q, on.state.q)
    assert np.array_equal(always.state.v, on.state.v)
    assert float(stored.total) == float(stored_on.total)
    np.testing.assert_allclose(off.state.q, none.state.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(cut.state.q, none.state.q, rtol=0, atol=1e-13)
    assert float(loose.total) == pytest.approx(float(without.total), abs=1e-14)
    assert np.abs(on.state.q - none.state.q).max() > 1e-3


def test_lanes_are_cut_by_themselves() -> None:
    model, state = compiled(carom.Spherical(), True)
    both = model.replace(loop_active=np.array([[1.0, 1.0], [1.0, 0.0]]))
    states = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    run = carom.rollout(both, states, duration=0.1)
    for lane, active in enumerate(([1.0, 1.0], [1.0, 0.0])):
        alone = carom.rollout(model.replace(loop_active=np.array(active)), state, duration=0.1)
        assert np.array_equal(run.state.q[lane], alone.state.q)


@pytest.mark.parametrize(
    ("joint", "active", "why"),
    [
        (carom.Driven(rate=1.0), True, "a driven always holds: leave it out"),
        (carom.Revolute((0, 1, 0)), 1, "it must be True or False, or None for one that always holds"),
    ],
)
def test_what_cannot_be_cut_is_refused(joint: Any, active: Any, why: str) -> None:
    b = carom.SceneBuilder()
    b.add_link("a", joint=carom.Revolute((0, 1, 0)), mass=1.0, inertia=(1, 1, 1))
    b.add_link("b", joint=carom.Revolute((0, 1, 0)), mass=1.0, inertia=(1, 1, 1))
    b.add_loop("a", None, "world" if joint.kind == "driven" else "b", joint=joint, active=active)
    with pytest.raises(carom.SceneError, match=why):
        carom.compile_scene(b)
