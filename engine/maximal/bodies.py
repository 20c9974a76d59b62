"""Any model in maximal coordinates: links float, and the joints of the tree become loops (Featherstone 2008, 3.7).

Each body has its own pose and velocity; joints are not built in but held, exactly by constraint forces or nearly
by springs: the penalty joints of Mikhaylyuk & Strashnov (2013), section 4.2, whose coefficients are the defaults.
Limits are penalties in both cases (4.3). Springs, dampers and constant motors act along the coordinates that the loops
measure, angles within half a turn; a control is now the wrench on each body.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.rotation import Quat
from ..dynamics.kinematics import propagate_poses, propagate_velocities
from ..forest import Forest
from ..model import Model
from ..state import State
from ..topology import Loop, Topology
from .joint_frames import positions, quaternions
from .refusals import COORDINATES, refusals
from .springs import DOF_DEFAULTS, acts, coefficients, springs_and_limits


def bodies_apart(model: Model, state: State, *, hold: str | None = None) -> tuple[Model, State]:
    """Return the model with every link floating, and its state; on the host, not under jit.

    hold: "projection", "baumgarte" or "penalty" (see `Topology`); None: as in the model. Loops keep their numbers;
    those of the joints follow, link by link, with a the parent and b the link. Raises ValueError for parts that cannot
    be converted.
    """
    for refusal in refusals(model):
        raise ValueError(str(refusal))
    topology = _topology(model, hold or model.topology.hold)
    numbers, q, v = _numbers(model, state)
    return replace(model, topology=topology, **numbers), State(q, v, state.t)


def _topology(model: Model, hold: str) -> Topology:
    old = model.topology
    loops = [_undriven(old, loop) for loop in old.loops]
    loops += [Loop(old.joints[i], old.parents[i], i, acts=acts(model, i)) for i in jointed_links(old)]
    n = old.n_links
    return replace(old, parents=(-1,) * n, joints=("floating",) * n, loops=tuple(loops), hold=hold)


def jointed_links(topology: Topology) -> list[int]:
    """Links that hang on joints, without free ones."""
    return [i for i, joint in enumerate(topology.joints) if joint != "floating"]


def _undriven(topology: Topology, loop: Loop) -> Loop:
    """Convert a driven coordinate of a joint to a loop of its own."""
    if loop.kind != "drive":
        return loop
    k = loop.dofs[0] - topology.v_start[loop.a]
    kind = "driven_turn" if COORDINATES[topology.joints[loop.a]][k] else "driven_shift"
    return Loop(kind, topology.parents[loop.a], loop.a, course=loop.course)


@jax.jit
def _numbers(model: Model, state: State) -> tuple[dict[str, Array], Array, Array]:
    """Return the arrays that change, and q (..., 7 nl), v (..., 6 nl)."""
    old = model.topology
    n, links = old.n_links, np.array(jointed_links(old), int)
    frames = {"loop_position": positions(model, links), "loop_quaternion": quaternions(model, links)}
    axes = model.axis[..., links, :], model.axis2[..., links, :]
    universal = np.array([old.joints[i] == "universal" for i in links], bool)
    size = jnp.where(universal, (axes[0] * axes[1]).sum(-1), model.pitch[..., links])
    new = frames | {"loop_size": size, "loop_course": jnp.zeros((len(links), 5), size.dtype)}
    new |= springs_and_limits(model, links) | {"loop_active": jnp.ones(len(links), size.dtype)}
    numbers = {name: _beside(getattr(model, name), x, name) for name, x in new.items()}
    # a drive has the frames of its joint
    place_of = {link: len(old.loops) + k for k, link in enumerate(links.tolist())}
    rows = [place_of[loop.a] if loop.kind == "drive" else k for k, loop in enumerate(old.loops)]
    rows += list(range(len(old.loops), len(old.loops) + len(links)))
    for name in frames:
        numbers[name] = jnp.take(numbers[name], np.array(rows, int), numbers[name].ndim - Model.base_ndim(name))
    ends = np.array([(loop.a, loop.b) for loop in old.loops] + [(old.parents[i], i) for i in links], int)
    numbers |= coefficients(model, ends.reshape(-1, 2))
    numbers |= {
        "joint_position": jnp.zeros_like(model.joint_position),
        "joint_quaternion": jnp.zeros_like(model.joint_quaternion) + jnp.array([1.0, 0, 0, 0], size.dtype),
    }
    free = np.array([d for i in range(n) if old.joints[i] == "floating" for d in range(*old.v_start[i : i + 2])], int)
    apart = np.array([6 * i + k for i in range(n) if old.joints[i] == "floating" for k in range(6)], int)
    for name, none in DOF_DEFAULTS.items():
        value = getattr(model, name)
        numbers[name] = jnp.full((*value.shape[:-1], 6 * n), none, value.dtype).at[..., apart].set(value[..., free])
    return numbers, *_coordinates(model, state)


def _beside(old: Array, new: Array, name: str) -> Array:
    """Join the rows of the old loops and those of the joints."""
    own = Model.base_ndim(name)
    lead = np.broadcast_shapes(*(x.shape[: x.ndim - own] for x in (old, new)))
    old, new = (jnp.broadcast_to(x, (*lead, *x.shape[x.ndim - own :])) for x in (old, new))
    return jnp.concatenate([old, new.astype(old.dtype)], len(lead))


def _coordinates(model: Model, state: State) -> tuple[Array, Array]:
    """Poses (..., 7 nl) and velocities (..., 6 nl) of all links, as floating links have them."""
    forest = Forest.of(model, q=state.q, v=state.v)
    poses = propagate_poses(forest, model, state.q)
    velocities = propagate_velocities(forest, poses, state.v)
    T, V = forest.by_link([x.pose for x in poses]), forest.by_link([x.V for x in velocities])
    turn = Quat.from_matrix(T.R)
    q = [*T.p.xyz, turn.w, turn.x, turn.y, turn.z]
    return tuple(_interleave(x) for x in (q, [*V.w.xyz, *V.v.xyz]))  # type: ignore[return-value]


def _interleave(components: list[Array]) -> Array:
    """Array (*batch, nl k) of components (nl, *batch)."""
    x = jnp.moveaxis(jnp.stack(components, 1), (0, 1), (-2, -1))
    return x.reshape(*x.shape[:-2], -1)
