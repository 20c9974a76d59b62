"""Cart-pole (Wawrzynski 14.1): to keep the pole upright, and to swing it up."""

from __future__ import annotations

from math import radians
from typing import Any

import jax.numpy as jnp

from ...library.wawrzynski import cart_pole as scene
from ..closed_forms import Rods
from ..engines import formulas, smooth, tree
from ..task import BatchTask, BoxSpace, Discrete
from .carts import along, cart_task

FORCE = 10.0  # [N]
PERIOD = 0.02  # [s]


def rods(friction: bool) -> Rods:
    """A uniform pole of half length 0.5 m: the text's 4/3; friction as in the library's scene."""
    on = 1.0 if friction else 0.0
    return Rods(
        cart=1.0, mass=(0.1,), centre=(0.5,), length=(1.0,), inertia=(0.1 / 3 * 0.5**2,),
        damping=(0.0, on * 0.000002), loss=(on * 0.0005, 0.0),
    )  # fmt: skip


def common(friction: bool) -> dict[str, Any]:
    """Arguments of `cart_task` that both tasks share."""
    own = rods(friction)
    ways = smooth(PERIOD, 2, closed=formulas(own), tree=tree(scene(friction=friction)))
    return {"rods": own, "engines": ways, "dt": PERIOD, "max_steps": 500, "start": 0.05}


def cart_pole(*, friction: bool = True) -> BatchTask:
    """Keep the pole within 12 degrees and the cart on its track, by a force of 10 N to the left or to the right.

    Bounds, actions, starts (all four numbers within 0.05), the period, 500 steps, reward 1 a step and the observation
    (x, x', theta, theta') are those of gymnasium's CartPole-v1, after Barto, Sutton and Anderson (1983).
    """
    return cart_task(
        "cart_pole",
        "keep a pole upright on a cart",
        actions=Discrete(2),
        force=lambda action: jnp.where(action > 0, FORCE, -FORCE),
        tilt=radians(12),
        **common(friction),
    )


def cart_pole_swing_up(*, friction: bool = True) -> BatchTask:
    """Swing the pole up from hanging and keep it there, by any force within 10 N; the episode ends off the track.

    After Doya (2000), whose reward is cos theta; here (1 + cos theta)/2, so that leaving the track never pays.
    """
    force = BoxSpace.of(FORCE)
    return cart_task(
        "cart_pole_swing_up",
        "swing a pole up on a cart",
        actions=force,
        force=along(force),
        **common(friction),
    )
