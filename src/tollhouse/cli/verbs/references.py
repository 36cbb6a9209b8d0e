"""Names instead of identifiers: finds the object that a name stands for."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import click

from tollhouse.cli.verbs.gateway import Gateway, OperationRequest
from tollhouse.cli.verbs.values import is_id
from tollhouse.contract import alert_operations, manage_operations, operations, policy_operations
from tollhouse.contract.operation import AnyOperation

PAGE_SIZE: Final = 100
ENDED: Final = frozenset({"archived", "revoked", "expired"})
"""States of objects that a name prefers not to mean."""


class Listed(NamedTuple):
    """How objects of a kind are listed: the operation, and the command for people."""

    operation: AnyOperation
    command: str


LISTS: Final[Mapping[str, Listed]] = {
    "project": Listed(manage_operations.LIST_PROJECTS, "tollhouse project list"),
    "key": Listed(manage_operations.LIST_PROJECT_KEYS, "tollhouse key list"),
    "admin key": Listed(operations.LIST_ADMIN_KEYS, "tollhouse admin-key list"),
    "policy": Listed(policy_operations.LIST_POLICIES, "tollhouse policy list"),
    "subscription": Listed(alert_operations.LIST_ALERT_SUBSCRIPTIONS, "tollhouse alerts list"),
}


def resolved(gateway: Gateway, kind: str, text: str) -> str:
    """Return the ID of an object, given its ID or its name. Raises `UsageError`."""
    if kind == "organization" or is_id(kind, text):
        return text
    if kind == "key":
        return key_of(gateway, text, None)[1]
    return _only(kind, text, list(items(gateway, LISTS[kind].operation, {})))


def key_of(gateway: Gateway, text: str, project_id: str | None) -> tuple[str, str]:
    """Return the IDs of the project and the key, given the key's ID or name."""
    if project_id is not None and is_id("key", text):
        return project_id, text
    projects = (
        [project_id]
        if project_id is not None
        else [one["id"] for one in items(gateway, LISTS["project"].operation, {})]
    )
    found: list[dict[str, Any]] = []
    for each in projects:
        keys = items(gateway, LISTS["key"].operation, {"project_id": each})
        named = [one for one in keys if text in (one["id"], one["name"])]
        found += [{**one, "project_id": each} for one in named]
        if named and is_id("key", text):
            break
    key_id = _only("key", text, found, project="" if project_id else " --project PROJECT")
    (project,) = (one["project_id"] for one in found if one["id"] == key_id)
    return project, key_id


def items(
    gateway: Gateway, operation: AnyOperation, path: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield every item of a list."""
    query: dict[str, Any] = {"limit": PAGE_SIZE}
    while True:
        page, _ = gateway.call(operation, OperationRequest(path=path, query=query))
        yield from page["data"]
        if not page["has_more"]:
            return
        query["after"] = page["last_id"]


def _only(kind: str, text: str, listed: list[dict[str, Any]], *, project: str = "") -> str:
    """Return the ID of the only object of this name, one that still works if there is any."""
    named = [one for one in listed if text in (one["name"], one["id"])]
    working = [one for one in named if one.get("status") not in ENDED]
    match working or named:
        case [one]:
            return one["id"]
        case []:
            message = f"There is no {kind} {text!r}. `{LISTS[kind].command}{project}` lists them."
        case several:
            ids = ", ".join(one["id"] for one in several)
            message = f"{len(several)} {kind} objects are named {text!r}: {ids}. Give an ID."
    raise click.UsageError(message)
