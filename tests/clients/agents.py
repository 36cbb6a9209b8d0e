"""Coding agents as people run them: by the commands that `tollhouse up` prints."""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.programs import run_to_end
from tests.support.deployment import Deployment
from tollhouse.cli.trial.agents import agent_commands
from tools import clients

AGENTS = ("claude", "codex", "opencode", "aider")
OPTIONS = {
    "claude": ["--output-format", "json"],
    "codex": [
        *("--json", "--config", "model_providers.tollhouse.stream_max_retries=0"),
        *("--config", "model_providers.tollhouse.request_max_retries=0"),
    ],
    "opencode": ["--format", "json", "--pure", "--auto", "--title", "a task"],
}
"""How each says what a program can read, and asks once."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """What an agent wrote: its events, one JSON object in each line, and its warnings."""

    events: list[dict[str, Any]]
    warnings: str
    status: int

    @property
    def result(self) -> dict[str, Any]:
        """The only event of Claude Code."""
        return self.events[-1]

    @property
    def failures(self) -> list[str]:
        """The messages of Codex about what went wrong."""
        return [event["message"] for event in self.events if event["type"] == "error"]

    @property
    def texts(self) -> list[str]:
        """What Codex or OpenCode said."""
        return list(self._texts())

    def _texts(self) -> Iterator[str]:
        for event in self.events:
            match event:
                case {"type": "item.completed", "item": {"type": "agent_message", "text": text}}:
                    yield text
                case {"type": "text", "part": {"text": text}}:
                    yield text
                case _:
                    continue


def environment(home: Path, url: str, key: str, **variables: str) -> dict[str, str]:
    """The environment of whoever has installed all agents and exported the lines of `up`."""
    programs = [str(clients.program_of(agent).parent) for agent in AGENTS]
    home.mkdir(exist_ok=True)
    return {
        "PATH": ":".join([*programs, str(clients.NODE.parent), os.environ["PATH"]]),
        "HOME": str(home),
        "TOLLHOUSE_URL": url,
        "TOLLHOUSE_PROJECT_KEY": key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        **variables,
    }


async def run(
    agent: str,
    deployment: Deployment,
    folder: Path,
    *options: str,
    model: str,
    task: str = "Do it.",
    **variables: str,
) -> Session:
    """Run an agent in `folder`, whose parent gets its home, to the end of the task."""
    command: str = getattr(agent_commands(model, task, before=""), agent)
    asked = f"'{task}'"
    more = shlex.join((*OPTIONS[agent], *options))
    ended = await run_to_end(
        *("bash", "-c", command.replace(asked, f"{more} {asked}")),
        folder=folder,
        environment=environment(
            folder.parent / "home",
            deployment.gateway.base_url,
            deployment.key.value,
            **variables,
        ),
    )
    return Session(events=ended.objects, warnings=ended.warnings, status=ended.status)
