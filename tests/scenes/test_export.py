"""A world exported as a C library does what `carom.Live` does, to the last bit, whatever it is told."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.native.portable import TARGETS, check_cpu, library_functions, this_machine
from carom.scenes.export.archive import archive
from carom.scenes.export.digest import blake2b
from carom.scenes.export.header import _enumerators, _identifiers
from carom.scenes.export.library import export_library, identifier
from carom.scenes.live.world import Live
from carom.tests.oracles import aarch64
from carom.tests.oracles.exported import COMPILER, World, missing

ROOT = Path(__file__).parents[2]
DT, REFUSED, OTHER, DAMAGED = 1 / 60, 1000, 1001, 1002
NEEDS_COMPILER = pytest.mark.skipif(bool(missing()), reason=f"needs {missing()}")
PHASES = ("begin", "stay", "end", "bounce")


def scene() -> carom.SceneBuilder:
    """A ball over a floor, a body whose centre of mass is not at its origin, a door with a motor, a wall."""
    b = carom.SceneBuilder()
    b.add_plane(name="floor", friction=0.6, restitution=0.4)
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 0.5), restitution=0.8)
    odd = [carom.Sphere(0.1, position=(0.05, 0, 0)), carom.Box((0.05, 0.2, 0.05))]
    b.add_body("odd", odd, mass=1.0, position=(-1, 0, 0.4), restitution=0.3, friction=0.4)
    joint = carom.Revolute((0, 0, 1), limits=(-1.5, 1.5), damping=0.2, motor=carom.Motor("torque"))
    b.add_link(
        "door", joint=joint, position=(0.4, 0.5, 1), shapes=[carom.Box((0.03, 0.4, 0.9), position=(0, 0.45, 0))],
        mass=8.0, com=(0, 0.45, 0), inertia=(0.5, 0.3, 0.4),
    )  # fmt: skip
    return b


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, World]]:
    live = Live(scene(), pool={"ball": 1}, dtype="float32", warm=False, max_events=64)
    world = World(live, tmp_path_factory.mktemp("world"))
    yield live, world
    world.close()


def play(live: Live, world: World, frames: int) -> None:
    for _ in range(frames):
        live.step()
        assert world.step(DT) == 0


@NEEDS_COMPILER
@pytest.mark.slow
def test_saves_and_hashes_are_those_of_python(both: tuple[Live, World]) -> None:
    """Pushed, struck, driven and put elsewhere; each loads the other's save."""
    live, world = both
    ball, odd, door = (live.model.topology.link(name) for name in ("ball", "odd", "door"))
    dof = live.model.topology.v_start[door]
    play(live, world, 20)
    live.apply_force("odd", (0, 3, 1), (-1, 0.1, 0.3))
    assert world.call("apply_force", odd, (0, 3, 1), (-1, 0.1, 0.3)) == 0
    live.apply_torque("door", (0, 0, 2))
    assert world.call("apply_torque", door, (0, 0, 2)) == 0
    live.motor("door", 0.7)
    world.array("motors", live.model.topology.nv)[dof] = 0.7
    live.apply_impulse("odd", (0.3, 0, 1))
    assert world.call("apply_impulse", odd, (0.3, 0, 1), None) == 0
    play(live, world, 5)
    saved = live.save_state()
    assert world.save() == saved
    assert world.hash() == live.hash()
    turned = np.array((1, 2, 3, 4)) / np.sqrt(30)
    live.teleport("ball", (1, 1, 1), turned, (0, 0, -1), (0, 5, 0))
    assert world.call("put", ball, (1, 1, 1), turned, (0, 0, -1), (0, 5, 0)) == 0
    play(live, world, 20)
    assert world.save() == live.save_state() != saved
    np.testing.assert_array_equal(world.array("poses", 4, 7)[:3], live.poses())
    assert world.load(saved) == 0
    assert world.save() == saved
    live.load_state(saved)
    live.apply_force("ball", (1, 0, 0))  # is dropped by loading
    live.load_state(world.save())
    play(live, world, 5)
    assert world.save() == live.save_state()
    live.reset()
    world.reset()
    assert world.save() == live.save_state()


