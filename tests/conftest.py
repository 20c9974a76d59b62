"""How tests run JAX: double precision, on the CPU, with one cache of compiled programs for all of them."""

import contextlib
import ctypes
import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jax
import pytest

# in the environment too, for the subprocesses of tests
SHARED = {
    "jax_platforms": os.environ.get("JAX_PLATFORMS", "cpu"),
    "jax_compilation_cache_dir": str(Path(__file__).parents[1] / ".cache" / "jax"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}
for name, value in SHARED.items():
    os.environ[name.upper()] = str(value)
    jax.config.update(name, value)

# Tests compile more than they run: XLA's older emitters without LLVM's optimisations compile three times as
# fast, and our own compiler six times as fast. Set XLA_FLAGS (empty, for the code users get) and this stays out of
# the way, as CI does for its last stage.
FAST = "0" if os.environ.get("XLA_FLAGS") is None else "2"
if jax.__version_info__[:2] == (0, 10):  # XLA aborts on flags that it does not know
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0")

os.environ.setdefault("CAROM_NATIVE_LEVEL", FAST)
os.environ.setdefault("CAROM_NATIVE_PROCESSES", "1")  # other tests run on the other processors
os.environ.setdefault("CAROM_CACHE", str(Path(__file__).parents[1] / ".cache" / "native"))

jax.config.update("jax_enable_x64", True)  # here only: what runs outside chooses for itself

LARGE = 9 << 28  # bytes of a worker's memory

hypothesis.settings.register_profile(
    "carom",
    deadline=None,  # the first example of each shape compiles
    max_examples=30,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("carom")


# a minute or more: first, or at the end a worker would wait for them
LONGEST = (
    "test_of_a_ball_after_three_bounces[reverse-float64-1e-09]", "test_code_of_a_page[derivatives]",
    "test_forty_windows", "test_every_robot_moves_as_in_pinocchio_or_is_refused_with_a_reason",
    "test_code_of_the_tour", "test_scenes_keep_their_promises[ragdoll]", "test_other_commands_work",
    "test_two_processes", "test_of_a_ball_after_three_bounces[forward-float64-1e-09]",
)  # fmt: skip
# slow tests that share a program, a library or a page
EXPORTS = tuple(f"test_export{x}.py" for x in ("", "_changes", "_page"))
WORLDS = "test_live_changes.py", "test_live_growth.py", "test_sensors.py", "test_readouts.py"
TOGETHER = ("test_gradients.py", "test_pool_break.py", "test_site.py", *EXPORTS, *WORLDS)
PAIR = re.compile(r".*/test_narrow_(?:gaps|laws)\.py::\w+\[([a-z]+-[a-z]+)\b.*\]")


def _listed(mark: str) -> frozenset[str]:
    return frozenset(Path(__file__).with_name(f"{mark}.txt").read_text().splitlines())


# by their times (`pytest --durations=0` on two busy cores): slow above 1.5 s; exhaustive above 8 s, and where others of
# the same test say nearly the same
LISTED = {mark: _listed(mark) for mark in ("slow", "exhaustive")}


@pytest.hookimpl(tryfirst=True)  # before marks are looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests first."""
    for item in items:
        for mark, names in LISTED.items():
            if item.nodeid in names:
                item.add_marker(mark)
    items.sort(key=lambda item: LONGEST.index(item.name) if item.name in LONGEST else len(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What shares programs goes to one worker: all tests of a pair of shapes, and of a file; slow tests (`--dist
    loadgroup`) one by one, but for some files.

    Not by marks `xdist_group`, which xdist 3.8 writes into names where pytest 9.2 does not look.
    """
    from xdist.scheduler import LoadScopeScheduling

    dist = config.getvalue("dist")
    if dist not in ("load", "loadgroup"):
        return None
    config.option.loadscopereorder = False

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if pair := PAIR.fullmatch(nodeid):
                return pair[1]
            file = nodeid.partition("::")[0]
            return file if dist == "load" or file.endswith(TOGETHER) else nodeid

    return Together(config, log)


@pytest.fixture(autouse=True)
def _room_for_the_next_test() -> Iterator[None]:
    """A worker's memory would grow to many gigabytes: of what was freed and kept, and of compiled programs.

    What is still needed of these comes back from the cache on disk. Commands in single precision switch the double one
    off: it is switched on again.
    """
    yield
    jax.config.update("jax_enable_x64", True)
    for step in (gc.collect, jax.clear_caches):
        if _resident() < LARGE:
            return
        step()
        with contextlib.suppress(OSError, AttributeError):  # not everybody's C library can
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def _resident() -> int:
    """Bytes of memory that this process holds; 0 where nobody says."""
    counts = Path("/proc/self/statm")
    return int(counts.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if counts.exists() else 0
