"""Every primitive that is translated answers what XLA answers."""

import hypothesis
import pytest
from hypothesis import strategies as st

from carom.engine.native.rules import RULES
from carom.tests.oracles.native_and_xla import Native, assert_close, assert_same_bits, leaves, xla
from carom.tests.oracles.random_operations import EVERY, OperationCase, cases

TOGETHER = 12  # operations in one program


def test_there_is_an_operation_for_each_rule() -> None:
    assert set(EVERY) == set(RULES)


def check(several: list[OperationCase]) -> None:
    def program(*groups):
        return [case.of_given(given) for case, given in zip(several, groups, strict=True)]

    def whole(*groups):  # XLA's folding of constants divides the smallest number by -1, and the process ends
        return [case.function(*args) for case, args in zip(several, groups, strict=True)]

    args = tuple(case.given for case in several)
    native = Native(program)
    mine, theirs = native(*args), xla(whole, *(case.args for case in several))
    made = [case for case in several for _ in leaves(case.function(*case.args))]
    for case, a, b in zip(made, mine, theirs, strict=True):
        assert_close(a, b, case.rtol, repr(case))
    assert_same_bits(native(*args, poison=True), mine, "poisoned")


@pytest.mark.parametrize("name", EVERY)
def test_primitive_is_that_of_xla(name: str) -> None:
    @hypothesis.settings(max_examples=2, derandomize=True, database=None, phases=[hypothesis.Phase.generate])
    @hypothesis.given(st.lists(cases(name), min_size=TOGETHER, max_size=TOGETHER))
    def sample(several: list[OperationCase]) -> None:
        check(several)

    sample()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", EVERY)
def test_primitive_is_that_of_xla_often(name: str) -> None:
    @hypothesis.settings(max_examples=60)
    @hypothesis.given(st.lists(cases(name), min_size=1, max_size=TOGETHER))
    def sample(several: list[OperationCase]) -> None:
        check(several)

    sample()
