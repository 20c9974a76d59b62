"""Planar chains in the output of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from .output import emit, say, table

if TYPE_CHECKING:
    import numpy as np

    from ..chains.spec import ChainJoint, ChainSpec

STATS = ("releases", "scrapes", "rattles", "stretch")


def tell_chain(name: str, spec: ChainSpec, as_json: bool) -> None:
    """Print a chain for `carom info`: a row for each joint, and the grounds."""
    import numpy as np

    from ..compile import compile_scene

    chain, state = compile_scene(spec)
    if as_json:
        joints = [asdict(joint) for joint in spec.joints]
        emit({"scene": name, "joints": joints, "lengths": np.asarray(chain.length).tolist(),
              "positions": np.asarray(state.x).tolist(), "grounds": [asdict(g) for g in spec.grounds]})  # fmt: skip
        return
    n, g = len(spec.joints), len(spec.grounds)
    say(f"{name}: planar chain of {n} joints, {n - 1} links, {g} ground{'s' * (g != 1)}", style="bold")
    rows = []
    for k, joint in enumerate(spec.joints):
        x, y = (f"{a:.4g}" for a in np.asarray(state.x[k]))
        link = f"{chain.length[k]:.4g}" if k < n - 1 else ""
        rows.append((str(k), f"{joint.mass:.4g}", x, y, link, ", ".join(_kinds(joint))))
    table("joint", "mass [kg]", "x [m]", "y [m]", "link after it [m]", "is", rows=rows)
    for ground in spec.grounds:
        say(f"ground through {ground.point}, free towards {ground.normal}")


def _kinds(joint: ChainJoint) -> Iterable[str]:
    """Text of a joint's special properties."""
    yield from (word for word in ("guided", "active") if getattr(joint, word))
    if joint.line is not None:
        yield f"on a line normal to {joint.line}"
    if joint.limits is not None:
        lower, upper = joint.limits
        yield f"limited to {lower:.4g} .. {upper:.4g} rad"
    if joint.stuck is not None:
        yield f"stuck in ground {joint.stuck}"


def chain_stats(stats: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Statistics of a run that only chains have; empty for other scenes."""
    return {name: stats[name].item() for name in STATS if name in stats}


def print_chain_stats(stats: Mapping[str, float]) -> None:
    if stats["releases"]:
        say(
            f"{stats['releases']} times something let go; kept though forces said otherwise: {stats['scrapes']} times "
            f"at one instant (scraping), {stats['rattles']} times in quick succession (rattling)"
        )
    say(f"links were off their lengths by at most {stats['stretch']:.2g} of them")
