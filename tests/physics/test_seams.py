"""Bodies that slide over flush seams, between cells of a flat heightfield or between boxes, keep their speed."""

import math

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
SPEEDS = (0.5, 1.0, 1.3, 2.0, 8.0)


def slide(ground: str, dtype: str) -> dict[str, np.ndarray]:
    """Velocities (speeds, 3) of the bodies after 0.6 s, without friction."""
    b = carom.SceneBuilder()
    if ground == "heightfield":
        b.add_static("ground", [carom.Heightfield(np.zeros((17, 17)), 0.5)], friction=0.0)
    else:
        tiles = [carom.Box((0.5, 4, 0.25), position=(-3.5 + k, 0, -0.25)) for k in range(8)]
        b.add_static("ground", tiles, friction=0.0)
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
