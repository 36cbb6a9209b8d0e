"""Callers of one cell at a steady rate, and what each of them received."""

import asyncio
import itertools
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx2

from tests.faults.test_upstream_faults import PATHS, body
from tests.outages.cells import Cell
from tests.support.processes import Service
from tests.upstream.exchanges import Journal, RecordedExchange

CALLS_PER_SECOND: Final = 20
ANSWERED_SECONDS_MAX: Final = 15.0
LAST_EVENTS: Final = {
    "chat": "data: [DONE]",
    "responses": "event: response.completed",
    "messages": "event: message_stop",
}
_NUMBER: Final = re.compile(rb"call (\d+)\.")
_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True, slots=True)
class CallerAnswer:
    """What became of one call. `at_seconds` counts from the beginning of the fault."""

    number: int
    at_seconds: float
    seconds: float
    status: int | None
    request_id: str | None
    model: str | None
    is_whole: bool

    @property
    def is_answered(self) -> bool:
        return self.status == 200 and self.is_whole and self.seconds <= ANSWERED_SECONDS_MAX


@dataclass(kw_only=True)
class Callers:
    """Callers of one cell; half of them ask for a stream."""

    cell: Cell
    service: Service
    key: str
    answers: list[CallerAnswer] = field(default_factory=list[CallerAnswer])

    async def call_for(self, seconds: float, *, began: float) -> None:
        """Call at the rate for so long, and wait for all answers."""
        due = time.monotonic()
        ends = due + seconds
        async with self.service.client(self.key) as client, asyncio.TaskGroup() as calls:
            while (now := time.monotonic()) < ends:
                calls.create_task(self._call(client, next(_numbers), at_seconds=now - began))
                due += 1 / CALLS_PER_SECOND
                await asyncio.sleep(max(0.0, due - now))

    async def _call(self, client: httpx2.AsyncClient, number: int, *, at_seconds: float) -> None:
        form, is_stream = str(self.cell.form), number % 2 == 0
        asked = body(form, f"call {number}.", model_id=self.cell.name, is_stream=is_stream)
        began = time.monotonic()
        status, request_id, model, is_whole = None, None, None, False
        try:
            answer = await client.post(PATHS[form], json=asked, timeout=3 * ANSWERED_SECONDS_MAX)
        except httpx2.HTTPError:
            pass
        else:
            status, request_id = answer.status_code, answer.headers.get("x-request-id")
            model = answer.headers.get("x-tollhouse-model")
            is_whole = LAST_EVENTS[form] in answer.text if is_stream else _is_json(answer.text)
        self.answers.append(
            CallerAnswer(
                number=number,
                at_seconds=at_seconds,
                seconds=time.monotonic() - began,
                status=status,
                request_id=request_id,
                model=model,
                is_whole=is_whole,
            )
        )


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


class CallJournal(Journal):
    """The instant and the number of each call that an upstream received."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[float, int]] = []

    def open(
        self, *, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> RecordedExchange:
        """Add a request that has arrived."""
        if found := _NUMBER.search(body):
            self.calls.append((time.monotonic(), int(found[1])))
        return super().open(method=method, path=path, headers=headers, body=body)
