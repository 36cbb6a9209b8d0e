"""What chat and responses each bring to the one pipeline: a translation in and a rendering out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion
from tollhouse.base.ids import RequestId
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import ErrorBody
from tollhouse.ledger.pricing import Usage

NameOf = Callable[[str], str]
"""From the path of a field in the translated request to its path in the caller's own."""


def same_name(param: str) -> str:
    """For a caller who speaks the pipeline's language."""
    return param


@dataclass(frozen=True, kw_only=True, slots=True)
class Finish:
    """The end of a complete answer: what it used, and when it came.

    `is_estimated` says that the gateway counted part of the usage, because the engine did not.
    """

    usage: Usage
    at: datetime
    is_estimated: bool = False


class Rendering(Protocol):
    """From what a backend says to what the caller reads; one per request, with its state.

    Everything that it returns for a stream is a number of whole records.
    """

    @property
    def retained_bytes(self) -> int:
        """About how much of the answer is kept until its end."""
        ...

    def complete(self, completion: UpstreamCompletion, finish: Finish) -> bytes:
        """The body of an answer that is not streamed."""
        ...

    def opening(self, first: Sequence[UpstreamChunk]) -> bytes:
        """Return what stands before the answer; `first` holds its first chunks, if they are here.

        They are rendered by `records` afterwards.
        """
        ...

    def records(self, chunks: Sequence[UpstreamChunk]) -> bytes:
        """What the chunks add; nothing, where they say nothing that the caller may see."""
        ...

    def closing(self, finish: Finish) -> Iterator[bytes]:
        """What ends a complete answer; each piece is made when the one before it was sent."""
        ...

    def failure(self, error: ErrorBody) -> bytes:
        """What ends an answer that broke off after its first byte (OQ-25)."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Translated:
    """A request in the one form that is priced, judged and forwarded, and the way back.

    What is wrong with the request is told under the names that the caller used. `may_be_cut` says
    that the caller wants turns dropped where they do not fit the model's context (OQ-50).
    """

    request: ChatRequest
    rendering: Rendering
    name_of: NameOf = same_name
    may_be_cut: bool = False


class Surface(Protocol):
    """One per operation that generates."""

    def translate(self, body: Any, *, request_id: RequestId, now: datetime) -> Translated:  # noqa: ANN401 - each surface has its own body
        """Refuse what can be refused without knowing the model."""
        ...
