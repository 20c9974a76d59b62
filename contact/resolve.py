"""`resolve_impact`: one impact, or a batch of independent impacts, from K and u alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike

from ..engine.algebra.fence import lane_programs
from ..engine.algebra.vec3 import Sym3, Vec3
from ..engine.native.function import native
from ..engine.shaped import Float, Int, Real
from .laws.table import alike, law_named, reversible_impulse

T = TypeVar("T")

# lanes per tile in XLA's program on a CPU: the loop ends for each tile by itself, and its numbers stay in the cache
TILE = 256


class Impact(NamedTuple):
    """The result of an impact, in the contact frame (t1, t2, n).

    u: relative velocity after [m/s].
    impulse: on A, -impulse on B [N s].
    code: a result code of `carom.engine.results`.
    """

    u: Float[Array, "*batch 3"]
    impulse: Float[Array, "*batch 3"]
    code: Int[Array, "*batch"]


def resolve_impact(
    K: Real[ArrayLike, "*#batch 3 3"],
    u: Real[ArrayLike, "*#batch 3"],
    *,
    friction: Real[ArrayLike, "*#batch"],
    restitution: Real[ArrayLike, "*#batch"],
    law: str = "stronge",
    tangential_restitution: Real[ArrayLike, "*#batch"] = 0.0,
) -> Impact:
    """Compute the relative velocity of the contact points of two bodies A and B after an impact, and the impulse.

    K: collision matrix [1/kg], symmetric, u after = u + K p (Holck 2005, eq. 2.16). Only its upper
        triangle is read. For two free bodies K = (1/m_A + 1/m_B) 1 - [r_A] I_A^-1 [r_A] - [r_B] I_B^-1 [r_B].
    u: velocity of A's point less that of B's [m/s].
    Both are in the contact frame (t1, t2, n): tangents first, then the normal n from B to A. The bodies approach if
    u[..., 2] < 0; otherwise nothing happens.
    friction: Coulomb's mu >= 0.  restitution: e in [0, 1].
    law: the law of restitution and friction.
      "stronge" (default)  the normal impulse gives back e^2 of the work it took: never gains energy
      "poisson"            the normal impulse of restitution is e times that of compression
      "newton"             u_n after is -e times u_n before; can gain energy when slip stops or reverses
      "chatterjee_ruina"   algebraic, with tangential_restitution e_t in [-1, 1]: 1 is a superball, 0 ends slip
      "frictionless"       friction is ignored
      "cone_projection"    algebraic, as real-time engines do it; can gain energy
    The first three integrate friction through the impact (`contact/sliding/`), to 1e-10 (float64) and 1e-4 (float32) of
    |u|, and agree if slip keeps its direction, or if tangential and normal are not coupled (a sphere).

    Returns u, impulse and code of each impact. ENERGY_GAINED: the impact gained energy; the change is exactly
    impulse . (u before + u after) / 2. IMPACT_UNFINISHED: sliding took too many steps, or K is so nearly singular that
    rounding would decide; then the impulse is moved towards the frictionless plastic one, so that it ends the approach
    (and gains no energy if the law never does).

    Each contact is one impact here, and several at one instant are independent. Newton's cradle of equal balls (e = 1)
    is a sequence of these impacts, the fastest approach first: only the last ball leaves. Solved together the balls
    leave differently: (-1/3, 2/3, 2/3) v for three.

    Leading axes broadcast. The function is jitted; it works under jit and vmap, and in forward and reverse mode.
    """
    chosen = law_named(law)
    arrays = [jnp.asarray(x) for x in (K, u, friction, restitution, tangential_restitution)]
    _check(*arrays)
    if not (chosen.tangential or isinstance(arrays[-1], Tracer) or np.all(np.asarray(arrays[-1]) == 0)):
        raise ValueError(
            f"tangential_restitution is given, but the law {law!r} does not read it; "
            'choose law="chatterjee_ruina", or leave it out'
        )
    return _resolve(law, *arrays)


def _check(K: Array, u: Array, friction: Array, restitution: Array, tangential: Array) -> None:
    if K.shape[-2:] != (3, 3) or u.shape[-1:] != (3,):
        raise ValueError(f"K has shape {K.shape} and u {u.shape}; they must be (..., 3, 3) and (..., 3)")
    fronts = {
        "K": K.shape[:-2],
        "u": u.shape[:-1],
        "friction": friction.shape,
        "restitution": restitution.shape,
        "tangential_restitution": tangential.shape,
    }
    try:
        np.broadcast_shapes(*fronts.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in fronts.items())
        raise ValueError(f"leading axes do not broadcast: {listed}") from None
    for name, values, low, high, says in (
        ("friction", friction, 0, np.inf, "a coefficient of friction is not negative"),
        ("restitution", restitution, 0, 1, "it must be in [0, 1]"),
        ("tangential_restitution", tangential, -1, 1, "it must be in [-1, 1]"),
    ):
        if isinstance(values, Tracer):
            continue
        values = np.asarray(values)
        bad = (values < low) | (values > high)
        if bad.any():
            where = np.argwhere(np.atleast_1d(bad))[0].tolist()
            value = np.atleast_1d(values)[tuple(where)]
            raise ValueError(f"{name} is {value:g}{f' at {where}' if bad.ndim else ''}: {says}")


@functools.partial(jax.jit, static_argnums=0)
def _resolve(law: str, K: Array, u: Array, mu: Array, e: Array, e_t: Array) -> Impact:
    numbers = alike(Sym3.of(K), Vec3.of(u), mu, e, e_t)
    shape = numbers[0].shape
    run = functools.partial(_impacts, law)
    if shape:
        after, p, code = jax.vmap(run)(tuple(x.ravel() for x in numbers))
    else:
        after, p, code = run(numbers)
    after, p, code = jax.tree.map(lambda x: x.reshape(shape), (after, p, code))
    return Impact(jnp.stack(after.xyz, -1), jnp.stack(p.xyz, -1), code)


@functools.partial(native, blocks=True)
def _impacts(law: str, numbers: tuple[Array, ...]) -> tuple[Vec3, Vec3, Array]:
    """Return u after, p and code of a batch of impacts."""
    row = law_named(law)

    def some(numbers: tuple[Array, ...]) -> tuple[Vec3, Vec3, Array]:
        K, u, (mu, e, e_t) = Sym3(*numbers[:6]), Vec3(*numbers[6:9]), numbers[9:]
        p, code = reversible_impulse(row, K, u, mu, e, e_t)
        return u + K @ p, p, code

    return _in_tiles(some, numbers)


def _in_tiles(some: Callable[[tuple[Array, ...]], T], numbers: tuple[Array, ...]) -> T:
    """Resolve all impacts in tiles that fit the cache of a CPU, for programs that XLA compiles."""
    shape = numbers[0].shape
    lanes = numbers[0].size
    if not lane_programs() or lanes < 2 * TILE:
        return some(numbers)
    count = -(-lanes // TILE)

    def cut(x: Array) -> Array:
        return jnp.pad(x.ravel(), (0, count * TILE - lanes), mode="edge").reshape(count, TILE)

    results = jax.lax.map(some, tuple(cut(x) for x in numbers))
    return jax.tree.map(lambda x: x.ravel()[:lanes].reshape(shape), results)
