"""Peers: the same work done by Pinocchio on the same states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from carom.tests.oracles.pinocchio_model import Pinocchio

from .cases import Case


class PinocchioBatch:
    """`abaInParallel` over a case's states, in Pinocchio's conventions; arrays are column-major as it wants them."""

    def __init__(self, case: Case) -> None:
        self.peer = Pinocchio(case.model)
        states = [np.asarray(x, np.float64) for x in (case.q, case.v, case.tau)]
        self.states = states
        columns = [self.peer.state(q, v, tau) for q, v, tau in zip(*states, strict=True)]
        self.q, self.v, self.tau = (np.asfortranarray(np.stack(x, -1)) for x in zip(*columns, strict=True))
        self.a = np.zeros_like(self.v, order="F")
        self.pools: dict[int, Any] = {}

    def run(self, threads: int) -> None:
        """Accelerations of the whole batch into self.a."""
        pool = self.pools.setdefault(threads, pin.ModelPool(self.peer.model, threads))
        pin.abaInParallel(threads, pool, self.q, self.v, self.tau, self.a)
