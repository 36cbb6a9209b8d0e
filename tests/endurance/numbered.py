"""Requests whose tokens tell them apart: in the upstream's log, in the ledger and to their caller.

All endpoints that generate, JSON and streams, without policies, with monitoring and with enforcing
ones, take turns.
"""

import asyncio
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp

from tests.hostile.customers import Customer
from tests.support.judged_deployment import BODIES
from tests.support.raw_streams import CHAT, MESSAGES, RESPONSES
from tollhouse.base.policies import Mode

TOKENS: Final = 24
"""So many numbers have the same words in their prompt and differ in the tokens of their answer."""
TOKENS_MIN: Final = 4
WORDS_MAX: Final = 2_000
"""After 48,000 requests tokens repeat."""
EVENT_MS: Final = 20
HEAD_MS: Final = 40
BLOCKED_EVERY: Final = 7
FORBIDDEN: Final = "forbidden"
ESCAPED: Final = r"\u0066orbidden"
"""The same word in JSON, which the judge does not find in the prompt."""
LAST_EVENTS: Final = {CHAT: b"[DONE]", RESPONSES: b"response.completed", MESSAGES: b"message_stop"}
KINDS: Final = tuple(itertools.product((None, Mode.MONITORING, Mode.ENFORCING), BODIES, (0, 1)))


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberedRequest:
    """A request and what becomes of it is a function of its number."""

    number: int
    mode: Mode | None
    path: str
    is_stream: bool

    def body(self, **other: object) -> dict[str, Any]:
        """Return the body; its first line is a script for the upstream, its second the number.

        `other` replaces parts of the script.

        Policies block some of the requests, and some of the answers.
        """
        tokens = TOKENS_MIN + self.number % TOKENS
        script: dict[str, Any] = {"between_events_ms": EVENT_MS} if self.is_stream else {}
        if not self.is_stream:
            script["before_head_ms"] = self.number % HEAD_MS
        if self.mode is Mode.ENFORCING and self.number % BLOCKED_EVERY == 0:
            script["text"] = FORBIDDEN + " and" * (tokens - 1)
        else:
            script["tokens"] = tokens
        words = "w " * (self.number // TOKENS % WORDS_MAX)
        line = json.dumps({"script": script | other})
        if self.number // (2 * BLOCKED_EVERY) % 2:
            line = line.replace(FORBIDDEN, ESCAPED)
        content = f"{line}\n{self.number}\n{words}"
        return BODIES[self.path](content, stream=self.is_stream)


def numbered(number: int) -> NumberedRequest:
    """Return the request of a number."""
    mode, path, is_stream = KINDS[number % len(KINDS)]
    return NumberedRequest(number=number, mode=mode, path=path, is_stream=bool(is_stream))


@dataclass(frozen=True, kw_only=True, slots=True)
class CallerAnswer:
    """What a caller received. Without a head, there is neither status nor ID."""

    number: int
    status: int | None
    request_id: str | None
    is_whole: bool
    ended_at: datetime


class NumberedCallers:
    """Callers that ask without a pause until they are stopped. They never leave by themselves."""

    def __init__(
        self,
        base_url: str,
        customers: Mapping[Mode | None, Customer],
        numbers: Iterator[int] | None = None,
    ) -> None:
        self._base_url = base_url
        self._customers = customers
        self._numbers = numbers or itertools.count()
        self._is_over = False
        self._news = asyncio.Condition()
        self.answers: list[CallerAnswer] = []

    async def run(self, callers: int) -> None:
        """Call until `stop`, and wait for the last answers."""
        # A connection to a worker that was killed is not used again.
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(self._base_url, connector=connector) as session:
            await asyncio.gather(*(self._call(session) for _ in range(callers)))

    def stop(self) -> None:
        self._is_over = True

    async def has_answers(self, more: int) -> None:
        """Wait until so many more callers know what became of their request."""
        wanted = len(self.answers) + more
        async with self._news:
            await self._news.wait_for(lambda: len(self.answers) >= wanted)

    async def _call(self, session: aiohttp.ClientSession) -> None:
        while not self._is_over:
            asked = numbered(next(self._numbers))
            self.answers.append(await ask(session, self._customers[asked.mode].key, asked))
            async with self._news:
                self._news.notify_all()


async def ask(
    session: aiohttp.ClientSession,
    key: str,
    asked: NumberedRequest,
    *,
    leave_after_bytes: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> CallerAnswer:
    """Send a request, and read its answer to the end or leave before."""
    sent = {"authorization": f"Bearer {key}", **(headers or {})}
    status, request_id, body = None, None, b""
    is_ended = False
    try:
        async with session.post(asked.path, json=asked.body(), headers=sent) as answer:
            status, request_id = answer.status, answer.headers.get("x-request-id")
            if leave_after_bytes is None:
                body = await answer.read()
                is_ended = True
            else:
                await answer.content.read(leave_after_bytes)
                answer.close()
    except (aiohttp.ClientError, TimeoutError):
        pass
    is_whole = is_ended and (not asked.is_stream or LAST_EVENTS[asked.path] in body)
    return CallerAnswer(
        number=asked.number,
        status=status,
        request_id=request_id,
        is_whole=status == 200 and is_whole,
        ended_at=datetime.now(UTC),
    )
