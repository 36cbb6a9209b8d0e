"""`python -m bench.peers [--json]`: Tollhouse beside other gateways that can be installed here.

One worker of each on one core, in front of the same static upstreams; load, upstreams, PostgreSQL
and Redis on the others. All are measured in every round, one after the other, with the same chat
request and the same stream of 50 chunks. Tollhouse does everything that it does in production; the
others do what their row says. A gateway that cannot be installed or does not answer is named with
the reason.

Processor time is that of the whole process tree of a gateway, for all requests that were sent at
saturation on 64 connections. Without `--json` the output is the Markdown of the published tables.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import os
import platform
import selectors
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Final

from bench.support import load, nginx, processes
from bench.support.customers import BenchSetup, Server, prepared
from bench.support.peers import report
from bench.support.peers.installation import PeerUnavailableError
from bench.support.peers.known import PEERS, Peer, Runtime
from bench.support.peers.report import Gateway, GatewayFigures
from bench.support.peers.running import running

NGINX: Final = "nginx"
WARM_SECONDS: Final = 1.0
QUIET_SECONDS: Final = 0.25
QUIET_SHARE_MAX: Final = 0.2
QUIET_TRIES_MAX: Final = 40
HEADROOM: Final = 1.3
"""A gateway carries a rate if it answers so many times that at saturation."""
CONFIGURATIONS: Final = "bench/support/peers"


class Comparison:
    """The gateways that answer, in the order of the table, and those that do not."""

    def __init__(self, setup: BenchSetup, folder: Path) -> None:
        self._setup = setup
        self._folder = folder
        self.servers: dict[str, Server] = {NGINX: setup.proxy}
        self.gateways: list[Gateway] = [
            Gateway(
                name=NGINX,
                version=nginx.version(),
                runtime=Runtime.C,
                configuration="bench/support/nginx.py",
                leaves_out="keys, limits, admission and ledger; bodies pass unread",
            )
        ]
        self.absent: dict[str, str] = {}

    async def start(self, stack: AsyncExitStack) -> None:
        """Start every peer that can be started, then list Tollhouse."""
        for peer in PEERS:
            _tell(f"starting {peer.name} {peer.version}")
            try:
                self.servers[peer.name] = await stack.enter_async_context(
                    running(peer, self._setup, self._folder / peer.pin)
                )
            except PeerUnavailableError as error:
                self.absent[peer.name] = str(error)
                _tell(f"{peer.name} is not measured: {error}")
            else:
                self.gateways.append(_row(peer))
        self.servers[report.TOLLHOUSE] = self._setup.tollhouse
        self.gateways.append(
            Gateway(
                name=report.TOLLHOUSE,
                version=version("tollhouse"),
                runtime=Runtime.PYTHON,
                configuration="bench/support/customers.py",
                leaves_out="nothing: everything is on",
            )
        )

    async def round(self, *, seconds: float) -> dict[str, GatewayFigures]:
        """Measure all, one after the other; a peer that fails is left out from here on."""
        found: dict[str, GatewayFigures] = {}
        for name, server in list(self.servers.items()):
            try:
                found[name] = await self._measure(server, seconds=seconds)
            except (AssertionError, OSError, EOFError) as error:
                if name in (NGINX, report.TOLLHOUSE):
                    raise
                self._leave_out(name, f"it failed under load: {error!r}")
            else:
                _tell(_line(name, found[name]))
        return found

    def _leave_out(self, name: str, reason: str) -> None:
        self.absent[name] = reason
        del self.servers[name]
        self.gateways = [gateway for gateway in self.gateways if gateway.name != name]
        _tell(f"{name} is not measured: {reason}")

    async def _measure(self, server: Server, *, seconds: float) -> GatewayFigures:
        """Saturated, paced, and streaming; nothing is left of one when the next begins."""
        root = server.process
        if server in (self._setup.proxy, self._setup.tollhouse):
            root = processes.parent(root)
        sessions_before = await self._setup.postgresql_sessions()
        cpu_before = _cpu_seconds(root)
        answered, taken_seconds = await load.saturate(server.whole, self._folder, seconds=seconds)
        if server is self._setup.tollhouse:
            await self._setup.all_is_settled()
        await _until_quiet(root)
        # Each connection had one more request under way when the load ended.
        sent = answered + load.CONNECTIONS
        request_cpu = (_cpu_seconds(root) - cpu_before) / sent
        sessions_after = await self._setup.postgresql_sessions()
        p50_ms, p99_ms = await _paced(server, report.COMMON_RATE, seconds=seconds)
        is_carried = answered / taken_seconds >= report.FULL_RATE * HEADROOM
        full_rate = (
            await _paced(server, report.FULL_RATE, seconds=seconds) if is_carried else (None, None)
        )
        await _until_quiet(root)
        chunk_cpu_before = _cpu_seconds(root)
        chunks = await load.stream(server.streamed, seconds=seconds)
        await _until_quiet(root)
        sessions_seconds = sum(
            after - sessions_before.get(process, 0.0) for process, after in sessions_after.items()
        )
        return GatewayFigures(
            requests_per_second=answered / taken_seconds,
            cpu_us_per_request=request_cpu * 1e6,
            cpu_us_per_chunk=(_cpu_seconds(root) - chunk_cpu_before) / chunks * 1e6,
            p50_ms=p50_ms,
            p99_ms=p99_ms,
            full_rate_p50_ms=full_rate[0],
            full_rate_p99_ms=full_rate[1],
            memory_mb=sum(map(processes.memory_mb, processes.tree(root))),
            postgresql_cpu_us_per_request=sessions_seconds / sent * 1e6,
        )


async def _paced(server: Server, per_second: int, *, seconds: float) -> tuple[float, float]:
    waited_ms = await load.paced_ms(server.whole, seconds=seconds, per_second=per_second)
    percentiles = quantiles(waited_ms, n=100, method="inclusive")
    return percentiles[49], percentiles[98]


def _cpu_seconds(root: int) -> float:
    return sum(processes.cpu_seconds_by_process(processes.tree(root)).values())


async def _until_quiet(root: int) -> None:
    """Wait for what a gateway still does after its load has ended."""
    before = _cpu_seconds(root)
    for _ in range(QUIET_TRIES_MAX):
        await asyncio.sleep(QUIET_SECONDS)
        after = _cpu_seconds(root)
        if after - before <= QUIET_SECONDS * QUIET_SHARE_MAX:
            return
        before = after


def _row(peer: Peer) -> Gateway:
    return Gateway(
        name=peer.name,
        version=peer.version,
        runtime=peer.runtime,
        configuration=f"{CONFIGURATIONS}/{peer.configuration}",
        leaves_out=peer.leaves_out,
    )


def _line(name: str, figures: GatewayFigures) -> str:
    return (
        f"{name}: {figures.requests_per_second:.0f} requests/s"
        f" {figures.cpu_us_per_request:.0f} us/request {figures.cpu_us_per_chunk:.0f} us/chunk"
        f" p50 {figures.p50_ms:.2f} p99 {figures.p99_ms:.2f} ms {figures.memory_mb:.0f} MB"
    )


def _tell(line: str) -> None:
    """Progress goes to the standard error, so that the output is the tables alone."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _machine(setup: BenchSetup, load_before: tuple[float, float, float]) -> dict[str, str]:
    load_after = os.getloadavg()
    return {
        "interpreter": setup.interpreter.description,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_average": f"{load_before[0]:.1f} before, {load_after[0]:.1f} at the end",
    }


