"""`tollhouse audit verify`: recompute the hash chain of every audit row."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
import msgspec
from msgspec import Struct

from tollhouse.base.ids import OrganizationId
from tollhouse.cli import output, verifying
from tollhouse.cli.arguments import IDENTIFIER, example, json_option
from tollhouse.cli.session import Session
from tollhouse.cli.verifying import Update
from tollhouse.storage import audit_chain
from tollhouse.storage.audit_chain import ChainHead, VerifiedChain
from tollhouse.storage.database import Database

COLUMNS: Final = ("organization_id", "fault", "number", "audit_id")
READING_SECONDS_MAX: Final = 3_600

StoredHeads = Mapping[OrganizationId, ChainHead]


class ShownFault(Struct, frozen=True, kw_only=True):
    """The first wrong row of an organization's chain."""

    organization_id: UUID
    fault: str
    number: int | None
    audit_id: UUID | None


class ShownHead(Struct, frozen=True, kw_only=True):
    """The last row of an organization's chain, to be kept outside of the database."""

    organization_id: UUID
    number: int
    sha256: str


class AuditVerification(Struct, frozen=True, kw_only=True):
    """The result of a verification; `sound` means that no fault was found.

    `heads` are those of sound chains.
    """

    object: Literal["audit.verification"] = "audit.verification"
    sound: bool
    organizations: int
    rows: int
    data: list[ShownFault]
    heads: list[ShownHead]


class _HeadsFile(Struct, frozen=True, kw_only=True):
    heads: list[ShownHead]


def _stored(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> StoredHeads | None:
    """Return the heads in a file that an earlier verification wrote."""
    if path is None:
        return None
    try:
        return {
            OrganizationId(head.organization_id): ChainHead(
                organization_id=OrganizationId(head.organization_id),
                number=head.number,
                hash=bytes.fromhex(head.sha256),
            )
            for head in msgspec.json.decode(path.read_bytes(), type=_HeadsFile).heads
        }
    except (ValueError, msgspec.MsgspecError) as error:
        message = f"{path} is not the output of `tollhouse audit verify --json`: {error}"
        raise click.BadParameter(message, context, parameter) from None


@click.command(epilog=example("tollhouse audit verify --json > heads.json"))
@click.option(
    "--org", "organization", type=IDENTIFIER, help="The organization's ID. When left out, all."
)
@click.option(
    "--heads",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    callback=_stored,
    help="The output of an earlier verification with --json, kept outside of the database.",
)
@json_option
@click.pass_context
def verify(
    context: click.Context,
    *,
    organization: UUID | None,
    heads: StoredHeads | None,
    as_json: bool,
) -> None:
    """Recompute the hash of every audit row, and show the first wrong row of each organization.

    Changes nothing. The exit code is 1 if a row was changed, removed, added or moved. Only --heads
    finds that a whole chain was written again.
    """
    work = partial(_verify, organization=organization, stored=heads or {})
    found = verifying.run(context.obj, work, as_json=as_json)
    if found.sound and not as_json:
        verified = output.counted(found.organizations, "organization", "organizations")
        rows = output.counted(found.rows, "audit row", "audit rows")
        click.echo(f"Verified {verified}. The chain of {rows} is whole.")
    else:
        output.show_list(found, COLUMNS, as_json=as_json)
    context.exit(0 if found.sound else 1)


async def _verify(
    operator: Session, update: Update, *, organization: UUID | None, stored: StoredHeads
) -> AuditVerification:
    async def verified(database: Database, organization_id: OrganizationId) -> VerifiedChain:
        async with database.snapshot(statement_seconds=READING_SECONDS_MAX) as tx:
            return await audit_chain.verify(tx, organization_id, stored=stored.get(organization_id))

    chosen = await verifying.chosen(operator, organization, audit_chain.page)
    if organization is None:
        # A stored head may be all that is left of a chain.
        chosen += sorted(stored.keys() - set(chosen))
    chains = await verifying.verify_each(operator, chosen, verified, update=update)
    faults = [ShownFault(**asdict(chain.fault)) for chain in chains if chain.fault is not None]
    heads = [
        ShownHead(organization_id=head.organization_id, number=head.number, sha256=head.hash.hex())
        for head in (chain.head for chain in chains if chain.fault is None)
        if head.number > 0
    ]
    return AuditVerification(
        sound=not faults,
        organizations=len(chains),
        rows=sum(chain.head.number for chain in chains),
        data=faults,
        heads=heads,
    )
