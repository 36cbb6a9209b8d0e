"""A guard as one would first write it, with one mistake that others have made, or with none.

It stands on loopback where the gateway would: before the same backend, asking the same judge, and
holding back what is not judged yet. Whichever operation was called, it passes on what the backend
said: what counts here is what gets through, not its form.
"""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import httpx2
from aiohttp import web

from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.judged_deployment import BODIES, CHAT
from tests.support.loopback import serving
from tests.support.reading import Body, Place, by_choice, put_together, used_tokens
from tollhouse.base.policies import Direction, Mode

HELD_BYTES_MAX = 8 * 1024 * 1024
READ_CHARACTERS_MAX = 2_000
"""Of a text, by those who clip."""
MATCH_MIN = 0.5


class Mistake(Enum):
    """In the order of the bypasses that they make possible."""

    IGNORES_STREAMS = auto()
    KNOWS_ONE_PATH = auto()
    FIRST_CHOICE_ONLY = auto()
    CONTENT_ONLY = auto()
    JOINS_ALL_CHOICES = auto()
    READS_ONLY_THE_HEAD = auto()
    READS_ONLY_THE_TAIL = auto()
    RECORD_BY_RECORD = auto()
    STOPS_WITH_ITS_CALLER = auto()
    MONITORING_BLOCKS = auto()
    STATUS_200_IS_A_PASS = auto()
    COUNTS_ONLY_TEXT = auto()
    DEFAULTS_TO_NO = auto()


class Verdict(Enum):
    MATCH = auto()
    NO_MATCH = auto()
    FAILED = auto()


@dataclass(kw_only=True)
class NaiveGuard:
    """It has one policy: whether a text says `word`."""

    backend_url: str
    judge_url: str
    word: str
    direction: Direction
    mode: Mode
    mistake: Mistake | None
    judged: int = 0
    charged_tokens: int = 0
    held_bytes_most: int = 0
    _client: httpx2.AsyncClient = field(default_factory=lambda: _client_of(""))
    _work: list["asyncio.Task[Any]"] = field(default_factory=list["asyncio.Task[Any]"])

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Cancelled when the caller leaves."""
        work = self._begin(self._answer(request.path, await request.json()))
        stops = self.mistake is Mistake.STOPS_WITH_ITS_CALLER
        return await (work if stops else asyncio.shield(work))

    async def finish(self) -> None:
        """Wait for what goes on without a caller."""
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._client.aclose()

    def _begin(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._work.append(task)
        return task

    async def _answer(self, path: str, body: Body) -> web.Response:
        knows = path == CHAT or self.mistake is not Mistake.KNOWS_ONE_PATH
        reads = not body.get("stream") or self.mistake is not Mistake.IGNORES_STREAMS
        chat = _as_chat(body)
        if knows and self.direction is not Direction.RESPONSE:
            await self._judge([message["content"] for message in chat["messages"]])
        lines = await self._held(chat)
        if knows and reads and self.direction is not Direction.REQUEST:
            await self._judge(list(put_together(lines, self._place).values()))
        return web.Response(text="\n".join(lines))

    # What there is to judge

    async def _held(self, chat: Body) -> list[str]:
        """All lines of the backend's answer."""
        lines: list[str] = []
        buffers = counted_bytes = 0
        async with self._client.stream("POST", self.backend_url, json=chat) as answer:
            async for line in answer.aiter_lines():
                buffers += len(line)
                counted_bytes += self._size_bytes(line)
                if counted_bytes > HELD_BYTES_MAX:
                    raise web.HTTPServiceUnavailable
                lines.append(line)
                self.held_bytes_most = max(self.held_bytes_most, buffers)
        self.charged_tokens += used_tokens(lines)
        return lines

    def _size_bytes(self, line: str) -> int:
        if self.mistake is Mistake.COUNTS_ONLY_TEXT:
            return sum(map(len, put_together([line], by_choice).values()))
        return len(line)

    def _place(self, record: int, choice: int, channel: str) -> Place | None:
        match self.mistake:
            case Mistake.FIRST_CHOICE_ONLY if choice:
                return None
            case Mistake.CONTENT_ONLY if channel != "content":
                return None
            case Mistake.JOINS_ALL_CHOICES:
                return (channel,)
            case Mistake.RECORD_BY_RECORD:
                return record, choice, channel
            case _:
                return by_choice(record, choice, channel)

    # Judging

    async def _judge(self, texts: Sequence[str]) -> None:
        if self.mode is Mode.MONITORING and self.mistake is not Mistake.MONITORING_BLOCKS:
            self._begin(self._verdicts(texts))
            return
        verdicts = await self._verdicts(texts)
        if Verdict.MATCH in verdicts:
            raise web.HTTPForbidden
        if Verdict.FAILED in verdicts:
            raise web.HTTPServiceUnavailable

    async def _verdicts(self, texts: Sequence[str]) -> set[Verdict]:
        asked = [self._asked(text) for text in texts]
        answers = [await self._client.post(self.judge_url, json=each) for each in asked]
        self.judged += 1
        return {self._verdict(answer) for answer in answers}

    def _asked(self, text: str) -> Body:
        data = json.dumps({"parts": [{"text": self._clipped(text)}]})
        rule = json.dumps(f'Does it say "{self.word}"?')
        prompt = f"DATA -\n{data}\nEND -\nQuestion: {rule}"
        return {"messages": [{"role": "user", "content": prompt}], "top_logprobs": 20}

    def _clipped(self, text: str) -> str:
        match self.mistake:
            case Mistake.READS_ONLY_THE_HEAD:
                return text[:READ_CHARACTERS_MAX]
            case Mistake.READS_ONLY_THE_TAIL:
                return text[-READ_CHARACTERS_MAX:]
            case _:
                return text

    def _verdict(self, answer: httpx2.Response) -> Verdict:
        """It has failed unless what is not known could not change it."""
        try:
            guesses = answer.json()["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        except (LookupError, TypeError):
            is_pass = answer.is_success and self.mistake is Mistake.STATUS_200_IS_A_PASS
            return Verdict.NO_MATCH if is_pass else Verdict.FAILED
        likely = {guess["token"]: math.exp(guess["logprob"]) for guess in guesses}
        yes, no = likely.get("Yes", 0.0), likely.get("No", 0.0)
        unknown = 0.0 if self.mistake is Mistake.DEFAULTS_TO_NO else 1.0 - yes - no
        if yes >= MATCH_MIN:
            return Verdict.MATCH
        return Verdict.NO_MATCH if yes + unknown < MATCH_MIN else Verdict.FAILED


@asynccontextmanager
async def running_guard(guard: NaiveGuard) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of it; its work is over when the block is left."""
    async with serving(dict.fromkeys(BODIES, guard.serve)) as origin:
        async with _client_of(origin) as client:
            yield client
        await guard.finish()


def _client_of(base_url: str) -> httpx2.AsyncClient:
    # Loopback speaks no TLS, and to load whom to trust takes longer than any request here.
    return httpx2.AsyncClient(
        base_url=base_url,
        timeout=TIMEOUT_SECONDS,
        trust_env=False,
        verify=False,
    )


def _as_chat(body: Body) -> Body:
    if "input" not in body:
        return body
    asked = {name: value for name, value in body.items() if name != "input"}
    return asked | {"messages": [{"role": "user", "content": body["input"]}]}
