"""What an endpoint provides: the translation of requests and the encoding of answers."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from tollhouse.backends.types import MessageHints, UpstreamChunk, UpstreamCompletion
from tollhouse.base.ids import RequestId
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import ErrorBody, ErrorShape
from tollhouse.contract.response_tools import RefusedTool
from tollhouse.ledger.pricing import Usage

NameOf = Callable[[str], str]
"""Maps the path of a field in the translated request to its path in the caller's request."""


def same_name(param: str) -> str:
    """Return the path unchanged, for requests that need no translation."""
    return param


class Finish(Struct, frozen=True, kw_only=True):
    """The usage and the time of a complete answer.

    `is_estimated` says that the gateway counted part of the usage, because the engine did not.
    """

    usage: Usage
    at: datetime
    is_estimated: bool = False


class AnswerEncoder(Protocol):
    """Encodes the answer of one request for its caller.

    For a stream every method returns whole records. `error_shape` is the form of the error that
    `failure` receives. `streams_long_prompts` says that clients of a stream look in its events for
    the refusal of a prompt that is too long, not in the status (OQ-245).
    """

    error_shape: ErrorShape
    streams_long_prompts: bool

    @property
    def retained_bytes(self) -> int:
        """The approximate bytes of the answer that are kept until its end."""
        ...

    def answered_by(self, model: str, *, default_output_tokens: int) -> None:
        """Name the model that answers, and the output bound that it has without one of the caller.

        Called before anything is encoded, and again if a fallback answers instead.
        """
        ...

    def complete(self, completion: UpstreamCompletion, finish: Finish) -> bytes:
        """Return the body of an answer that is not streamed."""
        ...

    def opening(self, first: Sequence[UpstreamChunk]) -> bytes:
        """Return the records before the answer; `first` has its first chunks, if they arrived.

        `records` encodes these chunks afterwards.
        """
        ...

    def records(self, chunks: Sequence[UpstreamChunk]) -> bytes:
        """Return the records of new chunks; empty if the caller may see nothing of them."""
        ...

    def closing(self, finish: Finish) -> Iterator[bytes]:
        """Yield the records that end a complete answer, each made after the one before was sent."""
        ...

    def failure(self, error: ErrorBody) -> bytes:
        """Return the record that ends an answer that failed after its first byte (OQ-25)."""
        ...


class TranslatedRequest(Struct, frozen=True, kw_only=True):
    """A request in the form that is priced, judged and forwarded, with its encoder.

    Errors use the caller's names of fields. `may_be_cut` says that the caller allows turns to be
    dropped where they do not fit the model's context (OQ-50). `refused_tools` are left out of
    `request`; a model that does not drop such tools refuses them (OQ-216). `demands_tool` says that
    the caller's choice of tools leaves the model no freedom to do without. `optional` names the
    features that are only wished for: what needs them is left out for a model that lacks them.
    `hints` are for a backend that speaks Messages, as the caller does.
    """

    request: ChatRequest
    encoder: AnswerEncoder
    name_of: NameOf = same_name
    may_be_cut: bool = False
    refused_tools: tuple[RefusedTool, ...] = ()
    demands_tool: bool = False
    optional: frozenset[str] = frozenset()
    hints: MessageHints | None = None


class Endpoint(Protocol):
    """An operation that generates, such as chat."""

    def translate(self, body: Any, *, request_id: RequestId, now: datetime) -> TranslatedRequest:  # noqa: ANN401 - each surface has its own body
        """Return the translated request; raise what can be refused without knowing the model."""
        ...
