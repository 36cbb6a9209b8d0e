"""Clients that are libraries, each driven by a small program of its own interpreter."""

import asyncio
import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.deployment import MODEL, Deployment
from tools import clients

DRIVERS = Path(__file__).parent / "drivers"
SECONDS_MAX = 180.0


@dataclass(frozen=True, kw_only=True)
class Driven:
    """What a driver printed: the result of an ability, or the client's own error."""

    result: dict[str, Any] | None
    error: str


async def drive(deployment: Deployment, client: str, ability: str) -> Driven:
    """Run the driver of a client, with the gateway as its only provider."""
    stem = client.replace("-", "_")
    is_python = client in clients.PYTHON_CLIENTS
    command: tuple[str | Path, ...] = (
        (clients.python_of(client), "-P", DRIVERS / f"{stem}.py", ability)
        if is_python
        else (clients.NODE, DRIVERS / f"{stem}.mjs", ability)
    )
    process = await asyncio.create_subprocess_exec(
        *command,
        env={
            "PATH": os.environ["PATH"],
            "BASE_URL": f"{deployment.gateway.base_url}/v1",
            "KEY": deployment.key.value,
            "MODEL": MODEL,
            "PACKAGES": str(clients.HOME / client),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS_MAX):
            written, warned = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    lines = [line for line in written.splitlines() if line.startswith(b"{")]
    is_done = process.returncode == 0 and lines
    return Driven(result=json.loads(lines[-1]) if is_done else None, error=warned.decode())
