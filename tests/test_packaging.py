"""The house as it is packaged: the public face, the floors, the wheel."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import carom

ROOT = Path(__file__).parents[1]
FLOORS = ("scenes", "integrators", "contact", "collision", "engine")


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env=os.environ | env, capture_output=True, text=True, timeout=300)


def test_import_is_quick_and_loads_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys, time; start = time.perf_counter(); import carom; took = time.perf_counter() - start\n"
        "print(took, *sorted({'jax', 'jaxlib', 'numpy', 'trimesh', 'fcl', 'rich', 'typer'} & set(sys.modules)))"
    )
    best = min(
        (run(sys.executable, "-c", program, cwd=tmp_path).stdout.split() for _ in range(3)), key=lambda r: float(r[0])
    )
    assert best[1:] == []
    assert float(best[0]) < 0.3


@pytest.mark.parametrize("name", carom.__all__)
def test_public_name_resolves(name: str) -> None:
    value = getattr(carom, name)
    assert value.__name__ == name
    assert value.__module__.endswith(carom._HOME[name])
    assert getattr(carom, name) is value


def test_type_checkers_read_the_same_table() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: (alias.name, node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {name: (name, home) for name, home in carom._HOME.items()}


def test_dir_lists_every_public_name() -> None:
    assert set(carom.__all__) <= set(dir(carom))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'carom' has no attribute 'SceneBuilde'"):
        _ = carom.SceneBuilde


def lint_imports(root: Path, path: Path) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).with_name("lint-imports")
    if not tool.exists():
        pytest.skip("import-linter is not installed")
    return run(str(tool), "--no-cache", "--config", str(root / "pyproject.toml"), cwd=root, PYTHONPATH=str(path))


def test_floors_are_kept() -> None:
    result = lint_imports(ROOT, ROOT / ".dev")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("engine/state.py", "from ..collision import shapes", "carom.engine is not allowed to import carom.collision"),
        ("contact/__init__.py", "import carom.scenes", "carom.contact is not allowed to import carom.scenes"),
        (
            "engine/dynamics/aba.py",
            "from ..loops import kinds",
            "carom.engine.dynamics is not allowed to import carom.engine.loops",
        ),
        ("scenes/wording.py", "from . import spec", "carom.scenes.wording is not allowed to import carom.scenes.spec"),
        ("engine/state.py", "import trimesh", "carom is not allowed to import trimesh"),
        ("attic/__init__.py", "", "carom.attic (Since this contract is marked as 'exhaustive'"),
    ],
)
def test_floors_notice(tmp_path: Path, file: str, line: str, broken: str) -> None:
    house = tmp_path / "carom"
    for floor in FLOORS:
        shutil.copytree(ROOT / floor, house / floor, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "pyproject.toml"):
        shutil.copy(ROOT / name, house / name)
    (house / file).parent.mkdir(exist_ok=True)
    with (house / file).open("a") as culprit:
        culprit.write(f"\n{line}\n")
    result = lint_imports(house, tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert broken in " ".join(result.stdout.split())


@pytest.mark.slow
def test_wheel_is_the_package_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "site"
    built = run(
        *(sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(target), str(ROOT)), cwd=tmp_path
    )
    assert built.returncode == 0, built.stdout + built.stderr
    files = {file.name for file in (target / "carom").iterdir()} - {"__pycache__"}
    assert files == {"__init__.py", "py.typed", *FLOORS}

    program = "import carom; print(carom.__file__, *(getattr(carom, name).__name__ for name in carom.__all__))"
    used = run(sys.executable, "-c", program, cwd=tmp_path, PYTHONPATH=str(target))
    assert used.returncode == 0, used.stderr
    assert used.stdout.split() == [str(target / "carom" / "__init__.py"), *carom.__all__]
