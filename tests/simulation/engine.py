"""A backend that answers as planned: any record may end a choice or tell a usage, true or not."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from tests.simulation.catalog import CATALOG, SICK
from tests.simulation.ledger_server import LedgerServer
from tests.simulation.plan import Answer, Backend, Ending, Record, Report
from tests.simulation.system import Facts, SimulatedSystem, prompt_words, shortened
from tollhouse.backends.errors import (
    BackendBroke,
    BackendBusy,
    BackendError,
    BackendFailed,
    BackendHungUp,
    BackendRejected,
    BackendTimedOut,
    BackendUnreachable,
)
from tollhouse.backends.replicas import Replica, Replicas
from tollhouse.backends.types import (
    FunctionDelta,
    ToolCallDelta,
    UpstreamChoice,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
    UpstreamDelta,
    UpstreamMessage,
    UpstreamRequest,
    UpstreamUsage,
)
from tollhouse.base.clock import Clock
from tollhouse.inference.assembly import backend_config
from tollhouse.observability.metrics import BackendMetrics

T = TypeVar("T")

FIRST_SECONDS = 120.0
IDLE_SECONDS = 60.0
TOTAL_SECONDS = 580.0
CLOSING_SECONDS = 0.001
FAILURES_MAX = 3
PAUSE_SECONDS = 10.0
UNBILLED = frozenset({Ending.BUSY, Ending.UNREACHABLE, Ending.FAILED})
NOTICED_SECONDS = 11.0
"""A caller who leaves before the head of the answer is noticed when that is sent."""
PROMPT_TOKENS = 10
WORD_TOKENS = 3
REPLICA = "replica-1"
PAIRS = ([0, 1], [1, 0])
"""The choices that one record may carry together."""
_WORD = re.compile(rb"q\d+p0")


@dataclass(frozen=True)
class Piece:
    """A record with its time after the call was opened, and the words in it."""

    at: float
    chunk: UpstreamChunk
    words: tuple[str, ...]
    choice: int


class SimulatedBackend:
    """One backend of one worker."""

    is_healthy = True

    def __init__(
        self,
        system: SimulatedSystem,
        ledger: LedgerServer,
        backend: Backend,
        clock: Clock,
        *,
        is_sick: bool,
    ) -> None:
        self._world = system
        self._ledger = ledger
        self._backend = backend
        self._is_sick = is_sick
        name = f"{SICK if is_sick else ''}{backend.value}"
        config = backend_config(name, CATALOG.backends[name])
        self._replicas = Replicas(config, clock, BackendMetrics(name))
        self._failures = 0
        self._until = 0.0

    async def fetch(self, request: UpstreamRequest, kind: type[T]) -> tuple[T, str]:
        """Nothing but completions is asked of it."""
        raise BackendFailed(replica=REPLICA)

    def is_ready(self, model: str) -> bool:
        """Whether it is not ejected, as it is for a pause after some failures in a row."""
        return self._world.loop.time() >= self._until and self._replicas.is_ready(model)

    async def complete(self, request: UpstreamRequest) -> tuple[UpstreamCompletion, str]:
        """The whole answer of the first replica that gives one."""
        return await self._ask(request, self._whole), REPLICA

    async def _whole(self, facts: Facts) -> UpstreamCompletion:
        """The whole answer after all its delays."""
        script = await self._accepted(facts)
        answer = facts.answer
        ends_at = script.opened_at + script.seconds
        if answer.ending is Ending.HANGS or script.seconds > FIRST_SECONDS:
            await _until(self._world, script.opened_at + FIRST_SECONDS)
            self._world.event(facts, "backend: silent for too long")
            raise BackendTimedOut(replica=REPLICA)
        await _until(self._world, ends_at)
        if answer.ending is Ending.BREAKS:
            self._world.event(facts, "backend: hung up")
            raise BackendHungUp(replica=REPLICA)
        for piece in script.pieces:
            facts.generated |= dict.fromkeys(piece.words, piece.choice)
        facts.got_record = facts.got_end = True
        facts.told_output = script.told_output
        facts.got_usage = script.told_output is not None
        self._world.event(facts, f"backend: whole answer, {len(facts.generated)} words")
        return script.completion()

    @asynccontextmanager
    async def stream(self, request: UpstreamRequest) -> "AsyncGenerator[SimulatedStream]":
        """Open a stream. Leaving the block closes it."""
        script = await self._ask(request, self._accepted)
        facts = script.facts
        stream = SimulatedStream(self._world, facts, script)
        try:
            yield stream
        finally:
            stream.is_closed = True
            self._world.note(f"request {facts.number}", "backend: connection closed")
            await asyncio.sleep(CLOSING_SECONDS)

    async def _ask(self, request: UpstreamRequest, read: Callable[[Facts], Awaitable[T]]) -> T:
        """Ask one replica after another, as a call does."""
        tried: list[Replica] = []
        replica = self._replicas.acquire(request, is_bounded=True)
        while True:
            tried.append(replica)
            facts = self._opened(request)
            try:
                return await read(facts)
            except BackendError as failure:
                self._replicas.record_failure(replica, request.model, failure)
                following = facts.request.second and self._replicas.acquire_next(
                    request, failure, is_bounded=True, tried=tried
                )
                if following is None:
                    raise
            finally:
                self._replicas.release(replica)
            replica = following

    async def _accepted(self, facts: Facts) -> "Script":
        """What was called has not refused the request."""
        script = Script(facts)
        await _until(self._world, script.refused_at)
        script.raise_refusal()
        return script

    def _opened(self, request: UpstreamRequest) -> Facts:
        found = _WORD.search(request.body)
        assert found is not None, "every request carries its number"
        facts = self._world.attempt_with(found[0].decode())
        self._world.event(facts, f"backend: called ({self._backend.value})")
        answer = facts.request.answer
        if self._is_sick:
            is_second = any(each is facts.request.sick for each in facts.called)
            answer = facts.request.second if is_second else facts.request.sick
        assert answer is not None, "a sick backend is called for those who have a fallback"
        self._check_move(facts, answer)
        facts.called.append(answer)
        self._failures += 1
        if self._is_sick and self._failures % FAILURES_MAX == 0:
            self._until = self._world.loop.time() + PAUSE_SECONDS
        self._world.check(
            self._ledger.is_live(facts.request_id),
            "backend call has a live hold",
            f"request {facts.number}",
        )
        self._world.check_judged(facts, "request", prompt_words(facts))
        return facts

    def _check_move(self, facts: Facts, answer: Answer) -> None:
        """Others are called once, after those that may not bill, for a caller who is there.

        The sick one comes last while it is ejected.
        """
        if not facts.called:
            return
        name = f"request {facts.number}"
        self._world.check(
            all(each is not answer for each in facts.called),
            "one backend call",
            f"{name} was sent twice",
        )
        self._world.check(not facts.got_record, "one answer", f"{name} was sent on after records")
        self._world.check(
            facts.left_at is None, "calls for nobody", f"{name} was sent on for nobody"
        )
        self._world.check(
            all(
                each.backend is not Backend.BILLS or each.ending in UNBILLED
                for each in facts.called
            ),
            "billed twice",
            f"{name} may be billed twice",
        )


class SimulatedStream:
    """An answer on its way. What has come and was not read is still there."""

    replica = REPLICA

    def __init__(self, system: SimulatedSystem, facts: Facts, script: "Script") -> None:
        self._world = system
        self._facts = facts
        self._script = script
        self._left = list(script.pieces)
        self._returned_at = script.opened_at
        self._until = script.opened_at + TOTAL_SECONDS
        self._begun_at: float | None = None
        self.is_closed = False

    async def next(self) -> Sequence[UpstreamChunk]:
        """The records that came together; none at the end of a complete answer."""
        self._check_wanted()
        opened_at = self._script.opened_at
        due = opened_at + (self._left[0].at if self._left else self._script.seconds)
        latest = self._latest()
        is_silent = not self._left and self._facts.answer.ending is Ending.HANGS
        if due > latest or is_silent:
            await _until(self._world, latest)
            self._world.event(self._facts, "backend: silent for too long")
            raise BackendTimedOut(replica=REPLICA)
        await _until(self._world, due)
        self._returned_at = self._world.loop.time()
        return self._arrived() if self._left else self._ended()

    def _latest(self) -> float:
        """How long the next record is awaited: time in which the caller read does not count."""
        if self._begun_at is None:
            return self._script.opened_at + FIRST_SECONDS
        now = self._world.loop.time()
        self._until += now - self._returned_at
        return min(now + IDLE_SECONDS, self._until)

    def _check_wanted(self) -> None:
        """Nobody reads what was closed, or what nobody gets if to hang up ends the bill.

        That a caller has left is noticed once its answer has begun.
        """
        facts, now = self._facts, self._world.loop.time()
        name = f"request {facts.number}"
        self._world.check(not self.is_closed, "closed", f"{name} is read after its end")
        is_steady = not facts.machine.was_troubled
        left_at = facts.left_at if facts.left_at is not None else now
        has_left = now > max(left_at, self._begun_at or 0.0) + NOTICED_SECONDS
        can_end = facts.answer.backend is Backend.STOPS and facts.got_usage
        self._world.check(
            not (is_steady and has_left and can_end), "hangs up", f"{name} goes on for nobody"
        )

    def _arrived(self) -> Sequence[UpstreamChunk]:
        now = self._world.loop.time() - self._script.opened_at
        here = [piece for piece in self._left if piece.at <= now + 1e-9]
        self._left = self._left[len(here) :]
        self._facts.got_record = True
        if self._begun_at is None:
            self._begun_at = self._world.loop.time()
        for piece in here:
            self._facts.generated |= dict.fromkeys(piece.words, piece.choice)
            self._facts.got_usage |= piece.chunk.usage is not None
        if not self._left:
            self._facts.told_output = self._script.told_output
        words = shortened(word for piece in here for word in piece.words)
        self._world.event(self._facts, f"backend: {len(here)} records, {words}")
        return [piece.chunk for piece in here]

    def _ended(self) -> Sequence[UpstreamChunk]:
        if self._facts.answer.ending is Ending.BREAKS:
            self._world.event(self._facts, "backend: broke off")
            self._facts.is_broken_off = True
            raise BackendBroke(replica=REPLICA)
        self._facts.got_end = True
        self._world.event(self._facts, "backend: end of the answer")
        return ()


class Script:
    """An answer laid out in time."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        answer = self._answer = facts.answer
        now = asyncio.get_running_loop().time()
        self.refused_at = self.opened_at = now + answer.open_delay
        self._words: Counter[int] = Counter()
        self._finished: set[int] = set()
        self.told_output: int | None = None
        self.pieces: list[Piece] = []
        at = 0.0
        for record in answer.records:
            at += record.delay
            self._write(record, at)
        self.seconds = at + answer.end_delay
        if answer.ending is Ending.COMPLETE:
            self._close()
        for first, second in pairwise(range(len(self.pieces))):
            self._join(first, second)

    def raise_refusal(self) -> None:
        """Raise what a backend says instead of an answer."""
        failures: dict[Ending, BackendError] = {
            Ending.BUSY: BackendBusy(replica=REPLICA),
            Ending.REJECTED: BackendRejected("no", replica=REPLICA),
            Ending.UNREACHABLE: BackendUnreachable(replica=REPLICA),
            Ending.FAILED: BackendFailed(replica=REPLICA),
        }
        if (failure := failures.get(self._answer.ending)) is not None:
            raise failure

    def completion(self) -> UpstreamCompletion:
        """All records as one object, with the usage at its end."""
        texts: dict[int, dict[str, str]] = {
            choice: {} for choice in range(self.facts.request.choices)
        }
        for piece in self.pieces:
            for choice in piece.chunk.choices:
                for name, text in _said(choice.delta):
                    texts[choice.index][name] = texts[choice.index].get(name, "") + text
        usage = self._usage()
        return UpstreamCompletion(
            choices=[
                UpstreamChoice(
                    index=index,
                    message=_message(text),
                    finish_reason="stop",
                )
                for index, text in texts.items()
            ],
            usage=usage,
        )

    def _write(self, record: Record, at: float) -> None:
        choice, number = record.choice, self.facts.number
        room = self.facts.request.output_tokens // WORD_TOKENS - self._words[choice]
        count = 0 if record.field == "nothing" else max(0, min(record.words, room))
        first = sum(self._words.values())
        words = [f"q{number}a{first + place}" for place in range(count)]
        self._words[choice] += count
        if record.bad_policy is not None and words:
            words[-1] = f"q{number}abad{record.bad_policy}"
        text = "." * record.filler + "".join(f"{word} " for word in words)
        is_bare = record.field == "nothing" and record.has_usage and not record.has_finish
        chunk = UpstreamChunk(
            choices=[]
            if is_bare
            else [
                UpstreamChunkChoice(
                    index=choice,
                    delta=_delta(record.field, text),
                    finish_reason="stop" if record.has_finish else None,
                )
            ],
            usage=self._usage_so_far(None if is_bare else choice) if record.has_usage else None,
        )
        if record.has_finish:
            self._finished.add(choice)
        self.pieces.append(Piece(at, chunk, tuple(words), choice))

    def _join(self, first: int, second: int) -> None:
        """Let one record carry two choices, where they come at the same time."""
        one, other = self.pieces[first], self.pieces[second]
        choices = [*one.chunk.choices, *other.chunk.choices]
        has_usage = one.chunk.usage is not None or other.chunk.usage is not None
        if one.at == other.at and not has_usage and [each.index for each in choices] in PAIRS:
            self.pieces[first] = replace(one, chunk=UpstreamChunk(choices=choices))
            self.pieces[second] = replace(other, chunk=UpstreamChunk())

    def _close(self) -> None:
        for choice in range(self.facts.request.choices):
            if choice not in self._finished:
                chunk = UpstreamChunk(
                    choices=[UpstreamChunkChoice(index=choice, finish_reason="stop")]
                )
                self.pieces.append(Piece(self.seconds, chunk, (), choice))
        if (usage := self._usage()) is not None:
            self.pieces.append(Piece(self.seconds, UpstreamChunk(usage=usage), (), 0))
            self.told_output = usage.completion_tokens

    def _usage_so_far(self, choice: int | None) -> UpstreamUsage:
        """Of one choice, or of all; too low where the last report is, unless it may be the last."""
        answer = self._answer
        is_low = answer.report is Report.LOW and not any(each.has_finish for each in answer.records)
        true = WORD_TOKENS * (self._words.total() if choice is None else self._words[choice])
        return _told(true // 2 if is_low else true)

    def _usage(self) -> UpstreamUsage | None:
        request = self.facts.request
        true = WORD_TOKENS * sum(self._words.values())
        match self._answer.report:
            case Report.TRUE:
                return _told(true)
            case Report.LOW:
                return _told(true // 2)
            case Report.HIGH:
                return _told(true + 3)
            case Report.ABOVE_BOUND:
                return _told(request.output_tokens * request.choices + 100)
            case Report.NONE:
                return None


def _told(output_tokens: int) -> UpstreamUsage:
    return UpstreamUsage(prompt_tokens=PROMPT_TOKENS, completion_tokens=output_tokens)


def _delta(name: str, text: str) -> UpstreamDelta:
    if not text:
        return UpstreamDelta()
    if name == "arguments":
        function = FunctionDelta(name="tool", arguments=text)
        return UpstreamDelta(tool_calls=[ToolCallDelta(id="call-1", function=function)])
    return UpstreamDelta(
        content=text if name == "content" else None,
        reasoning=text if name == "reasoning" else None,
        reasoning_content=text if name == "reasoning_content" else None,
        refusal=text if name == "refusal" else None,
    )


def _said(delta: UpstreamDelta) -> Iterator[tuple[str, str]]:
    for name in ("content", "reasoning", "reasoning_content", "refusal"):
        text: str | None = getattr(delta, name)
        if text:
            yield name, text
    for call in delta.tool_calls or ():
        if call.function is not None:
            yield "arguments", call.function.arguments or ""


def _message(texts: dict[str, str]) -> UpstreamMessage:
    """A whole message; an engine tells its reasoning by one name."""
    arguments = texts.get("arguments")
    function = {"name": "tool", "arguments": arguments}
    calls: list[dict[str, Any]] = [{"id": "call-1", "type": "function", "function": function}]
    return UpstreamMessage(
        content=texts.get("content"),
        reasoning=texts.get("reasoning"),
        reasoning_content=None if "reasoning" in texts else texts.get("reasoning_content"),
        refusal=texts.get("refusal"),
        tool_calls=None if arguments is None else calls,
    )


async def _until(system: SimulatedSystem, at: float) -> None:
    await asyncio.sleep(max(0.0, at - system.loop.time()))
