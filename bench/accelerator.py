"""The suites on the default accelerator, without peers. It imports nothing that a machine with a GPU may lack."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import carom
from carom.engine.results import OK

from .cases import CASES, DTYPES, SCENES, SIDES, SIZE, broad_case, dynamics_case, lattice_scene, pair_case, parts
from .contact_cases import DRIFT, by_law, check_impacts, drift, impact_case, stack_case, stand
from .contact_cases import parts as contact_parts
from .timing import compile_seconds, in_turn

FEWER = {"f32": (64, 8, 1), "f64": (1,)}  # divisors of the number of placements, to measure a call's fixed cost
AGREEMENT = 1e-4 * SIZE  # [m] f32 against f64: a thousand times the rounding of placements of this size


def dynamics(lanes: int, rounds: int, only: str) -> int:
    """Print evaluations per second of `carom.aba` for each precision and scene that `only` names."""
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, {lanes} lanes", flush=True)
    for name in (name for name in CASES if only in name):
        for label, dtype in DTYPES.items():
            case = dynamics_case(name, dtype, lanes)
            arguments = (case.model, case.q, case.v, case.tau)
            run, seconds = compile_seconds(carom.aba, *arguments)
            timed = in_turn({"aba": functools.partial(run, *arguments)}, rounds)
            rate = lanes / timed["aba"].median / 1e6
            print(f"{name:9} {label}: {rate:9.2f} M evaluations/s, compile {seconds:.1f} s", flush=True)
    return 0


def collision(pairs: int, rounds: int, only: str) -> int:
    """Print pairs per second of `carom.detect`, the broad phase and whole scenes, or the parts that `only` names.

    The exit status says whether single and double precision found the same gaps, and both methods of the broad phase
    the same candidates.
    """
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}", flush=True)
    names, broad, scenes = parts(only)
    agreed = [_pairs(name, pairs, rounds) for name in names]
    agreed += [_broad(side, rounds) for side in SIDES if broad]
    agreed += [_scene(side, rounds) for side in SCENES if scenes]
    if not all(agreed):
        print("the detector is wrong, see above: the figures are worth nothing")
    return 0 if all(agreed) else 1


def _pairs(name: str, pairs: int, rounds: int) -> bool:
    gaps: dict[str, Any] = {}
    for label, dtype in DTYPES.items():
        case = pair_case(name, dtype, pairs)
        for count in sorted({max(1, pairs // part) for part in FEWER[label]}):
            q = case.q[:count]
            run, seconds = compile_seconds(carom.detect, case.model, q)
            gaps[label] = np.asarray(run(case.model, q).gap)[:, 0]
            timed = in_turn({"detect": functools.partial(run, case.model, q)}, rounds)["detect"].median
            rate = count / timed / 1e6
            print(
                f"{name:15} {label} {count:8d} pairs: {timed * 1e6:9.0f} us, {rate:9.2f} M pairs/s,"
                f" compile {seconds:.1f} s",
                flush=True,
            )
    single, double = gaps.values()
    differ = float(np.abs(single - double).max())
    print(f"{name:15} overlap {np.mean(double < 0):.0%}, f32 and f64 differ by {differ:.0e} m", flush=True)
    return differ <= AGREEMENT


def _broad(side: int, rounds: int) -> bool:
    rows = []
    for way in ("matrix", "cells"):
        near, *arguments = broad_case(side, way, jnp.float32)
        run, seconds = compile_seconds(near, *arguments)
        rows.append(np.asarray(run(*arguments).row))
        us = in_turn({way: functools.partial(run, *arguments)}, rounds)[way].median * 1e6
        print(f"broad phase, {side**3} bodies, {way}: {us:.0f} us a call, compile {seconds:.1f} s", flush=True)
    return np.array_equal(*rows)


def _scene(side: int, rounds: int) -> bool:
    model, q = lattice_scene(side, jnp.float32)
    run, seconds = compile_seconds(carom.detect, model, q)
    ms = in_turn({"detect": functools.partial(run, model, q)}, rounds)["detect"].median * 1e3
    print(f"scene of {side**3} bodies, f32: {ms:.2f} ms a call, compile {seconds:.1f} s", flush=True)
    return int(run(model, q).code) == OK


def contact(lanes: int, impacts: int, rounds: int, only: str) -> int:
    """Print impacts per second of `carom.resolve_impact` and steps per second of a stack, by size.

    only: names the parts to print. The exit status says whether the impulses obey the laws and the stacks stand.
    """
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}", flush=True)
    laws, _, stack = contact_parts(only)
    right = [_law(law, label, impacts, rounds) for law in laws for label in DTYPES]
    right += [_stack(label, lanes, rounds) for label in DTYPES if stack]
    if not all(right):
        print("the impulses are wrong, see above: the figures are worth nothing")
    return 0 if all(right) else 1


def _law(law: str, label: str, impacts: int, rounds: int) -> bool:
    fine = True
    for count in _sizes(impacts):
        case = impact_case(DTYPES[label], count)
        run, seconds = compile_seconds(by_law(law), *case)
        fine &= check_impacts(law, label, case, run(*case)).fine
        timed = in_turn({law: functools.partial(run, *case)}, rounds)[law].median
        _line(law, label, f"{count} impacts", timed, count, seconds)
    return fine


def _stack(label: str, lanes: int, rounds: int) -> bool:
    fine, some = True, jnp.int32(8)
    for number in _sizes(lanes):
        model, state = stack_case(DTYPES[label], number)
        run, seconds = compile_seconds(stand, model, state, some)
        after, code = run(model, state, some)
        fine &= drift(state, after) < DRIFT and not np.asarray(code).any()
        timed = in_turn({"stack": functools.partial(run, model, state, some)}, rounds)["stack"].median / int(some)
        _line("stack", label, f"{number} lanes", timed, number, seconds)
    return fine


def _sizes(most: int) -> list[int]:
    return sorted({max(1, most // part) for part in (64, 8, 1)})


def _line(name: str, label: str, what: str, seconds: float, count: int, compiling: float) -> None:
    rate = count / seconds / 1e6
    each = f"{seconds * 1e6:9.0f} us, {rate:9.4f} M/s"
    print(f"{name:16} {label} {what:>14}: {each}, compile {compiling:.1f} s", flush=True)
