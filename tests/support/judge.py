"""A judge on loopback with known answers, which it finds in the prompt that it receives.

It answers a question such as `Does it say "bread"?` by a search for the quoted word in the data.
"""

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from aiohttp import web

from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.loopback import serving
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.transport import Transport
from tollhouse.backends.types import BackendConfig
from tollhouse.base.clock import SystemClock

P_YES = 0.9
P_NO = 0.05
COVERAGE = 0.98
TOKENS = {"Yes": 11, "No": 12, " Yes": 13, " No": 14, "yes": 15, "no": 16, "NO": 17, " yes": 18}
"""Single tokens of its vocabulary; as in SmolLM2 there is no "YES", and here no " no" either."""

_PROMPT = re.compile(r"DATA (?P<delimiter>\S+)\n(?P<data>.*)\nEND (?P=delimiter)\n", re.DOTALL)
_QUESTION = re.compile(r'^Question: (?P<rule>".*")$', re.MULTILINE)
_QUOTED = re.compile(r'"([^"]+)"')


@dataclass(frozen=True, kw_only=True)
class ReceivedQuestion:
    """One question, as the judge parsed it from its prompt."""

    delimiter: str
    data: dict[str, Any]
    rule: str
    prompt: str
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return [part["text"] for part in self.data["parts"]]

    @property
    def content(self) -> str:
        """The texts of all parts, joined without a separator."""
        return "".join(self.texts)


class Fault(Enum):
    """Ways in which a judge fails to answer."""

    ERROR_500 = auto()
    BUSY_429 = auto()
    REFUSES_400 = auto()
    HANGS_UP = auto()
    STALLS = auto()
    CUT_OFF = auto()
    ERROR_IN_200 = auto()
    NO_CHOICES = auto()
    NO_LOGPROBS = auto()
    EMPTY_LOGPROBS = auto()
    NULL_LOGPROB = auto()
    NAN = auto()
    ABOVE_ONE = auto()
    NOT_JSON = auto()
    NEITHER_SIDE = auto()
    LOW_COVERAGE = auto()
    UNDECIDED = auto()


def finds_quoted_word(question: ReceivedQuestion) -> float:
    """Yes if the word in the question's quotation marks is in the data."""
    found = _QUOTED.search(question.rule)
    assert found is not None, f"no word in quotation marks: {question.rule}"
    return P_YES if found[1] in question.content else P_NO


@dataclass
class ScriptedJudge:
    """`answers` gives the probability of yes; `fails` may give a fault instead."""

    answers: Callable[[ReceivedQuestion], float] = finds_quoted_word
    fails: Callable[[ReceivedQuestion], Fault | None] = lambda _: None
    prompt_characters_max: int = 2**62
    received: list[ReceivedQuestion] = field(default_factory=list[ReceivedQuestion])
    at_once: int = 0
    most_at_once: int = 0
    holds_answers: bool = False
    tokenizer_fails: bool = False
    base_url: str = ""
    _let: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def reset(self) -> None:
        """Restore the first answers, forget all questions and hold no answer."""
        self.let_all()
        self._let = asyncio.Semaphore(0)
        self.answers, self.fails = finds_quoted_word, lambda _: None
        self.prompt_characters_max = 2**62
        self.received.clear()
        self.most_at_once = 0

    def let(self, answers: int) -> None:
        """Send so many of the answers that are held."""
        for _ in range(answers):
            self._let.release()

    def let_all(self) -> None:
        """Hold no answer any more, and hang up on the questions that stall."""
        self.holds_answers = False
        self.let(self.at_once)

    async def has_received(self, questions: int) -> None:
        """Wait until so many questions were received."""
        async with asyncio.timeout(TIMEOUT_SECONDS), self._news:
            await self._news.wait_for(lambda: len(self.received) >= questions)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        question = _parsed(body)
        self.received.append(question)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            async with self._news:
                self._news.notify_all()
            if self.holds_answers:
                await self._let.acquire()
            return await self._answer(request, question)
        finally:
            self.at_once -= 1

    async def _answer(self, request: web.Request, question: ReceivedQuestion) -> web.StreamResponse:
        if len(question.prompt) > self.prompt_characters_max:
            return web.json_response({"error": {"message": "too long"}}, status=400)
        fault = self.fails(question)
        if fault is Fault.STALLS:
            await self._let.acquire()
        if fault is not None:
            return await _fault(request, fault)
        return web.json_response(_completion(_entries(question.body, self.answers(question))))

    async def tokenize(self, request: web.Request) -> web.Response:
        if self.tokenizer_fails:
            return web.json_response({"error": {"message": "not yet"}}, status=500)
        text = (await request.json())["content"]
        return web.json_response({"tokens": tokenize(text)})


