"""`python -m bench.judging_cost [--json]`: what judging costs a worker, and what its caller waits.

One service has a judge and customers with 0, 1, 10, 100 and 1,000 enforcing policies on requests;
another has no judge at all. The judge is the tests' own, in a process of its own: it says no at
once, so that what is counted is the gateway's work. No content is sent twice, so no verdict is
remembered. Processor time is what the kernel counts for the worker alone, until it rests.

All sides are measured in turns in every round. Judging that is switched off is measured twice, so
that the distance between these two says what noise is.

Callers of monitoring policies whose judge fails, or never answers, are timed beside callers
without a policy, in turns too. All of them must get their answer.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from bench.support import fitting, judges, load, processes
from bench.support.ground import QUESTION, customer
from bench.support.load import Target
from bench.support.policies import fill
from tests.support import databases, shop
from tests.support.courthouse import judged_by
from tests.support.gateway import settings_for
from tests.support.processes import Service, running_service
from tests.support.redis_server import running_redis
from tests.support.upstream import running_upstream
from tollhouse.policies.types import Direction, Mode
from tollhouse.settings import RedisSettings, Settings
from tollhouse.storage import schema

REQUESTS: Final = {0: 200, 1: 200, 10: 60, 100: 10, 1_000: 2}
"""Of each side in a round, by its policies: few of those that take long."""
AT_ONCE: Final = 2
CALLS_PER_SECOND: Final = 20
REST_SECONDS: Final = 0.2
DECISIONS: Final = "tollhouse_policy_decisions_total{"
BOUNDS: Final = {"request_tokens_max": 1_000_000_000, "deadline_seconds": 300.0}


@dataclass(kw_only=True)
class Side:
    """A customer of one service, and what a request of its took the worker, round by round."""

    name: str
    policies: int
    service: Service
    key: str
    cpu_us: list[float] = field(default_factory=list[float])
    waited_ms: list[float] = field(default_factory=list[float])
    sent: int = 0

    def target(self) -> Target:
        """With a content that nobody has judged."""
        text = f"{secrets.token_hex(8)} {QUESTION}"
        body = json.dumps(shop.chat(text, max_tokens=20)).encode()
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
        self.waited_ms.extend(
            await load.paced_ms(self.target(), seconds=seconds, per_second=CALLS_PER_SECOND)
        )


@dataclass(frozen=True, kw_only=True)
class Sides:
    """All that is measured in turns."""

    off: Side
    off_again: Side
    judged: Sequence[Side]
    watched: Sequence[Side]


async def rested(worker: int) -> float:
    """Its processor time once it does nothing more; another process has no event to wait for."""
    before = processes.cpu_seconds(worker)
    while True:
        await asyncio.sleep(REST_SECONDS)
        now = processes.cpu_seconds(worker)
        if now - before <= 1 / processes.TICKS_PER_SECOND:
            return now
        before = now


@asynccontextmanager
async def prepared(folder: Path, counts: Sequence[int]) -> AsyncGenerator[Sides]:
    """Start everything; all of it is gone afterwards."""
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(running_upstream())
        judge = await stack.enter_async_context(judges.running())
        redis = stack.enter_context(running_redis())

        async def started(name: str, *, is_judged: bool) -> tuple[Service, Settings]:
            url = await stack.enter_async_context(databases.temporary())
            offered = shop.offering(settings_for(url), upstream.base_url)
            settings = msgspec.structs.replace(offered, redis=RedisSettings(url=redis.url))
            if is_judged:
                settings = judged_by(settings, judge, **BOUNDS)
            (folder / name).mkdir()
            await schema.migrate(url)
            service = running_service(settings, folder / name)
            return await stack.enter_async_context(service), settings

        off, off_settings = await started("off", is_judged=False)
        on, on_settings = await started("on", is_judged=True)
        off_key = await _key(off_settings, 0)

        async def side(
            name: str, count: int = 0, rule: str = judges.ANSWERED, mode: Mode = Mode.ENFORCING
        ) -> Side:
            key = await _key(on_settings, count, rule=rule, mode=mode)
            return Side(name=name, policies=count, service=on, key=key)

        yield Sides(
            off=Side(name="judging off", policies=0, service=off, key=off_key),
            off_again=Side(name="judging off, again", policies=0, service=off, key=off_key),
            judged=[await side(f"{count} policies", count) for count in counts],
            watched=[
                await side("no policy"),
                await side("judge fails", 1, judges.FAILING, Mode.MONITORING),
                await side("judge never answers", 1, judges.SILENT, Mode.MONITORING),
            ],
        )


async def _key(
    settings: Settings, count: int, rule: str = judges.ANSWERED, mode: Mode = Mode.ENFORCING
) -> str:
    """Of a customer of its own, with so many policies on its requests."""
    world, key = await customer(settings)
    await world.database.close()
    url, owner, direction = settings.database.url, world.organization_id, Direction.REQUEST
    await fill(url, owner, count, rule=rule, direction=direction, mode=mode)
    return key


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Warm up, then go round; callers are timed after that, since what never ends is left over."""
    with TemporaryDirectory(prefix="tollhouse-bench-") as name:
        async with prepared(Path(name), arguments.policies) as sides:
            spending = [sides.off, *sides.judged, sides.off_again]
            for number in range(arguments.rounds + 1):
                for side in spending:
                    await side.spend(arguments.share)
                    sys.stderr.write(f"{number} {side.name}: {side.cpu_us[-1]:.0f} us\n")
            asked = sum(side.policies * side.sent for side in spending)
            assert await decided(sides.judged[0].service, "enforcing", "no_match") == asked
            for side in spending:
                del side.cpu_us[0]
            for number in range(arguments.rounds + 1):
                for side in sides.watched:
                    await side.wait(arguments.seconds)
                    if not number:
                        side.waited_ms.clear()
            failed = await decided(sides.judged[0].service, "monitoring", "failed")
    return summary(sides) | {"questions_asked": asked, "monitoring_failed": failed}


