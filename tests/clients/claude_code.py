"""Claude Code as its users run it: the commands of the guide, the program of its package."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.documents import read, scripts
from tests.clients.programs import run_to_end
from tests.support.deployment import Deployment
from tools import clients


@dataclass(frozen=True, kw_only=True)
class Session:
    """The result that Claude Code wrote, and its exit status."""

    result: dict[str, Any]
    warnings: str
    status: int


async def run(
    deployment: Deployment,
    folder: Path,
    *options: str,
    guide: str,
    model: str,
    retries: int = 0,
    output_tokens: int = 8_192,
) -> Session:
    """Run the guide's commands in `folder` with this model, to the end of the task."""
    (commands,) = [script for script in scripts(read(guide)) if "claude" in script]
    more = shlex.join(("--output-format", "json", *options))
    commands = commands.replace("team/coder", model).rstrip() + f" {more}\n"
    home = folder.parent / "claude-home"
    home.mkdir(exist_ok=True)
    program = clients.program_of("claude")
    ended = await run_to_end(
        *("bash", "-c", commands),
        folder=folder,
        environment={
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "TOLLHOUSE_URL": deployment.gateway.base_url,
            "TOLLHOUSE_PROJECT_KEY": deployment.key.value,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(output_tokens),
            "CLAUDE_CODE_MAX_RETRIES": str(retries),
        },
    )
    assert ended.objects, ended.warnings
    return Session(result=ended.objects[-1], warnings=ended.warnings, status=ended.status)
