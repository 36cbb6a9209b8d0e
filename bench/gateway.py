"""`python -m bench.gateway [--json]`: the gateway with everything on beside nginx as a bare proxy.

One worker of each on one core, in front of the same static upstreams; load, upstreams, PostgreSQL
and Redis on the others. Figures are medians of rounds in which all are measured in turns, so that
a busy moment of the machine meets all; ratios are taken within a round.

Processor time is what the kernel counts for the one process, at saturation on 64 connections.
Latency counts from the moment when a request was due. A chunk's share of its stream's beginning
and end is in its figure.

With `--figure` the worker's stacks are sampled under the same loads afterwards, and the shares of
its parts are drawn.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import selectors
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Final

from bench.support import interpreters, load, processes, samples, share_figure
from bench.support.customers import BenchSetup, Server, prepared

REQUEST_RATIO_MAX: Final = 15.0
CHUNK_RATIO_MAX: Final = 3.5
P50_ABOVE_NGINX_MS_MAX: Final = 1.2
P99_MS_MAX: Final = 5.0
WARM_SECONDS: Final = 1.0
SAMPLED_SECONDS: Final = 8.0


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of one server, in one round or as medians of all."""

    requests_per_second: float
    cpu_us_per_request: float
    cpu_us_per_chunk: float
    p50_ms: float
    p99_ms: float
    memory_mb: float
    postgresql_cpu_us_per_request: float


@dataclass(frozen=True, kw_only=True)
class Round:
    """All three, one after the other."""

    direct: Figures
    nginx: Figures
    tollhouse: Figures


async def measure_round(setup: BenchSetup, folder: Path, *, seconds: float) -> Round:
    """The same load for each of them."""
    return Round(
        direct=await measure_server(setup, setup.direct, folder, seconds=seconds),
        nginx=await measure_server(setup, setup.proxy, folder, seconds=seconds),
        tollhouse=await measure_server(setup, setup.tollhouse, folder, seconds=seconds),
    )


async def measure_server(
    setup: BenchSetup, server: Server, folder: Path, *, seconds: float
) -> Figures:
    """Saturated, paced, and streaming; nothing is left of one when the next begins."""
    sessions_before = await setup.postgresql_sessions()
    cpu_before = processes.cpu_seconds(server.process)
    answered, taken_seconds = await load.saturate(server.whole, folder, seconds=seconds)
    if server is setup.tollhouse:
        await setup.all_is_settled()
    cpu_after = processes.cpu_seconds(server.process)
    sessions_after = await setup.postgresql_sessions()
    waited_ms = await load.paced_ms(server.whole, seconds=seconds)
    chunk_cpu_before = processes.cpu_seconds(server.stream_process)
    chunks = await load.stream(server.streamed, seconds=seconds)
    chunk_cpu_after = processes.cpu_seconds(server.stream_process)
    percentiles = quantiles(waited_ms, n=100, method="inclusive")
    sessions_seconds = sum(
        after - sessions_before.get(process, 0.0) for process, after in sessions_after.items()
    )
    return Figures(
        requests_per_second=answered / taken_seconds,
        cpu_us_per_request=(cpu_after - cpu_before) / answered * 1e6,
        cpu_us_per_chunk=(chunk_cpu_after - chunk_cpu_before) / chunks * 1e6,
        p50_ms=percentiles[49],
        p99_ms=percentiles[98],
        memory_mb=processes.memory_mb(server.process),
        postgresql_cpu_us_per_request=sessions_seconds / answered * 1e6,
    )


def summary(interpreter: str, rounds: Sequence[Round]) -> dict[str, object]:
    """Medians, least and most, the ratios that are claimed, and whether each bar is held."""
    tollhouse = _medians([each.tollhouse for each in rounds])
    requests = _ratios(rounds, lambda figures: figures.cpu_us_per_request)
    chunks = _ratios(rounds, lambda figures: figures.cpu_us_per_chunk)
    above_ms = [each.tollhouse.p50_ms - each.nginx.p50_ms for each in rounds]
    return {
        "interpreter": interpreter,
        "rounds": len(rounds),
        "direct": _medians([each.direct for each in rounds]),
        "nginx": _medians([each.nginx for each in rounds]),
        "tollhouse": tollhouse,
        "tollhouse_least_and_most": _ranges([each.tollhouse for each in rounds]),
        "request_ratio": _spread(requests),
        "chunk_ratio": _spread(chunks),
        "p50_above_nginx_ms": _spread(above_ms),
        "bars": {
            f"cpu per request at most {REQUEST_RATIO_MAX:g} times nginx": (
                median(requests) <= REQUEST_RATIO_MAX
            ),
            f"cpu per chunk at most {CHUNK_RATIO_MAX:g} times nginx": (
                median(chunks) <= CHUNK_RATIO_MAX
            ),
            f"p50 at most {P50_ABOVE_NGINX_MS_MAX:g} ms above nginx": (
                median(above_ms) <= P50_ABOVE_NGINX_MS_MAX
            ),
            f"p99 under {P99_MS_MAX:g} ms": tollhouse["p99_ms"] < P99_MS_MAX,
        },
    }


