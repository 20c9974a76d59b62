"""What every pair must obey whatever its gap is: mirror and rigid motion, continuity, derivatives, silence of NaN."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import carom
from carom.tests.collision.pairs import FAMILIES, each, one_of_each_family
from carom.tests.oracles.minkowski import Solid
from carom.tests.oracles.pair_scene import BATCH, Sample, filled, pair_scene, sample
from carom.tests.oracles.placements import CELL, PAIRS, STATIC, Placement, random_placement

EXACT = 1e-12  # of gaps and points at unit size
SEARCHED = 1e-9  # of gaps found by search, and of normals: see test_narrow_gaps
SEARCHED_AGAIN = 1e-8  # of a gap searched from other roundings: where edges cross on sharp rims
ANGLE = 5e-6  # of what a searched normal moves: the square root of the gap's rounding, and a margin
FAR_AWAY = 1e-10  # 1000 m off: positions are rounded to 1e-13 there
SLOPE = 1e-6  # of a gap by q, against differences over 1e-6 of it
SEARCHED_SLOPE = 2e-5  # as the normals are, a little more than ANGLE, and times the arm of a turn
SINGLE = 1e-5  # of size, in single precision

ROUND = {"cylinder", "ellipsoid"}
EACH = each(PAIRS)
SOME, SOME_FREE = one_of_each_family(PAIRS), one_of_each_family([n for n in PAIRS if n[0] not in STATIC])


def tolerance(names) -> float:
    return SEARCHED if ROUND & set(names) and names[0] != "plane" else EXACT


@SOME_FREE
@pytest.mark.slow
def test_swapping_the_bodies_mirrors_the_row(names):
    s = sample(names, "random")
    mirrored = pair_scene(names[::-1]).detect([Placement(p.label, p.b, p.a) for p in s.placements])
    one, other = (dict(zip(rows._fields, (x[:, 0] for x in rows[:6]), strict=False)) for rows in (s.rows, mirrored))
    s.demand("gap", abs(one["gap"] - other["gap"]), tolerance(names), one=one["gap"], other=other["gap"])
    turned = np.linalg.norm(one["normal"] + other["normal"], axis=-1)
    s.demand("normal", turned, ANGLE, one=one["normal"], other=other["normal"])


def _moved(s: Solid, turn: Rotation, by) -> Solid:
    """The solid turned about the world's origin, then shifted by (3,) [m]."""
    q = turn * Rotation.from_quat(s.quaternion, scalar_first=True)
    return replace(s, position=turn.apply(s.position) + by, quaternion=q.as_quat(scalar_first=True))


@pytest.mark.parametrize(("reach", "bound"), [(1.0, 0.0), (1000.0, FAR_AWAY)])
@EACH
def test_rigid_motion_of_both_keeps_the_gap(names, reach, bound):
    s = sample(names, "random")
    rng = np.random.default_rng(7)
    moved, turns = [], Rotation.random(len(s.placements), rng=rng)
    for p, turn in zip(s.placements, turns, strict=True):
        by = reach * rng.normal(size=3)
        moved.append(Placement(p.label, _moved(p.a, turn, by), _moved(p.b, turn, by)))
    rows = pair_scene(names).detect(moved)
    error = abs(rows.gap[:, 0] - s.rows.gap[:, 0])
    bound = max(bound, SEARCHED_AGAIN if ROUND & set(names) and names[0] != "plane" else EXACT)
    s.demand("gap", error, bound, before=s.rows.gap[:, 0], after=rows.gap[:, 0])
    # and the normal turns with them
    turned = turns.inv().apply(rows.normal[:, 0])
    # two searches, each as good as ANGLE: 8.5e-6 was the most; and far away, touching at 1e-6 m, 1e-13 m are 1e-7 rad
    slack = 2 * ANGLE if reach == 1 else 1e3 * ANGLE
    s.demand("normal", np.linalg.norm(turned - s.rows.normal[:, 0], axis=-1), slack, gap=s.rows.gap[:, 0])