async def decided(service: Service, mode: str, outcome: str) -> int:
    """As the service counts it: every policy of every request was asked."""
    labels = {'direction="request"', f'mode="{mode}"', f'outcome="{outcome}"'}
    for line in (await service.metrics()).splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith(DECISIONS) and labels <= set(name[len(DECISIONS) : -1].split(",")):
            return round(float(value))
    return 0


def summary(sides: Sides) -> dict[str, Any]:
    """Medians of the rounds; ratios within a round."""
    points = [(float(side.policies), median(side.cpu_us)) for side in sides.judged]
    line = fitting.fitted(points)
    none = next(side for side in sides.judged if side.policies == 0)
    return {
        "bench": "judging_cost",
        "rounds": len(none.cpu_us),
        "cpu_us_per_request": {
            side.name: round(median(side.cpu_us)) for side in (sides.off, *sides.judged)
        },
        "cpu_us_fixed": round(line.fixed),
        "cpu_us_per_question": round(line.each, 1),
        "no_policy_over_off": _ratio(none, sides.off),
        "off_over_off": _ratio(sides.off_again, sides.off),
        "callers": {side.name: _waited(side.waited_ms) for side in sides.watched},
        "load_average": round(os.getloadavg()[0], 1),
    }


def _ratio(one: Side, other: Side) -> dict[str, float]:
    ratios = sorted(a / b for a, b in zip(one.cpu_us, other.cpu_us, strict=True))
    found = {"median": median(ratios), "lowest": ratios[0], "highest": ratios[-1]}
    return {name: round(value, 3) for name, value in found.items()}


def _waited(waited_ms: Sequence[float]) -> dict[str, float]:
    percentiles = quantiles(waited_ms, n=100, method="inclusive")
    found = {"answered": len(waited_ms), "p50_ms": percentiles[49], "p99_ms": percentiles[98]}
    return {name: round(value, 1) for name, value in found.items()}


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.judging_cost")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--policies", type=int, nargs="+", default=list(REQUESTS))
    parser.add_argument("--share", type=float, default=1.0, help="of the requests of a round")
    parser.add_argument("--seconds", type=float, default=5.0, help="of callers, a round")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments))
    sys.stdout.write(json.dumps(found, indent=None if arguments.json else 2) + "\n")


if __name__ == "__main__":
    main()
