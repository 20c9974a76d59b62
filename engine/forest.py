"""Forests: passes over groups of links, from the roots outwards and back, and arrays as components and back.

A value of a group is a pytree of components. With n links in the group a component has shape
(n, *batch), with one link just (*batch), or any shape that broadcasts to it. The group axis comes
first, so a parent's single row broadcasts over its children, and a row is contiguous in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .algebra.vec3 import Scalar
from .algebra.zero import dense, is_zero
from .joints import JOINTS
from .model import Model
from .rows import sum_into, take
from .topology import Group, Topology

T = TypeVar("T")


@dataclass(frozen=True)
class Forest:
    """A topology with the batch axes and the dtype of the arrays that come with it."""

    topology: Topology
    batch: tuple[int, ...]
    dtype: np.dtype

    @staticmethod
    def of(model: Model, **arrays: Array) -> Forest:
        """Return the forest of a model and of named arrays, whose trailing axes are checked: q (..., nq), point,
        impulse, moment, about (..., 3), any other name (..., nv). Leading axes, also those of parameters, are the
        batch."""
        widths = {"q": model.topology.nq} | dict.fromkeys(("point", "impulse", "moment", "about"), 3)
        shapes = []
        for name, array in arrays.items():
            shape, width = jnp.shape(array), widths.get(name, model.topology.nv)
            if shape[-1:] != (width,):
                raise ValueError(f"{name} has shape {shape}; this model needs (..., {width})")
            shapes.append(shape[:-1])
        for name in BATCHABLE + (LOOPS if model.topology.loops else ()):
            shape = jnp.shape(getattr(model, name))
            shapes.append(shape[: len(shape) - Model.base_ndim(name)])
        return Forest(model.topology, np.broadcast_shapes(*shapes), jnp.result_type(*arrays.values()))

    @property
    def rank(self) -> int:
        """Number of batch axes."""
        return len(self.batch)

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.topology.groups

    # -- arrays to components ------------------------------------------------------------------

    def parameter(self, model: Model, name: str, group: Group) -> Array:
        """Rows of a parameter per link, (n, *batch, *own), or (*batch, *own) for a single link."""
        return self.rows(getattr(model, name), Model.base_ndim(name), group.links)

    def per_dof(self, array: Array, group: Group) -> tuple[Array, ...]:
        """Components of an array (..., nv), one per degree of freedom."""
        return self._spread(array, self.topology.v_start, JOINTS[group.joint].nv, group)

    def coordinates(self, q: Array, group: Group) -> tuple[Array, ...]:
        """Components of an array (..., nq), one per coordinate."""
        return self._spread(q, self.topology.q_start, JOINTS[group.joint].nq, group)

    def _spread(self, array: Array, start: Sequence[int], width: int, group: Group) -> tuple[Array, ...]:
        return tuple(self.rows(array, 1, [start[i] + k for i in group.links]) for k in range(width))

    def rows(self, array: Array, own: int, index: Sequence[int]) -> Array:
        """Rows of an array whose last `own` axes are (rows, ...): (n, *batch, ...), or (*batch, ...) for one."""
        lead = jnp.ndim(array) - own
        if len(index) == 1:
            return jax.lax.index_in_dim(array, index[0], lead, keepdims=False)
        front = take(array, index, lead)
        if lead:
            front = jnp.moveaxis(front, lead, 0)
        ones = (1,) * (self.rank - lead)
        return front.reshape(front.shape[:1] + ones + front.shape[1:]) if ones else front

    # -- components to arrays ------------------------------------------------------------------

    def join_dofs(self, per_group: Sequence[Sequence[Scalar]]) -> Array:
        """Join components, one sequence per group, to an array (*batch, nv)."""
        return self._join(per_group, self.topology.v_start)

    def join_coordinates(self, per_group: Sequence[Sequence[Scalar]]) -> Array:
        """Join components, one sequence per group, to an array (*batch, nq)."""
        return self._join(per_group, self.topology.q_start)

    def join_links(self, per_group: Sequence[Scalar]) -> Array:
        """Join components, one per group, to an array (*batch, nl)."""
        return self._join([(x,) for x in per_group], range(self.topology.n_links))

    def by_link(self, per_group: Sequence[T]) -> T:
        """Join the values of all groups, in link order: components (nl, *batch)."""

        def join(*values: Scalar) -> Array:
            pieces = [
                dense(self._full(x, g), (self.groups[g].n, *self.batch), self.dtype) for g, x in enumerate(values)
            ]
            links = [i for group in self.groups for i in group.links]
            return take(jnp.concatenate(pieces), np.argsort(links).tolist())

        return jax.tree.map(join, *per_group, is_leaf=is_zero)

    def _join(self, per_group: Sequence[Sequence[Scalar]], start: Sequence[int]) -> Array:
        pieces: list[tuple[list[int], Array]] = []  # indices in the result and their values (*batch, indices)
        for group, components in zip(self.groups, per_group, strict=True):
            first = [start[i] for i in group.links]
            if group.n == 1:
                columns = [dense(x, self.batch, self.dtype) for x in components]
                pieces += [([first[0] + k], x[..., None]) for k, x in enumerate(columns)]
                continue
            columns = [dense(x, (group.n, *self.batch), self.dtype) for x in components]
            if self.rank:
                columns = [jnp.moveaxis(x, 0, -1) for x in columns]
            width = len(columns)
            if width > 1 and first == list(range(first[0], first[0] + group.n * width, width)):
                row = jnp.stack(columns, -1).reshape((*self.batch, group.n * width))
                pieces.append((list(range(first[0], first[0] + group.n * width)), row))
            else:
                pieces += [([i + k for i in first], x) for k, x in enumerate(columns)]
        if not pieces:
            return jnp.zeros((*self.batch, 0), self.dtype)
        pieces.sort(key=lambda piece: piece[0])
        order = [i for indices, _ in pieces for i in indices]
        values = jnp.concatenate([x for _, x in pieces], -1)
        return values if order == sorted(order) else values[..., np.argsort(order)]

    # -- one link --------------------------------------------------------------------------------

    def row(self, link: int, values: Sequence[T]) -> T:
        """The value of one link, without a group axis."""
        g, row = self.topology.group_and_row[link]
        n = self.groups[g].n
        return jax.tree.map(lambda x: x if n == 1 else self._full(x, g)[row], values[g])

    def only(self, link: int, value: T, none: T) -> list[T]:
        """One entry per group: `value` at one link, zero at the others of its group, `none` in other groups."""
        g, row = self.topology.group_and_row[link]
        entries = [none] * len(self.groups)
        n = self.groups[g].n
        mask = (np.arange(n) == row).reshape(n, *(1,) * self.rank)
        entries[g] = value if n == 1 else jax.tree.map(lambda x: jnp.where(mask, x, 0), value)
        return entries

    # -- up and down the tree ------------------------------------------------------------------

    def from_parents(self, g: int, values: Sequence[T], world: T) -> T:
        """The value of each link's parent, as rows of group g; `world` for links on the world."""
        group = self.groups[g]
        if group.depth == 0:
            return world
        runs = self._runs[g]
        if len(runs) == 1:
            source, rows = runs[0]
            return jax.tree.map(lambda x: self._select(x, self.groups[source].n, rows), values[source])
        pieces = [
            jax.tree.map(lambda x, h=source, r=rows: self._cut(self._full(x, h), self.groups[h].n, r), values[source])
            for source, rows in runs
        ]
        return jax.tree.map(lambda *xs: _concatenate(xs), *pieces)

    def to_parents(self, g: int, contribution: T, sums: list[T]) -> None:
        """Add the contribution of each link of group g to its parent's entry of `sums`, in place."""
        group = self.groups[g]
        if group.depth == 0:
            return
        at = 0
        for source, rows in self._runs[g]:
            mine = slice(at, at + len(rows))
            at += len(rows)
            n = self.groups[source].n

            def spread(x, mine=mine, rows=rows, n=n):
                x = self._full(x, g)
                if group.n == 1 and n == 1:
                    return x
                x = x[None] if group.n == 1 else x[mine]
                return x.sum(0) if n == 1 else sum_into(x, rows, n)

            sums[source] = jax.tree.map(spread, contribution) + sums[source]

    def matching_group(self, g: int) -> int | None:
        """Return the parents' group if each link of g is the only child there of its own row, else None."""
        group = self.groups[g]
        if group.depth == 0 or len(self._runs[g]) != 1:
            return None
        source, rows = self._runs[g][0]
        return source if rows == tuple(range(self.groups[source].n)) else None

    @cached_property
    def _runs(self) -> tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]:
        """The parents of each group as (group, rows) runs in row order."""
        all_runs = []
        for group in self.groups:
            runs: list[tuple[int, tuple[int, ...]]] = []
            for parent in group.parents if group.depth else ():
                h, row = self.topology.group_and_row[parent]
                if runs and runs[-1][0] == h:
                    runs[-1] = (h, (*runs[-1][1], row))
                else:
                    runs.append((h, (row,)))
            all_runs.append(tuple(runs))
        return tuple(all_runs)

    def _select(self, x: Scalar, n: int, rows: tuple[int, ...]) -> Scalar:
        if n == 1 or jnp.ndim(x) <= self.rank or x.shape[0] == 1:  # the same for every row
            return x
        if rows == tuple(range(n)):
            return x
        if len(set(rows)) == 1:
            return x[rows[0]]
        return take(x, rows, 0)

    def _cut(self, x: Array, n: int, rows: tuple[int, ...]) -> Array:
        """Rows of a value with its group axis written out, (len(rows), *batch)."""
        if n == 1:
            return jnp.broadcast_to(x, (len(rows), *x.shape))
        return x[rows[0]][None] if len(rows) == 1 else take(x, rows, 0)

    def _full(self, x: Scalar, g: int) -> Array:
        """x with all its axes written out: (n, *batch), or (*batch) for a single link; batch axes may be 1."""
        n = self.groups[g].n
        grouped = n > 1 and jnp.ndim(x) > self.rank
        shape = jnp.shape(x)[1:] if grouped else jnp.shape(x)
        shape = (1,) * (self.rank - len(shape)) + shape
        if n == 1:
            return jnp.reshape(x, shape)
        return jnp.broadcast_to(jnp.reshape(x, jnp.shape(x)[:1] + shape) if grouped else x, (n, *shape))


BATCHABLE = (
    "mass", "com", "inertia", "joint_position", "joint_quaternion", "axis", "axis2", "pitch", "armature", "damping",
    "loss", "stiffness", "rest", "motor_gain", "motor_kp", "motor_kd", "motor_effort", "motor_target", "gravity",
)  # fmt: skip


LOOPS = (
    "loop_position", "loop_quaternion", "loop_size", "loop_course", "loop_spring", "loop_stiff", "loop_damp",
    "loop_limits", "loop_active", "baumgarte",
)  # fmt: skip


def _concatenate(xs: Sequence[Array]) -> Array:
    batch = jnp.broadcast_shapes(*(x.shape[1:] for x in xs))
    return jnp.concatenate([jnp.broadcast_to(x, (x.shape[0], *batch)) for x in xs])