@NEEDS_COMPILER
@pytest.mark.slow
def test_contacts_and_rays_are_those_of_python(both: tuple[Live, World]) -> None:
    live, world = both
    names, seen = live.model.topology.names, set()
    slept = dict.fromkeys(names, 0)
    for _ in range(45):
        play(live, world, 1)
        sleeps = dict(zip(names, world.array("asleep", len(names), dtype="i4"), strict=True))
        told = {(x.a, x.b): x for x in live.contact_events() if not slept[x.a]}
        rows, slept = world.contacts(), sleeps
        assert len(rows) == len(told)
        for row in rows:
            a, b, phase, impacts = (int(x) for x in row["whole"])
            x = told[names[a], names[b] if b >= 0 else "floor"]
            assert (x.phase, x.impacts) == (PHASES[phase], impacts)
            for name in ("impulse", "point", "normal", "speed"):
                np.testing.assert_allclose(row[name], getattr(x, name), rtol=0, atol=1e-5)
            seen.add(x.phase)
    assert seen >= {"begin", "stay"}
    assert slept["ball"]
    for origin, direction in (((0, 0, 5), (0, 0, -1)), ((0, 0, 5), (0.1, 0, -1)), ((0, 0, 5), (0, 0, 1))):
        hit, (there, record) = live.raycast(origin, direction, 50.0), world.ray(origin, direction, 50.0)
        assert there == (hit is not None)
        if hit is not None:
            assert record["whole"][1] == hit.shape
            assert record["distance"] == np.float32(hit.distance)
            np.testing.assert_array_equal(record["vectors"], [hit.point, hit.normal])
    assert world.ray((3, 3, 1), (0, 0, -1), 50.0)[0] == 1
    assert world.ray((3, 3, 1), (0, 0, -1), 50.0, moving=1)[0] == 0  # there is but the floor
    assert len(world.contacts(room=0)) == 0
    live.reset()
    world.reset()


@NEEDS_COMPILER
@pytest.mark.slow
def test_what_cannot_be_is_refused_and_changes_nothing(both: tuple[Live, World]) -> None:
    live, world = both
    play(live, world, 3)
    before, motors = world.save(), world.array("motors", live.model.topology.nv).copy()
    nan, n = float("nan"), live.model.topology.n_links
    assert world.step(-1.0) == world.step(nan) == world.step(1e6) == REFUSED
    for body in (-1, n, 2**31 - 1):
        assert world.call("apply_force", body, (1, 0, 0), None) == REFUSED
    assert world.call("apply_impulse", 0, (nan, 0, 0), None) == REFUSED
    assert world.call("apply_impulse", 0, (1, 0, 0), (np.inf, 0, 0)) == REFUSED
    assert world.call("apply_impulse", 0, (1e13, 0, 0), None) == REFUSED
    door = live.model.topology.link("door")
    awake = before[: 16 + 4 * (len(live.state.q) + len(live.state.v) + 1)]
    assert world.call("put", door, (0, 0, 1), None, None, None) == REFUSED  # no free body
    assert world.call("put", 0, None, (2, 0, 0, 0), None, None) == REFUSED  # no unit quaternion
    for save, code in (
        (b"", OTHER),
        (before[:-1], OTHER),
        (b"Cb" + before[2:], OTHER),
        (before[:8] + bytes(8) + before[16:], OTHER),  # another model
        (before[:16] + np.float32(nan).tobytes() + before[20:], DAMAGED),
        (before[:28] + np.float32(2).tobytes() + before[32:], DAMAGED),  # a quaternion
        (before[:4] + np.float32(-1).tobytes() + before[8:], DAMAGED),  # behind by less than nothing
        (awake + np.full(4, 7, np.int32).tobytes() + bytes(4 * live.model.topology.nv), DAMAGED),  # asleep with nobody
    ):
        assert world.load(save) == code
    assert world.save() == before
    assert (world.array("motors", len(motors)) == motors).all()
    play(live, world, 1)
    assert world.save() == live.save_state()
    live.reset()
    world.reset()


@NEEDS_COMPILER
@pytest.mark.slow
def test_a_frame_that_is_refused_leaves_the_contacts_of_the_last(both: tuple[Live, World]) -> None:
    live, world = both
    play(live, world, 25)
    rows, saved = world.contacts(), world.save()
    assert len(rows)
    for dt in (0.0, -1.0, 1e-13, 1.001e3, np.inf, np.nan):
        assert world.step(dt) == REFUSED
        np.testing.assert_equal(world.contacts(), rows)
    world.array("motors", live.model.topology.nv)[:] = np.nan
    assert 100 <= world.step(DT) < REFUSED
    assert world.save() == saved
    assert len(world.contacts()) == 0  # as the header says
    live.reset()
    world.reset()
    assert len(world.contacts()) == 0


