"""Names in the package, as CONTRIBUTING.md asks for them."""

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLOORS = ("engine", "collision", "contact", "integrators", "scenes", "bench")
FILES = [path for floor in FLOORS for path in ROOT.glob(f"{floor}/**/*.py")]
IRREGULAR = [
    "told",
    "held",
    "seen",
    "taken",
    "flown",
    "known",
    "thrown",
    "found",
    "left",
    "made",
    "drawn",
    "written",
    "kept",
    "lost",
    "met",
    "sent",
    "worn",
    "shown",
    "hidden",
    "chosen",
    "broken",
    "frozen",
    "driven",
]
# a type of joint, what users call, and words that only look like participles
ALLOWED = {"_fixed", "constrained", "closed", "compiled", "quadruped", "speed", "seed"}


@functools.cache
def _modules() -> dict[str, ast.Module]:
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in FILES}


def test_types_have_one_name() -> None:
    files = defaultdict(list)
    for path, module in _modules().items():
        for node in module.body:
            if isinstance(node, ast.ClassDef):
                files[node.name].append(path)
    assert len(files) > 300
    assert not {name: where for name, where in files.items() if len(where) > 1}


def test_functions_are_verbs_or_what_they_return() -> None:
    """No bare participles; properties may be."""
    wrong, seen = [], 0
    for path, module in _modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and not any("property" in ast.unparse(x) for x in node.decorator_list):
                seen += 1
                word = node.name.strip("_")
                if (re.fullmatch("[a-z]+ed", word) or word in IRREGULAR) and not {node.name, word} & ALLOWED:
                    wrong.append(f"{path}:{node.lineno} {node.name}")
    assert seen > 3000
    assert not wrong
