"""`python -m bench.overload [--json]`: one worker with several times the requests it can handle.

First the best throughput on 64 connections that wait for each answer, and the latency of paced
requests. Then requests at a constant rate, whether or not answers come (`bench.support.open_loop`).
Meanwhile an administrator asks for the organization and repeats what is refused. When the load
ends, paced probes show how long the worker takes to answer as before. At the end every admitted
request must be settled, and the ledger must explain every amount. `--rounds` repeats it all on the
same worker; `--record` appends the figures of each round to a file as soon as there are any.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.support import load
from bench.support.customers import BenchSetup, prepared
from bench.support.interpreters import REPOSITORY, Interpreter
from bench.support.load import Target
from bench.support.open_loop import OpenLoad, percentile
from tests.endurance.stolen import stolen_share, ticks
from tests.identity.waiting import until
from tollhouse.base.clock import SystemClock
from tollhouse.base.tasks import Tasks
from tollhouse.ledger import service as ledger
from tollhouse.ledger import verification
from tools import long_runs

OVERLOAD: Final = 5
CONNECTIONS: Final = 1_000
PROBE_SECONDS: Final = 3.0
PROBES_PER_SECOND: Final = 50
WARM_SECONDS: Final = 1.0
KEPT_SHARE_MIN: Final = 0.8
SHED_MS_MAX: Final = 50.0
RECOVERY_SECONDS_MAX: Final = 2.0
ADMIN_SECONDS_MAX: Final = 5.0
ADMIN_PAUSE_SECONDS: Final = 0.2
PEAK_SECONDS_MAX: Final = 5.0
OK, OVERLOADED = "200", "503"


async def measure_overload(setup: BenchSetup, folder: Path, *, seconds: float) -> dict[str, Any]:
    """Figures of one run."""
    target = setup.tollhouse.whole
    peak_seconds = min(seconds, PEAK_SECONDS_MAX)
    await load.saturate(target, folder, seconds=WARM_SECONDS)
    await setup.postgresql_sessions()
    answered, taken_seconds = await load.saturate(target, folder, seconds=peak_seconds)
    best = answered / taken_seconds
    usual_ms = await load.paced_ms(target, seconds=peak_seconds)
    offered = OpenLoad(
        port=target.port,
        request=target.request.decode(),
        per_second=OVERLOAD * best,
        seconds=seconds,
        connections=CONNECTIONS,
    )
    ticks_before = ticks()
    administrator = Administrator(target.port, (await setup.org.admin_key()).value)
    tasks = Tasks()
    administering = tasks.start("administrator", administrator.run())
    found, recovery_seconds = await _overload(
        offered,
        target,
        setup.interpreter,
        usual_p99_ms=percentile(usual_ms, 0.99),
        at_end=administering.cancel,
    )
    stolen = stolen_share(ticks_before, ticks())
    by_status = found["by_status"]
    admitted, shed = by_status[OK], by_status.get(OVERLOADED, {"count": 0})
    kept_share = admitted["per_second"] / best
    return {
        "best_per_second": round(best),
        "usual_p99_ms": percentile(usual_ms, 0.99),
        "offered_per_second": round(offered.per_second),
        "sent_per_second": round(offered.per_second * seconds / found["seconds"]),
        "kept_share": round(kept_share, 2),
        "shed_share": round(shed["count"] / (shed["count"] + admitted["count"]), 2),
        "admitted": admitted,
        "shed": shed,
        "sent_late_ms_max": round(found["late_ms_max"]),
        "generator_processors": round(found["processor_seconds"] / found["seconds"], 2),
        "stolen_share": stolen,
        "other_statuses": sorted(by_status.keys() - {OK, OVERLOADED}),
        "recovery_seconds": round(recovery_seconds, 2),
        "administration": administrator.figures(),
        "ledger_differences": await _differences(setup),
        "bars": {
            f"at least {KEPT_SHARE_MIN:.0%} of the best throughput": kept_share >= KEPT_SHARE_MIN,
            f"p99 of 503 under {SHED_MS_MAX:g} ms": shed.get("p99_ms", 0.0) < SHED_MS_MAX,
            f"recovery under {RECOVERY_SECONDS_MAX:g} s": recovery_seconds < RECOVERY_SECONDS_MAX,
            f"administration within {ADMIN_SECONDS_MAX:g} s": administrator.is_served,
        },
    }


class Administrator:
    """Asks for its organization again and again, and repeats a refused request after a pause."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._request = (
            f"GET /manage/v1/organization HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {key}\r\n\r\n"
        ).encode()
        self._refused = 0
        self._waited_ms: list[float] = []

    async def run(self) -> None:
        """Ask until cancelled."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(load.Connection, "127.0.0.1", self._port)
        try:
            while True:
                begun_seconds = loop.time()
                while not (await connection.answer(self._request)).startswith(load.STARTED):
                    self._refused += 1
                    await asyncio.sleep(ADMIN_PAUSE_SECONDS)
                self._waited_ms.append((loop.time() - begun_seconds) * 1000)
                await asyncio.sleep(ADMIN_PAUSE_SECONDS)
        finally:
            connection.close()

    @property
    def is_served(self) -> bool:
        """Whether it was served, each time within the bound and with its repetitions."""
        return 0 < max(self._waited_ms, default=0) < ADMIN_SECONDS_MAX * 1000

    def figures(self) -> dict[str, float]:
        """Return how often it was served and refused, and how long it waited to be served."""
        waited_ms = self._waited_ms or [ADMIN_SECONDS_MAX * 1000]
        return {
            "served": len(self._waited_ms),
            "refused": self._refused,
            "p50_ms": percentile(waited_ms, 0.5),
            "p99_ms": percentile(waited_ms, 0.99),
            "most_ms": percentile(waited_ms, 1.0),
        }


async def _overload(
    offered: OpenLoad,
    target: Target,
    interpreter: Interpreter,
    *,
    usual_p99_ms: float,
    at_end: Callable[[], object],
) -> tuple[dict[str, Any], float]:
    """Send the load; return its figures and how long the worker took to recover."""
    process = await asyncio.create_subprocess_exec(
        *(interpreter.program, "-m", "bench.support.open_loop"),
        cwd=REPOSITORY,
        env=interpreter.environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(asdict(offered)).encode() + b"\n")
    assert await process.stdout.readline() == b"sent\n", "the load broke off"
    at_end()
    recovery_seconds = await _recovery_seconds(target, slow_ms=2 * usual_p99_ms)
    output, _ = await process.communicate()
    return json.loads(output), recovery_seconds  # noqa: TID251 - written by our own command


async def _recovery_seconds(target: Target, *, slow_ms: float) -> float:
    """Return when the last probe was sent that was not answered as usual."""
    loop = asyncio.get_running_loop()
    begun_seconds, recovered_seconds = loop.time(), 0.0
    _, connection = await loop.create_connection(load.Connection, "127.0.0.1", target.port)
    while (sent_seconds := loop.time()) < begun_seconds + PROBE_SECONDS:
        answer = await connection.answer(target.request)
        waited_ms = (loop.time() - sent_seconds) * 1000
        if not answer.startswith(load.STARTED) or waited_ms > slow_ms:
            recovered_seconds = loop.time() - begun_seconds
        await asyncio.sleep(1 / PROBES_PER_SECOND)
    connection.close()
    return recovered_seconds


async def _differences(setup: BenchSetup) -> int:
    """Return how many amounts the ledger cannot explain, once nothing is held any more."""
    organization_id = setup.org.organization_id

    async def is_settled() -> bool:
        async with setup.org.database.transaction() as tx:
            credit = await ledger.credit(tx, organization_id)
        return credit.reserved_pico_usd == 0

    await until(is_settled)
    return len(await verification.verify(setup.org.database, organization_id))


async def measure(arguments: argparse.Namespace) -> None:
    """Start everything, measure, and print the figures."""
    with TemporaryDirectory(prefix="tollhouse-bench-") as name:
        folder = Path(name)
        async with prepared(folder) as setup:
            run = _now()
            for _ in range(arguments.rounds):
                found = await measure_overload(setup, folder, seconds=arguments.seconds)
                found["interpreter"] = setup.interpreter.description
                if arguments.record is not None:
                    commit = long_runs.current_commit()
                    kept = {"run": run, "ended_at": _now(), "commit": commit, **found}
                    await asyncio.to_thread(_append, arguments.record, json.dumps(kept))
                sys.stdout.write(json.dumps(found, indent=None if arguments.json else 2) + "\n")


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as records:
        records.write(line + "\n")


def _now() -> str:
    return SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ")


def main() -> None:
    """With `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.overload")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each kind of load")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--record", type=Path)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
