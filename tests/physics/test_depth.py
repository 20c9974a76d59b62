"""What touches stays within some gap bands: robots whose feet roll, slide and leave edges sink in no deeper."""

import jax
import jax.numpy as jnp
import pytest

import carom
from carom.bench.step_cases import CASES
from carom.engine import results

pytestmark = pytest.mark.slow  # a robot compiles for ten seconds and more

MOST = 20  # gap bands


@pytest.mark.parametrize("name", ["half_cheetah, driven", "ant, driven", "walker2d, driven", "solo12"])
def test_robots_do_not_sink_in(name: str) -> None:
    case = CASES[name]
    model, states = case.model_and_state(jnp.zeros(()).dtype)
    state = jax.tree.map(lambda x: x[0], case.states(states, 2))
    keywords = case.keywords() if callable(case.keywords) else case.keywords
    run = carom.rollout(model, state, **keywords, throw=False)
    assert int(run.code) == results.OK
    assert float(run.stats.max_penetration) <= MOST * float(model.gap_band)
