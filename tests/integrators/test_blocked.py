"""What Driven moves runs into what cannot give way: the run says so, and stops there."""

import numpy as np
import pytest

import carom
from carom.engine.results import BLOCKED

RATE = 1.0  # of the ram [m/s]


def ram(limit=None, walls=(), block=None):
    """A driven box of 0.2 m on a guide along x; walls at these x, and a free box at this x."""
    b = carom.SceneBuilder()
    axis = carom.Prismatic((1, 0, 0), limits=limit)
    boxes = [carom.Box((0.1, 0.1, 0.1))]
    b.add_link("ram", joint=axis, position=(0, 0, 0.2), mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1), shapes=boxes)
    b.add_loop("ram", joint=carom.Driven(rate=RATE))
    for k, x in enumerate(walls):
        b.add_static(f"wall {k}", [carom.Box((0.1, 0.5, 0.5))], position=(x + 0.1, 0, 0.6))
    if block is not None:
        b.add_body("block", boxes, position=(block, 0, 0.1), mass=1.0)
        b.add_plane()
    return carom.compile_scene(b, dtype="float64")


CASES = {
    "wall": ({"walls": (0.155,)}, 0.055),
    "limit": ({"limit": (-1, 0.065)}, 0.065),
    "squeezed": ({"block": 0.22, "walls": (0.355,)}, 0.055),
    "nothing": ({"walls": (1.0,)}, 0.105),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_ram_stops_the_run_where_nothing_gives_way(case):
    parts, room = CASES[case]
    model, state = ram(**parts)
    run = carom.rollout(model, state, duration=0.1, frame_dt=0.01, throw=False)
    assert run.code == (carom.Code.OK if case == "nothing" else BLOCKED)
    well = np.isfinite(run.q).all(-1)
    assert well.sum() == int(room / RATE / 0.01) + 1
    np.testing.assert_allclose(run.q[well, 0], RATE * run.t[well], atol=1e-8)
    assert int(run.stats.ticks) < 1000
    if case == "squeezed":
        assert (np.asarray(run.q)[well, 1] < 0.255 + 1e-6).all()
