"""Kane's chaotic babyboot against published numbers (references.md, Babyboot; Drake's MG_chaotic_babyboot_test)."""

import numpy as np
import pytest

import carom
from carom.scenes.library.registry import library_scene

DT = 5e-4  # rk4's error at t = 2 s: 7e-9 deg with 1 ms, 5e-10 deg with this
PRINTED = [[81.4990021150, 1.9859278448], [56.4260438450, 3.9134788166]]  # qA, qB at t = 1 and 2 s [deg]
TOLERANCE = 1e-8  # deg


@pytest.fixture(scope="module")
def run():
    model, state = carom.compile_scene(library_scene("babyboot"))
    return model, carom.rollout(model, state, duration=2.0, frame_dt=0.25, max_dt=DT, scheme="rk4")


def test_angles(run) -> None:
    _, result = run
    np.testing.assert_allclose(np.rad2deg(result.q[np.array([4, 8])]), PRINTED, rtol=0, atol=TOLERANCE)


def test_energy_stays_zero(run) -> None:
    """From rest with the string level the energy is zero [J]; it swings through 0.2 J of kinetic energy."""
    model, result = run
    energy = carom.energy(model, carom.State(result.q, result.v, result.t))
    assert energy.kinetic.max() > 0.1
    np.testing.assert_allclose(energy.total, 0, rtol=0, atol=1e-12)


def test_equations_of_motion(run) -> None:
    """The published closed form of both accelerations, at the states of the run."""
    model, result = run
    IAx, IBx, IBy, IBz, LA, LB, mA, mB, g = 5e-6, 2.5e-4, 5e-5, 2e-4, 0.075, 0.2, 0.01, 0.1, 9.81
    (qA, qB), (wA, wB) = np.asarray(result.q).T, np.asarray(result.v).T
    sB, cB = np.sin(qB), np.cos(qB)
    b = -(IBx - IBy) * sB * cB * wA**2 / IBz
    a = -(g * (mA * LA + mB * LB) * np.sin(qA) - 2 * (IBx - IBy) * sB * cB * wA * wB)
    a = a / (IAx + IBx + mA * LA**2 + mB * LB**2 - (IBx - IBy) * sB**2)
    found = carom.aba(model, result.q, result.v, np.zeros_like(result.q))
    np.testing.assert_allclose(found, np.stack([a, b], -1), rtol=1e-12, atol=1e-12)
