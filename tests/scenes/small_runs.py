"""A few short runs of a ball, shared by tests of pictures and of the regression kit: two programs are compiled."""

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

import carom
from carom.scenes.recordings.recording import Recording
from carom.scenes.regression.runs import record_run
from carom.tests.integrators.bouncing import FRAMES

# with shapes of arrays as in tests/integrators/bouncing.py, whose program of one ball serves here too
RUN: dict[str, Any] = {"duration": 1.5, "frame_dt": 1.5 / FRAMES, "max_events": 256, "max_contacts": 1}
FRICTIONS = (0.0, 0.1, 0.4)


def scene(friction: float = 0.0, restitution: float = 0.9) -> carom.SceneSpec:
    """A ball of 1 kg falls 1 m while it flies and spins: two impacts in 1.5 s."""
    b = carom.SceneBuilder()
    b.add_plane(friction=friction, restitution=restitution, name="floor")
    b.add_body(
        "ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 1.1), linear_velocity=(1, 0, 0),
        angular_velocity=(0, -20, 3), friction=friction, restitution=restitution,
    )  # fmt: skip
    return b.build()


@functools.cache
def ball(friction: float = 0.0, restitution: float = 0.9) -> Recording:
    return record_run(scene(friction, restitution), title="ball", **RUN)


@functools.cache
def balls() -> Recording:
    """A lane for each of FRICTIONS."""
    model, state = carom.compile_scene(scene(0.1))
    varied = {"pair_friction": np.array(FRICTIONS)[:, None]}
    model = model.replace(pair_friction=jnp.asarray(varied["pair_friction"]))
    result = carom.rollout(model, carom.tile(state, len(FRICTIONS)), **RUN)
    return Recording.of(scene(0.1), result, title="balls", keywords=RUN, varied=varied, model=model)


def with_events(recording: Recording, **changed: Any) -> Recording:
    """The recording with columns of its event log replaced."""
    return dataclasses.replace(recording, events=dataclasses.replace(recording.events, **changed))
