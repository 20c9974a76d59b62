"""Chain, ChainState: point masses on rigid links in a plane; the constants of a chain, and its state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import jax
from jax import Array
from jax.typing import ArrayLike

from ..display import Row, display_as, lanes_text, numbers
from ..shaped import Bool, Float, Int


def _describe(chain: Chain) -> tuple[str, list[Row]]:
    shape = getattr(chain.mass, "shape", ("?",))
    rows = [(name, numbers(getattr(chain, name))) for name in ("joints", "mass", "length", "gravity")]
    return f"{shape[-1]} joints{lanes_text(shape[:-1])}", rows


@display_as(_describe)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Chain:
    """n joints, each a point mass, and the n - 1 massless rigid links between them. A batch adds one leading axis.

    The numbers of joints and of grounds are static; all else is data, and may differ from lane to lane.

    mass [kg].  length: of the links [m].  gravity [m/s^2].
    joints: number of the n that exist, int; the rest are unused.
    guided: whether a joint's acceleration is given from outside; 0 by default.
    line: unit normal of the line a joint is bound to; zero if there is none.
    active: whether the angular acceleration of a joint is given from outside.
    lower, upper: the least and the largest angle of a joint [rad]; infinite for none. The angle of joint i is
        that from link i - 1 to link i, of joint 0 that from the x axis to link 0; the last joint has none.
    roll: k_omega: torque against the rate of the angle [N m s].  drag: k_v: force against the velocity,
        of its square [kg/m].
    ground: a point of each straight ground [m].  normal: its unit normal, to the free side.
    """

    mass: Float[Array, "*#batch n"]
    length: Float[Array, "*#batch n-1"]
    gravity: Float[Array, "*#batch 2"]
    joints: Int[Array, "*#batch"]
    guided: Bool[Array, "*#batch n"]
    line: Float[Array, "*#batch n 2"]
    active: Bool[Array, "*#batch n"]
    lower: Float[Array, "*#batch n"]
    upper: Float[Array, "*#batch n"]
    roll: Float[Array, "*#batch n"]
    drag: Float[Array, "*#batch n"]
    ground: Float[Array, "*#batch g 2"]
    normal: Float[Array, "*#batch g 2"]

    @property
    def n(self) -> int:
        """Number of joints that there is room for."""
        return self.mass.shape[-1]

    def axes(self) -> Iterator[tuple[str, Array, int]]:
        """Name, value, and number of axes without lanes of each field."""
        own = {"gravity": 1, "joints": 0, "line": 2, "ground": 2, "normal": 2}
        for f in fields(self):
            yield f.name, getattr(self, f.name), own.get(f.name, 1)

    def replace(self, **changes: ArrayLike) -> Chain:
        return replace(self, **changes)


OPEN = 0  # `ChainState.shut` of a joint whose angle is between its limits


def _describe_state(state: ChainState) -> tuple[str, list[Row]]:
    shape = getattr(state.x, "shape", ("?", "?"))
    rows = [(name, numbers(getattr(state, name))) for name in ("t", "x", "v", "stuck", "shut")]
    return f"{shape[-2]} joints{lanes_text(shape[:-2])}", rows


@display_as(_describe_state)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ChainState:
    """The state of a chain: all that a rollback must restore. A batch adds one leading axis.

    x: positions of the joints [m].  v: velocities [m/s].  t [s].
    stuck: index of the ground a joint sticks in, -1 for none.
    shut: 1 if a joint is held at its upper limit, -1 at its lower, 0 if it is open.
    """

    x: Float[Array, "*batch n 2"]
    v: Float[Array, "*batch n 2"]
    t: Float[Array, "*batch"]
    stuck: Int[Array, "*batch n"]
    shut: Int[Array, "*batch n"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ChainDrive:
    """External torques, forces and accelerations; None: none. A batch adds one leading axis to every field.

    torque: of each joint's motor, from link i - 1 on link i; of joint 0 from the world [N m].
    force: on each joint [N].  acceleration: of guided joints [m/s^2].
    angular: of active joints [rad/s^2].
    """

    torque: Float[Array, "*#batch n"] | None = None
    force: Float[Array, "*#batch n 2"] | None = None
    acceleration: Float[Array, "*#batch n 2"] | None = None
    angular: Float[Array, "*#batch n"] | None = None
