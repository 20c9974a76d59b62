"""What `docs/recordings.md` promises of a recording's file: round trips, kills, full disks, and what is said of files
that are none."""

import contextlib
import io
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from carom.engine.results import Code
from carom.integrators.recording import Events
from carom.integrators.rollout import Stats
from carom.scenes.formats.errors import FileError
from carom.scenes.library.balls import bouncing_ball
from carom.scenes.recordings import schema as recording_schema
from carom.scenes.recordings import writer as recording_writer
from carom.scenes.recordings.file import read_recording, write_recording
from carom.scenes.recordings.parts import Part, concatenate_parts
from carom.scenes.recordings.recording import Recording, trim_log
from carom.scenes.recordings.writer import RecordingWriter

FRAMES, NQ, NV, LANES = 4, 7, 6, 3  # of each piece


def numbers(k: int, *shape: int) -> Any:
    """Those of piece k: all different, and in no other piece."""
    return k * 1000.0 + np.arange(np.prod(shape), dtype=float).reshape(shape)


def piece(k: int, *batch: int, counts: Any = None) -> Any:
    """What a rollout of FRAMES intervals would be: piece k of a run, with k % 3 impacts, or so many in each lane."""
    t = np.broadcast_to(np.arange(FRAMES + 1) + FRAMES * k, (*batch, FRAMES + 1)).astype(float)
    count = np.asarray(k % 3 if counts is None else counts, np.int32) * np.ones(batch, np.int32)
    rows = (*batch, 5)
    events: dict[str, Any] = {f.name: numbers(k, *rows) for f in fields(Events) if f.name != "law"}
    events |= {name: numbers(k, *rows, 3) for name in ("point", "normal", "u_before", "u_after", "impulse")}
    events |= {name: numbers(k, *rows).astype(np.int32) for name in ("pair", "dof", "code")}
    events |= {"bodies": numbers(k, *rows, 2).astype(np.int32), "count": count, "missed": np.zeros_like(count)}
    whole: Any = np.full(batch, 10 + k, np.int32)
    depth: Any = np.full(batch, 0.5 * k)
    useful: Any = np.full(batch, 0.5, np.float32)
    stats = Stats(whole, whole, whole, whole, depth, useful, whole, whole, whole)
    q, v = numbers(k, *batch, FRAMES + 1, NQ), numbers(k, *batch, FRAMES + 1, NV)
    return SimpleNamespace(t=t, q=q, v=v, events=Events(**events, law="stronge"), code=0 * count, stats=stats)


def begun(*batch: int) -> Recording:
    """The first piece of a run."""
    first = Part.after(piece(0, *batch))
    keywords = {"duration": 1.5, "control": np.array([1.0, 2.0]), "frame_dt": 1 / 60}
    varied = {"mass": numbers(1, *batch, 1)} if batch else {}
    return Recording(
        bouncing_ball(), "a ball", first.t, first.q, first.v, first.events, first.code, first.stats, keywords, varied,
        "hash", {"jax": "0.10"}, complete=False, piece=FRAMES,
    )  # fmt: skip


def same(one: Recording, other: Recording) -> None:
    """In every field; numbers bit by bit, and in their dtype."""
    for f in fields(Recording):
        a, b = getattr(one, f.name), getattr(other, f.name)
        if f.name in ("events", "stats", "varied"):
            a, b = (x if isinstance(x, dict) else vars(x) for x in (a, b))
            assert {*a} == {*b}
            pairs = [(a[name], b[name]) for name in a]
        elif f.name == "keywords":
            pairs = [(np.asarray(a[name]), np.asarray(b[name])) for name in {**a, **b}]
        else:
            pairs = [(a, b)]
        for x, y in pairs:
            assert getattr(x, "dtype", None) == getattr(y, "dtype", None)
            assert np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y


def whole(n: int, *batch: int) -> Recording:
    """A run of n pieces, put together in memory."""
    first = begun(*batch)
    parts = [Part.first(first), *(Part.after(piece(k, *batch)) for k in range(1, n))]
    return replace(first, **vars(concatenate_parts(parts)), complete=True)


# -- putting together, round trips -------------------------------------------------------------------


def test_parts_become_one_run() -> None:
    run = whole(4)
    np.testing.assert_array_equal(run.t, np.arange(1, 4 * FRAMES + 1))
    assert run.events.count == 0 + 1 + 2 + 0
    np.testing.assert_array_equal(run.events.t, [1000, 2000, 2001])
    assert run.stats["ticks"] == 10 + 11 + 12 + 13
    assert run.stats["max_penetration"] == 1.5
    assert run.stats["useful"] == 0.5


