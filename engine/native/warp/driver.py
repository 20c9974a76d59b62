"""NVIDIA's driver, found when a program runs: nothing is linked against it.

The calls and their numbers are those of `cuda.h`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..arena import THREADS

MOST_DEVICES = 64
_LOG = 8192  # bytes for the driver's messages about a program
_MULTIPROCESSORS = 16  # attributes of a device
_INFO_LOG, _INFO_LOG_SIZE, _ERROR_LOG, _ERROR_LOG_SIZE = 3, 4, 5, 6  # options of its compiler
CALLED = ("cuCtxGetDevice", "cuMemsetD32Async", "cuLaunchKernel")  # by the handler itself (`launch.py`)


class DriverError(RuntimeError):
    """A call of the driver failed."""


class LoadedKernel(NamedTuple):
    """A kernel on one device.  function: a handle.  warps: how many run at once on a multiprocessor.  processors: the
    number of multiprocessors.  memory: the device's [bytes]."""

    function: int
    warps: int
    processors: int
    memory: int


@functools.cache
def driver() -> Any:
    """The library; None if there is none."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(name)
            _did(library, "cuInit", library.cuInit(0))
            return library
    return None


def device_count() -> int:
    library = driver()
    if library is None:
        return 0
    count = ctypes.c_int()
    _did(library, "cuDeviceGetCount", library.cuDeviceGetCount(ctypes.byref(count)))
    return min(count.value, MOST_DEVICES)


def load(ptx: bytes, name: str, block: int) -> list[LoadedKernel]:
    """Load a kernel with `block` warps per block on every device; the driver compiles it, and caches the result."""
    library, loaded = driver(), []
    for number in range(device_count()):
        with _current(library, number) as device:
            function = _function(library, ptx, name)
            blocks, processors = ctypes.c_int(), ctypes.c_int()
            _did(
                library, "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                library.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    ctypes.byref(blocks), function, THREADS * block, ctypes.c_size_t(0)
                ),
            )  # fmt: skip
            _did(
                library, "cuDeviceGetAttribute",
                library.cuDeviceGetAttribute(ctypes.byref(processors), _MULTIPROCESSORS, device),
            )  # fmt: skip
            memory = ctypes.c_size_t()
            _did(library, "cuDeviceTotalMem", library.cuDeviceTotalMem_v2(ctypes.byref(memory), device))
            loaded.append(LoadedKernel(function.value or 0, blocks.value * block, processors.value, memory.value))
    return loaded


@contextlib.contextmanager
def _current(library: ctypes.CDLL, number: int) -> Iterator[ctypes.c_int]:
    """Use the device's primary context, which is XLA's, in this thread. It is never released: kernels stay."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _did(library, "cuDeviceGet", library.cuDeviceGet(ctypes.byref(device), number))
    _did(library, "cuDevicePrimaryCtxRetain", library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    _did(library, "cuCtxPushCurrent", library.cuCtxPushCurrent_v2(context))
    try:
        yield device
    finally:
        _did(library, "cuCtxPopCurrent", library.cuCtxPopCurrent_v2(ctypes.byref(context)))


def _function(library: ctypes.CDLL, ptx: bytes, name: str) -> ctypes.c_void_p:
    info, errors = ctypes.create_string_buffer(_LOG), ctypes.create_string_buffer(_LOG)
    options = (ctypes.c_int * 4)(_INFO_LOG, _INFO_LOG_SIZE, _ERROR_LOG, _ERROR_LOG_SIZE)
    values = (ctypes.c_void_p * 4)(ctypes.addressof(info), _LOG, ctypes.addressof(errors), _LOG)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    failed = library.cuModuleLoadDataEx(ctypes.byref(module), ctypes.c_char_p(ptx), 4, options, values)
    _did(library, "cuModuleLoadDataEx", failed, errors.value.decode(errors="replace"))
    named = ctypes.c_char_p(name.encode())
    _did(library, "cuModuleGetFunction", library.cuModuleGetFunction(ctypes.byref(function), module, named))
    return function


def _did(library: ctypes.CDLL, call: str, failed: int, more: str = "") -> None:
    if failed:
        text = ctypes.c_char_p()
        library.cuGetErrorString(failed, ctypes.byref(text))
        said = (text.value or b"an error that it does not know").decode()
        raise DriverError(f"NVIDIA's driver: {call}: {said} ({failed}){'. ' + more if more else ''}")
