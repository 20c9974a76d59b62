"""The laws by name, and one impact under a law: its impulse, its result code and its derivatives."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from ...engine.results import ENERGY_GAINED, IMPACT_UNFINISHED, NOT_FINITE, OK
from .chatterjee_ruina import CHATTERJEE_RUINA
from .cone_projection import CONE_PROJECTION
from .frictionless import FRICTIONLESS
from .ill_conditioned import limit_ill_conditioned
from .law import Law
from .newton import NEWTON
from .poisson import POISSON
from .stronge import STRONGE

LAWS: dict[str, Law] = {
    "stronge": STRONGE,
    "poisson": POISSON,
    "newton": NEWTON,
    "chatterjee_ruina": CHATTERJEE_RUINA,
    "frictionless": FRICTIONLESS,
    "cone_projection": CONE_PROJECTION,
}


def law_named(name: str) -> Law:
    """Return the law of this name."""
    if name not in LAWS:
        known = ", ".join(map(repr, LAWS))
        raise ValueError(f"there is no law of impact {name!r}; choose one of {known}, or carom.register_law(...) it")
    return LAWS[name]


def impulse(law: Law, K: Sym3, u: Vec3, mu: Scalar, e: Scalar, e_t: Scalar) -> tuple[Vec3, Scalar]:
    """Return the impulse on A of one impact, and its result code.

    K: collision matrix [1/kg], u: velocity of A's point less B's [m/s], u.z < 0 approaching, mu: friction, e and e_t:
    restitution, all components of any common shape, in the contact frame (t1, t2, n), n from B to A.
    Returns p [N s], zero if the bodies do not approach, NaN if an input or the law's answer is not finite; the code is
    OK, NOT_FINITE, IMPACT_UNFINISHED or ENERGY_GAINED. Differentiable in forward mode.
    """
    numbers = alike(K, u, mu, e, e_t)
    K, u, (mu, e, e_t) = Sym3(*numbers[:6]), Vec3(*numbers[6:9]), numbers[9:]
    finite = functools.reduce(jnp.logical_and, (jnp.isfinite(x) for x in numbers))
    p, code = law.impulse(K, u, mu, e, e_t)
    finite = functools.reduce(jnp.logical_and, (jnp.isfinite(x) for x in p.xyz), finite)
    p, changed = limit_ill_conditioned(
        K, u, p, mu, law.loses & (e <= 1) & (jnp.abs(e_t) <= 1)
    )  # e is not checked inside jit
    code = jnp.where((code == OK) & changed, IMPACT_UNFINISHED, code)
    gained = p.dot(u + u + K @ p)  # twice the energy
    work = jnp.abs(p.x * u.x) + jnp.abs(p.y * u.y) + jnp.abs(p.z * u.z)
    code = jnp.where(gained > 256 * jnp.finfo(mu.dtype).eps * work, jnp.maximum(code, ENERGY_GAINED), code)
    code = jnp.where(finite, code, NOT_FINITE).astype(jnp.int32)
    return Vec3(*(jnp.where(finite, x, jnp.nan) for x in p.xyz)), code


def reversible_impulse(law: Law, K: Sym3, u: Vec3, mu: Scalar, e: Scalar, e_t: Scalar) -> tuple[Vec3, Scalar]:
    """Compute `impulse`, differentiable in reverse mode too.

    The loop inside has no reverse mode. Here the derivative is the Jacobian, by forward mode in each of the twelve
    numbers that vary, times the tangents, which reverse mode can transpose. Forward mode computes the Jacobian too.
    """
    return _reversible(law, alike(K, u, mu, e, e_t))


def alike(*arguments: Sym3 | Vec3 | Scalar) -> tuple[Array, ...]:
    """Return the arguments as twelve arrays of one shape and one floating dtype."""
    leaves = jax.tree.leaves(arguments)
    dtype = jnp.result_type(*leaves)
    dtype = dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.result_type(float)
    return tuple(jnp.broadcast_arrays(*(jnp.asarray(x, dtype) for x in leaves)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _reversible(law: Law, numbers: tuple[Array, ...]) -> tuple[Vec3, Scalar]:
    return impulse(law, Sym3(*numbers[:6]), Vec3(*numbers[6:9]), *numbers[9:])


def _derivative(
    law: Law, primals: tuple[tuple[Array, ...]], tangents: tuple[tuple[Any, ...]]
) -> tuple[tuple[Vec3, Scalar], tuple[Vec3, np.ndarray]]:
    (numbers,), (d,) = primals, tangents
    every = list(enumerate(numbers))
    varied = [i for i, x in enumerate(d) if not isinstance(x, jax.custom_derivatives.SymbolicZero)]

    def bare(*x: Array) -> tuple[Vec3, Scalar]:
        return impulse(law, Sym3(*x[:6]), Vec3(*x[6:9]), *x[9:])

    def column(one: Array) -> tuple[Vec3, Vec3, Scalar]:
        along = tuple(one[varied.index(i)] * jnp.ones_like(x) if i in varied else jnp.zeros_like(x) for i, x in every)
        return jax.jvp(bare, numbers, along, has_aux=True)

    p, columns, code = jax.vmap(column, out_axes=(None, 0, None))(jnp.eye(len(varied), dtype=numbers[0].dtype))
    dp = Vec3(*(sum(x[k] * d[i] for k, i in enumerate(varied)) for x in columns.xyz))
    return (p, code), (dp, np.zeros(code.shape, jax.dtypes.float0))


_reversible.defjvp(_derivative, symbolic_zeros=True)
