"""What a shell completes: the names of objects, as the gateway lists them."""

import contextlib
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from tollhouse.base.errors import DeploymentError, GatewayError
from tollhouse.cli.verbs import gateways, references
from tollhouse.settings import DEFAULT_CONFIG_PATH

SHOWN_MAX: Final = 200


def names(
    kind: str, context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the names that begin so. A gateway that fails completes none."""
    del parameter
    found: list[CompletionItem] = []
    if kind not in references.LISTS:
        return found
    listed = references.LISTS[kind].operation
    settings_path: Path = context.find_root().params.get("config") or DEFAULT_CONFIG_PATH
    given = context.params
    with contextlib.suppress(GatewayError, DeploymentError, click.ClickException, OSError):
        gateway = gateways.chosen(
            listed,
            settings_path,
            profile=given.get("profile"),
            organization=given.get("organization"),
        )
        with gateway:
            path: dict[str, str] = {}
            if kind == "key":
                project = given.get("project_id")
                if not project:
                    return found
                path["project_id"] = references.resolved(gateway, "project", project)
            for item in references.items(gateway, listed, path):
                if item["name"].startswith(incomplete):
                    found.append(CompletionItem(item["name"], help=item["id"]))
                if len(found) == SHOWN_MAX:
                    break
    return found
