"""How an answer is to go: what a caller or a test asks the upstream to do."""

from collections import deque
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import FreeObject

WAIT_MS_MAX: Final = 3_600_000
TOKENS_MAX: Final = 1_000_000
RECORD_BYTES_MAX: Final = 64 * 1024 * 1024
QUEUED_MAX: Final = 10_000
OPENING: Final = '{"script"'
"""A last user message whose first line begins so brings its own script."""

Milliseconds = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]
Count = Annotated[int, Meta(ge=0, le=TOKENS_MAX)]


class Cut(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an answer breaks off. A JSON body is one event, and so is `[DONE]`.

    `after` is `"request"` for not even a head, else how many events have left; `inside` sends half
    of the next one too. A stall lasts until the caller leaves, or a test lets it go on.
    """

    how: Literal["close", "reset", "stall"]
    after: Annotated[int, Meta(ge=0)] | Literal["request"] = "request"
    inside: bool = False


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer. Whatever is left out goes as in a sound engine.

    `body` is sent as it stands in place of an answer, and is JSON unless `content_type` differs.
    `error` stands in place of a JSON answer, or is a record that ends a stream. `inserted` is put
    between two records as it stands. `usage` may be null for none, an object that is laid over the
    true one, or any text in its place. `padding_bytes` make the first record a huge one.
    `split_at_byte` counts from the beginning of all records, which then leave in two pieces.
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
    reasoning_tokens: Count | None = None
    reasoning_name: Literal["reasoning", "reasoning_content"] = "reasoning_content"
    tool_calls: Annotated[int, Meta(ge=0, le=128)] = 0
    refuses: bool = False
    finish_reason: str | None = None
    choice_order: Literal["ascending", "descending"] = "ascending"

    usage: FreeObject | str | UnsetType | None = UNSET
    cached_tokens: Count | None = None

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
    def is_immediate(self) -> bool:
        """Whether a whole answer leaves at once and in one piece."""
        waits = self.before_head_ms or self.before_first_event_ms
        return self.cut is None and self.split_bytes is None and not waits


SOUND: Final = Script()


class Queued(Struct, kw_only=True, forbid_unknown_fields=True):
    """For the next `times` requests whose path is `path` and whose body holds `match`.

    Without a path every one that is posted is meant; without a number of times, all to come.
    """

    script: Script
    match: str = ""
    path: str | None = None
    times: Annotated[int, Meta(ge=1)] | None = 1


class Scripts:
    """What is to be done with requests to come; the first that fits is taken."""

    def __init__(self) -> None:
        self._queue: deque[Queued] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, queued: Queued) -> None:
        """Behind all others."""
        if len(self._queue) >= QUEUED_MAX:
            message = f"No more than {QUEUED_MAX} scripts can wait."
            raise msgspec.ValidationError(message)
        self._queue.append(queued)

    def clear(self) -> None:
        """Sound answers from now on."""
        self._queue.clear()

    def take(self, method: str, path: str, body: bytes) -> Script | None:
        """The script for this request, used up by one."""
        for queued in self._queue:
            is_meant = method == "POST" if queued.path is None else queued.path == path
            if is_meant and queued.match.encode() in body:
                self._use(queued)
                return queued.script
        return None

    def _use(self, queued: Queued) -> None:
        if queued.times is None:
            return
        queued.times -= 1
        if queued.times == 0:
            self._queue.remove(queued)


class _Brought(Struct, frozen=True, forbid_unknown_fields=True):
    script: Script


def brought(text: str) -> Script | None:
    """The script in a message's first line; raises `msgspec.ValidationError` if it is none."""
    if not text.startswith(OPENING):
        return None
    return msgspec.json.decode(text.split("\n", 1)[0], type=_Brought).script