def tokenize(text: str) -> list[int]:
    """One token for each word of the vocabulary, else one for each character."""
    return [TOKENS[text]] if text in TOKENS else [1_000 + ord(character) for character in text]


def _parsed(body: dict[str, Any]) -> ReceivedQuestion:
    prompt = body["messages"][-1]["content"]
    found = _PROMPT.search(prompt)
    assert found is not None, "the content is not between its delimiters"
    rules = _QUESTION.findall(prompt)
    return ReceivedQuestion(
        delimiter=found["delimiter"],
        data=json.loads(found["data"]),
        rule=json.loads(rules[-1]),
        prompt=prompt,
        body=body,
    )


def _entries(body: dict[str, Any], p_yes: float, coverage: float = COVERAGE) -> list[Any]:
    yes, no = math.log(coverage * p_yes), math.log(coverage * (1 - p_yes))
    if (numbers := body.get("logprob_token_ids")) is not None:
        known = {TOKENS["Yes"]: yes, TOKENS["No"]: no}
        return [
            {"token": f"token_id:{number}", "logprob": known.get(number, -9999.0)}
            for number in numbers
        ]
    others = body["top_logprobs"] - 2
    rest = math.log((1 - coverage) / 2 / others)
    return [
        {"token": "Yes", "logprob": yes},
        {"token": "No", "logprob": no},
        *({"token": f"word {number}", "logprob": rest} for number in range(others)),
    ]


def _completion(entries: Any) -> dict[str, Any]:  # noqa: ANN401 - faults have any form
    logprobs = None if entries is None else {"content": [{"token": "?", "top_logprobs": entries}]}
    message = {"role": "assistant", "content": "Perhaps"}
    return {"choices": [{"index": 0, "message": message, "logprobs": logprobs}]}


_ENTRIES: dict[Fault, Any] = {
    Fault.NO_LOGPROBS: None,
    Fault.EMPTY_LOGPROBS: [],
    Fault.NULL_LOGPROB: [{"token": "Yes", "logprob": None}],
    Fault.NAN: [{"token": "No", "logprob": math.nan}],
    Fault.ABOVE_ONE: [{"token": "No", "logprob": 1.5}],
    Fault.NEITHER_SIDE: [{"token": "Perhaps", "logprob": -0.01}],
    Fault.LOW_COVERAGE: [
        {"token": "Perhaps", "logprob": -0.01},
        {"token": "No", "logprob": -6.0},
        {"token": "Yes", "logprob": -7.0},
    ],
    Fault.UNDECIDED: [{"token": "No", "logprob": math.log(0.5)}],
}
_STATUSES = {Fault.ERROR_500: 500, Fault.BUSY_429: 429, Fault.REFUSES_400: 400}
_BODIES = {
    Fault.ERROR_IN_200: '{"error": {"message": "out of memory"}}',
    Fault.NO_CHOICES: '{"choices": []}',
    Fault.NOT_JSON: "No",
    Fault.CUT_OFF: '{"choices": [{"index": 0, "mess',
}


async def _fault(request: web.Request, fault: Fault) -> web.StreamResponse:
    if fault in _STATUSES:
        return web.json_response({"error": {"message": "no"}}, status=_STATUSES[fault])
    if fault in _BODIES:
        return web.Response(text=_BODIES[fault], content_type="application/json")
    if fault in {Fault.HANGS_UP, Fault.STALLS}:
        assert request.transport is not None
        request.transport.close()
    return web.json_response(_completion(_ENTRIES.get(fault)))


@asynccontextmanager
async def running_judge(judge: ScriptedJudge) -> AsyncGenerator[ScriptedJudge]:
    """Serve until the block is left, then close all connections."""
    posts = {"/v1/chat/completions": judge.complete, "/tokenize": judge.tokenize}
    async with serving(posts) as origin:
        judge.base_url = f"{origin}/v1"
        yield judge


@asynccontextmanager
async def backend_of(
    *base_urls: str, total_seconds: float = TIMEOUT_SECONDS
) -> AsyncGenerator[OpenAiBackend]:
    """Yield the gateway's own backend for the judge."""
    transport = Transport()
    config = BackendConfig(
        name="judge",
        replicas=base_urls,
        replica_names=tuple(f"judge-{number}" for number in range(len(base_urls))),
        total_seconds=total_seconds,
    )
    try:
        yield OpenAiBackend(config, transport, SystemClock())
    finally:
        await transport.close()
