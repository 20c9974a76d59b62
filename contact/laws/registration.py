"""Laws of impact of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec3 import Sym3, Vec3
from ...engine.native.key import only_here
from ...engine.results import OK
from .law import Law, Scalar
from .table import LAWS


def register_law(
    name: str,
    impulse: Callable[[Array, Array, Array, Array, Array], Array],
    *,
    says: str = "",
    tangential: bool = False,
    loses: bool = False,
) -> None:
    """Make a law of impact known by its name, to whatever takes `law=`.

    name: a new one, for as long as the process lives.
    impulse: (K, u, mu, e, e_t) -> p of one impact, of jax's functions alone: K (3, 3) the collision matrix [1/kg],
        u (3,) velocity of A's point less B's before it [m/s], friction, normal and tangential restitution; p (3,) the
        impulse on A [N s]. In the contact frame (t1, t2, n), n from B to A: u[2] < 0, as they approach, and
        u + K @ p is the velocity after it. It is not asked about bodies that do not approach. What the compiler does
        not translate (`jnp.linalg.solve`, for one) makes a run XLA's program, which is slow, and a warning says so.
    says: one line for people who choose a law.
    tangential: whether it reads e_t.
    loses: whether it never gains energy; then rounding cannot make it do so.

    An impulse outside the cone of friction, |p_t| > mu p_n, is put on its surface, with the result code
    IMPACT_UNFINISHED. An impact that gains energy has the code ENERGY_GAINED, one that is not finite NOT_FINITE.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"register_law: name is {name!r}; it must be a word of letters, digits and _")
    if name in LAWS:
        raise ValueError(f"register_law: there is a law {name!r} already; choose another name")
    one = jax.ShapeDtypeStruct((), jnp.zeros(()).dtype)
    given = [jax.ShapeDtypeStruct(shape, one.dtype) for shape in ((3, 3), (3,), (), (), ())]
    made = jax.eval_shape(impulse, *given)
    if getattr(made, "shape", None) != (3,):
        raise ValueError(
            f"register_law: {name!r} returns {made}; it must return one array (3,), the impulse on A [N s]"
        )
    each = jnp.vectorize(impulse, signature="(3,3),(3),(),(),()->(3)")

    def of_components(K: Sym3, u: Vec3, mu: Scalar, e: Scalar, e_t: Scalar) -> tuple[Vec3, Any]:
        rows = jnp.stack([jnp.stack([K.xx, K.xy, K.xz], -1), jnp.stack([K.xy, K.yy, K.yz], -1),
                          jnp.stack([K.xz, K.yz, K.zz], -1)], -2)  # fmt: skip
        p = each(rows, jnp.stack(u.xyz, -1), mu, e, e_t)
        approaches = u.z < 0
        p = Vec3(*(jnp.where(approaches, p[..., k], 0) for k in range(3)))
        return p, jnp.full(u.z.shape, OK, jnp.int32)

    only_here(name)
    LAWS[name] = Law(name, of_components, says or f"of one's own: {name}", tangential, loses)
