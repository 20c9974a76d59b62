"""Annotations tell the shapes that public functions take and return: jaxtyping and beartype check each of them while it
is traced, of one lane and of several, in both precisions."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import Any, get_type_hints

import jax
import jax.numpy as jnp
import pytest
from beartype import beartype
from beartype.door import is_bearable
from jaxtyping import TypeCheckError, jaxtyped

import carom
from carom.engine.dynamics import kinematics, wrenches
from carom.engine.dynamics.passive import displacement
from carom.engine.parameters import AXES
from carom.scenes.recordings.recording import Recording

KINDS = "Bool[", "Float[", "Int[", "Real["


def shaped(of: Any) -> list[str]:
    """Names of the arguments of a function, or of the fields of a record, whose annotations have shapes."""
    annotations = inspect.get_annotations(of if inspect.isclass(of) else inspect.unwrap(of))
    return [name for name, text in annotations.items() if any(kind in str(text) for kind in KINDS)]


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with what it takes and returns checked against its annotations."""

    def call(*args: Any, **keywords: Any) -> Any:
        return function(*args, **keywords)

    made: Any = call
    made.__signature__ = inspect.signature(inspect.unwrap(function), eval_str=True)
    return jaxtyped(typechecker=beartype)(made)


def fits(record: Any, **changes: Any) -> bool:
    """Return whether a record, with some fields changed, has the shapes that its annotations say."""
    kind = type(record)
    hints = get_type_hints(kind)
    with jaxtyped("context"):
        return all(is_bearable(changes.get(name, getattr(record, name)), hints[name]) for name in shaped(kind))


def records(x: Any) -> Iterator[Any]:
    """The records with shapes among these, and in each other."""
    own = type(x).__module__.startswith("carom.") and (is_dataclass(x) or hasattr(x, "_fields"))
    if own and shaped(type(x)):
        yield x
    parts = vars(x) if is_dataclass(x) else x
    if isinstance(parts, (tuple, list, dict)):
        for part in parts.values() if isinstance(parts, dict) else parts:
            yield from records(part)


SEEN: set[type] = set()


def refuses(record: Any) -> None:
    """Check, once for each kind of record, that fields of another dtype and with one more axis would be refused."""
    kind, names = type(record), shaped(type(record))
    for name in () if kind in SEEN else names:
        value = getattr(record, name)
        if value is not None:
            assert not fits(record, **{name: value.astype(complex)}), (kind, name)
            broadcasts = "*#" in str(kind.__annotations__[name])
            assert broadcasts or len(names) == 1 or not fits(record, **{name: value[None]}), (kind, name)
    SEEN.add(kind)