@NEEDS_COMPILER
@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_play_is_the_same_bits(dtype: str, tmp_path: Path) -> None:
    """Of boxes that pile up, come to rest, sleep and are woken."""
    b = scene()
    for k in range(3):
        b.add_body(f"box{k}", [carom.Box((0.1,) * 3)], mass=1.0, position=(1, 1, 0.1 + 0.2 * k), friction=0.6)
    live = Live(b, dtype=dtype, warm=False, max_events=128)
    world = World(live, tmp_path)
    rng, names, asleep = np.random.default_rng(5), live.model.topology.names, 0
    door, saves = live.model.topology.link("door"), []
    for frame in range(900):
        for _ in range(rng.integers(0, 3) if frame % 300 < 120 else 0):
            k = int(rng.integers(len(names)))
            push, point = rng.normal(size=3) * 3, live.pose(names[k])[:3] + rng.normal(size=3) * 0.1
            kind = rng.integers(5)
            if kind == 4:
                value = float(rng.normal())
                live.motor("door", value)
                world.array("motors", live.model.topology.nv)[live.model.topology.v_start[door]] = value
                continue
            name, at = ("apply_impulse" if kind < 2 else "apply_force"), None if kind % 2 else point
            getattr(live, name)(names[k], push / (1 + 9 * (kind < 2)), at)
            assert world.call(name, k, push / (1 + 9 * (kind < 2)), at) == 0
        dt = DT if rng.random() < 0.9 else 1 / 240
        live.step(dt)
        assert world.step(dt) < 100
        saved = live.save_state()
        assert world.save() == saved, frame
        asleep += len(saved) > 16 + live.state.q.dtype.itemsize * (len(live.state.q) + len(live.state.v) + 1)
        if frame % 50 == 0:
            saves.append(saved)
        if frame % 170 == 169:
            again = saves[rng.integers(len(saves))]
            live.load_state(again)
            assert world.load(again) == 0
    assert asleep > 100
    assert world.hash() == live.hash()
    world.close()


def hash_in_python(dtype: str) -> str:
    live = Live("pool_break", dtype=dtype, warm=False)
    for _ in range(300):
        live.step()
    return live.hash()


def said_by(compiler: list[str], folder: Path, library: Path, runner: list[str]) -> str:
    """The last line of the example in the docs."""
    program = folder / "pool_break"
    source = ROOT / "docs" / "examples" / "pool_break.c"
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{folder}"]
    subprocess.run([*compiler, *options, str(source), str(library), "-lm", "-o", str(program)], check=True)
    done = subprocess.run([*runner, str(program)], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


@NEEDS_COMPILER
@pytest.mark.slow
def test_c_programs_print_the_hash_of_python(tmp_path: Path) -> None:
    """On this machine, and where there is qemu, on AArch64."""
    others = [] if aarch64.missing() else ["aarch64-linux"]
    export_library("pool_break", tmp_path, targets=[this_machine(), *others], dtype="float32")
    folder = tmp_path if not others else tmp_path / this_machine()
    here = said_by([COMPILER], tmp_path, folder / "libpool_break.a", [])
    assert here == hash_in_python("float32")
    for target in others:
        compiler, runner = [aarch64.COMPILER, "-static"], [aarch64.EMULATOR]
        assert said_by(compiler, tmp_path, tmp_path / target / "libpool_break.a", runner) == here


@NEEDS_COMPILER
@pytest.mark.exhaustive
@pytest.mark.skipif(this_machine() != "x86_64-linux", reason="needs x86-64")
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v4"])
def test_every_processor_of_this_family_prints_the_same(cpu: str, tmp_path: Path) -> None:
    """The oldest ones call C's library to round."""
    if cpu == "x86-64-v4" and "avx512f" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("needs AVX-512")
    export_library("pool_break", tmp_path, cpu=cpu, dtype="float64")
    assert ("links with C's mathematics library" in (tmp_path / "readme.txt").read_text()) == (cpu == "x86-64")
    assert said_by([COMPILER], tmp_path, tmp_path / "libpool_break.a", []) == hash_in_python("float64")


@NEEDS_COMPILER
@pytest.mark.exhaustive
def test_code_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "export.md").read_text()
    python, c = (re.findall(rf"^```{x}\n(.*?)^```$", page, re.M | re.S)[0] for x in ("python", "c"))
    monkeypatch.chdir(tmp_path)
    exec(python, {})
    assert capsys.readouterr().out == "['libroom.a', 'room.h', 'example.c', 'readme.txt']\n"
    head, body = c.split("\n\n", 1)
    told = 'printf("%d %s\\n", code, digits);'
    program = f"{head}\n#include <stdio.h>\nint main(void) {{\n{body}{told}\nreturn pose == 0;\n}}\n"
    (tmp_path / "main.c").write_text(program)
    subprocess.run([COMPILER, "-Iout", "main.c", "out/libroom.a", "-o", "main"], check=True)
    said = subprocess.run(["./main"], check=True, capture_output=True, text=True).stdout
    live: Any = Live(said_scene(python), dtype="float32", warm=False)
    live.motor("door", 0.5)
    live.apply_force("ball", (0, 3, 0))
    live.step()
    assert said == f"0 {live.hash()}\n"


