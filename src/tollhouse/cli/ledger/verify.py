"""`tollhouse ledger verify`: recompute every balance from its entries."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.base.ids import OrganizationId
from tollhouse.cli import output, session
from tollhouse.cli.arguments import IDENTIFIER, example, json_option
from tollhouse.cli.session import Session
from tollhouse.ledger import partitions, verification
from tollhouse.ledger.verification import Difference
from tollhouse.organizations import service as organizations
from tollhouse.storage import revisions
from tollhouse.storage.database import Database

COLUMNS: Final = ("organization_id", "name", "subject", "expected", "found")
PAGE_SIZE: Final = 1000


class ShownDifference(Struct, frozen=True, kw_only=True):
    """A stored number that differs from the sum of its entries, in pico-dollars."""

    organization_id: str
    name: str
    subject: str
    expected: int | None
    found: int | None


class LedgerVerification(Struct, frozen=True, kw_only=True):
    """The result of a verification; `sound` means that nothing differs."""

    object: Literal["ledger.verification"] = "ledger.verification"
    sound: bool
    organizations: int
    data: list[ShownDifference]


@click.command(epilog=example("tollhouse ledger verify --json"))
@click.option(
    "--org", "organization", type=IDENTIFIER, help="The organization's ID. When left out, all."
)
@click.option("--full", is_flag=True, help="Read again the entries of days verified before.")
@json_option
@click.pass_context
def verify(context: click.Context, *, organization: UUID | None, full: bool, as_json: bool) -> None:
    """Recompute every balance, counter and report row from the entries.

    Of days that the gateway has verified, the report rows stand for the entries as long as they
    are unchanged; --full reads every entry. Changes nothing, and the gateway keeps running. The
    exit code is 1 if something differs.
    """
    path: Path = context.obj
    with output.progress_bars(as_json=as_json) as bars:
        task = bars.add_task("verifying", total=None)

        def update(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        found = session.run(
            path, lambda operator: _verify(operator, organization, update, is_full=full)
        )
    if found.sound and not as_json:
        verified = output.counted(found.organizations, "organization", "organizations")
        click.echo(f"Verified {verified}. Every number follows from its entries.")
    else:
        output.show_list(found, COLUMNS, as_json=as_json)
    context.exit(0 if found.sound else 1)


async def _verify(
    operator: Session,
    organization: UUID | None,
    update: Callable[[int, int], None],
    *,
    is_full: bool,
) -> LedgerVerification:
    await revisions.require(operator.database, partitions.REVISION)
    chosen = await _chosen(operator, organization)

    async def verify_all(database: Database) -> list[Difference]:
        differences: list[Difference] = []
        for done, organization_id in enumerate(chosen):
            update(done, len(chosen))
            found = await _verified(database, organization_id, is_full=is_full)
            if found and database is not operator.database:
                # A standby may be late, so only the primary can tell that something differs.
                found = await _verified(operator.database, organization_id, is_full=is_full)
            differences += found
        return differences

    differences = await operator.read(verify_all)
    return LedgerVerification(
        sound=not differences,
        organizations=len(chosen),
        data=[_shown(difference) for difference in differences],
    )


async def _verified(
    database: Database, organization_id: OrganizationId, *, is_full: bool
) -> list[Difference]:
    if is_full:
        return await verification.verify(database, organization_id)
    return (await verification.verify_new(database, organization_id)).differences


async def _chosen(operator: Session, organization: UUID | None) -> list[OrganizationId]:
    if organization is not None:
        return [(await operator.organization(organization)).id]
    chosen: list[OrganizationId] = []
    while True:
        async with operator.database.transaction() as tx:
            page = await organizations.page(
                tx, after=chosen[-1] if chosen else None, limit=PAGE_SIZE
            )
        if not page:
            return chosen
        chosen += [found.id for found in page]


def _shown(difference: Difference) -> ShownDifference:
    return ShownDifference(
        organization_id=str(difference.organization_id),
        name=difference.name,
        subject=difference.subject,
        expected=difference.expected,
        found=difference.found,
    )
