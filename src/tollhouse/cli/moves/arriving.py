"""What the cell does that an organization moves to: import and activate."""

from collections.abc import Sequence
from datetime import date
from typing import Final

from tollhouse.base.errors import DeploymentError
from tollhouse.base.ids import OrganizationId
from tollhouse.cli.moves.documents import DocumentUnusable, Manifest, MoveFolder, Receipt, Release
from tollhouse.cli.moves.leaving import require_sound
from tollhouse.cli.moves.steps import Announce, MoveStep
from tollhouse.cli.moves.tables import MOVING
from tollhouse.cli.session import Session
from tollhouse.keys import portable as keys
from tollhouse.ledger import freezing
from tollhouse.organizations import moves, rules
from tollhouse.organizations.types import MoveState
from tollhouse.storage import instances, portable, revisions
from tollhouse.storage.database import Transaction

WRITING_SECONDS_MAX: Final = 3600


class WrongDestination(DeploymentError):
    """The export was made for another cell, or by another version."""

    code = "wrong_destination"


class PepperUnknown(DeploymentError):
    """Keys were made with a pepper that this cell does not have."""

    code = "pepper_unknown"


async def receive(operator: Session, folder: MoveFolder, announce: Announce) -> Receipt:
    """Store an export, frozen, and compare it with what was exported."""
    manifest = folder.read(Manifest)
    _require_destination(operator, manifest)
    organization_id = OrganizationId(manifest.organization_id)
    announce(MoveStep.WRITE)
    async with operator.database.transaction(statement_seconds=WRITING_SECONDS_MAX) as tx:
        await _require_schema(tx, manifest)
        exists, move = await moves.retrieve(tx, organization_id)
        rules.check_can_arrive(move, exists=exists)
        await _require_peppers(tx, operator, manifest.peppers)
        await freezing.prepare_days(
            tx, open_days=_days(manifest.open_days), closed_days=_days(manifest.closed_days)
        )
        for table, digest in zip(MOVING, manifest.tables, strict=True):
            await portable.replace(tx, organization_id, table, folder.read_lines(digest))
        await moves.name_arrival(
            tx, organization_id, move_id=manifest.move_id, cell=manifest.from_cell
        )
        announce(MoveStep.COMPARE)
        stored = [await portable.digest_of(tx, organization_id, table) for table in MOVING]
        _require_equal(manifest.tables, stored)
    announce(MoveStep.VERIFY)
    await require_sound(operator, organization_id)
    announce(MoveStep.ACKNOWLEDGE)
    receipt = Receipt(
        move_id=manifest.move_id,
        organization_id=organization_id,
        manifest_sha256=folder.sha256(Manifest),
        tables=stored,
    )
    folder.write(receipt)
    return receipt


async def activate(operator: Session, folder: MoveFolder, announce: Announce) -> Manifest:
    """Serve an organization that the old cell has released. A second call changes nothing."""
    manifest, released = folder.read(Manifest), folder.read(Release)
    if released.receipt_sha256 != folder.sha256(Receipt):
        message = "The release is not that of this receipt."
        raise DocumentUnusable(message)
    organization_id = OrganizationId(manifest.organization_id)
    announce(MoveStep.ACTIVATE)
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        _, move = await moves.retrieve(tx, organization_id)
        if move is None or move.state is MoveState.LEAVING:
            tx.unchanged()
        else:
            await moves.activate(tx, manifest.move_id)
            await freezing.set_frozen(tx, organization_id, None)
    return manifest


def _require_destination(operator: Session, manifest: Manifest) -> None:
    here = operator.settings.keys.cell
    if manifest.to_cell != here:
        message = f"The export is for the cell '{manifest.to_cell}', and this is '{here}'."
        raise WrongDestination(message)


async def _require_schema(tx: Transaction, manifest: Manifest) -> None:
    newest = (await revisions.state(tx.fetch_all)).expanded
    if manifest.schema_revision != newest:
        message = (
            f"The export has schema revision {manifest.schema_revision}, and this cell {newest}. "
            "Run the same version of Tollhouse in both cells, and `tollhouse migrate`."
        )
        raise WrongDestination(message)


async def _require_peppers(tx: Transaction, operator: Session, needed: Sequence[str]) -> None:
    """Raise `PepperUnknown` unless every worker accepts the peppers of the organization's keys."""
    known = await keys.versions_of(tx, needed)
    accepted = await instances.versions_accepted_by_all(tx, operator.peppers.versions)
    missing = [check for check in needed if known.get(check) not in accepted]
    if missing:
        message = (
            f"{len(missing)} of the peppers that the organization's keys were made with are not "
            "known here. Add them to [secrets.peppers] of this cell under versions that are free, "
            "and reload its workers. The other cell's configuration has them."
        )
        raise PepperUnknown(message)


def _require_equal(
    expected: Sequence[portable.TableDigest], stored: Sequence[portable.TableDigest]
) -> None:
    for wanted, found in zip(expected, stored, strict=True):
        if wanted != found:
            message = (
                f"{wanted.name} has {found.rows} rows here and {wanted.rows} in the export, or "
                "other values. Nothing was stored."
            )
            raise DocumentUnusable(message)


def _days(texts: Sequence[str]) -> list[date]:
    return [date.fromisoformat(text) for text in texts]
