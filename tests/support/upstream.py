"""The test upstream: on the test's own event loop, or as the process that people start."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.gateway import PATIENCE_SECONDS
from tollhouse.testing.upstream import TOKENS_DEFAULT, ScriptedUpstream

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = "from tollhouse.cli.main import main; main()"


@asynccontextmanager
async def running_upstream(
    *, tokens: int = TOKENS_DEFAULT, chunk_delay_ms: int = 0
) -> AsyncGenerator[ScriptedUpstream]:
    """Scripts and what was seen are at hand; nothing stays open behind it."""
    upstream = ScriptedUpstream(tokens=tokens, chunk_delay_ms=chunk_delay_ms)
    await upstream.start()
    try:
        yield upstream
    finally:
        await upstream.stop()


@asynccontextmanager
async def upstream_process(*options: str) -> AsyncGenerator[str]:
    """The base URL of `tollhouse test-upstream`, for loads that one process cannot bear."""
    async with engine_process("test-upstream", *options) as base_url:
        yield base_url


@asynccontextmanager
async def engine_process(verb: str, *options: str) -> AsyncGenerator[str]:
    """A verb that runs an engine on a free port, until the block is left."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COMMAND, verb, "--port", "0", "--json", *options),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await process.stdout.readline()
        assert line, f"{verb} did not start"
        yield json.loads(line)["base_url"]
    finally:
        process.terminate()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await process.communicate()
