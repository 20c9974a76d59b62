"""Pictures: every kind of a run and of a batch, files that are written whole, and what the pictures are made of."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import carom
from carom.scenes.recordings.reading import Reading
from carom.scenes.regression.runs import record_run
from carom.scenes.show.figures.between import energies
from carom.scenes.show.figures.phase import coordinates, most_telling
from carom.scenes.show.plots import KINDS, plot, plot_laws, plot_run
from carom.tests.scenes.small_runs import ball, balls

DRAWN = list(KINDS)


def words(figure: Any) -> str:
    """Everything a figure says."""
    said = [figure.get_suptitle()]
    for axes in figure.axes:
        said += [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()]
        said += [text.get_text() for text in (axes.get_legend().get_texts() if axes.get_legend() else ())]
        said += [label.get_text() for label in axes.get_yticklabels()]
    return "\n".join(said)


@pytest.mark.parametrize("kind", DRAWN)
def test_every_kind_draws_a_run_and_a_batch_with_units_and_a_title(kind, tmp_path):
    for name, recording in (("one", ball(0.1)), ("many", balls())):
        figure = plot(recording, kind, tmp_path / f"{name}.svg")
        assert recording.title in figure.get_suptitle()
        for axes in figure.axes:
            assert axes.get_title(loc="left")
            assert "[" in axes.get_xlabel()
            assert "[" in axes.get_ylabel() or axes.get_yticklabels()
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()[:1000]


def test_a_png_is_written_whole_and_nothing_else(tmp_path):
    plot_run(ball(0.1), tmp_path / "ball.png")
    assert (tmp_path / "ball.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["ball.png"]


def test_the_overview_says_what_it_shows():
    said = words(plot_run(ball(0.1)))
    assert "ball: 0 to 1.5 s, law: stronge" in said
    assert "ball - floor" in said
    assert "2 impacts; height: normal impulse, up to 8.42 N s" in said
    assert "1 slid to the end\n1 slip stopped" in said
    unfinished = dataclasses.replace(balls(), complete=False)
    said = words(plot_run(unfinished))
    assert "3 lanes" in said
    assert "not run to its end" in said
    assert "$|p_t| = " not in said  # three cones can be told apart


def line(figure: Any) -> tuple[np.ndarray, np.ndarray]:
    """The longest line of its only panel."""
    found = max(figure.axes[0].get_lines(), key=lambda one: len(one.get_xdata()))
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def test_lines_reach_the_tips_of_bounces():
    """The ball touches the floor at sqrt(2 h / g), between two frames: drawn from frames alone it never does."""
    coarse = ball(0.0)
    keep = slice(None, None, 45)
    coarse = dataclasses.replace(coarse, t=coarse.t[keep], q=coarse.q[keep], v=coarse.v[keep])
    first = (2 / 9.81) ** 0.5
    z = coarse.q[:, 2]
    assert z.min() > 0.11
    t, height = line(plot(coarse, "motion"))
    assert height.min() == pytest.approx(0.1, abs=1e-9)
    assert t[height < 0.1 + 1e-9][0] == pytest.approx(first, abs=1e-9)
    assert len(t) == len(z) + 2 * len(Reading(coarse).impacts.t)
    q, v = line(plot(coarse, "phase", of="ball.z"))
    lowest = np.flatnonzero(q < 0.1 + 1e-9)
    np.testing.assert_allclose(v[lowest[:2]], np.array([-1, 0.9]) * 9.81 * first, rtol=1e-9)
    whole = energies(Reading(coarse))
    struck = whole.t == Reading(coarse).impacts.t[0]
    kept = whole.potential[struck] - np.nanmin(whole.potential)
    np.testing.assert_allclose(kept, 0, atol=1e-9)
    np.testing.assert_allclose(whole.rest, 0, atol=1e-9)


def test_wrong_kinds_files_and_coordinates_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no kind of plot 'forces'; choose one of run, energy"):
        plot(ball(), "forces")
    with pytest.raises(ValueError, match=r"must end with \.png, \.svg, \.pdf: .*ball\.jpeg does not"):
        plot(ball(), "energy", tmp_path / "ball.jpeg")
    with pytest.raises(ValueError, match=r"no coordinate 'bal\.z': did you mean 'ball\.z'"):
        plot(ball(), "phase", of="bal.z")
    assert not list(tmp_path.iterdir())


def test_a_phase_portrait_is_of_the_coordinate_that_tells_most():
    telling = most_telling(Reading(ball()))
    assert telling is not None
    assert telling.name == "ball.z"
    assert list(coordinates(Reading(ball()))) == ["ball.x", "ball.y", "ball.z"]
    assert "ball.x [m]" in words(plot(ball(), "phase", of="ball.x"))


def test_a_scene_where_nothing_touches_or_moves_is_drawn(tmp_path):
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_link("arm", joint=carom.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    still = record_run(b, title="still", duration=0.2, frame_dt=0.1)
    with np.errstate(all="raise"):
        figure = plot_run(still, tmp_path / "still.png")
    assert len(figure.axes) == 2
    with pytest.raises(ValueError, match=r'name a coordinate, of="ball\.z"'):
        plot(still, "phase")


def test_frames_that_were_not_reached_are_left_out(tmp_path):
    run = ball(0.1)
    cut = {name: np.where(np.arange(len(run.t)) < 200, getattr(run, name).T, np.nan).T for name in ("t", "q", "v")}
    figure = plot_run(dataclasses.replace(run, **cut), tmp_path / "cut.png")
    assert "0 to 1.106 s" in figure.get_suptitle()


def test_laws_share_their_pictures():
    said = words(plot_laws({"newton": ball(0.1), "stronge": ball(0.1)}, "ball"))
    assert "ball under newton, stronge" in said
    assert "newton\nstronge" in said
