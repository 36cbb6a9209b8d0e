"""Callers that never stop asking, and the history of what they were answered."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

import httpx2

from tests.cells.cell import CellCustomer
from tests.identity.waiting import until
from tests.support.deployment import chat
from tests.support.edges import EdgeProxy

FROZEN = frozenset({"organization_moving", "organization_moved"})
PAUSE_SECONDS = 0.0125
"""Between two requests of a customer, for each customer: the load is the same for any number."""


@dataclass
class History:
    """What one customer was answered. `freezes` has the seconds of each pause by a move."""

    customer: CellCustomer
    answered: set[UUID] = field(default_factory=set[UUID])
    statuses: Counter[str] = field(default_factory=Counter[str])
    freezes: list[float] = field(default_factory=list[float])
    _frozen_since: float | None = None

    def note(self, answer: httpx2.Response) -> None:
        code = "" if answer.is_success else _code(answer)
        self.statuses[f"{answer.status_code} {code}".strip()] += 1
        now = time.monotonic()
        if code in FROZEN:
            assert answer.headers["retry-after"] == "1"
            self._frozen_since = self._frozen_since or now
        if answer.is_success:
            self.answered.add(UUID(answer.headers["x-request-id"]))
            if self._frozen_since is not None:
                self.freezes.append(now - self._frozen_since)
                self._frozen_since = None

    async def is_served_again(self) -> None:
        """Wait for one more answer than there is now."""
        before = len(self.answered)

        async def is_answered() -> bool:
            return len(self.answered) > before

        await until(is_answered)


def _code(answer: httpx2.Response) -> str:
    try:
        return answer.json()["error"]["code"]
    except (ValueError, KeyError):
        return "of the proxy"


@asynccontextmanager
async def calling(
    edge: EdgeProxy, customers: Sequence[CellCustomer]
) -> AsyncGenerator[dict[CellCustomer, History]]:
    """Every customer asks again and again, one request at a time, half of them streamed."""
    histories = {customer: History(customer) for customer in customers}
    is_over = asyncio.Event()
    async with edge.client() as client, asyncio.TaskGroup() as group:
        for number, history in enumerate(histories.values()):
            pause_seconds = PAUSE_SECONDS * len(customers)
            group.create_task(_call(client, history, is_over, number % 2 == 1, pause_seconds))
        yield histories
        is_over.set()


async def _call(
    client: httpx2.AsyncClient,
    history: History,
    is_over: asyncio.Event,
    is_stream: bool,
    pause_seconds: float,
) -> None:
    headers = {"authorization": f"Bearer {history.customer.key}"}
    while not is_over.is_set():
        try:
            answer = await client.post(
                "/v1/chat/completions", json=chat(stream=is_stream), headers=headers
            )
        except httpx2.HTTPError:
            history.statuses["cut"] += 1
        else:
            if not is_stream or not answer.is_success or answer.text.endswith("data: [DONE]\n\n"):
                history.note(answer)
            else:
                history.statuses["cut"] += 1
        await asyncio.sleep(pause_seconds)