def said_scene(python: str) -> Any:
    """The scene that the code of the docs builds."""
    return [exec(python.partition("world =")[0], names := {}), names["b"]][1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 33])
def test_digest(n: int, dtype: str) -> None:
    x = np.random.default_rng(n).normal(size=n).astype(dtype)
    assert (
        bytes(np.asarray(blake2b(jnp.asarray(x)))).decode() == hashlib.blake2b(x.tobytes(), digest_size=16).hexdigest()
    )


@pytest.mark.skipif(shutil.which("ar") is None, reason="needs ar")
def test_archives_hold_their_members(tmp_path: Path) -> None:
    members = {"a_long_name_of_a_member.o": (b"odd", ["one", "two"]), "b.o": (b"even", ["three"])}
    file = tmp_path / "both.a"
    file.write_bytes(archive(members))
    for name, (code, _) in members.items():
        assert subprocess.run(["ar", "p", str(file), name], check=True, capture_output=True).stdout == code
    index = subprocess.run(["nm", "--print-armap", str(file)], capture_output=True, text=True).stdout
    found = [line.split() for line in index.splitlines() if " in " in line]
    assert [(words[0], words[2]) for words in found] == [
        ("one", "a_long_name_of_a_member.o"),
        ("two", "a_long_name_of_a_member.o"),
        ("three", "b.o"),
    ]
    apple = archive(members, apple=True)
    assert apple.startswith(b"!<arch>\n#1/12 ")
    for code, _ in members.values():
        assert apple.index(code) % 8 == 0


def test_library_functions_are_seen() -> None:
    assert library_functions(b"\0floorf\0roundeven\0memcpy\0my_floor\0") == ["floor", "roundeven"]


def test_identifiers_of_c() -> None:
    """None twice, none that the library's functions have, no word of C or C++."""
    assert _identifiers(["a_b", "a_b_2", "a b", "a-b"]) == ["a_b", "a_b_2", "a_b_3", "a_b_4"]
    assert _enumerators("joint", {"force": 7, "force 0": 8}, {"force", "joint_force"}) == {
        "joint_force_0": 7,
        "joint_force_0_1": 8,
    }
    assert [identifier(x) for x in ("Pool break.toml", "3", "switch.toml", "NEW", "long", "int32_t", "main")] == [
        "pool_break", "world_3", "world_switch", "world_new", "world_long", "world_int32_t", "world_main",
    ]  # fmt: skip


def test_targets_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the target 'vax' is unknown: give x86_64-linux, aarch64-linux"):
        export_library("bouncing_ball", tmp_path, targets=["vax"])
    assert this_machine() in TARGETS
    live = Live("bouncing_ball", warm=False)
    with pytest.raises(ValueError, match="law: a Live that is made has these already"):
        export_library(live, tmp_path, law="newton")


@pytest.mark.parametrize(
    ("target", "cpu", "known"),
    [
        ("x86_64-linux", "x86-64-v9", "x86-64-v4"),
        ("x86_64-windows", "pentium4", "x86-64-v3"),  # LLVM knows it, but it has no 64 bits
        ("aarch64-linux", "nonsense", "generic, cortex-a72"),
        ("aarch64-macos", "help", "apple-m1"),
    ],
)
def test_processors_that_are_not_there(target: str, cpu: str, known: str, tmp_path: Path) -> None:
    """LLVM would end this process, or take no notice."""
    with pytest.raises(ValueError, match=rf"no processor '{cpu}' of \w+: give .*{known}"):
        export_library("bouncing_ball", tmp_path / "out", targets=[target], cpu=cpu)
    assert not (tmp_path / "out").exists()


def test_processors_that_are_there() -> None:
    for target in TARGETS.values():
        check_cpu(target, target.cpu)
    check_cpu(TARGETS["aarch64-linux"], "cortex-a72")