def test_each_lane_keeps_its_own_events_in_order() -> None:
    parts = [Part.after(piece(k, 2, counts=counts)) for k, counts in enumerate([(2, 0), (1, 3)])]
    events = concatenate_parts(parts).events
    np.testing.assert_array_equal(events.count, [3, 3])
    np.testing.assert_array_equal(events.t, [[0, 1, 1000], [1005, 1006, 1007]])
    np.testing.assert_array_equal(events.point[0, 2], [1000, 1001, 1002])


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((Code.OK, Code.ENERGY_GAINED, Code.OK), Code.ENERGY_GAINED),
        ((Code.EVENTS_FULL, Code.TICKS_CAPPED), Code.TICKS_CAPPED),
        ((Code.EVENTS_FULL, Code.ENERGY_GAINED), Code.ENERGY_GAINED),
        ((Code.NOT_FINITE, Code.TICKS_CAPPED), Code.NOT_FINITE),
        ((Code.OK, Code.OK), Code.OK),
    ],
)
def test_the_gravest_code_of_the_parts_stays(codes: tuple[Code, ...], expected: Code) -> None:
    """1 and 9 are grave."""
    parts = [replace(Part.after(piece(k)), code=np.array(code)) for k, code in enumerate(codes)]
    assert concatenate_parts(parts).code == expected


@pytest.mark.parametrize("batch", [(), (LANES,)])
def test_write_and_read(tmp_path: Path, batch: tuple[int, ...]) -> None:
    path = tmp_path / "a.npz"
    write_recording(whole(3, *batch), path)
    same(read_recording(path), whole(3, *batch))
    assert [*tmp_path.iterdir()] == [path]
    with np.load(path) as arrays:  # by numpy alone
        np.testing.assert_array_equal(arrays["q"], whole(3, *batch).q)
        assert arrays["schema"] == 2


@pytest.mark.parametrize("batch", [(), (LANES,)])
def test_piece_by_piece_is_the_same_as_at_once(tmp_path: Path, batch: tuple[int, ...]) -> None:
    with RecordingWriter(tmp_path / "a.npz", begun(*batch)) as writer:
        for k in range(1, 4):
            writer.append(piece(k, *batch))
    same(read_recording(tmp_path / "a.npz"), whole(4, *batch))
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays["q"].shape == (*batch, 4 * FRAMES, NQ)
    assert len([*tmp_path.iterdir()]) == 1


