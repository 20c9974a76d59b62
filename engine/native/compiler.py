"""The compiler from the jaxpr of one lane to LLVM's text: all its steps in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax.extend import core as jex

from .emit.program import EmittedProgram
from .fusion import fuse
from .graph import Graph
from .liveness import prune
from .order import arrange
from .plan import Plan
from .rules import translate
from .rules.table import size_of
from .runner import Runner
from .types import type_of


def compiled_text(
    jaxpr: jex.ClosedJaxpr, opens: Sequence[int], runner: Runner = Runner.CPU
) -> tuple[str, EmittedProgram, list[bool]]:
    """Return LLVM's text of a closed jaxpr, the program, and whether it reads each argument.

    opens: whether each argument is an open array.
    """
    graph = Graph()
    for k, (var, is_open) in enumerate(zip(jaxpr.jaxpr.invars, opens, strict=True)):
        graph.top.input(size_of(var.aval), type_of(var.aval.dtype), k if is_open else None)
    args = list(graph.top.inputs)
    consts = [graph.const(np.asarray(c)) for c in jaxpr.consts]
    graph.top.results = translate(graph, jaxpr.jaxpr, consts, args)
    regions = prune(graph.top)
    for region in regions:
        fuse(graph, region, runner.small)
    for region in regions:
        arrange(region)
    program = EmittedProgram(graph, [True] * len(args), Plan(graph.top, regions, runner.small), runner)
    return program.module.text(), program, [x.live or x.open is not None for x in graph.top.inputs]