async def measure(arguments: argparse.Namespace) -> None:
    """Start and warm up all of them, then go round."""
    with TemporaryDirectory(prefix="tollhouse-bench-") as name:
        load_before = os.getloadavg()
        async with prepared(Path(name)) as setup, AsyncExitStack() as stack:
            comparison = Comparison(setup, Path(name))
            await comparison.start(stack)
            _tell("warming up")
            await comparison.round(seconds=min(WARM_SECONDS, arguments.seconds))
            rounds: list[dict[str, GatewayFigures]] = []
            for number in range(arguments.rounds):
                _tell(f"round {number + 1}")
                rounds.append(await comparison.round(seconds=arguments.seconds))
            where = _machine(setup, load_before)
    if arguments.json:
        found = report.summary(rounds, comparison.gateways, comparison.absent)
        sys.stdout.write(json.dumps({**where, **found}) + "\n")
    else:
        told = "\n".join(f"- {what.replace('_', ' ')}: {value}" for what, value in where.items())
        tables = report.markdown(rounds, comparison.gateways, comparison.absent)
        sys.stdout.write(f"{told}\n- rounds: {len(rounds)}\n\n{tables}")


def _loop() -> asyncio.AbstractEventLoop:
    """The usual loop wakes by whole milliseconds, which is more than some answers take."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def main() -> None:
    """Measure and tell; with `--json` the output is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each kind of load")
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
