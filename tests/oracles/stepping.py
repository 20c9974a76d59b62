"""Many steps of a scene with contacts, and what its contacts pushed in all."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from carom.contact.contacts import Contacts
from carom.contact.impulses import ContactImpulses
from carom.engine.algebra.vec3 import Vec3
from carom.engine.model import Model
from carom.engine.state import State
from carom.tests.oracles.single_step import single_step


class Run(NamedTuple):
    """path: the states after every step, each field with a leading axis (steps,).  impulses: of resting contacts,
    summed over all steps; limits: (nv,) those of limits, along each degree of freedom.  impacts: how many.  code: the
    largest of any step."""

    path: State
    impulses: ContactImpulses
    limits: Any
    impacts: Any
    code: Any


def limit_impulses(model: Model, contacts: Contacts, p: Vec3) -> jax.Array:
    """(nv,) along each degree of freedom, of impulses p (C,) in the contact frames [N m s, N s]."""
    along = jnp.where(contacts.active & contacts.is_limit, p.z * contacts.frame.zz, 0)
    return jnp.zeros(model.topology.nv, along.dtype).at[jnp.maximum(contacts.dof, 0)].add(along)


@functools.partial(jax.jit, static_argnames=("steps", "resting", "scheme", "law"))
def run(
    model: Model, state: State, h: float, control: Any = None, *, steps: int, resting: str = "solve",
    scheme: str = "exact", law: str = "stronge",
) -> Run:  # fmt: skip
    """So many steps of length h [s]."""

    def one(carry, _):
        state, total, impacts, code = carry
        before, after = state, single_step(model, state, h, control, scheme=scheme, resting=resting, law=law)
        total = jax.tree.map(jnp.add, total, pushed(before, after))
        state = after.state
        return (state, total, impacts + after.impacts.count, jnp.maximum(code, after.code)), state

    def pushed(before, after):
        by = model, before.q, after.contacts, after.impulse
        return ContactImpulses.by(*by), limit_impulses(model, after.contacts, after.impulse)

    first = jax.eval_shape(lambda: single_step(model, state, h, control, scheme=scheme, resting=resting, law=law))
    summed = jax.eval_shape(pushed, state, first)
    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (summed, first.impacts.count, first.code))
    (_, (impulses, limits), impacts, code), path = jax.lax.scan(one, (state, *none), None, steps)
    return Run(path, impulses, limits, impacts, code)
