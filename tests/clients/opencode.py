"""OpenCode as its users run it: the program of its package, non-interactive, with a provider."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.programs import run_to_end
from tests.support.deployment import Deployment
from tools import clients


@dataclass(frozen=True, kw_only=True)
class Session:
    """What OpenCode wrote: its events, one JSON object in each line, and its warnings."""

    events: list[dict[str, Any]]
    warnings: str
    status: int

    def texts(self) -> list[str]:
        """What the agent said."""
        return [event["part"]["text"] for event in self.events if event["type"] == "text"]


async def run(
    deployment: Deployment, folder: Path, *options: str, model: str, prompt: str = "Do it."
) -> Session:
    """Run OpenCode in `folder`, whose parent gets its configuration, to the end of its turn."""
    home = folder.parent / "opencode-home"
    home.mkdir(exist_ok=True)
    ended = await run_to_end(
        clients.program_of("opencode"),
        *("run", "--format", "json", "--pure", "--auto", "--title", "a task"),
        *(*options, "--model", f"tollhouse/{model}", prompt),
        folder=folder,
        environment={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "TOLLHOUSE_KEY": deployment.key.value,
            "OPENCODE_CONFIG_CONTENT": json.dumps(_config(deployment, model)),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
    )
    return Session(events=ended.objects, warnings=ended.warnings, status=ended.status)


def _config(deployment: Deployment, model: str) -> dict[str, Any]:
    options = {"baseURL": f"{deployment.gateway.base_url}/v1", "apiKey": "{env:TOLLHOUSE_KEY}"}
    limit = {"context": 131_072, "output": 8_192}
    return {
        "share": "disabled",
        "provider": {
            "tollhouse": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Tollhouse",
                "options": options,
                "models": {model: {"name": model, "tool_call": True, "limit": limit}},
            }
        },
    }
