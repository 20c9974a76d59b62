"""What the README and its pages say is true: their code runs, their commands and their links exist."""

import math
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = sorted(ROOT.glob("docs/*.md"))
ELSEWHERE = {"scenes", "regression", "robots", "export"}  # pages with tests of their own, in tests/scenes


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]
TWO = blocks("sh")[0].splitlines()


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


def outcome(page: str, folder: Path) -> list[str]:
    """What all the code of a page prints, run as one program."""
    program = folder / "page.py"
    program.write_text("\n".join(blocks("python", page)))
    result = run(sys.executable, str(program), cwd=folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


@pytest.mark.slow
def test_code_of_the_readme(tmp_path: Path) -> None:
    bounces, rests, batch = outcome(README, tmp_path)
    assert bounces == "88 [0.45152364 1.26426619 1.99573449]"
    assert abs(float(rests) - 0.1) < 1e-9
    assert batch.startswith("(1000, 61, 7) ")


LONG = {"derivatives"}  # three minutes, nearly all of it compiling
WITH_CODE = [page.stem for page in PAGES if blocks("python", page.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.exhaustive) if page in LONG else page
        for page in sorted({*WITH_CODE} - ELSEWHERE - {"tour"})
    ],
)
def test_code_of_a_page(page: str, tmp_path: Path) -> None:
    assert outcome((ROOT / "docs" / f"{page}.md").read_text(), tmp_path)


@pytest.mark.slow  # a minute and a half, most of it compiling
def test_code_of_the_tour(tmp_path: Path) -> None:
    lines = outcome((ROOT / "docs" / "tour.md").read_text(), tmp_path)
    lines, (same, recorded, touched, saved) = lines[:-4], lines[-4:]
    assert (same, recorded, touched) == ("True", "(121,) 3", "ball plane")
    assert int(saved.split()[0]) == 16 + 8 * (7 + 6 + 1)
    names, a, frames, batch, chosen, *rest = lines
    assert names == "('pendulum', 'box') (8,) (7,)"
    assert float(a.split()[1]) < 1e-12  # rnea undoes aba: what is left of the torque [N m]
    assert frames.startswith("(121, 8)")
    assert abs(float(frames.split()[-1])) < 1e-9  # energy drift over two seconds
    assert batch == "(1024, 31, 8)"
    assert chosen == "newton poisson"
    near, (some, pieces, ring), laws, (ball, rests, lanes, step) = rest[:-10], rest[-10:-7], rest[-7:-4], rest[-4:]
    gaps = sorted((*line.split()[:2], abs(float(line.split()[2]))) for line in near)
    assert gaps == [("box", "sphere", 0.104), *[("plane", "box", 0.0)] * 4, ("plane", "sphere", 0.05)]
    assert some == "5 (1024, 6) (1024, 14)"
    assert float(pieces.split()[1]) == pytest.approx(0.072, abs=5e-4)
    assert float(ring.split()[1]) == pytest.approx(0.3 * math.cos(math.pi / 16) - 0.2, abs=1e-6)
    for law, line, u in zip(("stronge", "poisson", "newton"), laws, ("0.5362", "0.5540", "0.5000"), strict=True):
        assert line.startswith(f"{law} {u} m/s, slip ")
        assert float(line.split()[-1]) < 1e-12
    assert ball == "88 [0.45152364 1.26426619 1.99573449]"
    assert abs(float(rests.split()[0]) - 0.1) < 1e-9
    assert lanes.endswith("] 1.0")
    t = 0.6 - math.sqrt(2 / 9.81)  # after the first bounce
    assert abs(float(step.split()[0]) - (0.1 + 0.9 * math.sqrt(2 * 9.81) * t - 9.81 * t * t / 2)) < 1e-9
    assert len(step.split()[1]) == 32


def test_two_commands_are_what_ci_runs() -> None:
    """CI makes its environments in a scratch folder, and throws them away."""
    script = (ROOT / ".ci" / "run").read_text()
    (_, install, job), (_, install_dev, test) = [command.split(" && ") for command in TWO]
    assert "[dev]" not in install
    assert install.replace(".venv/bin/pip", 'stage "install to use" "$scratch/use/bin/pip"') in script.splitlines()
    assert job.replace(".venv/bin/", "../use/bin/") in script
    assert install_dev.replace(".venv/bin/pip", 'stage "install to develop" pip') in script.splitlines()
    assert test.replace(".venv/bin/", 'stage "tests" ') in script.splitlines()
    assert {".venv/", "/pool_break.*"} <= set((ROOT / ".gitignore").read_text().splitlines())  # what they leave


def test_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {extra for group in re.findall(r"\.\[([\w,]+)\]", README) for extra in group.split(",")} <= set(extras)


def test_dependencies_are_said_to_be_what_they_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    said = {}
    for names, versions in re.findall(r"^\| (`[^|]+`) \| (\d[\d., ]*) \|", page, flags=re.MULTILINE):
        found, lowest = re.findall(r"`([\w-]+)`", names), versions.split(", ")
        said |= zip(found, lowest * (len(found) // len(lowest)), strict=True)
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(line for name, lines in extras.items() if name != "dev" for line in lines)]
    parts = [re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", line) for line in needed if not line.startswith("carom[")]
    assert said == {part[1]: part[2] for part in parts if part}
    assert all(parts)
    for line in extras["dev"]:
        assert re.split(r"[\[>]", line)[0] in ("carom", *re.findall(r"`([\w-]+)`", page)), line


JOBS = [TWO[0].rpartition(" && .venv/bin/")[2], *(command for command in COMMANDS if command.startswith("carom "))]


def files_left(commands: list[str], folder: Path) -> set[str]:
    """One after another, in one folder: some read what others left."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for command in commands:
        program, *arguments = shlex.split(command)
        module, function = project["scripts"][program].split(":")
        result = run(sys.executable, "-c", f"from {module} import {function}; {function}()", *arguments, cwd=folder)
        assert result.returncode == 0, command + result.stdout + result.stderr
        assert result.stdout.strip(), command
    return {file.name for file in folder.iterdir()}


def test_the_first_command_works(tmp_path: Path) -> None:
    assert files_left(JOBS[:1], tmp_path) >= {"pool_break.npz", "pool_break.png", "pool_break.html"}


@pytest.mark.slow
def test_other_commands_work(tmp_path: Path) -> None:
    assert files_left(JOBS[1:], tmp_path) >= {"many.npz", "many.svg", "ball.toml"}


@pytest.mark.parametrize(
    "page",
    [*(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")), *PAGES],
    ids=lambda page: page.stem,
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/glossary.md"])
def test_files_that_readers_are_sent_to_exist(page: str) -> None:
    named = re.findall(r"`([\w/]+\.(?:py|md)|\w+/[\w/]*)`", (ROOT / page).read_text())
    assert len(named) > 30
    for name in named:
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", ["api", "papers"])
def test_what_is_written_of_the_code_is_what_it_says(page: str) -> None:
    program = f"import sys; sys.path.insert(0, 'docs'); import {page}; print({page}.page(), end='')"
    result = run(sys.executable, "-c", program, cwd=ROOT)
    assert result.stdout == (ROOT / "docs" / f"{page}.md").read_text(), f"run python docs/{page}.py {result.stderr}"
