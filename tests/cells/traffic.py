"""Callers that never stop asking, and the history of what they were answered."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

import httpx2

from tests.cells.cell import CellCustomer
from tests.identity.waiting import until
from tests.support.deployment import chat
from tests.support.edges import EdgeProxy

FROZEN = frozenset({"organization_moving", "organization_moved"})
CLOSED = "closed"
"""The connection was closed before an answer began. nginx closes idle connections when it is
reloaded, and a request that is on its way at that moment reaches nobody."""
REFUSED = "503 service_unavailable"
"""The gateway refused a request, which costs nothing: a machine that stands still does that."""
CUT = "cut"
"""An answer began and did not end."""
PAUSE_SECONDS = 0.0125
"""Between two requests of a customer, for each customer: the load is the same for any number."""


@dataclass
class History:
    """What one customer was answered. `freezes` has the seconds of each pause by a move."""

    customer: CellCustomer
    edge: EdgeProxy
    answered: set[UUID] = field(default_factory=set[UUID])
    statuses: Counter[str] = field(default_factory=Counter[str])
    freezes: list[float] = field(default_factory=list[float])
    refusals: list[str] = field(default_factory=list[str])
    """When the gateway refused a request, and its reason."""
    _frozen_since: float | None = None

    def note(self, answer: httpx2.Response) -> None:
        code = "" if answer.is_success else _code(answer)
        self.statuses[f"{answer.status_code} {code}".strip()] += 1
        now = time.monotonic()
        if f"{answer.status_code} {code}" == REFUSED:
            self.refusals.append(f"{time.strftime('%H:%M:%S')} {answer.json()['error']['message']}")
        if code in FROZEN:
            assert answer.headers["retry-after"] == "1"
            self._frozen_since = self._frozen_since or now
        if answer.is_success:
            self.answered.add(UUID(answer.headers["x-request-id"]))
            if self._frozen_since is not None:
                self.freezes.append(now - self._frozen_since)
                self._frozen_since = None

    def failures(self) -> int:
        """How many requests may have reached a gateway that was killed before it answered."""
        proxies = sum(n for status, n in self.statuses.items() if status.endswith("of the proxy"))
        return proxies + self.statuses[CUT] + self.statuses[CLOSED]

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
    edges: Mapping[CellCustomer, EdgeProxy],
) -> AsyncGenerator[dict[CellCustomer, History]]:
    """Every customer asks its proxy one request at a time; half of the answers are streams."""
    histories = {customer: History(customer, edge) for customer, edge in edges.items()}
    is_over = asyncio.Event()
    async with AsyncExitStack() as stack:
        clients = {
            id(edge): await stack.enter_async_context(edge.client()) for edge in edges.values()
        }
        group = await stack.enter_async_context(asyncio.TaskGroup())
        for number, history in enumerate(histories.values()):
            group.create_task(
                _call(
                    clients[id(history.edge)],
                    history,
                    is_over,
                    is_stream=number % 3 == 1,
                    pause_seconds=PAUSE_SECONDS * len(histories),
                )
            )
        yield histories
        is_over.set()


async def _call(
    client: httpx2.AsyncClient,
    history: History,
    is_over: asyncio.Event,
    *,
    is_stream: bool,
    pause_seconds: float,
) -> None:
    headers = {"authorization": f"Bearer {history.customer.key}"}
    while not is_over.is_set():
        request = client.build_request(
            "POST", "/v1/chat/completions", json=chat(stream=is_stream), headers=headers
        )
        try:
            answer = await client.send(request, stream=True)
        except httpx2.HTTPError:
            history.statuses[CLOSED] += 1
        else:
            await _read(answer, history, is_stream=is_stream)
        await asyncio.sleep(pause_seconds)


async def _read(answer: httpx2.Response, history: History, *, is_stream: bool) -> None:
    try:
        await answer.aread()
    except httpx2.HTTPError:
        history.statuses[CUT] += 1
        return
    finally:
        await answer.aclose()
    if not is_stream or not answer.is_success or answer.text.endswith("data: [DONE]\n\n"):
        history.note(answer)
    else:
        history.statuses[CUT] += 1
