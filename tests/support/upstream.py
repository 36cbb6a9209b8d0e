"""The test upstream: on the test's own event loop, or as the process that people start."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from tests.support.engine import engine_process
from tests.upstream.upstream import TOKENS_DEFAULT, ScriptedUpstream


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


@contextmanager
def upstream_process(*options: str) -> Generator[str]:
    """The base URL of `tollhouse test-upstream`, for loads that one process cannot bear."""
    with engine_process("test-upstream", *options) as base_url:
        yield base_url
