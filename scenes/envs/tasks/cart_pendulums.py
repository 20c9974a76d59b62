"""Two and three links on a cart (Wawrzynski 14.2 and 14.3)."""

from __future__ import annotations

from math import radians

from ...library.wawrzynski import cart_double_pendulum as double_scene
from ...library.wawrzynski import cart_triple_pendulum as triple_scene
from ..closed_forms import Rods
from ..engines import formulas, smooth, tree
from ..task import BatchTask, BoxSpace
from .carts import along, cart_task

DOUBLE = Rods(
    cart=1.5, mass=(0.5, 0.75), centre=(0.25, 0.375), length=(0.5, 0.75),
    inertia=(0.5 * 0.5**2 / 12, 0.75 * 0.75**2 / 12),
)  # fmt: skip

GAIN = 24.7125  # K_s of 14.3 [N/V]


def triple(friction: bool) -> Rods:
    """Table 3, with the corrections of the library's scene; only the cart has Coulomb friction.

    The printed mu_i A38..A40, read as torques, would hold the last link against gravity up to 3.5 degrees, and no
    linear controller balances it.
    """
    on = 1.0 if friction else 0.0
    return Rods(
        cart=1.014, mass=(0.4506, 0.219, 0.0568), centre=(0.37, 0.3, 0.05), length=(0.43, 0.33, 0.13),
        inertia=(0.0042, 0.0012, 0.00010609), gravity=9.8,
        damping=tuple(on * c for c in (5.5, 0.00026875, 0.00026875, 0.00026875)),
        loss=(on * 0.07 * 1.3, 0.0, 0.0, 0.0),
    )  # fmt: skip


def cart_double_pendulum(*, swing_up: bool = False) -> BatchTask:
    """Keep both links within 24 degrees and the cart on its track, or swing them up, by any force within 20 N.

    The object is Bogdanov's (2004); the text bounds neither force nor track. 0.02 s, 500 steps; rewards and
    observations are those of `cart_task`; starts within 0.02.
    """
    force = BoxSpace.of(20.0)
    return cart_task(
        "cart_double_pendulum",
        "swing two links up on a cart" if swing_up else "keep two links upright on a cart",
        rods=DOUBLE,
        engines=smooth(0.02, 16 if swing_up else 4, closed=formulas(DOUBLE), tree=tree(double_scene())),
        dt=0.02,
        max_steps=500,
        actions=force,
        force=along(force),
        start=0.02,
        tilt=None if swing_up else radians(24),
    )


def cart_triple_pendulum(*, friction: bool = True) -> BatchTask:
    """Keep three links within 24 degrees and the cart on its track, by a voltage within 2 V, 24.7 N each.

    The text bounds neither voltage nor track. 0.01 s, 1000 steps, reward 1 a step; starts within 0.01.
    """
    voltage, rods = BoxSpace.of(2.0), triple(friction)
    return cart_task(
        "cart_triple_pendulum",
        "keep three links upright on a cart",
        rods=rods,
        engines=smooth(0.01, 4, closed=formulas(rods), tree=tree(triple_scene(friction=friction), rods.loss)),
        dt=0.01,
        max_steps=1000,
        actions=voltage,
        force=along(voltage, GAIN),
        start=0.01,
        tilt=radians(24),
    )
