"""Shards as tasks of Dask: on processes of this machine, or on a cluster. The one file that imports distributed.

A shard depends only on the plan, which is part of its task: only the shards of a killed worker run again on another
one.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
from collections.abc import Iterable, Iterator

import numpy as np
from distributed import Client, LocalCluster, as_completed
from distributed.protocol.pickle import dumps

from .plan import SweepPlan

HERE = "dask"


def run_on_dask(
    plan: SweepPlan, shards: Iterable[int], on: str | Client, workers: int | None
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """Yield shards when they are done, with their numbers.  on: "dask", a scheduler's address, or a Client."""
    with _client(on, workers) as client:
        task = dumps(plan)
        futures = [client.submit(_run, task, number, pure=False) for number in shards]
        for future in as_completed(futures):
            yield future.result()
            future.release()


def _run(task: bytes, number: int) -> tuple[int, dict[str, np.ndarray]]:
    return number, _plan(task).run(number)


@functools.lru_cache(maxsize=1)
def _plan(task: bytes) -> SweepPlan:
    """The plan with its cached values, for all shards of this process."""
    return pickle.loads(task)


@contextlib.contextmanager
def _client(on: str | Client, workers: int | None) -> Iterator[Client]:
    if isinstance(on, Client):
        yield on
    elif on == HERE:
        each = {"n_workers": workers or os.cpu_count() or 1, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(processes=True, **each) as cluster, Client(cluster) as client:
            yield client
    else:
        with Client(on) as client:
            yield client
