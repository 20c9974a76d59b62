"""Many steps of a scene with contacts, and what its contacts pushed in all."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from carom.contact.readout import ContactImpulses, contact_impulses
from carom.engine.model import Model
from carom.engine.state import State
from carom.integrators.single import single_step


class Run(NamedTuple):
    """path: the states after every step, each field with a leading axis (steps,).  impulses: of resting contacts,
    summed over all steps.  impacts: how many.  code: the largest of any step."""

    path: State
    impulses: ContactImpulses
    impacts: Any
    code: Any


@functools.partial(jax.jit, static_argnames=("steps", "resting", "scheme", "law"))
def run(
    model: Model, state: State, h: float, control: Any = None, *, steps: int, resting: str = "solve",
    scheme: str = "exact", law: str = "stronge",
) -> Run:  # fmt: skip
    """So many steps of length h [s]."""

    def one(carry, _):
        state, total, impacts, code = carry
        after = single_step(model, state, h, control, scheme=scheme, resting=resting, law=law)
        pushed = contact_impulses(model, after.contacts, after.impulse)
        total = jax.tree.map(jnp.add, total, pushed)
        state = after.state
        return (state, total, impacts + after.impacts.count, jnp.maximum(code, after.code)), state

    first = jax.eval_shape(lambda: single_step(model, state, h, control, scheme=scheme, resting=resting, law=law))
    pushed = jax.eval_shape(contact_impulses, model, first.contacts, first.impulse)
    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (pushed, first.impacts.count, first.code))
    (_, total, impacts, code), path = jax.lax.scan(one, (state, *none), None, steps)
    return Run(path, total, impacts, code)
