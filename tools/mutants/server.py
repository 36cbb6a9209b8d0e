"""Runs pytest in forks of a process that has imported what no mutant changes.

Importing takes seconds of CPU, a fork takes milliseconds. Each line of the input is a JSON list of
pytest's arguments after the seconds that it may take; each line of the output is its exit status,
or `null` if it was stopped.
"""

import importlib
import json
import os
import signal
import sys
import time
from typing import Final

PRELOADED: Final = (
    *("_pytest.config", "_pytest.python", "_pytest.assertion.rewrite", "pytest", "pytest_asyncio"),
    *("hypothesis", "hypothesis.strategies", "hypothesis.stateful", "hypothesis.internal"),
    *("_hypothesis_pytestplugin", "hypothesis.internal.conjecture.engine", "xdist.plugin"),
    *("aiohttp", "aiohttp.web", "alembic.command", "alembic.runtime.migration", "asyncpg"),
    *("cryptography.hazmat.primitives.ciphers.aead", "httptools", "httpx2", "msgspec", "openai"),
    *("prometheus_client", "redis.asyncio", "sqlalchemy.ext.asyncio", "uvicorn", "uvloop"),
    *("sqlalchemy.dialects.postgresql.asyncpg", "click", "rich", "yaml", "openai.types.chat"),
)
END_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 0.02


def main() -> None:
    """Answer lines until the input ends."""
    for name in PRELOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        seconds_max, *arguments = json.loads(line)
        print(json.dumps(_run(arguments, seconds_max)), flush=True)


def _run(arguments: list[str], seconds_max: float) -> int | None:
    process_id = os.fork()
    if process_id == 0:
        _be_pytest(arguments)
    status = _wait(process_id, seconds_max)
    if status is not None:
        return status
    # As by Ctrl+C: pytest then ends what its fixtures have started, and drops databases.
    os.kill(process_id, signal.SIGINT)
    if _wait(process_id, END_SECONDS_MAX) is None:
        os.kill(process_id, signal.SIGKILL)
        os.waitpid(process_id, 0)
    return None


def _be_pytest(arguments: list[str]) -> None:
    """Become pytest, in a session of its own, and never return."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    code = 1
    try:
        code = int(importlib.import_module("pytest").main(arguments))
    finally:
        os._exit(code)


def _wait(process_id: int, seconds_max: float) -> int | None:
    """Return the exit status, or None after the given time. A process that was killed has 1."""
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process_id, os.WNOHANG)
        if ended:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1
        time.sleep(POLL_SECONDS)
    return None


if __name__ == "__main__":
    main()
