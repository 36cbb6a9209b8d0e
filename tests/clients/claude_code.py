"""Claude Code as its users run it: the commands of the guide, the program of its package."""

import asyncio
import contextlib
import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.documents import read, scripts
from tests.support.deployment import Deployment
from tools import clients

SECONDS_MAX = 300.0


@dataclass(frozen=True, kw_only=True)
class Session:
    """The result that Claude Code wrote, and its exit status."""

    result: dict[str, Any]
    warnings: str
    status: int


async def run(
    deployment: Deployment, folder: Path, *options: str, guide: str, model: str
) -> Session:
    """Run the guide's commands in `folder` with this model, to the end of the task."""
    (commands,) = [script for script in scripts(read(guide)) if "claude" in script]
    more = shlex.join(("--output-format", "json", *options))
    commands = commands.replace("team/coder", model).rstrip() + f" {more}\n"
    home = folder.parent / "claude-home"
    home.mkdir(exist_ok=True)
    program = clients.program_of("claude")
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", commands),
        cwd=folder,
        env={
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "TOLLHOUSE_URL": deployment.gateway.base_url,
            "TOLLHOUSE_PROJECT_KEY": deployment.key.value,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192",
            "CLAUDE_CODE_MAX_RETRIES": "0",
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
    assert process.returncode is not None
    lines = [line for line in written.splitlines() if line.startswith(b"{")]
    assert lines, warned
    return Session(
        result=json.loads(lines[-1]), warnings=warned.decode(), status=process.returncode
    )
