"""Where every metric of this process is registered."""

import os
from functools import partial

from prometheus_client import CollectorRegistry, values

if values.ValueClass is not values.MutexValue:
    # The library asks the kernel at every count whether the process was forked. Ours are started.
    values.ValueClass = values.MultiProcessValue(partial(int, os.getpid()))  # pyright: ignore[reportUnknownMemberType] - theirs

registry = CollectorRegistry()
