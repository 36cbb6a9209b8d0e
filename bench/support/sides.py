"""A customer whose requests are measured, in turns with those of others."""

import asyncio
import json
import secrets
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from bench.support import load, processes
from bench.support.customers import QUESTION
from bench.support.load import Target
from tests.support import deployment
from tests.support.processes import Service

REQUESTS: Final = {0: 200, 1: 200, 10: 60, 100: 10, 1_000: 2}
"""Of each side in a round, by its policies: few of those that take long."""
AT_ONCE: Final = 2
CALLS_PER_SECOND: Final = 20
REST_SECONDS: Final = 0.2
REST_SECONDS_MAX: Final = 120.0


@dataclass(kw_only=True)
class Side:
    """A customer of one service, and what a request of its took the worker, round by round."""

    name: str
    policies: int
    service: Service
    key: str
    cpu_us: list[float] = field(default_factory=list[float])
    waited_ms: list[list[float]] = field(default_factory=list[list[float]])
    sent: int = 0

    def target(self) -> Target:
        """With a content that nobody has judged."""
        text = f"{secrets.token_hex(8)} {QUESTION}"
        body = json.dumps(deployment.chat(text, max_tokens=20)).encode()
        port = urlsplit(self.service.base_url).port
        assert port is not None
        return Target(port=port, key=self.key, body=body)

    async def spend(self, share: float) -> None:
        """Processor time of the worker for a round's requests."""
        count = max(1, round(REQUESTS[self.policies] * share))
        targets = [self.target() for _ in range(count)]
        worker = self.service.started_workers()[-1]
        before = await rested(worker)
        requests = [target.request for target in targets]
        self.sent += count
        await load.send_all(targets[0].port, requests, at_once=AT_ONCE)
        self.cpu_us.append((await rested(worker) - before) / count * 1e6)

    async def wait(self, seconds: float) -> None:
        """What callers wait; one that is refused ends the measurement."""
        waited_ms = await load.paced_ms(self.target(), seconds=seconds, per_second=CALLS_PER_SECOND)
        self.sent += len(waited_ms)
        self.waited_ms.append(waited_ms)


async def rested(worker: int) -> float:
    """Its processor time once it does nothing more; another process has no event to wait for."""
    before = processes.cpu_seconds(worker)
    async with asyncio.timeout(REST_SECONDS_MAX):
        while True:
            await asyncio.sleep(REST_SECONDS)
            now = processes.cpu_seconds(worker)
            if now - before <= 1 / processes.TICKS_PER_SECOND:
                return now
            before = now
