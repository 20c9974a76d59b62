"""Peers: the same work done by Pinocchio on the same states."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pinocchio as pin

from carom.tests.oracles.pinocchio_model import Oracle

from .cases import Case


class PinocchioBatch:
    """`abaInParallel` over a case's states, in Pinocchio's conventions and column-major as it wants them."""

    def __init__(self, case: Case) -> None:
        self.oracle = Oracle(jax.tree.map(lambda x: np.asarray(x, np.float64), case.model))
        self.states = [np.asarray(x, np.float64) for x in (case.q, case.v, case.tau)]
        columns = [self._column(*state) for state in zip(*self.states, strict=True)]
        self.q, self.v, self.tau = (np.asfortranarray(np.stack(x, -1)) for x in zip(*columns, strict=True))
        self.a = np.zeros_like(self.v, order="F")
        self.pools: dict[int, Any] = {}

    def _column(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, ...]:
        T = self.oracle.T(q)
        return self.oracle.q(q), T @ v, np.linalg.solve(T.T, tau)

    def run(self, threads: int) -> None:
        """Accelerations of the whole batch into self.a."""
        if threads not in self.pools:
            self.pools[threads] = pin.ModelPool(self.oracle.pin, threads)  # pyright: ignore[reportAttributeAccessIssue]
        batched_aba: Any = pin.abaInParallel  # pyright: ignore[reportAttributeAccessIssue]
        batched_aba(threads, self.pools[threads], self.q, self.v, self.tau, self.a)

    def accelerations(self) -> np.ndarray:
        """The result of the last run in Carom's conventions (lanes, nv)."""
        lanes = zip(self.states[0], self.states[1], self.a.T, strict=True)
        return np.array(
            [np.linalg.solve(self.oracle.T(q), a - self.oracle.a(q, v, np.zeros_like(v))) for q, v, a in lanes]
        )
