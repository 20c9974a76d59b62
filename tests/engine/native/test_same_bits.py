"""Code for processors with vectors of 16, 32 and 64 bytes, with and without fused multiply-adds, has the same bits."""

import os
import platform
import subprocess
import sys

import pytest

RUN = """
import hashlib, sys
import jax
import numpy as np
import carom
jax.config.update("jax_enable_x64", True)
model, state = carom.compile_scene(carom.load(sys.argv[1]))
result = carom.rollout(model, state, duration=float(sys.argv[2]), frame_dt=0.05, max_events=256, throw=False)
digest = hashlib.sha256()
for x in jax.tree.leaves((result.t, result.q, result.v, result.events)):
    digest.update(np.asarray(x).tobytes())
print(digest.hexdigest(), int(result.events.count))
"""
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="processors of this family only")
@pytest.mark.parametrize(
    ("scene", "seconds", "impacts"),
    [
        pytest.param("bouncing_ball", 2.0, 3, marks=pytest.mark.slow),
        pytest.param("pool_break", 5.0, 100, marks=pytest.mark.exhaustive),
        pytest.param("stack", 5.0, 0, marks=pytest.mark.exhaustive),
        pytest.param("ragdoll", 5.0, 5, marks=pytest.mark.exhaustive),
    ],
)
def test_every_level_of_the_processor_has_the_same_bits(scene: str, seconds: float, impacts: int) -> None:
    there = []
    for cpu in LEVELS:
        environment = {**os.environ, "CAROM_NATIVE_CPU": cpu, "CAROM_NATIVE_LEVEL": "2"}
        command = [sys.executable, "-c", RUN, scene, str(seconds)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        there.append(ran.stdout.split())
    assert there[0] == there[1] == there[2]
    assert int(there[0][1]) >= impacts
