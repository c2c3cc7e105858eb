"""Memory and threads of an analysis: arrays reuse freed memory while it lasts, and matrices have one thread."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np  # noqa: F401  # loads OpenBLAS, whose threads are limited
from threadpoolctl import threadpool_limits

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of mallopt. Source: glibc, malloc/malloc.h."""
_REUSING: Final = {_ARENA_MAX: 1, _MMAP_THRESHOLD: 1 << 28, _TRIM_THRESHOLD: 1 << 30}
"""Arrays of up to 256 MB come from freed memory, which all threads share. glibc would otherwise return each array above
32 MB to the system, which has to clear the same pages again for the next one."""
_RETURNING: Final = {_MMAP_THRESHOLD: 1 << 25, _TRIM_THRESHOLD: 1 << 26}
"""glibc's own thresholds for a process with large arrays."""


@contextmanager
def analysis_resources() -> Iterator[None]:
    """Lets arrays reuse freed memory within the block, and returns what is free to the system at its end.

    OpenBLAS has one thread meanwhile: its others would wait for the next small matrix by spinning.
    """
    libc = _c_library()
    adjust = getattr(libc, "mallopt", lambda parameter, value: None)  # only glibc has both functions
    for parameter, value in _REUSING.items():
        adjust(parameter, value)
    try:
        with threadpool_limits(1, "blas"):
            yield
    finally:
        for parameter, value in _RETURNING.items():
            adjust(parameter, value)
        import pyarrow as pa  # noqa: PLC0415  # slow to load, and the block has loaded it

        pa.default_memory_pool().release_unused()
        getattr(libc, "malloc_trim", lambda pad: None)(0)


def _c_library() -> ctypes.CDLL | None:
    """The C library of this process; None on Windows, which has no handle of the process's own symbols."""
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