def _sweep(names, steps: int) -> tuple[Sample, np.ndarray]:
    """B passes through A on a straight line while it turns; how far its points move in each step, at most [m]."""
    rng = np.random.default_rng(0)
    p = random_placement(rng, "deep", names, pair_scene(names).points)
    away = rng.normal(size=3)
    if p.a.kind in STATIC:  # over the ground, not past its border
        away = p.a.rotation @ np.array([*rng.normal(size=2) * 0.3, 1.0])
    away *= 3.0 / np.linalg.norm(away)
    axis = rng.normal(size=3)
    axis *= 1.5 / np.linalg.norm(axis)
    time = np.linspace(-0.3 if p.a.kind in STATIC else -1.0, 1.0, steps)
    track = []
    for t in time:
        q = Rotation.from_rotvec(axis * t) * Rotation.from_quat(p.b.quaternion, scalar_first=True)
        b = replace(p.b, position=p.b.position + away * t, quaternion=q.as_quat(scalar_first=True))
        track.append(Placement(f"sweep at {t:.4f}", p.a, b))
    radius = np.linalg.norm(p.b.points, axis=1).max() if p.b.kind == "hull" else np.linalg.norm(p.b.size)
    radius = radius + p.b.size[0] if p.b.kind == "capsule" else radius
    step = (time[1] - time[0]) * (3.0 + 1.5 * radius)
    rows = pair_scene(names).detect(track)
    return Sample(names, track, rows, np.full(steps, np.nan)), np.full(steps, step)


@EACH
def test_gap_is_continuous_through_contact(names):
    s, step = _sweep(names, 1000 if names[0] not in STATIC else 500)
    gap = s.rows.gap[:, 0]
    assert gap.max() > 0.2 > -0.01 > gap.min(), "the sweep must pass through contact"
    jump = np.append(abs(np.diff(gap)), 0.0)
    s.demand("jump to the next placement", jump - step, SEARCHED, gap=gap, next=np.roll(gap, -1), motion=step)


def _along(names):
    """gap (n,) of the closest rows as a function of q, its derivative along dq too: one program a pair."""
    scene = pair_scene(names)

    @jax.jit
    def slope(model, q, dq):
        return jax.jvp(lambda q: carom.detect(model, q, margin=np.inf).gap[..., 0], (q,), (dq,))

    return scene, slope


def _tangent(q, dq):
    """dq (n, nq) without what would stretch the quaternions of q: of those, a gap is defined for unit ones only."""
    dq = np.array(dq)
    for k in range(3, q.shape[1], 7):
        turn = np.asarray(q[:, k : k + 4])
        dq[:, k : k + 4] -= (dq[:, k : k + 4] * turn).sum(1, keepdims=True) * turn
    return dq


@SOME
@pytest.mark.slow
def test_derivative_of_the_gap(names):
    s = sample(names, "random")
    scene, slope = _along(names)
    model, q = scene.inputs(s.placements)
    h = 1e-5 if ROUND & set(names) else 1e-6
    rng = np.random.default_rng(3)
    dq = _tangent(q, rng.normal(size=q.shape))
    got = np.asarray(slope(model, q, dq)[1])
    s.demand("derivative is not finite", ~np.isfinite(got), 0, got=got)
    at = [np.asarray(slope(model, q + k * h * dq, dq)[0]) for k in (-1, 0, 1)]
    low, high = (at[1] - at[0]) / h, (at[2] - at[1]) / h
    # where the differences on either side disagree, another feature takes over: no derivative to speak of
    smooth = abs(high - low) < 1e-3
    assert smooth.mean() > 0.6  # 0.73 were the fewest of any pair, where the noise of a searched gap shows (1e-8 m)
    near = s.gaps < min(CELL) / 2 if names[0] == "heightfield" else True  # where its gap is not a bound only
    error = np.where(smooth & near, abs(got - (high + low) / 2), 0.0)
    bound = SLOPE if tolerance(names) == EXACT else SEARCHED_SLOPE
    # one touching pair of cylinders is off by 1e-4 in code that is not optimised, and by less than the bound in what is
    rare = {"but": 1, "at_most": 2e-4} if bound == SEARCHED_SLOPE else {}
    s.demand("derivative", error, bound + 1e-3 * abs(high - low), **rare, got=got, differences=(high + low) / 2)
    # and moving a body by t moves its surface by t along the normal
    shift = np.zeros(q.shape)
    shift[:, -7:-4] = by = rng.normal(size=(len(q), 3))
    got, want = np.asarray(slope(model, q, shift)[1]), -(s.rows.normal[:, 0] * by).sum(-1)
    s.demand("derivative by B's position", np.where(near, abs(got - want), 0.0), ANGLE, got=got, want=want)
    # nor is it NaN where it is not defined
    s = sample(names, "degenerate")
    model, q = scene.inputs(filled(s.placements))
    got = np.asarray(slope(model, q, _tangent(q, dq))[1])[: len(s.placements)]
    s.demand("derivative is not finite", ~np.isfinite(got), 0, got=got)