def test_an_interrupted_run_leaves_what_there_was(tmp_path: Path) -> None:
    def interrupted() -> None:
        with RecordingWriter(tmp_path / "a.npz", begun()) as writer:
            writer.append(piece(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    same(read_recording(tmp_path / "a.npz"), replace(whole(2), complete=False))


@pytest.mark.parametrize("ends", ["at once", "by a kill"])
def test_codes_of_older_files_get_their_numbers_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """They had 1 to 14, in no order; a file of schema 1 may have either."""
    path = tmp_path / "old.npz"
    monkeypatch.setattr(recording_schema, "SCHEMA", 1)
    first = replace(begun(3), code=np.array([0, 9, Code.ENERGY_GAINED]))
    former = np.array([[0, 3, 4, 10, 1], [0, 5, 6, 7, 8], [0, 13, 14, 60, -1]])
    first = replace(first, events=replace(trim_log(piece(0, 3, counts=5).events), code=former))
    if ends == "at once":
        write_recording(first, path)
    else:
        RecordingWriter(path, first)
    monkeypatch.undo()
    read = read_recording(path)
    np.testing.assert_array_equal(read.code, [Code.OK, Code.TICKS_CAPPED, Code.ENERGY_GAINED])
    today = [
        [Code.OK, Code.IMPACT_UNFINISHED, Code.ENERGY_GAINED, Code.EVENTS_FULL, Code.NOT_FINITE],
        [Code.OK, Code.IMPACTS_CAPPED, Code.CONTACTS_FULL, Code.SOLVER_UNFINISHED, Code.TOUCH_UNFINISHED],
        [Code.OK, Code.CHAIN_HELD, Code.CHAIN_ROUGH, Code.IMPACTS_CAPPED, -1],
    ]
    np.testing.assert_array_equal(read.events.code, today)
    assert read.why().splitlines()[0].startswith("lane 1 (1 of 3 lanes)")
    assert "TICKS_CAPPED" in read.why()


def test_a_code_that_nobody_knows_has_words() -> None:
    words = replace(begun(3), code=np.array([0, 777, 5])).why().splitlines()
    assert "lane 1 (1 of 3 lanes), after t = 4 s: code 777: this version of Carom has no such code" in words[0]
    assert "not what was asked for" in words[0]
    assert "code 5" in words[1]
    assert "less exact" in words[1]


def test_functions_are_not_kept_but_named(tmp_path: Path) -> None:
    recording = replace(whole(1), keywords={"control": numbers})
    write_recording(recording, tmp_path / "a.npz")
    assert read_recording(tmp_path / "a.npz").keywords == {"control": {"function": "numbers"}}


def test_a_lane_is_a_run_of_its_own() -> None:
    run = whole(3, LANES)
    lane = run.lane(1)
    assert lane.lanes is None
    for name in ("t", "q", "v"):
        np.testing.assert_array_equal(getattr(lane, name), getattr(run, name)[1])
    np.testing.assert_array_equal(lane.events.t, run.events.t[1])
    np.testing.assert_array_equal(lane.varied["mass"], run.varied["mass"][1])
    with pytest.raises(ValueError, match="is a single run: it has no lanes"):
        lane.lane(0)


# -- kills -------------------------------------------------------------------------------------------


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece is flushed."""
    monkeypatch.setattr(recording_writer, "PERIOD", 0.0)
    monkeypatch.setattr(recording_writer, "SHARE", 0.0)


@pytest.mark.usefixtures("often")
def test_cut_anywhere_what_was_flushed_before_is_read(tmp_path: Path) -> None:
    """A journal of four flushes that ends after so many bytes, or in noise."""
    writer, ends = RecordingWriter(tmp_path / "a.npz", begun()), []
    for k in range(1, 4):
        ends.append(os.path.getsize(writer.path))
        writer.append(piece(k))
    content = Path(writer.path).read_bytes()
    ends.append(len(content))
    same(read_recording(writer.path), replace(whole(4), complete=False))

    cut, noise = tmp_path / "cut.npz", np.random.default_rng(0).bytes(200_000)
    some = {*range(ends[0], len(content), 997), *ends, *(end - 1 for end in ends), *(end + 1 for end in ends[:-1])}
    for end in sorted(some - {ends[0] - 1}):
        flushed = sum(mark <= end for mark in ends)
        for tail in (b"", noise):  # more of it than zip's own readers look through
            cut.write_bytes(content[:end] + tail)
            same(read_recording(cut), replace(whole(flushed), complete=False))
    cut.write_bytes(content[: ends[0] - 1])
    with pytest.raises(FileError, match="no whole archive is in it"):
        read_recording(cut)


@pytest.mark.usefixtures("often")
def test_a_hole_ends_a_recording(tmp_path: Path) -> None:
    """Of four flushes the third is damaged: what came after it cannot be joined to what was before."""
    writer = RecordingWriter(tmp_path / "a.npz", begun())
    writer.append(piece(1))
    middle = os.path.getsize(writer.path)
    writer.append(piece(2))
    writer.append(piece(3))
    content = bytearray(Path(writer.path).read_bytes())
    content[middle + 200] ^= 1
    Path(writer.path).write_bytes(content)
    same(read_recording(writer.path), replace(whole(2), complete=False))


KILLED = """
    import os, random, signal, sys, time
    from carom.tests.scenes.test_recording import begun, piece, recording_writer, RecordingWriter, read_recording
    from carom.tests.scenes.test_recording import FRAMES, replace, same, whole

    recording_writer.PERIOD = recording_writer.SHARE = 0.0
    path, kills = sys.argv[1], int(sys.argv[2])
    chance, found = random.Random(1), []
    for _ in range(kills):
        told, tell = os.pipe()
        child = os.fork()
        if not child:
            writer = RecordingWriter(path, begun())
            for k in range(1, 10_000):
                writer.append(piece(k))
                os.write(tell, b".")
        os.close(tell)
        os.read(told, 1)  # it is at work
        time.sleep(chance.uniform(0, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        flushed = 1
        while more := os.read(told, 4096):
            flushed += len(more)
        os.close(told)
        recording = read_recording(path)
        pieces = recording.t.shape[-1] // FRAMES
        assert pieces in (flushed + 1, flushed + 2), (pieces, flushed)
        same(recording, replace(whole(pieces), complete=False))
        found.append(pieces)
    print(found)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_9_at_any_moment_leaves_all_that_was_flushed(tmp_path: Path) -> None:
    """A process that writes is killed, many times; each piece that it said was flushed is there, to the bit."""
    kills = 25
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "a.npz"), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = [int(x) for x in done.stdout.strip("[]\n").split(",")]
    assert len(found) == kills
    assert len({*found}) > 3, "the kills all came at the same moment"


# -- full disks --------------------------------------------------------------------------------------


@contextlib.contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: as a full disk, for whoever may not make one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def append(writer: RecordingWriter, n: int) -> None:
    for k in range(1, n):
        writer.append(piece(k))


@pytest.mark.usefixtures("often")
def test_a_full_disk_leaves_what_was_flushed(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "a.npz", begun())
    size = os.path.getsize(writer.path)
    with room_for(size + 20_000), pytest.raises(OSError, match="no space is left on the disk; ") as caught:
        append(writer, 100)
    there = read_recording(writer.path)
    assert f"t = {there.t[-1]:.6g} s is there" in str(caught.value)
    assert there.t.shape[-1] > FRAMES
    same(there, replace(whole(there.t.shape[-1] // FRAMES), complete=False))


def test_a_disk_that_is_full_from_the_start_keeps_the_old_file(tmp_path: Path) -> None:
    write_recording(whole(1), tmp_path / "a.npz")
    with room_for(5000), pytest.raises(OSError, match="no space is left on the disk; nothing was written"):
        RecordingWriter(tmp_path / "a.npz", begun())
    same(read_recording(tmp_path / "a.npz"), whole(1))
    assert len([*tmp_path.iterdir()]) == 1


@pytest.mark.usefixtures("often")
def test_a_disk_that_fills_at_the_end_keeps_all(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "a.npz", begun())
    writer.append(piece(1))
    writer.flush(ended=True)
    with room_for(5000), pytest.raises(OSError, match="no space is left on the disk"):
        writer.close(complete=False)
    same(read_recording(tmp_path / "a.npz"), whole(2))
    assert len([*tmp_path.iterdir()]) == 1


# -- what is no recording ------------------------------------------------------------------------------


def arrays_of(tmp_path: Path) -> dict[str, np.ndarray]:
    write_recording(whole(2), tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": np.array(3)}, "its schema is 3, this version of Carom reads up to 2: install a newer Carom"),
        ({"schema": None}, "this is no recording of Carom, it holds code, complete, "),
        ({"q": None}, "it is damaged ('q'"),
        ({"q": np.zeros((3, 7))}, "it is damaged (q has the shape (3, 7)"),
        ({"keywords": np.array("{")}, "it is damaged ("),
        ({"keywords": np.array('{"duration": 1e12}')}, "a run has at most 10000000 frames"),
        ({"keywords": np.array('{"duration": "long"}')}, "its duration is 'long', and must be a number"),
        ({"keywords": np.array('{"max_ticks": 1e30}')}, "its max_ticks is 1e+30, and must be a whole number"),
        ({"keywords": np.array('{"forces": [["a"]]}')}, "its forces is [['a']], and must be made of numbers"),
        ({"keywords": np.array('{"force": 1}')}, "it was run with 'force', which this version of Carom does not know"),
        ({"keywords": np.array('{"model": 1}')}, "it was run with 'model', which this version of Carom does not know"),
        ({"provenance": np.array('{"jax": 1}')}, "its provenance must be texts"),
        ({"piece": np.array(-3)}, "its piece is no whole number"),
        ({"varied_mass": np.array("1")}, "its mass has the shape () and the type <U1"),
        ({"keywords": np.array("[1, 2]")}, "it is damaged (its keywords and provenance must be tables"),
        ({"keywords": np.array("[" * 100_000)}, "it is damaged ("),
        ({"schema": np.array([2, 2])}, "its schema is no whole number"),
        ({"schema": np.array("2")}, "its schema is no whole number"),
        ({"t": np.zeros((2, 2, 13))}, "it is damaged ("),
        ({"t": np.array("t")}, "it is damaged (t has the shape () and the type <U1"),
        ({"code": np.zeros(2, int)}, "it is damaged (code has the shape (2,)"),
        ({"events_point": np.zeros(4)}, "it is damaged (events_point has the shape (4,)"),
        ({"events_t": np.array(1.0)}, "it is damaged ("),
        ({"events_count": np.array(999)}, "it is damaged (it counts 999 impacts, and has room for 1"),
        ({"events_count": np.array(-1)}, "it is damaged (it counts -1 impacts"),
        ({"scene": np.array("gravity = 'up'")}, "bad.npz, line 1: "),
    ],
)
def test_a_file_that_is_not_right(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    arrays = {name: x for name, x in (arrays_of(tmp_path) | change).items() if x is not None}
    np.savez(tmp_path / "bad.npz", allow_pickle=False, **arrays)
    with pytest.raises(FileError) as caught:
        read_recording(tmp_path / "bad.npz")
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "bad.npz"))


def npy(shape: str, dtype: str = "<f8", content: bytes = b"") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + content


@pytest.mark.parametrize(
    "hostile",
    {
        "a shape that no memory holds": {"q.npy": npy("(1000000000000000,)")},
        "a shape below zero": {"q.npy": npy("(-1, 8)", content=bytes(8))},
        "a shape that is none": {"q.npy": npy("(" * 3000)},
        "objects": {"q.npy": npy("(1,)", "|O", bytes(8))},
        "no array": {"q.npy": b"no array"},
    }.items(),
    ids=lambda x: x[0],
)
def test_nothing_is_made_of_what_a_file_only_says(tmp_path: Path, hostile: tuple[str, dict[str, bytes]]) -> None:
    """Neither for an archive nor for a journal of it; sizes are those of the file, or it is none."""
    path = tmp_path / "bad.npz"
    for prefix in ("", "link000000_"):
        with zipfile.ZipFile(path, "w") as archive:
            for name, x in arrays_of(tmp_path).items():
                file = io.BytesIO()
                np.save(file, x)
                archive.writestr(f"{prefix}{name}.npy", hostile[1].get(f"{name}.npy", file.getvalue()))
        with pytest.raises(FileError, match="no whole archive is in it"):
            read_recording(path)


def test_an_archive_that_unpacks_to_more_is_none(tmp_path: Path) -> None:
    np.savez_compressed(
        tmp_path / "bomb.npz", allow_pickle=False, **arrays_of(tmp_path) | {"q": np.zeros((1000, 1000))}
    )
    with pytest.raises(FileError, match="no whole archive is in it"):
        read_recording(tmp_path / "bomb.npz")


@pytest.mark.parametrize(
    "record", [b"PK\x05\x06", b"PK\x01\x02" + bytes(42), b"PK\x03\x04" + bytes(26), b"PK\x06\x07" + bytes(16)]
)
def test_reading_is_linear(tmp_path: Path, record: bytes) -> None:
    """Two megabytes of records that lead nowhere took 40 s."""
    path = tmp_path / "many.npz"
    path.write_bytes(b"PK\x03\x04" + bytes(26) + record * (2_000_000 // len(record)))
    start = time.process_time()
    with pytest.raises(FileError):
        read_recording(path)
    assert time.process_time() - start < 10  # a hang, not a slow machine


def test_files_of_other_kinds(tmp_path: Path) -> None:
    arrays_of(tmp_path)
    good = (tmp_path / "good.npz").read_bytes()
    middle = good.index(whole(2).q.tobytes()[:64]) + 100
    contents = {
        "empty.npz": (b"", "this is no recording of Carom"),
        "text.npz": (b"t, q, v\n" * 999, "this is no recording of Carom"),
        "half.npz": (good[: len(good) // 2], "no whole archive is in it"),
        "flipped.npz": (good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :], "no whole archive is in it"),
    }
    for name, (content, message) in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileError, match=message):
            read_recording(tmp_path / name)
    with pytest.raises(FileError, match="there is no such file"):
        read_recording(tmp_path / "none.npz")
    with pytest.raises(FileError, match="cannot be read"):
        read_recording(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("often")
def test_whatever_becomes_of_a_file_it_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    """400 files each: bytes changed, pieces cut out, doubled or put elsewhere, of a whole file and of a journal."""
    writer = RecordingWriter(tmp_path / "journal.npz", begun())
    for k in range(1, 3):
        writer.append(piece(k))
    write_recording(whole(2), tmp_path / "whole.npz")
    good = [(tmp_path / name).read_bytes() for name in ("journal.npz", "whole.npz")]
    rng, path, read = np.random.default_rng(seed), tmp_path / "mutant.npz", 0
    # headers are a small part of a file, and worth most of the changes
    places = [[m.start() for m in re.finditer(rb"PK|NUMPY|descr|shape", x)] for x in good]
    for k in range(400):
        which = k % 2
        mutant = bytearray(good[which])
        for _ in range(rng.integers(1, 4)):
            near = places[which][rng.integers(len(places[which]))] + int(rng.integers(0, 60))
            at = min(near if rng.random() < 0.7 else int(rng.integers(len(mutant))), len(mutant) - 1)
            length = int(rng.integers(1, 200))
            how = rng.integers(4)
            if how == 0:
                mutant[at] = int(rng.integers(256))
            elif how == 1:
                del mutant[at : at + length]
            elif how == 2:
                mutant[at:at] = mutant[at : at + length]
            else:
                mutant[at : at + 8] = bytes(8) if rng.random() < 0.5 else b"\xff" * 8
        path.write_bytes(mutant)
        with contextlib.suppress(FileError):
            read_recording(path)
            read += 1
    assert 0 < read < 400, "all were alike"
