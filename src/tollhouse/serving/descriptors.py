"""The limit of file descriptors, and how many connections it allows."""

import resource
from typing import Final

DESCRIPTORS_MAX: Final = 1_048_576
"""The highest limit to ask for, if the system allows more or has no limit."""

RESERVED: Final = 256
"""Descriptors for the database, Redis, logs, metrics and the supervisor."""


def raise_limit() -> int:
    """Raise the soft limit to the hard limit and return it. Child processes inherit it."""
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
    """Return how many connections a process with `limit` descriptors may keep open.

    It is half of what is not reserved, because a request may need another descriptor for its
    backend. At most a quarter of the limit is reserved.
    """
    reserved = min(RESERVED, limit // 4)
    return max(1, (limit - reserved) // 2)
