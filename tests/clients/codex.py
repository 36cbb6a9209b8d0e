"""Codex as its users run it: the program of its package, non-interactive, with a configuration."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.programs import run_to_end
from tests.support.deployment import Deployment
from tools import clients

_CONFIG = """
model_provider = "tollhouse"
model_context_window = 131072

[model_providers.tollhouse]
name = "Tollhouse"
base_url = "{base_url}/v1"
env_key = "TOLLHOUSE_KEY"
wire_api = "responses"
stream_max_retries = 0
request_max_retries = 0
"""


@dataclass(frozen=True, kw_only=True)
class Session:
    """What Codex wrote: its events, one JSON object in each line, and its warnings."""

    events: list[dict[str, Any]]
    warnings: str
    status: int

    def messages(self, kind: str) -> list[str]:
        """The messages of events of one kind, such as `error`."""
        return [event["message"] for event in self.events if event["type"] == kind]

    def texts(self) -> list[str]:
        """What the agent said."""
        return [
            event["item"]["text"]
            for event in self.events
            if event["type"] == "item.completed" and event["item"]["type"] == "agent_message"
        ]


async def run(
    deployment: Deployment, folder: Path, *options: str, model: str, prompt: str = "Do it."
) -> Session:
    """Run Codex in `folder`, whose parent gets its configuration, to the end of its turn."""
    home = folder.parent / "codex-home"
    home.mkdir(exist_ok=True)
    config = _CONFIG.format(base_url=deployment.gateway.base_url)
    (home / "config.toml").write_text(config, encoding="utf-8")
    ended = await run_to_end(
        clients.program_of("codex"),
        *("exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access"),
        *(*options, "--model", model, prompt),
        folder=folder,
        environment={
            "PATH": f"{clients.NODE.parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "CODEX_HOME": str(home),
            "TOLLHOUSE_KEY": deployment.key.value,
        },
    )
    return Session(events=ended.objects, warnings=ended.warnings, status=ended.status)
