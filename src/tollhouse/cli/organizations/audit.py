"""`tollhouse audit`: the changes of an organization, with who made them, and their chain."""

from pathlib import Path
from typing import Final
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.api.wire import resources as wire
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, json_option, organization_option
from tollhouse.cli.organizations.audit_verify import verify
from tollhouse.contract.audit import AuditActor, AuditList, AuditResource
from tollhouse.contract.bounds import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from tollhouse.contract.listing import ListPage
from tollhouse.storage import audit
from tollhouse.storage.audit import AuditEntry

COLUMNS: Final = ("occurred_at", "actor", "action", "resource", "changes")
EVERY_FIELD: Final = "all"
"""Stands for the fields of an object that was created or deleted."""


class AuditRow(Struct, frozen=True, kw_only=True):
    """An entry with the names of the changed fields, without their values."""

    id: str
    occurred_at: int
    actor: AuditActor
    action: str
    resource: AuditResource
    changes: list[str]


class AuditRows(ListPage, frozen=True, kw_only=True):
    """A page of entries."""

    data: list[AuditRow]


@click.group("audit", invoke_without_command=True, epilog=example("tollhouse audit --limit 50"))
@organization_option
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_SIZE_MAX),
    default=PAGE_SIZE_DEFAULT,
    help="The most entries to show.",
)
@json_option
@click.pass_context
def command(
    context: click.Context, *, organization: UUID | None, limit: int, as_json: bool
) -> None:
    """Show the latest changes, newest first. --json shows the changed values as well."""
    if context.invoked_subcommand is not None:
        return
    settings_path: Path = context.obj
    found = session.read(
        settings_path,
        organization,
        lambda tx, owner: audit.page(tx, owner, after=None, limit=limit + 1),
    )
    if as_json:
        page = wire.page(AuditList, found, limit, wire.audit_entry)
        output.show_list(page, COLUMNS, as_json=True)
    else:
        output.show_list(wire.page(AuditRows, found, limit, _row), COLUMNS, as_json=False)


command.add_command(verify)


def _row(entry: AuditEntry) -> AuditRow:
    is_new_or_gone = entry.digest_before is None or entry.digest_after is None
    shown = wire.audit_entry(entry)
    return AuditRow(
        id=shown.id,
        occurred_at=shown.occurred_at,
        actor=shown.actor,
        action=shown.action,
        resource=shown.resource,
        changes=[EVERY_FIELD] if is_new_or_gone else [change.field for change in shown.changes],
    )
