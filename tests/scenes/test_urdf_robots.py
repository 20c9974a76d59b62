"""Every URDF of example-robot-data: it moves as in Pinocchio, or is refused with a reason. `-s` prints the table."""

from pathlib import Path
from typing import Any

import pytest

from carom.scenes.formats.errors import FileError
from carom.tests.oracles.robots import urdf_files
from carom.tests.scenes.test_urdf import TOLERANCE, differences

# what stands in a refusal -> options to try instead; inertias="nearest" is not among them, it moves otherwise
REMEDIES: dict[str, dict[str, Any]] = {
    "is fixed: leave floating out": {"floating": False},
}
REFUSED = {  # and why
    "alex_description/urdf/alex_psyonic_hands.urdf": 'follows "index_q1", and there is no such joint',
    "romeo_description/urdf/romeo.urdf": "mass is 0.0; no link further out has mass",
    "romeo_description/urdf/romeo_laas_small.urdf": "it must be positive definite",
    "romeo_description/urdf/romeo_small.urdf": "it must satisfy the triangle inequality",
    "ur_description/urdf/ur3.urdf": "there is no <link> in it",
}


def outcome(path: Path) -> tuple[str, float | None]:
    """What becomes of a file, and the largest difference from Pinocchio; refusals are answered as they propose."""
    options: dict[str, Any] = {"floating": True}
    while True:
        try:
            worst, dofs = differences(path, **options)
        except FileError as error:
            remedy = next(
                (r for text, r in REMEDIES.items() if text in str(error) and not r.items() <= options.items()), None
            )
            if remedy is None:
                return f"refused: {str(error).partition(': ')[2]}", None
            options |= remedy
        else:
            chosen = ", ".join(f"{name}={value}" for name, value in options.items())
            return f"{dofs} dofs, {chosen}", max(worst.values())


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")  # of meshes: hulls that leave something out, files that are not in the package
def test_every_robot_moves_as_in_pinocchio_or_is_refused_with_a_reason(tmp_path):
    found = {name: outcome(path) for name, path in urdf_files().items()}
    rows = [f"{name:70} {'' if error is None else f'{error:.0e}':6} {text}" for name, (text, error) in found.items()]
    (tmp_path / "urdf_outcomes.txt").write_text("\n".join(rows) + "\n")
    print("", *rows, sep="\n")
    assert len(found) >= 69
    refused = {name: text for name, (text, error) in found.items() if error is None}
    assert refused.keys() <= REFUSED.keys()
    assert all(REFUSED[name] in text for name, text in refused.items())
    assert {name: error for name, (_, error) in found.items() if error is not None and not error < TOLERANCE} == {}