def call(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Check what a function takes and returns, also the records in it, and that others would be refused."""
    result = checked(function)(*args, **keywords)
    given = inspect.signature(function).bind(*args, **keywords).arguments
    for name in shaped(function):
        if isinstance(given.get(name), jax.Array):
            with pytest.raises(TypeCheckError):
                checked(function)(**{**given, **given.get("keywords", {}), name: given[name].astype(complex)})
    for record in records((args, keywords, result)):
        assert fits(record), type(record)
        refuses(record)
    return result


def ball_above_ground() -> carom.SceneSpec:
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 0.11))
    return b.build()


FALLING = ball_above_ground()


@functools.cache
def scene(lanes: int | None, dtype: str) -> SimpleNamespace:
    """A box and a closed loop of three links with a motor; a ball that falls; a chain; and arguments."""
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("box", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(2, 0, 0.12))
    axis, arm = (0, 1, 0), {"mass": 1.0, "com": (0.5, 0, 0), "inertia": (0.1, 0.1, 0.1)}
    b.add_link("crank", joint=carom.Revolute(axis, motor=carom.Motor()), position=(0, 0, 2), **arm)
    b.add_link("rod", "crank", joint=carom.Revolute(axis), position=(1, 0, 0), q0=(0.5,), **arm)
    b.add_link("rocker", "rod", joint=carom.Revolute(axis), position=(1, 0, 0), q0=(0.5,), **arm)
    b.add_loop("rocker", (1, 0, 0), joint=carom.Revolute(axis))
    b.add_site("tip", "crank", (1, 0, 0))
    model, state = carom.compile_scene(b.build(), dtype)
    ball, falling = carom.compile_scene(FALLING, dtype)
    joints, ground = [carom.ChainJoint()] * 4, carom.Ground((0, -0.2))
    spec = carom.ChainSpec(joints, (0.5, 0.5, 0.5), angles=(0.1, 0.2, 0.3), grounds=[ground])
    chain, hanging = carom.compile_scene(spec, dtype)
    if lanes is not None:
        state, falling = carom.tile(state, lanes), carom.tile(falling, lanes)
        hanging = carom.tile(hanging, lanes)
    batch = state.t.shape

    def full(value: float, *shape: int) -> jax.Array:
        return jnp.full((*batch, *shape), value, dtype)

    nv = model.topology.nv
    return SimpleNamespace(
        model=model, state=state, q=state.q, v=full(0.1, nv), a=full(1, nv),
        given=jnp.arange(nv) < full(3, nv),
        wrenches=full(1, model.topology.n_links, 6), rays=full(1, 5, 3), time=full(0.5), chain=chain, hanging=hanging,
        ball=ball, falling=falling, push=full(1, 6),
        K=full(0, 3, 3) + jnp.eye(3, dtype=dtype), u=full(-1, 3), angles=full(0.1, 3), points=full(0.1, 4, 2),
        base=full(0, 2),
    )  # fmt: skip


CALLS: dict[str, Callable[[Any], Any]] = {
    "fk": lambda s: call(carom.fk, s.model, s.q),
    "site_poses": lambda s: call(carom.site_poses, s.model, s.q),
    "site_velocities": lambda s: call(carom.site_velocities, s.model, s.q, s.v),
    "integrate_q": lambda s: call(carom.integrate_q, s.model, s.q, s.v, s.time),
    "rnea": lambda s: call(carom.rnea, s.model, s.q, s.v, s.a),
    "aba": lambda s: call(carom.aba, s.model, s.q, s.v, s.a),
    "crba": lambda s: call(carom.crba, s.model, s.q),
    "hybrid": lambda s: call(carom.hybrid, s.model, s.q, s.v, s.given, s.a),
    "rnea_derivatives": lambda s: call(carom.rnea_derivatives, s.model, s.q, s.v, s.a),
    "aba_derivatives": lambda s: call(carom.aba_derivatives, s.model, s.q, s.v, s.a),
    "hybrid_derivatives": lambda s: call(carom.hybrid_derivatives, s.model, s.q, s.v, s.given, s.a),
    "close_loops": lambda s: call(carom.close_loops, s.model, s.state),
    "closed": lambda s: call(carom.closed, s.model, s.q, s.v, s.time),
    "constrained": lambda s: call(carom.constrained, s.model, s.q, s.v, s.time, s.a),
    "constrained_inverse": lambda s: call(carom.constrained_inverse, s.model, s.q, s.v, s.a, s.time, actuated=s.given),
    "constrained_hybrid": lambda s: call(
        carom.constrained_hybrid, s.model, s.q, s.v, s.time, given=s.given, values=s.a
    ),
    "joint_wrenches": lambda s: call(carom.joint_wrenches, s.model, s.q, s.v, s.a, s.wrenches),
    "loop_wrenches": lambda s: call(carom.loop_wrenches, s.model, s.state, s.v, s.a),
    "impulse_response": lambda s: call(carom.impulse_response, s.model, s.q, "box", impulse=s.u),
    "passive_forces": lambda s: call(carom.passive_forces, s.model, s.q, s.v),
    "motor_forces": lambda s: call(carom.motor_forces, s.model, s.q, s.v, s.a),
    "energy": lambda s: call(carom.energy, s.model, s.state),
    "momentum": lambda s: call(carom.momentum, s.model, s.state, s.u),
    "jacobian": lambda s: call(carom.jacobian, s.model, s.q, "rod"),
    "link_velocities": lambda s: call(kinematics.link_velocities, s.model, s.q, s.v),
    "coordinate_rates": lambda s: call(kinematics.coordinate_rates, s.model, s.q, s.v),
    "bracket": lambda s: call(kinematics.bracket, s.model, s.v, s.a),
    "normalize_q": lambda s: call(kinematics.normalize_q, s.model, s.q),
    "displacement": lambda s: call(displacement, s.model, s.q),
    "joint_forces": lambda s: call(wrenches.joint_forces, s.model, s.q, s.wrenches),
    "velocity_changes": lambda s: call(wrenches.velocity_changes, s.model, s.q, s.wrenches),
    "detect": lambda s: call(carom.detect, s.model, s.q),
    "cast_rays": lambda s: call(carom.cast_rays, s.model, s.q, s.rays, -s.rays, max_distance=s.time),
    "resolve_impact": lambda s: call(
        carom.resolve_impact, s.K, s.u, friction=s.time, restitution=s.time, tangential_restitution=0
    ),
    "collision_matrix": lambda s: call(carom.collision_matrix, s.model, s.q, "box", point=s.u),
    "rollout": lambda s: call(carom.rollout, s.ball, s.falling, duration=0.1, frame_dt=0.05, forces=s.push),
    "step": lambda s: call(carom.step, s.ball, s.falling, dt=0.1, control=s.push),
    "chain_state": lambda s: call(carom.chain_state, s.chain, s.angles, s.angles, base=s.base),
    "chain_angles": lambda s: call(carom.chain_angles, s.chain, s.hanging),
    "chain_angular": lambda s: call(carom.chain_angular, s.chain, s.hanging, s.points),
    "chain_accelerations": lambda s: call(
        carom.chain_accelerations, s.chain, s.hanging, carom.ChainDrive(force=s.points)
    ),
    "chain_impulses": lambda s: call(carom.chain_impulses, s.chain, s.hanging),
    "chain_force_jacobian": lambda s: call(carom.chain_force_jacobian, s.chain, s.hanging),
    "chain_torque_jacobian": lambda s: call(carom.chain_torque_jacobian, s.chain, s.hanging, [0, 2]),
    "chain_torques": lambda s: call(carom.chain_torques, s.chain, s.hanging, [0, 1, 2], s.angles),
    "chain_energy": lambda s: call(carom.chain_energy, s.chain, s.hanging),
    "chain_momentum": lambda s: call(carom.chain_momentum, s.chain, s.hanging),
    "chain_rollout": lambda s: call(carom.chain_rollout, s.chain, s.hanging, duration=0.5, frame_dt=0.1),
}


@pytest.mark.parametrize(("lanes", "dtype"), [(None, "float64"), (3, "float32")])
def test_functions_take_and_return_the_shapes_that_they_say(lanes: int | None, dtype: str) -> None:
    arguments = scene(lanes, dtype)
    for function in CALLS.values():
        jax.eval_shape(lambda x, f=function: f(SimpleNamespace(**x)), vars(arguments))


def test_no_public_function_of_arrays_is_left_out() -> None:
    public = {name: getattr(carom, name) for name in carom.__all__}
    assert {name for name, x in public.items() if not inspect.isclass(x) and shaped(x)} <= set(CALLS)
    assert {name for name, x in public.items() if inspect.isclass(x) and shaped(x)} >= {"State", "Model", "Rollout"}


def test_parameters_of_a_model_have_the_axes_of_their_table() -> None:
    hints = get_type_hints(carom.Model)
    said = {name: hints[name].dim_str.split() for name in AXES}
    assert said == {name: ["*#batch", *map(str, axes)] for name, axes in AXES.items()}


def test_users_do_not_wait_for_the_import_of_shapes() -> None:
    code = "import sys, carom; [getattr(carom, name) for name in carom.__all__]; print('jaxtyping' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout.split() == ["False"], ran.stderr


WRONG: dict[str, Callable[[Any], Any]] = {
    "one acceleration too few": lambda s: checked(carom.rnea)(s.model, s.q, s.v, s.a[..., 1:]),
    "five numbers of a wrench": lambda s: checked(carom.joint_wrenches)(s.model, s.q, s.v, s.a, s.wrenches[..., 1:]),
    "rays in a plane": lambda s: checked(carom.cast_rays)(s.model, s.q, s.rays[..., :2], s.rays[..., :2]),
    "fewer directions than rays": lambda s: checked(carom.cast_rays)(s.model, s.q, s.rays, s.rays[..., 1:, :]),
    "a matrix of two columns": lambda s: checked(carom.resolve_impact)(
        s.K[..., :2], s.u, friction=s.time, restitution=s.time
    ),
    "other lanes": lambda s: checked(carom.aba)(s.model, s.q, s.v[:2], s.a),
    "a point of a plane": lambda s: checked(carom.momentum)(s.model, s.state, s.u[..., :2]),
    "one force for all joints": lambda s: checked(carom.chain_angular)(s.chain, s.hanging, s.points[..., 0]),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_shape_is_refused(what: str) -> None:
    with pytest.raises(TypeCheckError):
        WRONG[what](scene(3, "float32"))


def test_runs_and_their_recordings_have_the_shapes_that_they_say() -> None:
    s = scene(3, "float32")
    ran = call(carom.rollout, s.ball, s.falling, duration=0.2)
    recording = Recording.of(FALLING, ran, title="", keywords={"duration": 0.2})
    assert ran.events.count.tolist() == [1, 1, 1]
    assert fits(recording)
    assert not fits(recording, q=recording.q[0])


def test_annotations_of_public_functions_can_be_evaluated() -> None:
    """Checkers of types and makers of command lines do so. Recordings are read without jax, so `of` is left out."""
    for name in carom.__all__:
        of = getattr(carom, name)
        own = [x for k, x in vars(of).items() if not k.startswith("_") and k != "of"] if inspect.isclass(of) else [of]
        for x in own:
            if inspect.isfunction(inspect.unwrap(x)):
                get_type_hints(x)
