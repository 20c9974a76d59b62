"""An exported world as Python sees it: its static library, linked by this machine's C compiler and called by ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import carom
from carom.collision.shapes import ALL_LAYERS
from carom.scenes.export.library import export_library
from carom.scenes.live.world import Live

COMPILER = "gcc"


def missing() -> list[str]:
    """What this needs and is not here."""
    return [COMPILER] if shutil.which(COMPILER) is None else []


def everything(dtype: str = "float32") -> Live:
    """A world that has all functions: a tray that a bolt holds, with a load; a crate on a belt; a lift that carries a
    trigger; a ball that a rope may hold, and a spare one."""
    b = carom.SceneBuilder(filtering=True)
    b.add_plane(name="floor", friction=0.5, restitution=0.2)
    b.add_static("belt", [carom.Box((3, 0.5, 0.1))], position=(0, 3, 0.1), linear_velocity=(1, 0, 0), friction=0.4)
    b.add_body("crate", [carom.Box((0.1, 0.1, 0.1), friction=0.4)], mass=1.0, position=(-1, 3, 0.3))
    odd = [carom.Sphere(0.1, position=(0.05, 0, 0)), carom.Box((0.05, 0.2, 0.05))]
    b.add_body("odd", odd, mass=1.0, position=(-2, 0, 0.1), quaternion=(0.8, 0, 0, 0.6), friction=0.4)
    b.add_body("tray", [carom.Box((0.3, 0.3, 0.02))], mass=2.0, position=(0, 0, 1), friction=0.5)
    b.add_body("load", [carom.Box((0.1, 0.1, 0.1))], mass=3.0, position=(0, 0, 1.125), friction=0.5)
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(3, 0, 1.5), restitution=0.5)
    motor = carom.Motor("velocity", kd=np.inf, effort=5000.0)
    b.add_link(
        "lift", joint=carom.Prismatic((0, 0, 1), motor=motor), position=(3, 0, 0.5), mass=5.0,
        shapes=[carom.Box((0.3, 0.3, 0.05), friction=0.5)],
    )  # fmt: skip
    b.add_loop("tray", (0, 0, 0), "world", (0, 0, 1), joint=carom.Fixed(), name="bolt", active=True)
    b.add_loop("ball", (0.05, 0, 0), "world", (3, 0, 3), joint=carom.Distance(), name="rope", active=False)
    live = Live(b, pool={"ball": 1}, probes=[carom.Box((1, 1, 1))], dtype=dtype, warm=False, max_events=64)
    live.add_trigger(carom.Box((0.5, 0.4, 0.3)), (1, 3, 0.5), (0.8, 0, 0, 0.6))
    live.add_trigger(carom.Sphere(0.2), (0.01, 0, 0.3), body="lift")
    return live


class World:
    """Calls as in `carom.Live`, by numbers of bodies."""

    def __init__(self, live: Live, folder: Path, name: str = "world", **keywords: Any) -> None:
        export_library(live, folder, name=name, **keywords)
        file = folder / f"{name}.so"
        whole = "-Wl,--whole-archive", str(folder / f"lib{name}.a"), "-Wl,--no-whole-archive"
        subprocess.run([COMPILER, "-shared", *whole, "-o", str(file)], check=True)
        self._library, self._name = ctypes.CDLL(str(file)), name
        self.dtype, topology = np.dtype(live.model.mass.dtype), live.model.topology
        self._links, self._nv, self._most = topology.n_links, topology.nv, 16 + 8 * (topology.nq + 3 * topology.nv + 1)
        self._make = self.function("create", ctypes.c_void_p)
        self.world = ctypes.c_void_p(self._make())

    def close(self) -> None:
        self.function("free", None)(self.world)

    def function(self, name: str, returns: Any = ctypes.c_int) -> Any:
        found = getattr(self._library, f"{self._name}_{name}")
        found.restype = returns
        return found

    def step(self, dt: float) -> int:
        real = ctypes.c_double if self.dtype.itemsize == 8 else ctypes.c_float
        return self.function("step")(self.world, real(dt))

    def call(self, name: str, body: int, *vectors: Any) -> int:
        """A function of a body, and of vectors, which may be None, or whole numbers."""
        arrays = [x if x is None or isinstance(x, int) else np.asarray(x, self.dtype) for x in vectors]
        given = [ctypes.c_void_p(x.ctypes.data) if isinstance(x, np.ndarray) else x for x in arrays]
        return self.function(name)(self.world, ctypes.c_int(body), *given)

    def save(self) -> bytes:
        out = ctypes.create_string_buffer(self._most)
        size = self.function("save")(self.world, out)
        return out.raw[:size]

    def load(self, save: bytes) -> int:
        return self.function("load")(self.world, save, len(save))

    def hash(self) -> str:
        out = ctypes.create_string_buffer(33)
        self.function("hash", None)(self.world, out)
        return out.value.decode()

    def reset(self) -> None:
        self.function("reset", None)(self.world)

    def array(self, name: str, *shape: int, dtype: Any = None) -> np.ndarray:
        """What a function points to."""
        place, dtype = self.function(name, ctypes.c_void_p)(self.world), np.dtype(dtype or self.dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(place), dtype).reshape(shape)

    def contacts(self, room: int = 256) -> np.ndarray:
        wide = f"i{self.dtype.itemsize}"
        record = [("whole", wide, 4), ("impulse", self.dtype, 3), ("point", self.dtype, 3)]
        record += [("normal", self.dtype, 3), ("speed", self.dtype)]
        rows = np.zeros(room, np.dtype(record))
        count = self.function("contacts")(self.world, ctypes.c_void_p(rows.ctypes.data), room)
        return rows[:count]

    def overlap(
        self, probe: int, position: Any, quaternion: Any, within: float, mask: int = ALL_LAYERS, room: int = 64
    ) -> tuple[int, np.ndarray]:
        given = [None if x is None else np.asarray(x, self.dtype) for x in (position, quaternion)]
        pointers = [None if x is None else ctypes.c_void_p(x.ctypes.data) for x in given]
        real = ctypes.c_double if self.dtype.itemsize == 8 else ctypes.c_float
        found = np.full(room, -1, np.int32)
        more = real(within), ctypes.c_uint32(mask), ctypes.c_void_p(found.ctypes.data), room
        return self.function("overlap")(self.world, probe, *pointers, *more), found

    def ray(
        self, origin: Any, direction: Any, most: float, moving: int = 0, mask: int = ALL_LAYERS
    ) -> tuple[int, np.ndarray]:
        o, d = (np.asarray(x, self.dtype) for x in (origin, direction))
        real = ctypes.c_double if self.dtype.itemsize == 8 else ctypes.c_float
        wide = f"i{self.dtype.itemsize}"
        hit = np.zeros((), np.dtype([("whole", wide, 2), ("distance", self.dtype), ("vectors", self.dtype, (2, 3))]))
        pointers = (ctypes.c_void_p(x.ctypes.data) for x in (o, d))
        more = real(most), moving, ctypes.c_uint32(mask), ctypes.c_void_p(hit.ctypes.data)
        return self.function("ray")(self.world, *pointers, *more), hit
