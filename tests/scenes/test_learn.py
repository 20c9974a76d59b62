"""The learner of docs/examples solves the tasks it says it solves."""

import runpy
from collections.abc import Callable
from pathlib import Path

import jax
import pytest

import carom

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PROGRAM, PPO = EXAMPLES / "learn.py", EXAMPLES / "ppo.py"
SECONDS = 120  # a hundred times what it takes once compiled


@pytest.fixture(scope="module")
def learn() -> Callable:
    return runpy.run_path(str(PROGRAM))["learn"]


def test_a_learner_balances_a_pole(learn: Callable) -> None:
    """Random policies do not."""
    school, learner, solved = learn("cart_pole", SECONDS, lanes=512)
    assert solved
    total, reached = school.test(learner)
    assert (float(total), float(reached)) == (500.0, 1.0)
    total, reached = school.test(school.begin(0))  # all weights 0: always to the left
    assert total < 20
    assert reached == 0


@pytest.mark.slow
def test_a_learner_swings_a_pendulum_up_and_holds_it(learn: Callable) -> None:
    school, _, solved = learn("pendulum", SECONDS)
    assert solved
    _, reached = school.test(school.begin(0))
    assert reached < 0.01  # left alone, few begin so near the top that they stay


@pytest.mark.slow
def test_policy_gradients_swing_a_pendulum_up_and_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    """What a period pays rises from -4.6, left hanging, to nearly the best, 0; the same from a file."""
    school = runpy.run_path(str(PPO))["School"]("pendulum")
    learner, shown = school.learn(school.begin(0))
    assert float(shown.reward) < -4
    for _ in range(199):
        learner, shown = school.learn(learner)
    assert float(shown.reward) > -1.5
    carom.save_checkpoint(tmp_path / "learner.npz", learner)
    again = school.learn(carom.load_checkpoint(tmp_path / "learner.npz", like=school.begin(1)))
    for a, b in zip(jax.tree.leaves(again[0].weights), jax.tree.leaves(school.learn(learner)[0].weights), strict=True):
        assert (a == b).all()
