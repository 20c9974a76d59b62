"""The pytest plugin: golden event logs beside tests, and runs of scenes. `docs/regression.md` shows how it is used.

It loads with every pytest if Carom is installed, so that it imports nothing heavy until a fixture is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .recordings.recording import Recording
    from .sources import SceneLike


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("carom").addoption(
        "--carom-update", action="store_true", help="write golden event logs instead of comparing with them"
    )


@pytest.fixture(scope="session")
def carom_run() -> Callable[..., Recording]:
    """carom_run(scene, dtype="float64", **keywords) -> Recording: see `carom.scenes.regression.runs.record_run`.

    Runs are in double precision, whether jax's x64 mode is on or not.
    """
    import jax

    from .regression.runs import record_run

    def run(scene: SceneLike, *, dtype: str = "float64", **keywords: Any) -> Recording:
        with jax.enable_x64(dtype == "float64"):
            return record_run(scene, dtype=dtype, **keywords)

    return run


@pytest.fixture
def carom_golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """carom_golden(recording, name=None, **tolerances) compares a run with goldens/NAME.jsonl beside the test.

    name: None: the module's and the test's.  tolerances: time, impulse, velocity, energy, position, see
    `carom.scenes.regression.difference.Tolerances`.  `pytest --carom-update` writes the file instead.
    """
    from .regression.difference import Tolerances
    from .regression.golden import check_golden

    used: set[str] = set()

    def check(recording: Recording, name: str | None = None, **tolerances: float) -> None:
        __tracebackhide__ = True
        name = name or re.sub(r"[^\w.=-]+", "_", f"{request.path.stem}.{request.node.name}").strip("_")
        if name in used:
            raise ValueError(f"carom_golden: two runs of this test have the name {name!r}: give each a name")
        used.add(name)
        allowed = Tolerances.usual(recording.q.dtype.name, **tolerances) if tolerances else None
        path = request.path.parent / "goldens" / f"{name}.jsonl"
        check_golden(recording, path, allowed, update=bool(request.config.getoption("--carom-update")))

    return check
