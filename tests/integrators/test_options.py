"""Options: one set of them for all that lets time pass."""

from typing import Any, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.integrators.options import OptionKeywords, spread

from .bouncing import RUN, two_balls

NEWTON = carom.Options(law="newton", max_dt=1 / 60, max_events=8)


def test_keywords_are_the_fields() -> None:
    assert list(get_type_hints(OptionKeywords).items()) == list(get_type_hints(carom.Options).items())


def test_options_and_keywords_say_the_same() -> None:
    """And keywords go first."""
    model, state = two_balls()
    words: Any = {"duration": RUN["duration"], "frame_dt": RUN["frame_dt"]}
    by_words = carom.rollout(model, state, **words, law="newton", max_dt=1 / 60, max_events=8)
    for run in (
        carom.rollout(model, state, **words, options=NEWTON),
        carom.rollout(model, state, **words, options=NEWTON.replace(law="poisson"), law="newton"),
    ):
        jax.tree.map(np.testing.assert_array_equal, run, by_words)
    assert by_words.events.law == "newton"
    stepped = carom.step(model, state, dt=0.3, law="newton", max_dt=1 / 60)
    np.testing.assert_array_equal(carom.step(model, state, dt=0.3, options=NEWTON).q, stepped.q)


def test_they_are_numbers_of_a_dictionary() -> None:
    assert {NEWTON: 1}[carom.Options().replace(max_events=8, law="newton", max_dt=1 / 60)] == 1
    assert spread({"duration": 1.0, "options": NEWTON, "law": "poisson"}) == {
        **vars(NEWTON), "law": "poisson", "duration": 1.0
    }  # fmt: skip


def test_a_step_may_be_as_long_as_a_program_says() -> None:
    model, state = two_balls()
    end = jax.jit(lambda h: carom.step(model, state, dt=0.3, options=carom.Options(max_dt=h), law="newton").q)
    near = carom.step(model, state, dt=0.3, max_dt=0.01, law="newton").q
    np.testing.assert_allclose(end(jnp.asarray(0.01)), near, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_dt": "long"}, "max_dt is 'long'; it must be a positive number of seconds"),
        ({"window": 1e-10}, "window is 1e-10; it must be a positive number of seconds of at least 1e-09"),
        ({"window": 1e-3, "time_control": "fixed"}, "window needs resting='solve' and time_control='rollback'"),
        ({"max_ticks": 0}, "max_ticks is 0; it must be a whole number from 1 to"),
        ({"max_events": True}, "max_events is True; it must be a whole number from 0 to 16777216, or None"),
        ({"clocks": "mine"}, "clocks is 'mine'; it must be one of auto, islands, one"),
    ],
)
def test_wrong_values_are_refused_where_they_are_made(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        carom.Options(**wrong)


def test_wrong_words_are_refused() -> None:
    model, state = two_balls()
    calls: Any = (carom.rollout, {"duration": 1.0}), (carom.step, {"dt": 1.0})
    for call, given in calls:
        with pytest.raises(TypeError, match="no option 'laws': did you mean 'law'"):
            call(model, state, **given, laws="newton")
        with pytest.raises(TypeError, match=r"options is {}; it must be carom\.Options"):
            call(model, state, **given, options={})
