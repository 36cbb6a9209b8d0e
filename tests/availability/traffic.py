"""Steady callers, JSON and streams, and the history of what each was told."""

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.support.raw_streams import CHAT

JSON_CALLERS = 4
STREAM_CALLERS = 2
PAUSE_SECONDS = 0.25
TOKENS = 16
STREAM_TOKENS = 40
STREAM_EVENT_MS = 50
ANSWER_SECONDS_MAX = 180.0
"""Callers here never give up: each one learns what became of its request."""
OUTAGE_SECONDS_MIN = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What one caller was told, and when."""

    sent_at: float
    ended_at: float
    status: str
    usage: tuple[int, int] | None
    """Input and output tokens of an answer that is whole; no two requests have the same."""
    is_stream: bool
    is_whole: bool


class Traffic:
    """Callers that send requests without end, each distinguished by its tokens."""

    def __init__(self, client: httpx2.AsyncClient, model: str) -> None:
        self._client = client
        self._model = model
        self._numbers = {is_stream: itertools.count() for is_stream in (False, True)}
        self._is_over = False
        self.answers: list[Answer] = []

    async def run(self) -> None:
        """Call until `stop`, and wait for the last answers."""
        kinds = [False] * JSON_CALLERS + [True] * STREAM_CALLERS
        await asyncio.gather(*(self._call(is_stream=kind) for kind in kinds))

    def stop(self) -> None:
        self._is_over = True

    async def serve_more(self, count: int) -> None:
        """Wait until so many more requests are answered."""
        wanted = self.served + count
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            while self.served < wanted:  # noqa: ASYNC110 - counted by many
                await asyncio.sleep(PAUSE_SECONDS)

    @property
    def served(self) -> int:
        return sum(answer.status == "200" for answer in self.answers)

    async def _call(self, *, is_stream: bool) -> None:
        while not self._is_over:
            self.answers.append(await self._ask(is_stream=is_stream))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, *, is_stream: bool) -> Answer:
        sent_at, number = time.monotonic(), next(self._numbers[is_stream])
        status, usage = "broken", None
        try:
            answer = await self._client.post(CHAT, json=self._body(number, is_stream=is_stream))
        except httpx2.HTTPError as error:
            status = type(error).__name__
        else:
            status = _status(answer)
            usage = _stream_usage(answer.text) if is_stream else _json_usage(answer)
        return Answer(
            sent_at=sent_at,
            ended_at=time.monotonic(),
            status=status,
            usage=usage if status == "200" else None,
            is_stream=is_stream,
            is_whole=status != "200" or usage is not None,
        )

    def _body(self, number: int, *, is_stream: bool) -> dict[str, Any]:
        """The script and the filling words make input and output tokens unique."""
        if is_stream:
            script: dict[str, Any] = {"tokens": STREAM_TOKENS, "between_events_ms": STREAM_EVENT_MS}
            words = number
        else:
            script = {"tokens": 1 + number % TOKENS}
            words = number // TOKENS
        content = json.dumps({"script": script}) + "\n" + "w " * words
        options = {"stream_options": {"include_usage": True}} if is_stream else {}
        return {
            "model": self._model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": STREAM_TOKENS,
            "stream": is_stream,
            **options,
        }


def _status(answer: httpx2.Response) -> str:
    if answer.is_success:
        return "200"
    return f"{answer.status_code} {answer.json()['error']['code']}"


def _json_usage(answer: httpx2.Response) -> tuple[int, int] | None:
    return _pair(answer.json()["usage"]) if answer.is_success else None


def _stream_usage(text: str) -> tuple[int, int] | None:
    """Return the usage of a stream that came to its end, else None."""
    records = [line.removeprefix("data: ") for line in text.splitlines() if line]
    if not records or records[-1] != "[DONE]":
        return None
    return _pair(json.loads(records[-2])["usage"])


def _pair(usage: dict[str, Any]) -> tuple[int, int]:
    return usage["prompt_tokens"], usage["completion_tokens"]


def statuses(answers: list[Answer]) -> dict[str, int]:
    return dict(Counter(answer.status for answer in answers))


def outages(answers: list[Answer], *, since: float, until: float) -> Iterator[tuple[float, float]]:
    """Yield the times in which no request was answered, if they took longer than a second."""
    successes = sorted(answer.ended_at for answer in answers if _counts(answer))
    times = [since, *(moment for moment in successes if since < moment < until), until]
    for begun, ended in itertools.pairwise(times):
        if ended - begun > OUTAGE_SECONDS_MIN:
            yield begun, ended


def _counts(answer: Answer) -> bool:
    """Streams end late, so that only whole bodies tell when service is back."""
    return answer.status == "200" and not answer.is_stream


@asynccontextmanager
async def steady_traffic(client: httpx2.AsyncClient, model: str) -> AsyncGenerator[Traffic]:
    """Yield running callers; at the end all of them have their answers."""
    traffic = Traffic(client, model)
    running = asyncio.create_task(traffic.run())
    try:
        yield traffic
    finally:
        traffic.stop()
        await running
