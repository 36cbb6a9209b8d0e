"""The application of a worker, which also samples its own process every few seconds."""

import asyncio
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tests.endurance.allocated import malloc_megabytes
from tests.endurance.stage import SAMPLES
from tests.hostile.memory import resident_megabytes
from tollhouse.app import Application
from tollhouse.serving.server import AsgiApplication, Receive, Scope, Send

SAMPLE_SECONDS: Final = 5.0
PROBE: Final = b"x-endurance-probe"
"""Requests with this header are timed."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A worker at one moment. The latency is that of the probes since the last sample.

    Blocks are those that the interpreter has given to objects, whatever their size. With the memory
    that `malloc` has given out they show what is kept; resident memory also has what was freed and
    not returned.
    """

    at: float
    worker: int
    rss_megabytes: float
    malloc_megabytes: float
    blocks: int
    descriptors: int
    connections: int
    tasks: int
    p99_ms: float | None


class WatchedApplication(Application):
    """Appends samples to a file in the folder that the environment names."""

    async def startup(self) -> AsgiApplication:
        """Start as usual, and time the probes."""
        edge = await super().startup()
        path = Path(os.environ[SAMPLES]) / f"samples-{os.getpid()}.jsonl"
        waited_ms: list[float] = []
        self._sampling = asyncio.create_task(_sample(path, waited_ms))

        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            begun = time.perf_counter()
            await edge(scope, receive, send)
            if scope["type"] == "http" and any(name == PROBE for name, _ in scope["headers"]):
                waited_ms.append((time.perf_counter() - begun) * 1000)

        return timed

    async def shutdown(self) -> None:
        """Stop sampling, and shut down as usual."""
        self._sampling.cancel()
        await super().shutdown()


async def _sample(path: Path, waited_ms: list[float]) -> None:
    with path.open("ab", buffering=0) as kept:
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            waited_ms.sort()
            links = _descriptors()
            sample = Sample(
                at=time.time(),
                worker=os.getpid(),
                rss_megabytes=round(resident_megabytes(os.getpid()), 2),
                malloc_megabytes=round(malloc_megabytes(), 2),
                blocks=sys.getallocatedblocks(),
                descriptors=len(links),
                connections=sum(link.startswith("socket:") for link in links),
                tasks=len(asyncio.all_tasks()),
                p99_ms=waited_ms[round(0.99 * (len(waited_ms) - 1))] if waited_ms else None,
            )
            waited_ms.clear()
            kept.write(msgspec.json.encode(sample) + b"\n")


def _descriptors() -> list[str]:
    """Return what the open descriptors refer to."""
    found: list[str] = []
    for link in Path("/proc/self/fd").iterdir():
        # The one of this listing is closed again.
        with suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return found
