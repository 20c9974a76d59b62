"""The learner of docs/examples solves the tasks it says it solves."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "learn.py"
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
