"""The descriptors that a process may open, and how many of them connections may use."""

import resource
from typing import Final

DESCRIPTORS_MAX: Final = 1_048_576
"""What is asked of the system at most, where its own bound is higher or there is none."""

RESERVED: Final = 256
"""Kept for what every process needs: database, Redis, logs, metrics, the supervisor."""


def raise_limit() -> int:
    """Raise the soft limit to the hard one; return it. Children inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft_limit()


def soft_limit() -> int:
    """Return how many descriptors this process may have open now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else soft


def connections_max(limit: int) -> int:
    """Return how many connections a process with `limit` descriptors may hold.

    Half of what is not reserved: a request may need another descriptor for the call to its backend.
    A reserve that is too large for a small limit is a quarter of it.
    """
    reserved = min(RESERVED, limit // 4)
    return max(1, (limit - reserved) // 2)
