"""The steps of a move: export, receive, release, activate, and giving it up."""

import asyncio
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID, uuid4

from tollhouse.base.errors import DeploymentError
from tollhouse.base.ids import OrganizationId
from tollhouse.cli.moves import tables
from tollhouse.cli.moves.documents import DocumentUnusable, Manifest, MoveFolder, Receipt, Release
from tollhouse.cli.moves.steps import Announce, MoveStep
from tollhouse.cli.moves.tables import MONEY, MOVED, TableDigest
from tollhouse.cli.session import Session
from tollhouse.ledger import moving, verification
from tollhouse.organizations import moves, rules
from tollhouse.organizations.types import MoveState, OrganizationMove
from tollhouse.storage import revisions
from tollhouse.storage.database import Transaction

ASK_EVERY_SECONDS: Final = 0.05
MOVING_SECONDS_MAX: Final = 3600


class FreezeEnded(DeploymentError):
    """The freeze ended before the export did, and the organization is served as before."""

    code = "freeze_ended"


class LedgerDiffers(DeploymentError):
    """The organization's stored numbers are not those of its entries."""

    code = "ledger_differs"


class WrongDestination(DeploymentError):
    """The export was made for another cell, or by another version."""

    code = "wrong_destination"


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
    await _require_sound(operator, organization_id)
    announce(MoveStep.SEAL)
    await _require_frozen(operator, organization_id, move.id)
    folder.write(manifest)
    return manifest


async def receive(operator: Session, folder: MoveFolder, announce: Announce) -> Receipt:
    """Store an export, frozen, and compare it with what was exported."""
    manifest = folder.read(Manifest)
    organization_id = OrganizationId(manifest.organization_id)
    if manifest.to_cell != (here := operator.settings.keys.cell):
        message = f"The export is for the cell '{manifest.to_cell}', and this is '{here}'."
        raise WrongDestination(message)
    announce(MoveStep.WRITE)
    async with operator.database.transaction(statement_seconds=MOVING_SECONDS_MAX) as tx:
        await _require_schema(tx, manifest)
        exists, move = await moves.retrieve(tx, organization_id)
        rules.check_can_arrive(move, exists=exists)
        await moving.prepare_days(
            tx, open_days=_days(manifest.open_days), closed_days=_days(manifest.closed_days)
        )
        for digest in manifest.tables:
            await tables.replace(tx, organization_id, digest.name, folder.read_lines(digest))
        arrived = OrganizationMove(
            id=manifest.move_id,
            state=MoveState.ARRIVING,
            cell=manifest.from_cell,
            frozen_until=moves.NEVER,
        )
        await moves.change_elsewhere(tx, organization_id, lambda _: arrived)
        announce(MoveStep.COMPARE)
        stored = [await tables.digest_of(tx, organization_id, name) for name in MOVED]
        _require_equal(manifest.tables, stored)
    announce(MoveStep.VERIFY)
    await _require_sound(operator, organization_id)
    announce(MoveStep.ACKNOWLEDGE)
    receipt = Receipt(
        move_id=manifest.move_id,
        organization_id=organization_id,
        manifest_sha256=folder.sha256(Manifest),
        tables=stored,
    )
    folder.write(receipt)
    return receipt


async def release(operator: Session, folder: MoveFolder, announce: Announce) -> Release:
    """Close an organization that the new cell has received whole."""
    manifest, receipt = folder.read(Manifest), folder.read(Receipt)
    organization_id = OrganizationId(manifest.organization_id)
    if (receipt.manifest_sha256, receipt.tables) != (folder.sha256(Manifest), manifest.tables):
        message = "The receipt is not that of this export. Import the organization again."
        raise DocumentUnusable(message)
    announce(MoveStep.RELEASE)
    async with operator.database.transaction(statement_seconds=MOVING_SECONDS_MAX) as tx:
        await moving.lock(tx, organization_id)
        for digest in manifest.tables:
            if digest.name in MONEY:
                now = await tables.digest_of(tx, organization_id, digest.name)
                if now != digest:
                    message = "The ledger has changed since the export. Export again."
                    raise DocumentUnusable(message)
        now = await tx.fetch_value("SELECT clock_timestamp()")
        step = partial(rules.release, move_id=manifest.move_id, now=now, never=moves.NEVER)
        await moves.change_elsewhere(tx, organization_id, step)
        await moving.set_frozen(tx, organization_id, moves.NEVER)
    announce(MoveStep.PERMIT)
    released = Release(
        move_id=manifest.move_id,
        organization_id=manifest.organization_id,
        receipt_sha256=folder.sha256(Receipt),
    )
    folder.write(released)
    return released


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
            step = partial(rules.activate, move_id=manifest.move_id)
            await moves.change(tx, "organization.activate", step)
            await moving.set_frozen(tx, organization_id, None)
    return manifest


async def cancel(operator: Session, organization_id: OrganizationId) -> OrganizationMove | None:
    """Give up a move: serve the organization here again, or leave it to the other cell."""
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        step = partial(rules.cancel, never=moves.NEVER)
        move = await moves.change(tx, "organization.cancel_move", step)
        await moving.set_frozen(tx, organization_id, None if move is None else moves.NEVER)
    return move


async def _require_sound(operator: Session, organization_id: OrganizationId) -> None:
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
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        until: datetime = await tx.fetch_value("SELECT clock_timestamp()")
        until += timedelta(seconds=seconds)
        step = partial(rules.leave, move_id=uuid4(), cell=cell, frozen_until=until)
        move = await moves.change(tx, "organization.freeze", step)
    assert move is not None, "leaving is a move"
    async with operator.database.transaction() as tx:
        await moving.set_frozen(tx, organization_id, until)
    return move


async def _drain(
    operator: Session, organization_id: OrganizationId, move: OrganizationMove
) -> None:
    """Wait until every request that was admitted before the freeze is settled or unsettled."""
    while True:
        async with operator.database.transaction() as tx:
            if await moving.is_drained(tx, organization_id):
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
    async with operator.database.snapshot(statement_seconds=MOVING_SECONDS_MAX) as tx:
        digests = [
            await folder.write_lines(name, tables.lines_of(tx, organization_id, name))
            for name in MOVED
        ]
        open_days, closed_days = await moving.days_of(tx, organization_id)
        schema = await revisions.state(tx.fetch_all)
    return Manifest(
        move_id=move.id,
        organization_id=organization_id,
        from_cell=operator.settings.keys.cell or "",
        to_cell=move.cell,
        schema_revision=schema.expanded or "",
        frozen_at=frozen_at,
        open_days=[str(day) for day in open_days],
        closed_days=[str(day) for day in closed_days],
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


async def _require_schema(tx: Transaction, manifest: Manifest) -> None:
    newest = (await revisions.state(tx.fetch_all)).expanded
    if manifest.schema_revision != newest:
        message = (
            f"The export has schema revision {manifest.schema_revision}, and this cell {newest}. "
            "Run the same version of Tollhouse in both cells, and `tollhouse migrate`."
        )
        raise WrongDestination(message)


def _require_equal(expected: Sequence[TableDigest], stored: Sequence[TableDigest]) -> None:
    for wanted, found in zip(expected, stored, strict=True):
        if wanted != found:
            message = (
                f"{wanted.name} has {found.rows} rows here and {wanted.rows} in the export, or "
                "other values. Nothing was stored."
            )
            raise DocumentUnusable(message)


def _days(texts: Sequence[str]) -> list[date]:
    return [date.fromisoformat(text) for text in texts]
