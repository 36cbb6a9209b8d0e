"""The service as `tollhouse serve` runs it: a supervisor and its workers, as processes."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from tests.support.gateway import NO_AUTHORITIES, TIMEOUT_SECONDS
from tollhouse.serving.worker import DEFAULT_APPLICATION
from tollhouse.settings import Settings

REPOSITORY = Path(__file__).parents[2]

SERVE = """
import sys
from pathlib import Path
from tollhouse.serving.supervisor import run
sys.exit(run(Path(sys.argv[1]), application=sys.argv[2]))
"""


@dataclass(frozen=True, kw_only=True)
class Service:
    process: asyncio.subprocess.Process
    base_url: str
    probe_url: str
    log_path: Path

    def client(self, key: str | None = None) -> httpx2.AsyncClient:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return httpx2.AsyncClient(
            base_url=self.base_url,
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
            verify=NO_AUTHORITIES,
        )

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.base_url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8")

    def started_workers(self) -> list[int]:
        """Process IDs in the order of their start; the dead ones too."""
        lines = [json.loads(line) for line in self.log().splitlines()]
        return [line["worker"] for line in lines if line["event"] == "worker_started"]

    async def wait_for_event(self, event: str) -> dict[str, Any]:
        """The first line of the log that tells it, once it does."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                for line in self.log().splitlines(keepends=True):
                    # The last one may still be written.
                    if line.endswith("\n") and (told := json.loads(line))["event"] == event:
                        return told
                await asyncio.sleep(0.02)

    def kill_newest_worker(self) -> None:
        """As a crash would: nothing is finished, nothing is said."""
        os.kill(self.started_workers()[-1], signal.SIGKILL)

    async def metrics(self) -> str:
        async with httpx2.AsyncClient(
            timeout=TIMEOUT_SECONDS, trust_env=False, verify=NO_AUTHORITIES
        ) as client:
            return (await client.get(f"{self.probe_url}/metrics")).text

    async def stop(self) -> int:
        """Drain and end; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), TIMEOUT_SECONDS)


@asynccontextmanager
async def running_service(
    settings: Settings,
    folder: Path,
    *,
    program: str = sys.executable,
    environment: Mapping[str, str] | None = None,
    application: str = DEFAULT_APPLICATION,
) -> AsyncGenerator[Service]:
    """Yields when the first worker is ready. Whatever still runs at the end is killed."""
    configuration = folder / "tollhouse.toml"
    configuration.write_text(as_toml(settings), encoding="utf-8")
    async with running_configuration(
        configuration,
        folder / "log.jsonl",
        program=program,
        environment=environment,
        application=application,
    ) as service:
        yield service


@asynccontextmanager
async def running_configuration(
    configuration: Path,
    log_path: Path,
    *,
    program: str = sys.executable,
    environment: Mapping[str, str] | None = None,
    application: str = DEFAULT_APPLICATION,
) -> AsyncGenerator[Service]:
    """The same of a configuration that is already written."""
    with log_path.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(program, "-c", SERVE, str(configuration), application),
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env=environment or {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        )
    try:
        base_url, probe_url = await _addresses(process, log_path)
        yield Service(process=process, base_url=base_url, probe_url=probe_url, log_path=log_path)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def as_toml(settings: Settings) -> str:
    """The same configuration as a file; a JSON string is a TOML string too."""
    lines: list[str] = []
    for section, fields in msgspec.to_builtins(settings).items():
        lines.append(f"[{section}]")
        for name, value in fields.items():
            if value is not None:
                lines.append(f"{json.dumps(name)} = {_inline(value)}")
    return "\n".join([*lines, ""])


def _inline(value: Any) -> str:  # noqa: ANN401 - whatever TOML holds
    match value:
        case dict():
            table = msgspec.convert(value, dict[str, Any])
            pairs = (f"{json.dumps(name)} = {_inline(inner)}" for name, inner in table.items())
            return f"{{ {', '.join(pairs)} }}"
        case list():
            return f"[{', '.join(map(_inline, msgspec.convert(value, list[Any])))}]"
        case _:
            return json.dumps(value)


async def _addresses(process: asyncio.subprocess.Process, log_path: Path) -> tuple[str, str]:
    assert process.stdout is not None
    async with asyncio.timeout(TIMEOUT_SECONDS):
        line = (await process.stdout.readline()).decode()
    assert line, f"the service did not start: {log_path}"
    base_url, probe_url = (word.strip(",") for word in line.split() if "://" in word)
    return base_url, probe_url
