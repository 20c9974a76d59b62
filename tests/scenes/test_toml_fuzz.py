"""Whatever becomes of a scene's text, it is read or refused: by a FileError or a SceneError of few characters, soon."""

import re
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from carom.scenes.compile import compile_scene
from carom.scenes.compiling.check import SceneError
from carom.scenes.formats.errors import FileError
from carom.scenes.formats.toml import locate_error, parse_toml
from carom.scenes.formats.toml_writing import to_toml
from carom.scenes.library.registry import SCENES

NAMES = (
    "pendulum", "bouncing_ball", "pool_break", "four_bar", "slider_crank", "gear_pair", "acrobot", "hopper",
    "block_on_ramp", "tippe_top", "bullet_and_plate", "multi_04", "humanoid", "rolling_disc", "swing", "kane_pendulum",
)  # fmt: skip
VALUES = (
    "1e308", "-1e308", "5e-324", "nan", "inf", "-inf", "0", "-0.0", "-1", "1e13", "0x" + "f" * 3000, "9" * 400,
    "9" * 5000, "true", '""', '"' + "x" * 5000 + '"', '"none"', '"\\u0000"', '"a.stl"', "[]", "{}", "[[]]",
    "[" * 50, "[" * 50 + "]" * 50, "[" * 3000, "[" * 9 + "1" + "]" * 9, "[1e308, -1e308, nan]", "[0, 0, 0]",
    "[0, 0, 0, 0]", "[1, 2]", '["a", 1]', "{a = {a = 1}}", "2005-06-01", "1979-05-27T07:32:00Z", "07:32:00", "",
    "[" + "0, " * 3000 + "]", '"""\n', "'", "# ", "\\", "\x00", "\ufeff", "\U0001f600", "=", "1 2", "1e", "0b2",
)  # fmt: skip
LINES = (
    "[[body]]", "[[static]]", "[body.joint]", "[[body.shapes]]", "[[pair]]", "[[loop]]", "[scene]", "gravity = [0, 0]",
    ".".join("a" * 3000) + " = 1", "[" + ".".join("a" * 3000) + "]", ".".join(["mass"] * 9) + " = 1", "a.b.c = 1",
    'name = "link0"', 'name = "world"', 'kind = "mesh"', 'kind = "sphere"', 'parent = "link0"', "radius = 1e13",
    "[" * 3000, "[[" + "a" * 5000 + "]]", "mass = 1e-300", "inertia = [1, 1, 1]", "limits = [1, -1]", "mask = -1",
    '"' + "k" * 5000 + '" = 1', 'exclude = [["world", "world"]]', "position = [1e12, 1e12, 1e12]",
)  # fmt: skip
TRIED = 4000


def mutant(text: str, rng: np.random.Generator) -> str:
    """A text with one or two changes: of a value, of a line, or of a character."""
    lines = text.split("\n")
    for _ in range(rng.integers(1, 3)):
        at, other = (int(rng.integers(len(lines))) for _ in range(2))
        key, equals, _ = lines[at].partition("=")
        match rng.integers(11):
            case 0 | 1 | 2 if equals:
                lines[at] = f"{key}= {VALUES[rng.integers(len(VALUES))]}"
            case 3:
                lines.insert(at, LINES[rng.integers(len(LINES))])
            case 4:
                lines[at] = ""
            case 5:
                lines.insert(at, lines[other])
            case 6:
                lines[at], lines[other] = lines[other], lines[at]
            case 7 | 8 if equals:  # another number
                lines[at] = re.sub(r"\d+\.?\d*", lambda _: f"{rng.normal():.3g}", lines[at], count=1)
            case 9 if equals:
                lines[at] = lines[at].replace(key, lines[other].partition("=")[0] or "x", 1)
            case _ if lines[at]:
                place = int(rng.integers(len(lines[at])))
                some = chr(int(rng.integers(1, 256)))
                lines[at] = lines[at][:place] + some + lines[at][place + rng.integers(2) :]
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_whatever_becomes_of_a_scene_it_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    rng, path = np.random.default_rng(seed), tmp_path / "scene.toml"
    texts = [to_toml(SCENES[name].build()) for name in NAMES]
    counts, crashes = Counter[str](), list[str]()
    warnings.simplefilter("ignore")
    for k in range(TRIED):
        text = mutant(texts[k % len(texts)], rng)
        started, outcome = time.process_time(), "accepted"
        try:
            scene = parse_toml(text, path)
            try:
                compile_scene(scene)
            except SceneError as error:
                path.write_text(text, encoding="utf-8")
                raise locate_error(path, error) from None
            assert parse_toml(to_toml(scene)) == scene
        except (FileError, SceneError) as error:
            outcome = "refused"
            if len(str(error)) > 3000 or "\n" in str(error):
                crashes.append(f"{str(error)[:100]!r} of {len(str(error))} characters")
        except Exception as error:
            outcome = "crashed"
            crashes.append(f"{type(error).__name__}: {str(error)[:200]}, mutant {k}")
        counts[outcome] += 1
        counts["over 10 s"] += time.process_time() - started > 10
    print(dict(counts))
    assert not crashes
    assert counts["refused"] + counts["accepted"] == TRIED
    assert counts["over 10 s"] == 0
    assert min(counts["refused"], counts["accepted"]) > TRIED / 10
