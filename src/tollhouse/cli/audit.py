"""`tollhouse audit`: who changed what in an organization."""

from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api import wire
from tollhouse.cli import output, session
from tollhouse.cli.arguments import example, json_option, organization_option
from tollhouse.cli.session import Session
from tollhouse.contract.audit import AuditList
from tollhouse.contract.bounds import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from tollhouse.storage import audit
from tollhouse.storage.audit import AuditEntry

COLUMNS: Final = ("occurred_at", "actor", "action", "resource")


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
    """Show the latest changes, newest first."""

    async def read(operator: Session) -> list[AuditEntry]:
        owner = await operator.organization(organization)
        async with operator.database.transaction() as tx:
            return await audit.page(tx, owner.id, after=None, limit=limit + 1)

    page = wire.page(AuditList, session.run(settings_path, read), limit, wire.audit_entry)
    output.show_list(page, COLUMNS, as_json=as_json)
