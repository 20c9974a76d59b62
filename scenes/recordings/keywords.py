"""Keywords of a recording's run in its file: those of a rollout, with valid values.

The rollout's signature and its options define them: a new one needs nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from inspect import Parameter, signature
from typing import Any

import numpy as np

from ..wording import brief
from .recording import NOT_KEPT

# annotation of a keyword, without its "| None" -> what JSON has for it, and what that is called
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "float": ((int, float), "a number"),
    "int": ((int,), "a whole number"),
    "str": ((str,), "a text"),
    "bool": ((bool,), "true or false"),
}


def check_keywords(keywords: Mapping[str, Any], chain: bool) -> None:
    """Check keywords; raises ValueError.  chain: whether they are those of `carom.chain_rollout`."""
    from ...integrators.options import Options
    from ...integrators.planar.rollout import chain_rollout
    from ...integrators.rollout import check_times, rollout

    parameters = signature(chain_rollout if chain else rollout).parameters.values()
    kinds = {p.name: str(p.annotation) for p in parameters if p.kind is Parameter.KEYWORD_ONLY}
    if not chain:
        kinds |= {f.name: str(f.type) for f in fields(Options)}
    for name, value in keywords.items():
        if name not in kinds or name in NOT_KEPT:
            raise ValueError(f"it was run with {brief(name)}, which this version of Carom does not know")
        kind = kinds[name]
        if value is None and kind.endswith("None"):
            continue
        types, called = KINDS.get(kind.removesuffix(" | None"), ((), ""))
        if not types:
            _check_drive(name, value, chain)
        elif type(value) not in types:
            raise ValueError(f"its {name} is {brief(value)}, and must be {called}")
    if "duration" in keywords:
        given = {name: keywords[name] for name in ("frame_dt", "max_dt") if name in keywords}
        check_times(keywords["duration"], **given)


def _check_drive(name: str, value: object, by_name: bool) -> None:
    """Check control or forces: numbers, or the record of a function.  by_name: whether numbers by name are allowed."""
    if isinstance(value, dict) and isinstance(value.get("function"), str):
        return
    if isinstance(value, dict) and by_name:
        for field, numbers in value.items():
            _check_drive(f"{name}.{field}", numbers, by_name=False)
    elif np.asarray(value).dtype.kind not in "iuf":
        raise ValueError(f"its {name} is {brief(value)}, and must be made of numbers")
