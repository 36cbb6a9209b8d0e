"""The interface of a backend. One implementation speaks HTTP; tests have others."""

from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion, UpstreamRequest

T = TypeVar("T")


class ChunkStream(Protocol):
    """A streamed answer. Leaving its context closes the connection to the replica."""

    @property
    def replica(self) -> str:
        """The name of the replica that answers, for logs and activity."""
        ...

    async def next(self) -> Sequence[UpstreamChunk]:
        """Return the records that arrived together; none when the answer is complete.

        Raises an error of `backends.errors` when the answer fails, stalls or breaks off.
        """
        ...


class BackendPort(Protocol):
    """All replicas of one backend."""

    @property
    def is_healthy(self) -> bool:
        """Whether health checks let calls pass to any replica."""
        ...

    def is_ready(self, model: str) -> bool:
        """Return whether a call for a model would find a replica now that is not ejected."""
        ...

    def is_in_use(self, model: str) -> bool:
        """Return whether any replica receives more calls for a model than trials."""
        ...

    def complete(self, request: UpstreamRequest) -> Awaitable[tuple[UpstreamCompletion, str]]:
        """Return the whole answer and its replica. Asks one replica after another."""
        ...

    async def fetch(self, request: UpstreamRequest, kind: type[T]) -> tuple[T, str]:
        """Return an answer other than a completion, such as a token count, and its replica."""
        ...

    def stream(self, request: UpstreamRequest) -> AbstractAsyncContextManager[ChunkStream]:
        """Return a stream. Entering it asks one replica after another for its first event."""
        ...
