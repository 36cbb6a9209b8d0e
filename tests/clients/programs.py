"""Programs of clients, run to their end."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS_MAX = 300.0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What a program wrote: its lines, the JSON objects among them, and its warnings."""

    written: str
    objects: list[dict[str, Any]]
    warnings: str
    status: int


async def run_to_end(
    *command: str | Path, environment: Mapping[str, str], folder: Path | None = None
) -> Ended:
    """Run a program with this environment alone. One that does not end in time is killed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
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
    assert process.returncode is not None
    return Ended(
        written=written.decode(),
        objects=[json.loads(line) for line in written.splitlines() if line.startswith(b"{")],
        warnings=warned.decode(),
        status=process.returncode,
    )