@EACH
def test_degenerate_placements_have_finite_rows(names):
    s = sample(names, "degenerate")
    rows, on = s.rows, s.rows.active
    for field in ("gap", "normal", "point_a", "point_b"):
        x = getattr(rows, field)
        finite = np.isfinite(x) if x.ndim == 2 else np.isfinite(x).all(-1)
        s.demand(f"{field} is not finite", (on & ~finite).any(1), 0, gap=rows.gap, got=x)


@EACH
def test_nan_in_one_placement_stays_there(names):
    s = sample(names, "random")
    scene = pair_scene(names)
    broken = list(s.placements[:BATCH])
    lost = replace(broken[5].b, position=np.array([0.0, np.nan, 0.0]))
    spun = replace(broken[9].b, quaternion=np.full(4, np.nan))
    broken[5], broken[9] = replace(broken[5], b=lost), replace(broken[9], b=spun)
    rows, others = scene.detect(broken), np.delete(np.arange(BATCH), [5, 9])
    for field in rows._fields:
        np.testing.assert_array_equal(getattr(rows, field)[others], getattr(s.rows, field)[others], err_msg=field)
    assert (rows.code[[5, 9]] != 0).all()


@pytest.mark.parametrize("names", [n for n in PAIRS if n[0] == "heightfield" and n in FAMILIES], ids="-".join)
def test_a_quaternion_of_seven_digits_does_not_lose_the_ground(names):
    # it turns and stretches by 1e-7: a column's point comes back from B's axes a little off, and is still on top
    s = sample(names, "random")
    rounded = [
        replace(p, b=replace(p.b, quaternion=p.b.quaternion * (1 + k))) for p in s.placements for k in (5e-8, -5e-8)
    ]
    got, gaps = pair_scene(names).detect(rounded).gap[:, 0], np.repeat(s.gaps, 2)
    near = gaps <= min(CELL) / 2
    assert near.mean() > 0.3
    s = Sample(names, rounded, s.rows, gaps)
    s.demand("gap", np.where(near, abs(got - gaps), 0.0), 1e-6, got=got, want=gaps)


@SOME
def test_single_precision(names):
    s = sample(names, "random", dtype=np.float32)
    got = s.rows.gap[:, 0]
    assert got.dtype == np.float32
    # positions are rounded too: the far ones stand 50 m off
    size = 1.0 + np.array([np.linalg.norm(p.b.position - p.a.position) for p in s.placements])
    want = s.gaps
    if names[0] == "heightfield":
        seen = s.gaps < min(CELL) / 2  # farther away it is a bound
        want = np.where((s.gaps > 1e-4) & (seen | (got > s.gaps)), want, got)
    s.demand("gap", abs(got - want), SINGLE * size, got=got, want=want)
    s.demand("normal", abs(np.linalg.norm(s.rows.normal[:, 0], axis=-1) - 1), SINGLE, normal=s.rows.normal[:, 0])
