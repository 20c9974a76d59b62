"""What an import costs: nothing is compiled for it, its time goes with the file's length, and its memory comes back."""

import logging
import resource
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from carom.scenes.formats.urdf import import_urdf
from carom.tests.scenes.test_urdf import joint, link, written

SHAPE = "<collision><geometry><mesh filename='{}'/></geometry></collision>"


def chain(n: int, kind: str = "fixed", inside: str = "") -> str:
    links = "".join(link(f"l{k}", inside) for k in range(n))
    joints = "".join(joint(f"j{k}", kind, f"l{k - 1}", f"l{k}") for k in range(1, n))
    return f'<robot name="chain">{links}{joints}</robot>'


def stone(folder: Path, k: int) -> str:
    """A file of a tetrahedron that no other import has seen."""
    corners = np.random.default_rng(k).normal(size=(4, 3))
    rows = [f"v {x:.9f} {y:.9f} {z:.9f}" for x, y, z in corners] + ["f 1 2 3", "f 1 4 2", "f 1 3 4", "f 2 4 3"]
    (folder / f"stone{k}.obj").write_text("\n".join(rows) + "\n")
    return f"stone{k}.obj"


def test_nothing_is_compiled(tmp_path, caplog):
    """For each file jax and LLVM would keep what they made of it."""
    meshes = [SHAPE.format(stone(tmp_path, k)) for k in range(5)]
    text = chain(3, "continuous", "<collision><geometry><box size='1 2 3'/></geometry></collision>")
    text = text.replace("</link>", "".join(meshes) + "</link>", 1)
    path = written(tmp_path, '<mimic joint="j1"/></joint>'.join(text.rsplit("</joint>", 1)))
    with jax.log_compiles(), caplog.at_level(logging.DEBUG, logger="jax"):
        found = import_urdf(path, floating=True, ground=True)
    assert len(found.scene.loops) == 1
    assert [len(body.shapes) for body in found.scene.links] == [6, 1, 1]  # pyright: ignore[reportAttributeAccessIssue]
    assert not [record for record in caplog.records if "ompil" in record.getMessage()]


@pytest.mark.slow
@pytest.mark.parametrize("inertia", ["0.3", "9"])  # one that a body has, and one that none has
def test_ten_thousand_links_take_seconds(tmp_path, inertia):
    path = written(tmp_path, chain(10_000).replace('ixx="0.3"', f'ixx="{inertia}"'))
    started = time.process_time()
    import_urdf(path)
    assert time.process_time() - started < 20  # 7 s on an idle core


@pytest.mark.slow
def test_hundreds_of_files_leave_nothing_behind(tmp_path):
    def read(first: int, last: int) -> int:
        for k in range(first, last):
            import_urdf(written(tmp_path, chain(1, inside=SHAPE.format(stone(tmp_path, k)))), ground=True)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # [kB]

    before = read(0, 100)
    assert read(100, 500) - before < 20_000  # 50 kB a file; programs of each file's own were 2 to 6 MB
