"""What the pipelines know of a backend: one implementation speaks HTTP, tests may bring another."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from tollhouse.backends.types import Ask, UpstreamChunk, UpstreamCompletion

T = TypeVar("T")


class ChunkStream(Protocol):
    """An answer on its way. Leaving its context closes the connection to the replica."""

    @property
    def replica(self) -> str:
        """Which replica answers, as it is known in logs and activity."""
        ...

    async def next(self) -> Sequence[UpstreamChunk]:
        """The records that arrived together, at least one; none when the answer is complete.

        Raises an error of `backends.errors` when the answer fails, stalls or breaks off.
        """
        ...


class BackendPort(Protocol):
    """All replicas of one backend."""

    @property
    def is_ready(self) -> bool:
        """Whether any replica is believed to answer."""
        ...

    async def complete(self, ask: Ask) -> tuple[UpstreamCompletion, str]:
        """The whole answer and the replica that gave it; retried elsewhere before it began."""
        ...

    async def fetch(self, ask: Ask, kind: type[T]) -> tuple[T, str]:
        """Ask something that is no completion, such as a count of tokens."""
        ...

    def stream(self, ask: Ask) -> AbstractAsyncContextManager[ChunkStream]:
        """Open a stream; entering waits for the answer's head, retried elsewhere before it."""
        ...
