"""Batches of lanes that are split over several devices, or into chunks that fit the memory (see `docs/batches.md`).

Lanes are independent, so nothing is sent between devices while they run, and each device stops when its lanes are done.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from numpy.typing import ArrayLike

from ..engine.model import Model
from ..engine.packed import Packed
from ..engine.state import State
from .clock import Frames
from .lane_map import lane_axes
from .motion.forces import Drive

LANE = "lane"  # the axis of the mesh
PATIENCE = 2.0  # [s] after which a run in chunks shows its progress

T = TypeVar("T")
N = TypeVar("N", bound=tuple[Any, ...])  # model, state, frames, rows, *bounds
LaneProgram = Callable[..., T]  # (static, model, state, frames, rows, *bounds) -> results, lanes first


def run_batch(
    program: LaneProgram[T],
    static: Hashable,
    devices: int | Sequence[Any] | None,
    chunk: int | None,
    *numbers: Any,
) -> T:
    """Run program(static, *numbers) for lanes along one axis, on the given devices and in chunks."""
    state = numbers[1]
    if chunk is not None and not state.t.is_fully_addressable:
        raise ValueError("rollout: chunk is for lanes of one process; these are spread over several")
    chosen = devices_for(devices, state)
    same = len(chosen) == 1 and {*chosen} == state.t.devices() and not _explicit_axes(state)
    run = functools.partial(program, static) if same else functools.partial(over_devices, program, static, chosen)
    return run(*numbers) if chunk is None else in_chunks(run, chunk, len(chosen), *numbers)


def devices_for(devices: int | Sequence[Any] | None, state: State) -> list[Any]:
    """Return the devices to run on: those given, the first n of this process, or all if each gets at least one lane."""
    if devices is not None and not isinstance(devices, int):
        return list(devices)
    if not state.t.is_fully_addressable:  # spread over processes already
        return list(state.t.sharding.mesh.devices.flat)  # type: ignore[union-attr]
    mine = jax.local_devices(backend=next(iter(state.t.devices())).platform)
    if devices is None:
        return mine if state.t.size >= len(mine) else mine[:1]
    if not 1 <= devices <= len(mine):
        raise ValueError(f"rollout: devices is {devices}; there are {len(mine)} here: {', '.join(map(str, mine))}")
    return mine[:devices]


def refuse_explicit_sharding(state: State) -> None:
    """Raise ValueError if lanes inside jit have explicit sharding in their type, which results do not have."""
    if axes := _explicit_axes(state):
        raise ValueError(
            f"rollout: inside jit the lanes are spread over the explicit mesh axis {axes[0]!r}. Call rollout outside "
            "of jit, which spreads lanes itself, or inside jax.shard_map (docs/batches.md shows it)"
        )


def _explicit_axes(state: State) -> list[str | tuple[str, ...]]:
    """Return the axes of a mesh over which the lanes are sharded, by their type."""
    return [axis for axis in jax.typeof(state.t).sharding.spec if axis is not None]


def over_devices(program: LaneProgram[T], static: Hashable, devices: Sequence[Any], *numbers: Any) -> T:
    """Run program(static, *numbers) with equally many lanes on every device."""
    lanes, axes = numbers[1].t.shape[0], _axes(*numbers)
    each = -(-lanes // len(devices))
    if each * len(devices) > lanes:
        numbers = _take_lanes(numbers, axes, range(each * len(devices)))
    mesh = Mesh(np.array(devices), (LANE,))
    where = [NamedSharding(mesh, _spec(axis)) for axis in axes]
    leaves, tree = jax.tree.flatten(numbers)
    sharded = jax.tree.unflatten(tree, jax.device_put(leaves, where))
    ran = _run_sharded(program, static, mesh, axes, *sharded)
    return ran if each * len(devices) == lanes else jax.tree.map(lambda x: x[:lanes], ran)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _run_sharded(program: LaneProgram[T], static: Hashable, mesh: Mesh, axes: tuple[int, ...], *numbers: Any) -> T:
    leaves, tree = jax.tree.flatten(numbers)

    def shard(*leaves: Array) -> T:
        return program(static, *jax.tree.unflatten(tree, leaves))

    specs = tuple(_spec(axis) for axis in axes)
    return jax.shard_map(shard, mesh=mesh, in_specs=specs, out_specs=P(LANE), check_vma=False)(*leaves)


def in_chunks(run: Callable[..., T], chunk: int, devices: int, *numbers: Any) -> T:
    """Call run(*numbers) with `chunk` lanes at a time, and gather the results in numpy arrays on the host.

    A chunk is rounded up to as many lanes on each device. All chunks have the same shape, and share one program.
    """
    if chunk < 1:
        raise ValueError(f"rollout: chunk is {chunk}; it must be at least 1 lane")
    lanes, axes = numbers[1].t.shape[0], _axes(*numbers)
    chunk = -(-chunk // devices) * devices
    if chunk >= lanes:
        return run(*numbers)
    gathered: Any = None
    for begin in _with_progress_bar(range(0, lanes, chunk), lanes):
        part = jax.device_get(run(*_take_lanes(numbers, axes, range(begin, begin + chunk))))
        if gathered is None:
            gathered = jax.tree.map(lambda x: np.empty((lanes, *x.shape[1:]), x.dtype), part)
        for whole, x in zip(jax.tree.leaves(gathered), jax.tree.leaves(part), strict=True):
            whole[begin : begin + chunk] = x[: lanes - begin]
    return gathered


def at_hand(*arrays: Any) -> list[np.ndarray]:
    """Return the arrays on the host; if they are spread over processes, only the lanes of this one."""
    return [
        np.asarray(x) if getattr(x, "is_fully_addressable", True)
        else np.concatenate([np.asarray(shard.data) for shard in x.addressable_shards])
        for x in arrays
    ]  # fmt: skip


def some_lanes(numbers: N, lanes: ArrayLike) -> N:
    """Return the numbers of some lanes, by their indices; beyond the end the last lane is repeated."""
    return _take_lanes(numbers, _axes(*numbers), lanes)


def _axes(model: Packed | Model, state: State, frames: Frames, rows: Drive, *bounds: Array) -> tuple[int, ...]:
    """Return the axis of the lanes for each leaf of the numbers; -1 for none."""
    own, first, drive = lane_axes(model, state, rows)
    shared = jax.tree.map(lambda _: -1, (frames, bounds))
    return tuple(jax.tree.leaves((own, first, shared[0], drive, shared[1])))


def _take_lanes(numbers: N, axes: tuple[int, ...], lanes: ArrayLike) -> N:
    """Return the numbers of some lanes; beyond the end the last lane is repeated."""
    which = np.minimum(np.array(lanes), numbers[1].t.shape[0] - 1)
    leaves, tree = jax.tree.flatten(numbers)
    some = [x if axis < 0 else x[(slice(None),) * axis + (which,)] for x, axis in zip(leaves, axes, strict=True)]
    return jax.tree.unflatten(tree, some)


def _spec(axis: int) -> P:
    return P() if axis < 0 else P(*(None,) * axis, LANE)


def _with_progress_bar(begins: range, lanes: int) -> Iterator[int]:
    """Yield the begins of chunks, with a progress bar on stderr after a while."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    bar = Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=Console(stderr=True))
    task, started = bar.add_task("lanes", total=lanes), time.monotonic()
    try:
        for begin in begins:
            yield begin
            bar.update(task, completed=min(begin + begins.step, lanes))
            if time.monotonic() - started > PATIENCE:
                bar.start()
    finally:
        if bar.live.is_started:
            bar.stop()
