"""How tests run JAX: double precision, on the CPU, with one cache of compiled programs for all of them."""

import contextlib
import ctypes
import gc
import os
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
# fast. Set XLA_FLAGS (empty, for the code users get) and this stays out of the way, as CI does for its slow half.
if jax.__version_info__[:2] == (0, 10):  # XLA aborts on flags that it does not know
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0")

jax.config.update("jax_enable_x64", True)  # here only: what runs outside chooses for itself

LARGE = 2 << 30  # bytes of a worker's memory

hypothesis.settings.register_profile(
    "carom",
    deadline=None,  # the first example of each shape compiles
    max_examples=30,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("carom")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker for all slow tests of a pair of shapes (`--dist loadgroup`): their sample takes half a minute. And the
    longest test first."""
    for item in items:
        given: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if "names" in given and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.xdist_group("-".join(given["names"])))
    items.sort(key=lambda item: item.name != "test_commands_work")  # the longest first: at the end a worker would wait


@pytest.fixture(scope="module", autouse=True)
def _room_for_the_next_module() -> Iterator[None]:
    """A worker's memory would grow to many gigabytes: of what was freed and kept, and of compiled programs."""
    yield
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
