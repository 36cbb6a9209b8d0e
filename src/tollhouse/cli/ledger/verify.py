"""`tollhouse ledger verify`: recompute every balance from its entries."""

from functools import partial
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.base.ids import OrganizationId
from tollhouse.cli import output, verifying
from tollhouse.cli.arguments import IDENTIFIER, example, json_option
from tollhouse.cli.session import Session
from tollhouse.cli.verifying import Update
from tollhouse.ledger import verification
from tollhouse.ledger.verification import Difference
from tollhouse.organizations import service as organizations
from tollhouse.storage.database import Database, Transaction

COLUMNS: Final = ("organization_id", "name", "subject", "expected", "found")


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
    found = verifying.run(
        context.obj, partial(_verify, organization=organization, is_full=full), as_json=as_json
    )
    if found.sound and not as_json:
        verified = output.counted(found.organizations, "organization", "organizations")
        click.echo(f"Verified {verified}. Every number follows from its entries.")
    else:
        output.show_list(found, COLUMNS, as_json=as_json)
    context.exit(0 if found.sound else 1)


async def _verify(
    operator: Session, update: Update, *, organization: UUID | None, is_full: bool
) -> LedgerVerification:
    chosen = await verifying.chosen(operator, organization, _page)
    found = await verifying.verify_each(
        operator,
        chosen,
        partial(_verified, is_full=is_full),
        update=update,
    )
    differences = [difference for of_one in found for difference in of_one]
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


async def _page(
    tx: Transaction, *, after: OrganizationId | None, limit: int
) -> list[OrganizationId]:
    return [found.id for found in await organizations.page(tx, after=after, limit=limit)]


def _shown(difference: Difference) -> ShownDifference:
    return ShownDifference(
        organization_id=str(difference.organization_id),
        name=difference.name,
        subject=difference.subject,
        expected=difference.expected,
        found=difference.found,
    )