def _medians(figures: Sequence[Figures]) -> dict[str, float]:
    rows = [asdict(each) for each in figures]
    return {name: round(median(row[name] for row in rows), 2) for name in rows[0]}


def _ranges(figures: Sequence[Figures]) -> dict[str, list[float]]:
    rows = [asdict(each) for each in figures]
    return {
        name: [round(kind(row[name] for row in rows), 2) for kind in (min, max)] for name in rows[0]
    }


def _ratios(rounds: Sequence[Round], figure: Callable[[Figures], float]) -> list[float]:
    return [figure(each.tollhouse) / figure(each.nginx) for each in rounds]


def _spread(values: Sequence[float]) -> dict[str, float]:
    found = {"median": median(values), "least": min(values), "most": max(values)}
    return {name: round(value, 2) for name, value in found.items()}


async def draw_shares(setup: BenchSetup, folder: Path, file: Path) -> dict[str, dict[str, float]]:
    """Sample the worker under both loads, and draw the shares of its parts."""
    server, seconds = setup.tollhouse, SAMPLED_SECONDS
    requests, _ = await asyncio.gather(
        samples.taken(server.process, folder, seconds=seconds),
        load.saturate(server.whole, folder, seconds=seconds),
    )
    chunks, _ = await asyncio.gather(
        samples.taken(server.process, folder, seconds=seconds),
        load.stream(server.streamed, seconds=seconds),
    )
    order = [part for part, _ in (requests + chunks).most_common()]
    shares = {
        name: {part: counts[part] / counts.total() for part in order if counts[part]}
        for name, counts in (("a request", requests), ("a chunk", chunks))
    }
    title = "Where a saturated worker spends its processor time"
    await asyncio.to_thread(file.write_text, share_figure.drawn(title, shares), encoding="utf-8")
    return {
        name: {part: round(share, 3) for part, share in row.items()} for name, row in shares.items()
    }


async def measure(arguments: argparse.Namespace) -> None:
    """Warm all of them up, then go round; tell every round as it ends."""
    with TemporaryDirectory(prefix="tollhouse-bench-") as name:
        folder = Path(name)
        async with prepared(folder, python=arguments.python) as setup:
            await measure_round(setup, folder, seconds=min(WARM_SECONDS, arguments.seconds))
            rounds: list[Round] = []
            for _ in range(arguments.rounds):
                rounds.append(await measure_round(setup, folder, seconds=arguments.seconds))
                sys.stdout.write(f"{_line(rounds[-1])}\n")
                sys.stdout.flush()
            found = summary(setup.interpreter.description, rounds)
            if arguments.figure is not None:
                found["shares"] = await draw_shares(setup, folder, arguments.figure)
    sys.stdout.write(json.dumps(found, indent=None if arguments.json else 2) + "\n")


def _line(measured: Round) -> str:
    return "  ".join(
        f"{name} {figures.cpu_us_per_request:.0f} us/request"
        f" {figures.cpu_us_per_chunk:.0f} us/chunk"
        f" p50 {figures.p50_ms:.2f} p99 {figures.p99_ms:.2f} ms"
        for name, figures in (("nginx", measured.nginx), ("tollhouse", measured.tollhouse))
    )


def _loop() -> asyncio.AbstractEventLoop:
    """The usual loop wakes by whole milliseconds, which is more than some answers take."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.gateway")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each kind of load")
    parser.add_argument("--figure", type=Path, help="an SVG of where the time goes")
    parser.add_argument("--python", default=interpreters.DEBIAN_PYTHON, help="runs the gateway")
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
