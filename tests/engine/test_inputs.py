"""Arrays of the wrong shape are refused by name, with both shapes; names of links too."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom

MODEL, STATE = carom.compile_scene(carom.load("double_pendulum"))
Q, V, WIDE = STATE.q, STATE.v, jnp.zeros((4, 3))

WRONG = {
    "aba q": (lambda: carom.aba(MODEL, WIDE, V, V), r"^q has shape \(4, 3\); this model needs \(\.\.\., 2\)"),
    "aba tau": (lambda: carom.aba(MODEL, Q, V, WIDE), r"^tau has shape \(4, 3\); .* \(\.\.\., 2\)"),
    "rnea a": (lambda: carom.rnea(MODEL, Q, V, jnp.zeros(1)), r"^a has shape \(1,\)"),
    "crba q": (lambda: carom.crba(MODEL, jnp.zeros(())), r"^q has shape \(\)"),
    "hybrid given": (lambda: carom.hybrid(MODEL, Q, V, jnp.zeros(3, bool), V), r"^given has shape \(3,\)"),
    "jacobian point": (lambda: carom.jacobian(MODEL, Q, "link0", (0.0, 1.0)), r"^point has shape \(2,\); .* 3\)"),
    "impulse": (lambda: carom.impulse_response(MODEL, Q, 1, impulse=(1.0,)), r"^impulse has shape \(1,\)"),
    "momentum about": (lambda: carom.momentum(MODEL, STATE, jnp.ones(2)), r"^about has shape \(2,\)"),
    "link name": (lambda: carom.jacobian(MODEL, Q, "link7"), r"no link named 'link7'; the links are link0, link1$"),
    "link index": (lambda: carom.jacobian(MODEL, Q, 2), r"link index 2 is outside 0\.\.1$"),
    "parameter": (lambda: MODEL.replace(masses=1.0), r"Model has no parameter 'masses'; it has .*mass"),
    "mass": (lambda: MODEL.replace(mass=np.array([1.0, -2.0])), r"mass\[1\] is -2; it must not be negative$"),
    "of a lane": (
        lambda: MODEL.replace(damping=[[0.0, 0.0], [0.0, -1.0]]),
        r"damping\[1, 1\] is -1; it must not be neg",
    ),
    "part": (lambda: MODEL.replace(limit_restitution=[0.0, 1.5]), r"limit_restitution\[1\] is 1.5; .* from 0 to 1$"),
    "number": (lambda: MODEL.replace(rest_speed=-1.0), r"rest_speed is -1; it must not be negative$"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_wrong_input_is_named(case):
    call, message = case
    with pytest.raises(ValueError, match=message):
        call()


def test_numpy_arrays_are_welcome():
    q, v = np.asarray(Q), np.asarray(V)
    np.testing.assert_array_equal(carom.aba(MODEL, q, v, v), carom.aba(MODEL, Q, V, V))
    np.testing.assert_array_equal(carom.jacobian(MODEL, q + 0.1, 1), carom.jacobian(MODEL, Q + 0.1, 1))
    np.testing.assert_array_equal(carom.jacobian(MODEL, q, "world"), np.zeros((6, 2)))
