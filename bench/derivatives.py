"""Derivatives of forward dynamics by all of q, v and tau: a batch of random states against Pinocchio, one thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import carom
from carom.engine.dynamics.derivatives.forward import aba_derivatives
from carom.tests.oracles.pinocchio_derivatives import aba_derivatives as theirs

from .cases import CASES, DTYPES, dynamics_case
from .peers import PinocchioBatch
from .timing import compile_seconds, in_turn

AGREEMENT = {"f32": 5e-2, "f64": 1e-8}  # worst lane, relative to its largest entry; f32 loses M's condition twice
SAMPLE = 512  # number of first lanes that Pinocchio computes: its loop is in Python


def cpu(lanes: int, rounds: int, only: str) -> int:
    """Print the table of the scenes that `only` names; the exit status says whether the derivatives agreed."""
    console = Console(width=120)
    table = Table(
        box=SIMPLE,
        padding=0,
        collapse_padding=True,
        pad_edge=False,
        title=f"derivatives of aba, {lanes} random states, one device: us an evaluation (ratio: Pinocchio / Carom)",
    )
    columns = ("case", "dtype", "compile s", "carom", "jacfwd", "aba", "pin", "its call", "ratio", "less call")
    for column in (*columns, "difference"):
        table.add_column(column, justify="right", no_wrap=True)
    agreed = True
    for name in (name for name in CASES if only in name):
        whole = dynamics_case(name, np.float64, lanes)
        some = replace(whole, **{x: getattr(whole, x)[:SAMPLE] for x in ("q", "v", "tau")})
        peer = PinocchioLoop(PinocchioBatch(some))
        for label, dtype in DTYPES.items():
            case = dynamics_case(name, dtype, lanes)
            arguments = (case.model, case.q, case.v, case.tau)
            console.log(f"{name} {label}: {case.model.topology.nv} degrees of freedom, compiling")
            ours, seconds = compile_seconds(aba_derivatives, *arguments)
            fwd, _ = compile_seconds(_jacfwd, *arguments)
            aba, _ = compile_seconds(carom.aba, *arguments)
            difference = peer.difference(ours(*arguments))
            agreed &= difference < AGREEMENT[label]
            console.log(f"{name} {label}: timing")
            calls: dict[str, Callable[[], Any]] = {
                "carom": lambda ours=ours, x=arguments: ours(*x),
                "jacfwd": lambda fwd=fwd, x=arguments: fwd(*x),
                "aba": lambda aba=aba, x=arguments: aba(*x),
                "pin": peer.derivatives,
                "loop": peer.accelerations,
                "batch": lambda peer=peer: peer.batch.run(1),
            }
            timed = in_turn(calls, rounds)
            us = {k: t.median / (lanes if k in ("carom", "jacfwd", "aba") else peer.n) * 1e6 for k, t in timed.items()}
            call = us["loop"] - us["batch"]  # overhead of calls from Python, from the same loop around aba
            row = [f"{seconds:.1f}", *(f"{us[k]:.2f}" for k in ("carom", "jacfwd", "aba", "pin")), f"{call:.2f}"]
            row += [f"{us['pin'] / us['carom']:.2f}", f"{(us['pin'] - call) / us['carom']:.2f}", f"{difference:.0e}"]
            table.add_row(f"{name} ({case.model.topology.nv} dof)", label, *row)
    console.print(table)
    if not agreed:
        console.print("[red]the derivatives differ from Pinocchio's: the figures above are worth nothing")
    return 0 if agreed else 1


def _jacfwd(model: Any, q: Any, v: Any, tau: Any) -> Any:
    """Compute derivatives by q's coordinates, v and tau by `jax.jacfwd`, lane by lane."""
    return jax.vmap(lambda *x: jax.jacfwd(carom.aba, argnums=(1, 2, 3))(model, *x))(q, v, tau)


class PinocchioLoop:
    """`computeABADerivatives` over a batch's states, called from Python: there is no call for many at once."""

    def __init__(self, batch: PinocchioBatch) -> None:
        import pinocchio as pin

        self.batch, self.pin = batch, pin
        self.model: Any = batch.oracle.pin
        self.data = self.model.createData()
        self.states = list(zip(*(np.ascontiguousarray(x.T) for x in (batch.q, batch.v, batch.tau)), strict=True))

    @property
    def n(self) -> int:
        return len(self.states)

    def derivatives(self) -> None:
        """Compute all states; the results stay in Pinocchio's data."""
        call: Any = self.pin.computeABADerivatives  # pyright: ignore[reportAttributeAccessIssue]
        model, data = self.model, self.data
        for q, v, tau in self.states:
            call(model, data, q, v, tau)

    def accelerations(self) -> None:
        """Run the same loop around `aba`."""
        call: Any = self.pin.aba  # pyright: ignore[reportAttributeAccessIssue]
        model, data = self.model, self.data
        for q, v, tau in self.states:
            call(model, data, q, v, tau)

    def difference(self, ours: Any) -> float:
        """Return the largest difference of a derivative in a few lanes, relative to the largest entry of its matrix."""
        worst = 0.0
        for lane in range(min(8, self.n)):
            state = [x[lane] for x in self.batch.states]
            for mine, true in zip(ours, theirs(self.batch.oracle, *state), strict=True):
                worst = max(worst, float(np.abs(np.asarray(mine[lane]) - true).max() / np.abs(true).max()))
        return worst
