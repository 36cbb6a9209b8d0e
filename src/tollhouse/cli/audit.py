"""`tollhouse audit`: who changed what in an organization."""

from pathlib import Path
from typing import Final
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.api import wire
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, json_option, organization_option
from tollhouse.cli.session import Session
from tollhouse.contract.audit import AuditActor, AuditList, AuditResource
from tollhouse.contract.bounds import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from tollhouse.contract.listing import ListPage
from tollhouse.storage import audit
from tollhouse.storage.audit import AuditEntry

COLUMNS: Final = ("occurred_at", "actor", "action", "resource", "changes")
EVERY_FIELD: Final = "all"
"""Of a thing that is new, or gone."""


class Line(Struct, frozen=True, kw_only=True):
    """An entry for people, with the mere names of the fields that differ."""

    id: str
    occurred_at: int
    actor: AuditActor
    action: str
    resource: AuditResource
    changes: list[str]


class Lines(ListPage, frozen=True, kw_only=True):
    """A page of them."""

    data: list[Line]


@click.command("audit", epilog=example("tollhouse audit --limit 50"))
@organization_option
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_SIZE_MAX),
    default=PAGE_SIZE_DEFAULT,
    help="How many entries to show at most.",
)
@json_option
@click.pass_obj
def command(settings_path: Path, *, organization: UUID | None, limit: int, as_json: bool) -> None:
    """Show the latest changes, newest first; with --json also the values that changed."""

    async def read(operator: Session) -> list[AuditEntry]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await audit.page(tx, owner.id, after=None, limit=limit + 1)

    found = session.run(settings_path, read)
    if as_json:
        whole = wire.page(AuditList, found, limit, wire.audit_entry)
        output.show_list(whole, COLUMNS, as_json=True)
    else:
        output.show_list(wire.page(Lines, found, limit, _line), COLUMNS, as_json=False)


def _line(entry: AuditEntry) -> Line:
    is_new_or_gone = entry.digest_before is None or entry.digest_after is None
    whole = wire.audit_entry(entry)
    return Line(
        id=whole.id,
        occurred_at=whole.occurred_at,
        actor=whole.actor,
        action=whole.action,
        resource=whole.resource,
        changes=[EVERY_FIELD] if is_new_or_gone else [change.field for change in whole.changes],
    )
