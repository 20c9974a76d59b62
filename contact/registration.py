"""Registration of user-defined laws of impact and of resting contacts."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.algebra.vec3 import Scalar, Sym3, Vec3
from ..engine.native.key import only_here
from ..engine.results import OK
from .cone.coulomb import project
from .laws.law import Law
from .laws.table import LAWS
from .resting.each_alone import each_alone
from .resting.models import RESTING, Resting, no_impacts

CAROMS = frozenset({*LAWS, *RESTING})  # names that are taken


def register_law(
    name: str,
    impulse: Callable[[Array, Array, Array, Array, Array], Array],
    *,
    says: str = "",
    tangential: bool = False,
    loses: bool = False,
) -> None:
    """Register a law of impact by name, for every argument `law=`.

    name: valid until the process ends. A name registered before is replaced, and then all that jax has compiled is
        compiled again.
    impulse: (K, u, mu, e, e_t) -> p of one impact, written with jax's functions only: K (3, 3) the collision matrix
        [1/kg], u (3,) velocity of A's point less B's before the impact [m/s], friction, normal and tangential
        restitution; p (3,) the impulse on A [N s]. All are in the contact frame (t1, t2, n), n from B to A. The bodies
        approach, u[2] < 0; the velocity after the impact is u + K @ p. If the compiler cannot translate a function
        (`jnp.linalg.solve`, for example), the run is XLA's program, which is slow, and a warning says so.
    says: one line for people who choose a law.
    tangential: whether it reads e_t.
    loses: whether it never gains energy; then rounding cannot make it gain any.

    An impulse outside the friction cone, |p_t| > mu p_n, is put on its surface. One that leaves the bodies
    approaching is replaced by the frictionless plastic impulse. Either has the code IMPACT_UNFINISHED in `events.code`;
    the run goes on, and its own code does not tell. An impact that gains energy has the code ENERGY_GAINED there. One
    that is not finite has the code NOT_FINITE and ends the run.
    """
    one = _of_components("register_law", name, impulse, 3)

    def of_components(K: Sym3, u: Vec3, mu: Scalar, e: Scalar, e_t: Scalar) -> tuple[Vec3, Array]:
        p, approaches = one(K, u, mu, e, e_t), u.z < 0
        return Vec3(*(jnp.where(approaches, x, 0) for x in p.xyz)), jnp.full(u.z.shape, OK, jnp.int32)

    LAWS[name] = Law(name, of_components, says or f"of one's own: {name}", tangential, loses)
    only_here(name)


def register_resting_law(name: str, push: Callable[[Array, Array, Array, Array, Array, Array], Array]) -> None:
    """Register a law of contacts that push when they overlap, like springs, by name, for every argument `resting=`.

    Under this law there are no impacts.

    name: valid until the process ends; see `register_law`.
    push: (K, u, mu, e, gap, h) -> p of one contact with gap < 0, written with jax's functions only: K (3, 3) the
        collision matrix [1/kg], u (3,) velocity of A's point less B's [m/s], friction, restitution, gap [m], length of
        the step [s]; p (3,) the impulse on A over the step [N s]: force times h. All are in the contact frame
        (t1, t2, n), n from B to A: u[2] < 0 if they approach, and 1 / K[2, 2] is the mass that the normal force feels.
        All arguments are those at the start of the step, so max_dt must be short for the stiffness: far below
        1 / sqrt(stiffness K[2, 2]).

    An impulse outside the friction cone is put on it: contacts do not pull, and |p_t| is at most mu p_n. Joint limits
    are contacts too, with K in their units. As with "penalty" there are no windows, reports or joints that stick.
    """
    one = _of_components("register_resting_law", name, push, 4)

    def of_components(K: Sym3, u: Vec3, mu: Scalar, e: Scalar, gap: Scalar, h: Scalar) -> Vec3:
        return project(one(K, u, mu, e, gap, h), mu)

    RESTING[name] = Resting(each_alone(of_components), no_impacts)
    only_here(name)


def _of_components(door: str, name: str, of_one: Callable[..., Array], n: int) -> Callable[..., Vec3]:
    """Return a user's function of one contact, (K, u, n numbers) -> p, as a function of components of any shape.

    Raises ValueError if it is not a function of this kind, or if its name is no word or the name of a built-in law.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"{door}: name is {name!r}; it must be a word of letters, digits and _")
    if name in CAROMS:
        raise ValueError(f"{door}: there is a law {name!r} already; choose another name")
    if not callable(of_one):
        raise ValueError(f"{door}: its function is {of_one!r}; it must be a function")
    dtype = jnp.zeros(()).dtype
    given = [jax.ShapeDtypeStruct(shape, dtype) for shape in ((3, 3), (3,), *[()] * n)]
    try:
        made = jax.eval_shape(of_one, *given)
    except jax.errors.TracerArrayConversionError as why:
        raise ValueError(
            f"{door}: {name!r} hands arrays to numpy or to another library; write it with jax.numpy's functions"
        ) from why
    except jax.errors.ConcretizationTypeError as why:
        raise ValueError(
            f"{door}: {name!r} asks for the value of an array, as `if`, `while`, `float` and `math` do; write "
            "jnp.where for a choice, and jax.numpy's functions"
        ) from why
    if getattr(made, "shape", None) != (3,) or not jnp.issubdtype(made.dtype, jnp.floating):
        what = f"an array {made.shape} of {made.dtype}" if hasattr(made, "shape") else repr(made)
        raise ValueError(
            f"{door}: {name!r} returns {what}; it must return one array (3,) of floats, the impulse on A [N s]"
        )
    each = jnp.vectorize(of_one, signature=f"(3,3),(3){',()' * n}->(3)")

    def of_components(K: Sym3, u: Vec3, *numbers: Scalar) -> Vec3:
        rows = jnp.stack([jnp.stack([K.xx, K.xy, K.xz], -1), jnp.stack([K.xy, K.yy, K.yz], -1),
                          jnp.stack([K.xz, K.yz, K.zz], -1)], -2)  # fmt: skip
        p = each(rows, jnp.stack(u.xyz, -1), *numbers)
        return Vec3(*(p[..., k] for k in range(3)))

    return of_components
