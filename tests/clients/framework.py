"""Clients that are libraries, each driven by a small program of its own interpreter."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.programs import run_to_end
from tests.support.deployment import MODEL, Deployment
from tools import clients

DRIVERS = Path(__file__).parent / "drivers"


@dataclass(frozen=True, kw_only=True)
class Driven:
    """What a driver printed: the result of an ability, or the client's own error."""

    result: dict[str, Any] | None
    error: str


def environment(deployment: Deployment, *, packages: Path) -> dict[str, str]:
    """Return the environment of a driver, with the gateway as its only provider."""
    return {
        "PATH": os.environ["PATH"],
        "BASE_URL": f"{deployment.gateway.base_url}/v1",
        "KEY": deployment.key.value,
        "MODEL": MODEL,
        "PACKAGES": str(packages),
    }


async def drive(deployment: Deployment, client: str, ability: str) -> Driven:
    """Run the driver of a client, with the gateway as its only provider."""
    stem = client.replace("-", "_")
    is_python = client in clients.PYTHON_CLIENTS
    command: tuple[str | Path, ...] = (
        (clients.python_of(client), "-P", DRIVERS / f"{stem}.py", ability)
        if is_python
        else (clients.NODE, DRIVERS / f"{stem}.mjs", ability)
    )
    ended = await run_to_end(
        *command,
        environment=environment(deployment, packages=clients.HOME / client),
    )
    is_done = ended.status == 0 and ended.objects
    return Driven(result=ended.objects[-1] if is_done else None, error=ended.warnings)
