"""How tests run JAX: double precision, on the CPU, with one cache of compiled programs for all of them."""

import os
from pathlib import Path

import hypothesis
import jax

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

hypothesis.settings.register_profile(
    "carom",
    deadline=None,  # the first example of each shape compiles
    max_examples=30,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("carom")
