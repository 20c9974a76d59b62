"""Bodies that slide over flush seams keep their speed: between cells of a heightfield, or shapes of one body.

A step that is higher than contacts let bodies in is struck.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import carom

HALF = math.sqrt(0.5)
SHAPES = {
    "ball": carom.Sphere(0.2),
    "roller": carom.Cylinder(0.2, 0.2, quaternion=(HALF, HALF, 0, 0)),
    "capsule": carom.Capsule(0.2, 0.2, quaternion=(HALF, HALF, 0, 0)),
    "box": carom.Box((0.2, 0.2, 0.2)),
}
BOX = SHAPES["box"]
CORNERS = np.array([(x, y, z) for x in (-0.2, 0.2) for y in (-0.25, 0.25) for z in (-0.2, 0.2)])
EDGED = {"box": BOX, "disc": carom.Cylinder(0.2, 0.2), "hull": carom.ConvexHull(CORNERS)}
FLAT = [carom.Box((0.5, 4, 0.25), position=(-3.5 + k, 0, -0.25)) for k in range(8)]
SPEEDS = (0.5, 1.0, 1.3, 2.0, 8.0)


def slide(ground: str, dtype: str) -> dict[str, np.ndarray]:
    """Velocities (speeds, 3) of the bodies after 0.6 s, without friction."""
    b = carom.SceneBuilder()
    if ground == "heightfield":
        b.add_static("ground", [carom.Heightfield(np.zeros((17, 17)), 0.5)], friction=0.0)
    else:
        b.add_static("ground", FLAT, friction=0.0)
    names = list(SHAPES) if ground == "heightfield" else ["ball", "capsule"]
    for k, name in enumerate(names):
        b.add_body(name, [SHAPES[name]], mass=2.0, position=(-1.37, -2.57 + 1.3 * k, 0.2), friction=0.0)
    model, state = carom.compile_scene(b, dtype=dtype)
    first = model.topology.v_start
    along = np.zeros((len(SPEEDS), model.topology.nv))
    for k in range(len(names)):
        along[:, first[k] + 3] = SPEEDS
    lanes = carom.tile(state, len(SPEEDS))
    start = carom.State(lanes.q, jnp.asarray(along, state.v.dtype), lanes.t)
    end = carom.rollout(model, start, duration=0.6, frame_dt=0.05, max_events=0).state.v
    return {name: np.asarray(end)[:, first[k] + 3 : first[k] + 6] for k, name in enumerate(names)}


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-3), ("float32", 1e-2)])
@pytest.mark.parametrize("ground", ["heightfield", "tiles"])
def test_seams_take_no_speed(ground: str, dtype: str, tolerance: float) -> None:
    for name, v in slide(ground, dtype).items():
        relative = v / np.array(SPEEDS)[:, None]
        np.testing.assert_allclose(relative, np.broadcast_to((1, 0, 0), v.shape), atol=tolerance, err_msg=name)


def velocities(ground: list[Any], bodies: dict[str, Any], dtype: str = "float64", **how: Any) -> np.ndarray:
    """Velocities (bodies, 6) of bodies on or beside static boxes after 0.4 s; all impacts must be resolved."""
    b = carom.SceneBuilder()
    b.add_static("ground", ground, friction=how.get("friction", 0.0))
    for k, (name, shapes) in enumerate(bodies.items()):
        x, y, z = how["position"]
        b.add_body(name, shapes, mass=2.0, **{"friction": 0.0, **how, "position": (x, y + k, z)})
    model, state = carom.compile_scene(b, dtype=dtype)
    end = carom.rollout(model, state, duration=0.4, frame_dt=0.05, max_events=0).state.v
    return np.asarray(end).reshape(len(bodies), 6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_edges_slide_from_box_to_box(dtype: str) -> None:
    v = velocities(
        FLAT, {name: [shape] for name, shape in EDGED.items()}, dtype,
        position=(-1.37, 0.1, 0.2), linear_velocity=(3.0, 0.4, 0.0), angular_velocity=(0.0, 0.0, 3.0),
    )  # fmt: skip
    atol = 1e-9 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(v, np.broadcast_to((0, 0, 3, 3, 0.4, 0), v.shape), atol=atol)


def test_friction_alone_slows_down_what_slides_from_box_to_box() -> None:
    at = {"position": (-1.37, 0.1, 0.2), "linear_velocity": (3.0, 0.0, 0.0), "friction": 0.3}
    v = velocities(FLAT, {"box": [BOX]}, **at)
    np.testing.assert_allclose(v, [(0, 0, 0, 3 - 0.3 * 9.81 * 0.4, 0, 0)], atol=1e-9)


def test_a_box_falls_along_a_wall_of_bricks() -> None:
    bricks = [carom.Box((0.5, 0.5, 0.125), position=(1.0, 0.0, 0.125 + 0.25 * k)) for k in range(12)]
    v = velocities([*bricks, *FLAT], {"box": [BOX]}, position=(0.3, 0.1, 2.2))
    np.testing.assert_allclose(v, [(0, 0, 0, 0, 0, -9.81 * 0.4)], atol=1e-9)


def test_a_box_slides_down_a_ramp_of_wedges() -> None:
    """No side of a wedge's bounding box is along its slope."""
    angle = math.radians(20)
    along, up = np.array(((math.cos(angle), 0, -math.sin(angle)), (math.sin(angle), 0, math.cos(angle))))

    def wedge(x: float) -> carom.ConvexHull:
        top = [(x + k, -math.tan(angle) * (x + k)) for k in (0, 1)]
        return carom.ConvexHull(np.array([(x, y, z) for x, height in top for y in (-2, 2) for z in (-3, height)]))

    turned = (math.cos(angle / 2), 0, math.sin(angle / 2), 0)
    at = {"position": tuple(0.2 * up), "quaternion": turned, "linear_velocity": tuple(2.0 * along)}
    (v,) = velocities([wedge(x) for x in (-1, 0, 1)], {"box": [BOX]}, **at)
    np.testing.assert_allclose(v, (0, 0, 0, *(2.0 + 9.81 * math.sin(angle) * 0.4) * along), atol=1e-9)


def test_a_body_of_boxes_slides_over_one() -> None:
    """Its centre of mass stays over the table, while one of its boxes arrives at the table's edge."""
    table = [carom.Box((0.5, 0.3, 0.1), position=(0.0, 0.0, -0.1))]
    sled = [carom.Box((0.3, 0.2, 0.1), position=(0.6 * k, 0.0, 0.1)) for k in (-1, 0, 1)]
    v = velocities(table, {"sled": sled}, position=(0.4, 0.0, 0.0), linear_velocity=(-2.0, 0.0, 0.0))
    np.testing.assert_allclose(v, [(0, 0, 0, -2, 0, 0)], atol=1e-9)


@pytest.mark.parametrize("height", [1e-7, 1e-3])
def test_a_step_is_struck(height: float) -> None:
    """A box trips over it: 1e-7 m are a hundred gap bands."""
    low, high = (carom.Box((0.5, 4, 0.25), position=(x, 0, -0.25 + z)) for x, z in ((-1.5, 0.0), (-0.5, height)))
    ((_, turn, _, along, _, _),) = velocities(
        [low, high], {"box": [BOX]}, position=(-1.37, 0.1, 0.2), linear_velocity=(2.0, 0.0, 0.0)
    )
    assert along < 0.5
    assert turn > 0.1
