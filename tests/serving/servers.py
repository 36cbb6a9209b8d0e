"""Real server processes on loopback, started and ended by the tests that need them."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

from tests.serving.applications import STALL_SECONDS_MAX
from tests.serving.raw import Observation, exchange

REPOSITORY = Path(__file__).parents[2]
START_SECONDS_MAX = 120.0
NOWHERE = ("", 0)

SETTINGS = """
[database]
url = "postgresql://127.0.0.1/none"

[secrets]
master = "0123456789abcdefghijklmnopqrstuv"

[server]
port = 0
probe_port = 0
{server}
"""

SERVE = """
import sys
from pathlib import Path
from tollhouse.serving.supervisor import run
sys.exit(run(Path(sys.argv[1]), application=sys.argv[2]))
"""


@dataclass(kw_only=True, slots=True)
class Server:
    """A running server and the addresses that it listens on."""

    process: asyncio.subprocess.Process
    address: tuple[str, int]
    probe_address: tuple[str, int] = NOWHERE
    settings_path: Path = field(default_factory=Path)
    log_path: Path = field(default_factory=Path)

    async def get(self, path: str) -> Observation:
        return await exchange(self.address, get(path))

    async def probe(self, path: str) -> Observation:
        return await exchange(self.probe_address, get(path))

    def configure(self, server: str) -> None:
        """Write other settings; they hold after a reload."""
        self.settings_path.write_text(SETTINGS.format(server=server), encoding="utf-8")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8")

    async def wait_for_log(self, text: str) -> str:
        """Wait until the log holds `text`; the line that holds it."""
        async with asyncio.timeout(START_SECONDS_MAX):
            while text not in self.log():  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.02)
        return next(line for line in self.log().splitlines() if text in line)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


@contextlib.asynccontextmanager
async def supervised(
    folder: Path,
    server: str,
    *,
    application: str = "tests.serving.applications:Echo",
    is_awaited: bool = True,
) -> AsyncGenerator[Server]:
    """A supervisor with its workers; whatever still runs at the end is killed."""
    settings_path, log_path = folder / "tollhouse.toml", folder / "log.jsonl"
    settings_path.write_text(SETTINGS.format(server=server), encoding="utf-8")
    with log_path.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", SERVE, str(settings_path), application),
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            # A killed supervisor leaves its folder behind; here it goes with the test.
            env={**_environment(), "TMPDIR": str(folder)},
        )
    try:
        main, probes = await _announced(process) if is_awaited else (NOWHERE, NOWHERE)
        yield Server(
            process=process,
            address=main,
            probe_address=probes,
            settings_path=settings_path,
            log_path=log_path,
        )
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@contextlib.asynccontextmanager
async def granian(
    *application: str, environment: dict[str, str] | None = None
) -> AsyncGenerator[Server]:
    """An application on Granian, with Granian's own bound on the time of a head."""
    port = _free_port()
    chosen = application or ("--interface", "asginl", "tests.serving.applications:on_granian")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "granian", "--http", "1", "--no-ws", "--port", str(port)),
        *("--http1-header-read-timeout", str(int(1000 * STALL_SECONDS_MAX))),
        *("--log-level", "error", *chosen),
        cwd=REPOSITORY,
        env=_environment() | (environment or {}),
        start_new_session=True,
    )
    try:
        await _until_accepting(port)
        yield Server(process=process, address=("127.0.0.1", port))
    finally:
        # Asked politely, it now and then never ends. How it ends is no concern of ours.
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _announced(
    process: asyncio.subprocess.Process,
) -> tuple[tuple[str, int], tuple[str, int]]:
    assert process.stdout is not None
    async with asyncio.timeout(START_SECONDS_MAX):
        line = (await process.stdout.readline()).decode()
    main, probes = (_address(word) for word in line.split() if "://" in word)
    return main, probes


async def _until_accepting(port: int) -> None:
    async with asyncio.timeout(START_SECONDS_MAX):
        while True:
            with contextlib.suppress(ConnectionError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.strip(",\n").removeprefix("http://").rpartition(":")
    return host, int(port)
