"""Open arrays are the caller's memory: nothing behind their last row is looked at."""

import subprocess
import sys

import pytest

LAST_ROW = """
import ctypes, mmap
import jax, numpy as np
from jax import lax
from carom.engine.native.open_arrays import Open
from carom.engine.native.function import native
from carom.tests.oracles.native_and_xla import no_fallback

jax.config.update("jax_enable_x64", True)
rows, row, page = 64, {row}, mmap.PAGESIZE
size = rows * row * 8
pages = -(-size // page)
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
start = c.mmap(None, (pages + 1) * page, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
assert c.mprotect(start + pages * page, page, 0) == 0  # who touches the page behind the array, dies
x = np.frombuffer((ctypes.c_char * size).from_address(start + pages * page - size)).reshape(rows, row)
x[:] = np.arange(rows * row).reshape(rows, row)
array = jax.dlpack.from_dlpack(x)
assert array.unsafe_buffer_pointer() == x.ctypes.data
look = native(lambda _, table, k: 2 * lax.dynamic_index_in_dim(table.array, k, keepdims=False))
with no_fallback():
    np.testing.assert_array_equal(look(None, Open(array), np.int32(rows - 1)), 2 * x[-1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for a page that nobody may touch")
@pytest.mark.parametrize("row", [5, 20])
def test_nothing_behind_the_last_row_is_looked_at(row: int) -> None:
    made = subprocess.run([sys.executable, "-c", LAST_ROW.format(row=row)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
