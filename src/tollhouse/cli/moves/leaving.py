"""What the cell does that an organization leaves: export, release, cancel."""

import asyncio
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

from tollhouse.base.errors import DeploymentError
from tollhouse.base.ids import OrganizationId
from tollhouse.cli.moves.documents import DocumentUnusable, Manifest, MoveFolder, Receipt, Release
from tollhouse.cli.moves.steps import Announce, MoveStep
from tollhouse.cli.moves.tables import MOVING
from tollhouse.cli.session import Session
from tollhouse.keys import portable as keys
from tollhouse.ledger import freezing, verification
from tollhouse.organizations import moves
from tollhouse.organizations.types import OrganizationMove
from tollhouse.storage import portable, revisions

ASK_EVERY_SECONDS: Final = 0.05
COPYING_SECONDS_MAX: Final = 3600


class FreezeEnded(DeploymentError):
    """The freeze ended before the export did, and the organization is served as before."""

    code = "freeze_ended"


class LedgerDiffers(DeploymentError):
    """The organization's stored numbers are not those of its entries."""

    code = "ledger_differs"


async def export(
    operator: Session,
    organization_id: OrganizationId,
    *,
    cell: str,
    folder: MoveFolder,
    freeze_seconds: int,
    announce: Announce,
) -> Manifest:
    """Freeze an organization, wait for its requests, and copy it.

    Until its release the freeze ends by itself, so a command that dies leaves nothing behind.
    """
    folder.create()
    announce(MoveStep.FREEZE)
    move = await _freeze(operator, organization_id, cell, freeze_seconds)
    frozen_at = operator.clock.now()
    announce(MoveStep.DRAIN)
    await _drain(operator, organization_id, move)
    announce(MoveStep.COPY)
    manifest = await _copy(operator, organization_id, move, folder, frozen_at=str(frozen_at))
    announce(MoveStep.VERIFY_COPY)
    await require_sound(operator, organization_id)
    announce(MoveStep.SEAL)
    await _require_frozen(operator, organization_id, move.id)
    folder.write(manifest)
    return manifest


async def release(operator: Session, folder: MoveFolder, announce: Announce) -> Release:
    """Close an organization that the new cell has received whole."""
    manifest, receipt = folder.read(Manifest), folder.read(Receipt)
    organization_id = OrganizationId(manifest.organization_id)
    _require_received(manifest, receipt, folder.sha256(Manifest))
    announce(MoveStep.RELEASE)
    async with operator.database.transaction(statement_seconds=COPYING_SECONDS_MAX) as tx:
        await freezing.lock(tx, organization_id)
        if await freezing.money_digests(tx, organization_id) != _money(manifest):
            message = "The ledger has changed since the export. Export the organization again."
            raise DocumentUnusable(message)
        await moves.release(tx, organization_id, manifest.move_id)
        await freezing.set_frozen(tx, organization_id, moves.NEVER)
    announce(MoveStep.PERMIT)
    released = Release(
        move_id=manifest.move_id,
        organization_id=manifest.organization_id,
        receipt_sha256=folder.sha256(Receipt),
    )
    folder.write(released)
    return released


async def cancel(operator: Session, organization_id: OrganizationId) -> OrganizationMove | None:
    """Give up a move: serve the organization here again, or leave it to the other cell."""
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        move = await moves.cancel(tx)
        await freezing.set_frozen(tx, organization_id, None if move is None else moves.NEVER)
    return move


async def require_sound(operator: Session, organization_id: OrganizationId) -> None:
    """Recompute every sum of the organization. Raises `LedgerDiffers`."""
    found = await verification.verify(operator.database, organization_id)
    if found:
        message = (
            f"{len(found)} numbers of the organization differ from its entries, first "
            f"{found[0].name}. `tollhouse ledger verify` lists them."
        )
        raise LedgerDiffers(message)


async def _freeze(
    operator: Session, organization_id: OrganizationId, cell: str, seconds: int
) -> OrganizationMove:
    """Freeze the row that keys are checked with, then the account, which admits by itself.

    In two transactions: changes lock the two rows in either order.
    """
    async with operator.database.transaction() as tx:
        now = await tx.fetch_value("SELECT clock_timestamp()")
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        move = await moves.freeze(
            tx, move_id=uuid4(), cell=cell, frozen_until=now + timedelta(seconds=seconds)
        )
    async with operator.database.transaction() as tx:
        await freezing.set_frozen(tx, organization_id, move.frozen_until)
    return move


async def _drain(
    operator: Session, organization_id: OrganizationId, move: OrganizationMove
) -> None:
    """Wait until every request that was admitted before the freeze is settled or unsettled."""
    while True:
        async with operator.database.transaction() as tx:
            if await freezing.is_drained(tx, organization_id):
                return
        await _require_frozen(operator, organization_id, move.id)
        await asyncio.sleep(ASK_EVERY_SECONDS)


async def _copy(
    operator: Session,
    organization_id: OrganizationId,
    move: OrganizationMove,
    folder: MoveFolder,
    *,
    frozen_at: str,
) -> Manifest:
    """Write all tables from one snapshot."""
    async with operator.database.snapshot(statement_seconds=COPYING_SECONDS_MAX) as tx:
        digests: list[portable.TableDigest] = []
        for table in MOVING:
            file = folder.write_lines(table.name)
            async for line in portable.lines_of(tx, organization_id, table):
                file.add(line)
            digests.append(file.finish())
        open_days, closed_days = await freezing.days_of(tx, organization_id)
        peppers = await keys.pepper_checks(tx, organization_id)
        schema = await revisions.state(tx.fetch_all)
    return Manifest(
        move_id=move.id,
        organization_id=organization_id,
        from_cell=operator.settings.keys.cell or "",
        to_cell=move.cell,
        schema_revision=schema.expanded or "",
        frozen_at=frozen_at,
        frozen_until=str(move.frozen_until),
        open_days=[str(day) for day in open_days],
        closed_days=[str(day) for day in closed_days],
        peppers=peppers,
        tables=digests,
    )


async def _require_frozen(
    operator: Session, organization_id: OrganizationId, move_id: UUID
) -> None:
    async with operator.database.transaction() as tx:
        now = await tx.fetch_value("SELECT clock_timestamp()")
        _, move = await moves.retrieve(tx, organization_id)
    if move is None or move.id != move_id or now >= move.frozen_until:
        message = (
            "The export did not end within its freeze, and the organization is served as before. "
            "Export it again at a quieter time, or with more --freeze-seconds."
        )
        raise FreezeEnded(message)


def _money(manifest: Manifest) -> list[portable.TableDigest]:
    names = {table.name for table in freezing.MONEY}
    return [digest for digest in manifest.tables if digest.name in names]


def _require_received(manifest: Manifest, receipt: Receipt, manifest_sha256: str) -> None:
    if receipt.manifest_sha256 != manifest_sha256 or receipt.tables != manifest.tables:
        message = "The receipt is not that of this export. Import the organization again."
        raise DocumentUnusable(message)
