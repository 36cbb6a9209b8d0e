"""`python -m bench.judging_cost [--json]`: what judging costs a worker, and what its caller waits.

One service has a judge and customers with 0, 1, 10, 100 and 1,000 enforcing policies on requests;
another has no judge at all. The judge is the tests' own, in a process of its own: it says no at
once, so that what is counted is the gateway's work. No content is sent twice, so no verdict is
remembered. Processor time is what the kernel counts for the worker alone, until it rests.

All sides are measured in turns in every round. Judging that is switched off is measured twice, so
that the distance between these two says what noise is.

Callers of monitoring policies whose judge fails, and after them those whose judge never answers,
are timed beside callers without a policy, in turns too. All of them must get their answer.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from bench.support import fitting, judges
from bench.support.customers import customer
from bench.support.policies import fill
from bench.support.sides import REQUESTS, Side
from tests.identity.waiting import until
from tests.support import databases, deployment
from tests.support.gateway import settings_for
from tests.support.judged_deployment import judged_by
from tests.support.processes import Service, running_service
from tests.support.redis_server import running_redis
from tests.support.upstream import running_upstream
from tollhouse.base.policies import Direction, Mode
from tollhouse.settings import RedisSettings, Settings
from tollhouse.storage import migrate

DECISIONS: Final = "tollhouse_policy_decisions_total{"
BOUNDS: Final = {
    "request_tokens_max": 1_000_000_000,
    "organization_tokens_per_minute": 1_000_000_000,
    "deadline_seconds": 300.0,
}


@dataclass(frozen=True, kw_only=True)
class Sides:
    """All that is measured in turns."""

    off: Side
    off_again: Side
    judged: Sequence[Side]
    failing: tuple[Side, Side]
    silent: tuple[Side, Side]


@asynccontextmanager
async def prepared(folder: Path, counts: Sequence[int]) -> AsyncGenerator[Sides]:
    """Start everything; all of it is gone afterwards."""
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(running_upstream())
        judge = await stack.enter_async_context(judges.running())
        redis = stack.enter_context(running_redis())

        async def started(name: str, *, is_judged: bool) -> tuple[Service, Settings]:
            url = await stack.enter_async_context(databases.temporary())
            offered = deployment.offering(settings_for(url), upstream.base_url)
            settings = msgspec.structs.replace(offered, redis=RedisSettings(url=redis.url))
            if is_judged:
                settings = judged_by(settings, judge, **BOUNDS)
            (folder / name).mkdir()
            await migrate.migrate(url)
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
            failing=(
                await side("no policy"),
                await side("judge fails", 1, judges.FAILING, Mode.MONITORING),
            ),
            silent=(
                await side("no policy, later"),
                await side("judge never answers", 1, judges.SILENT, Mode.MONITORING),
            ),
        )


async def _key(
    settings: Settings, count: int, rule: str = judges.ANSWERED, mode: Mode = Mode.ENFORCING
) -> str:
    """Of a customer of its own, with so many policies on its requests."""
    org, key = await customer(settings)
    await org.database.close()
    url, owner, direction = settings.database.url, org.organization_id, Direction.REQUEST
    await fill(url, owner, count, rule=rule, direction=direction, mode=mode)
    return key


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Warm up, then go round. What never ends comes last, since it stays."""
    with TemporaryDirectory(prefix="tollhouse-bench-") as name:
        async with prepared(Path(name), arguments.policies) as sides:
            on, spending = sides.judged[0].service, [sides.off, *sides.judged, sides.off_again]
            for number in range(arguments.rounds + 1):
                for side in spending:
                    await side.spend(arguments.share)
                    sys.stderr.write(f"{number} {side.name}: {side.cpu_us[-1]:.0f} us\n")
            asked = sum(side.policies * side.sent for side in spending)
            assert await decided(on, "enforcing", "no_match") == asked
            await wait_in_turns(sides.failing, arguments)
            failed = sides.failing[1].sent
            await until(lambda: _is_decided(on, "monitoring", "failed", failed))
            await wait_in_turns(sides.silent, arguments)
    return summary(sides) | {"questions_asked": asked, "questions_failed": failed}


async def wait_in_turns(sides: Sequence[Side], arguments: argparse.Namespace) -> None:
    """One round more than counts."""
    for _ in range(arguments.rounds + 1):
        for side in sides:
            await side.wait(arguments.seconds)


async def _is_decided(service: Service, mode: str, outcome: str, count: int) -> bool:
    return await decided(service, mode, outcome) == count


async def decided(service: Service, mode: str, outcome: str) -> int:
    """As the service counts it: every policy of every request was asked."""
    labels = {'direction="request"', f'mode="{mode}"', f'outcome="{outcome}"'}
    for line in (await service.metrics()).splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith(DECISIONS) and labels <= set(name[len(DECISIONS) : -1].split(",")):
            return round(float(value))
    return 0


def summary(sides: Sides) -> dict[str, Any]:
    """Medians of all rounds but the first; ratios within a round."""
    points = [(float(side.policies), median(side.cpu_us[1:])) for side in sides.judged]
    line = fitting.fitted(points)
    none = sides.judged[0]
    return {
        "bench": "judging_cost",
        "rounds": len(none.cpu_us) - 1,
        "cpu_us_per_request": {
            side.name: round(median(side.cpu_us[1:])) for side in (sides.off, *sides.judged)
        },
        "cpu_us_fixed": round(line.fixed),
        "cpu_us_per_question": round(line.each, 1),
        "no_policy_over_off": _ratio(none, sides.off),
        "off_over_off": _ratio(sides.off_again, sides.off),
        "no policy, judge fails": _callers(*sides.failing),
        "no policy, judge never answers": _callers(*sides.silent),
        "load_average": round(os.getloadavg()[0], 1),
    }


def _ratio(one: Side, other: Side) -> dict[str, float]:
    ratios = sorted(a / b for a, b in zip(one.cpu_us[1:], other.cpu_us[1:], strict=True))
    found = {"median": median(ratios), "lowest": ratios[0], "highest": ratios[-1]}
    return {name: round(value, 3) for name, value in found.items()}


def _callers(none: Side, other: Side) -> dict[str, Any]:
    """Of both, and what the other's callers wait longer, in the middle of all rounds."""
    rounds = list(zip(_percentiles(none), _percentiles(other), strict=True))
    return {
        "answered": [sum(map(len, side.waited_ms[1:])) for side in (none, other)],
        "p50_ms": [round(median(pair[side][0] for pair in rounds), 1) for side in (0, 1)],
        "p99_ms": [round(median(pair[side][1] for pair in rounds), 1) for side in (0, 1)],
        "p50_longer_ms": round(median(after[0] - before[0] for before, after in rounds), 1),
        "p99_longer_ms": round(median(after[1] - before[1] for before, after in rounds), 1),
    }


def _percentiles(side: Side) -> list[tuple[float, float]]:
    cut = [quantiles(each, n=100, method="inclusive") for each in side.waited_ms[1:]]
    return [(found[49], found[98]) for found in cut]


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.judging_cost")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--policies", type=int, nargs="+", choices=REQUESTS, default=list(REQUESTS), help="0 first"
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the requests of a round")
    parser.add_argument("--seconds", type=float, default=5.0, help="of callers, a round")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments))
    sys.stdout.write(json.dumps(found, indent=None if arguments.json else 2) + "\n")


if __name__ == "__main__":
    main()
