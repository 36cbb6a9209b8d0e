"""How much memory the C library has given out to this process."""

import ctypes

from tests.hostile.memory import MEGABYTE


class _Mallinfo2(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


_mallinfo2 = ctypes.CFUNCTYPE(_Mallinfo2)(("mallinfo2", ctypes.CDLL(None)))


def malloc_megabytes() -> float:
    """Return what is in use; what was freed and is kept for later is not."""
    found = _mallinfo2()
    return (found.uordblks + found.hblkhd) / MEGABYTE
