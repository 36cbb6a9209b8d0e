"""One caller's connection: what the gateway writes waits here until the caller reads it."""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

from tests.simulation.judge import WORDS
from tests.simulation.ledger_server import LedgerServer
from tests.simulation.plan import Backend, Reading
from tests.simulation.system import Facts, SimulatedSystem, shortened
from tollhouse.base.errors import GatewayError

WRITE_SECONDS = 30.0
UNREAD_MAX = 1
"""Pieces that fit between the gateway and a caller who does not read."""
ERROR_WAITS = 2.0
ENDINGS = (
    b"data: [DONE]",
    b'"error":{',
    b"event: response.completed",
    b"event: response.incomplete",
    b"event: response.failed",
    b"event: message_stop",
)
"""What the last record of a stream can be."""
UNAVAILABLE = "policy_evaluator_unavailable"


class Connection:
    """What the gateway sees of a caller, and what the caller gets."""

    def __init__(self, system: SimulatedSystem, ledger: LedgerServer, facts: Facts) -> None:
        self._world = system
        self._ledger = ledger
        self._facts = facts
        self._reading: Reading = facts.request.reading
        self._pieces: deque[bytes] = deque()
        self._pieces_read = 0
        self._changed = asyncio.Event()
        self.gone = asyncio.Event()
        self.is_cut = False
        self.is_complete = False
        self._has_ending = False

    # The gateway's side

    async def send(self, message: Any) -> None:
        """Write a head or a piece, and wait until the caller has read most of what is there."""
        if self.is_cut:
            self._facts.sent |= dict.fromkeys(_answer_words(message.get("body", b"")))
            return
        if message["type"] == "http.response.start":
            self._facts.status = message["status"]
            self._world.note(self._name, f"caller gets {message['status']}")
            return
        self._put(message.get("body", b""), is_last=not message.get("more_body", False))
        while len(self._pieces) > UNREAD_MAX and not self.is_cut:
            await self._drain()

    async def _drain(self) -> None:
        """A connection that makes no progress for the write deadline is cut."""
        if self._reading.trickles:
            await self._next_change()
            return
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._next_change()
        except TimeoutError:
            self._world.note(self._name, "write deadline cuts the connection")
            self.cut()

    async def receive(self) -> dict[str, Any]:
        """Return once the caller has left."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    def refuse(self, failure: GatewayError) -> None:
        """Send an error instead of an answer."""
        self._check_resolved(failure.code)
        self._check_reason(failure.code)
        if self.is_cut:
            return
        self._facts.status = 400
        self._world.note(self._name, f"caller gets error {failure.code}")
        self._end()

    def _put(self, body: bytes, *, is_last: bool) -> None:
        words = _answer_words(body)
        self._world.check_judged(self._facts, "response", words)
        new = [word for word in words if word not in self._facts.sent]
        self._facts.sent |= dict.fromkeys(words)
        if new:
            ended = self._ledger.ended.get(self._facts.request_id)
            self._world.check(
                ended is None or ended.by != "reaper",
                "no delivery after the hold was written off",
                f"request {self._facts.number}: {new}",
            )
        if _is_failure(body):
            self._check_resolved("in the stream")
        self._has_ending = self._has_ending or any(each in body for each in ENDINGS)
        if body:
            self._facts.has_sent_byte = True
            self._pieces.append(body)
        if is_last:
            self._world.check(
                self._has_ending or not self._facts.request.is_stream,
                "streams end by an event",
                f"request {self._facts.number}: the answer ends without one",
            )
            self._end()
        self._change()

    def _check_resolved(self, code: str) -> None:
        """An error leaves after its hold is resolved, or after two seconds."""
        facts, now = self._facts, self._world.loop.time()
        keeps_hold = facts.answer.backend is Backend.BILLS and facts.backend_calls > 0
        if keeps_hold or facts.is_refused_by_fault:
            return
        self._world.check(
            not self._ledger.is_open(facts.request_id)
            or now - facts.last_event >= ERROR_WAITS - 1e-6,
            "error after void",
            f"request {facts.number} got error {code} while its hold is open",
        )

    def _check_reason(self, code: str) -> None:
        """A judge that answers in time is not said to be unavailable."""
        is_slow = any(record.filler for record in self._facts.answer.records)
        has_reason = self._world.plan.verdicts or is_slow or self._facts.machine.was_troubled
        self._world.check(
            code != UNAVAILABLE or bool(has_reason),
            "error has a reason",
            f"request {self._facts.number} got error {code}",
        )

    # The caller's side

    async def read(self) -> None:
        """Read as planned until the answer is complete or the connection ends."""
        reading = self._reading
        while not self.is_cut:
            if reading.leave_after is not None and self._pieces_read >= reading.leave_after:
                self._world.note(self._name, "caller leaves")
                self.cut()
                return
            if reading.stall_after == self._pieces_read and self._facts.status == 200:
                self._world.note(self._name, f"caller stops reading for {reading.stall_seconds} s")
                await self._stall(reading.stall_seconds)
            elif self._pieces:
                self._take(self._pieces.popleft())
            elif self.is_complete:
                return
            else:
                await self._next_change()

    async def _stall(self, seconds: float) -> None:
        """Read nothing for a while, not even what is complete."""
        self._pieces_read += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.gone.wait()

    def _take(self, piece: bytes) -> None:
        words = [word for word in WORDS.findall(piece.decode()) if word in self._facts.generated]
        self._facts.read |= dict.fromkeys(words)
        self._pieces_read += 1
        self._world.note(self._name, f"caller reads {len(piece)} bytes, {shortened(words)}")
        self._change()

    def cut(self) -> None:
        """The connection is gone, whoever ended it."""
        self.is_cut = True
        if self._facts.left_at is None:
            self._facts.left_at = self._world.loop.time()
        self.gone.set()
        self._change()

    def abort(self) -> None:
        """The gateway cuts off a caller who does not read, or for whom it has no room."""
        self._facts.is_cut_off = True
        self.cut()

    async def ended(self) -> None:
        """Wait until the answer is complete or the connection is gone."""
        while not self.is_complete and not self.is_cut:
            await self._next_change()

    @property
    def _name(self) -> str:
        return f"request {self._facts.number}"

    def _end(self) -> None:
        self.is_complete = True
        self._change()

    def _change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _next_change(self) -> None:
        await self._changed.wait()


def _answer_words(body: bytes) -> list[str]:
    """The words of the backend in what the gateway sends; a response repeats its request."""
    return [word for word in WORDS.findall(body.decode()) if "a" in word.split("bad")[0]]


def _is_failure(body: bytes) -> bool:
    """A record that tells of a failure; an answer that has expired is settled afterwards."""
    is_told = b'"error":{' in body or b"event: response.failed" in body
    return is_told and b"was not read in time" not in body
