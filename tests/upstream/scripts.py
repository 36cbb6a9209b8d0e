"""Scripts: how the test upstream shall answer a request."""

from collections import deque
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import FreeObject

WAIT_MS_MAX: Final = 3_600_000
TOKENS_MAX: Final = 1_000_000
WORD_CHARACTERS_MAX: Final = 10_000
RECORD_BYTES_MAX: Final = 64 * 1024 * 1024
QUEUED_MAX: Final = 10_000
OPENING: Final = '{"script"'
"""If the last user message begins with this, its first line is the script of the request."""

Milliseconds = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]
Count = Annotated[int, Meta(ge=0, le=TOKENS_MAX)]


class Cut(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an answer breaks off. A JSON body is one event, and so is `[DONE]`.

    `after` is the number of events that are sent before, or `"request"` to send not even a head.
    `inside` also sends half of the next event. A stall lasts until the caller leaves or a test
    continues it.
    """

    how: Literal["close", "reset", "stall"]
    after: Annotated[int, Meta(ge=0)] | Literal["request"] = "request"
    inside: bool = False


class ScriptedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call of a tool, with its arguments as JSON text, and what is to come back with it."""

    name: str
    arguments: str = "{}"
    extra_content: FreeObject | None = None


class UpstreamScript(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer. Fields that are left out behave as in a working engine.

    `body` is sent instead of an answer, as JSON unless `content_type` differs. `error` replaces a
    JSON answer, or is a record that ends a stream. `calls` are made in place of a text;
    `tool_calls` is the number of calls of the offered tools. `inserted` is sent unchanged between
    two records. `usage` is null for none, an object that is merged into the true one, or any text
    that replaces it. `word_characters` is the length of each of the `tokens`. `padding_bytes`
    enlarges the first record. `ends_with_last_piece` puts `finish_reason` and usage on the last
    record with content. `split_at_byte` sends all records in two pieces, and counts from the
    beginning of the first.
    """

    status: Annotated[int, Meta(ge=200, le=599)] = 200
    headers: dict[str, str] = {}
    body: str | FreeObject | None = None
    content_type: str | None = None

    before_head_ms: Milliseconds = 0
    before_first_event_ms: Milliseconds = 0
    between_events_ms: Milliseconds | None = None
    cut: Cut | None = None

    text: str | None = None
    tokens: Count | None = None
    word_characters: Annotated[int, Meta(ge=1, le=WORD_CHARACTERS_MAX)] | None = None
    reasoning_tokens: Count | None = None
    reasoning_name: Literal["reasoning", "reasoning_content"] = "reasoning_content"
    tool_calls: Annotated[int, Meta(ge=0, le=128)] = 0
    calls: Annotated[tuple[ScriptedCall, ...], Meta(max_length=128)] = ()
    refuses: bool = False
    finish_reason: str | None = None
    choice_order: Literal["ascending", "descending"] = "ascending"
    ends_with_last_piece: bool = False

    usage: FreeObject | str | UnsetType | None = UNSET
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None

    error: FreeObject | None = None
    error_after_events: Count = 0
    inserted: str | None = None
    inserted_after_events: Count = 0
    done: bool = True
    line_end: Literal["\n", "\r\n", "\r"] = "\n"
    comments: bool = False
    split_bytes: Annotated[int, Meta(ge=1)] | None = None
    split_at_byte: Annotated[int, Meta(ge=1)] | None = None
    padding_bytes: Annotated[int, Meta(ge=0, le=RECORD_BYTES_MAX)] = 0

    @property
    def has_content(self) -> bool:
        """Whether it says what to answer, so that the request does not."""
        is_text = self.text is not None or self.tokens is not None or self.refuses
        return is_text or bool(self.calls or self.tool_calls)

    @property
    def is_immediate(self) -> bool:
        """Whether a whole answer is sent at once and in one piece."""
        waits = self.before_head_ms or self.before_first_event_ms
        return self.cut is None and self.split_bytes is None and not waits


SOUND: Final = UpstreamScript()


class Queued(Struct, kw_only=True, forbid_unknown_fields=True):
    """A script for the next `times` requests to `path` whose body contains `match`.

    Without `path` it applies to every POST request; with `times` of None, to all later ones.
    """

    script: UpstreamScript
    match: str = ""
    path: str | None = None
    times: Annotated[int, Meta(ge=1)] | None = 1


class Scripts:
    """The queue of scripts. The first that applies to a request is used."""

    def __init__(self) -> None:
        self._queue: deque[Queued] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, queued: Queued) -> None:
        """Append a script."""
        if len(self._queue) >= QUEUED_MAX:
            message = f"No more than {QUEUED_MAX} scripts can wait."
            raise msgspec.ValidationError(message)
        self._queue.append(queued)

    def clear(self) -> None:
        """Remove all scripts."""
        self._queue.clear()

    def use(self, method: str, path: str, body: bytes) -> UpstreamScript | None:
        """Return the script for this request, or None, and count its use."""
        for queued in self._queue:
            applies = method == "POST" if queued.path is None else queued.path == path
            if applies and queued.match.encode() in body:
                self._count(queued)
                return queued.script
        return None

    def _count(self, queued: Queued) -> None:
        if queued.times is None:
            return
        queued.times -= 1
        if queued.times == 0:
            self._queue.remove(queued)


class _ScriptLine(Struct, frozen=True, forbid_unknown_fields=True):
    script: UpstreamScript


def script_in(text: str) -> UpstreamScript | None:
    """Return the script in the first line of a message, or None.

    Raises `msgspec.ValidationError` if the script is invalid.
    """
    if not text.startswith(OPENING):
        return None
    return msgspec.json.decode(text.split("\n", 1)[0], type=_ScriptLine).script
