"""What the deployment still needs each master secret for, and which workers accept it."""

from collections.abc import Mapping, Sequence
from datetime import date
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from tollhouse.base.clock import unix_seconds
from tollhouse.cli import workers
from tollhouse.cli.session import Session
from tollhouse.cli.workers import Worker
from tollhouse.storage import master_secrets
from tollhouse.storage.idempotency import SECRET_LIFETIME
from tollhouse.storage.sealing import Sealer


class Role(StrEnum):
    """Where a master secret stands in the configuration."""

    CURRENT = "current"
    PREVIOUS = "previous"
    NOT_CONFIGURED = "not configured"


class MasterSecret(Struct, frozen=True, kw_only=True):
    """One master secret. `writes` tells whether new values are encrypted with it.

    `id` is a digest that does not reveal the secret; null stands for data keys that no
    configured secret opens.
    """

    object: Literal["master_secret"] = "master_secret"
    id: str | None
    role: Role
    writes: bool
    data_keys: int
    sealed_values: int
    last_expires_at: int | None
    workers: int
    workers_live: int


class _SealedDay(Struct, frozen=True, kw_only=True):
    count: int
    last_expires_at: int


class _Usage(Struct, frozen=True, kw_only=True):
    """What was read: which secret opens which day, what was sealed, and who accepts what."""

    writing_id: str
    opening_ids: Mapping[date, str | None]
    sealed: Mapping[date, _SealedDay]
    live: Sequence[Worker]


async def read(operator: Session) -> list[MasterSecret]:
    """Return the configured master secrets, newest first, then others that are in use."""
    masters = operator.masters
    async with operator.database.transaction() as tx:
        writing_id = await master_secrets.writing_id(tx, masters)
    usage = _Usage(
        writing_id=writing_id,
        opening_ids=await Sealer(operator.database, masters).opening_ids(),
        sealed=await _sealed_by_day(operator),
        live=await workers.live(operator.database),
    )
    accepted = {master_id for worker in usage.live for master_id in worker.master_ids}
    shown: list[str | None] = [*masters.ids, *sorted(accepted - set(masters.ids))]
    if None in usage.opening_ids.values():
        shown.append(None)
    return [_row(master_id, masters.ids, usage) for master_id in shown]


def _row(master_id: str | None, configured: list[str], usage: _Usage) -> MasterSecret:
    days = [day for day, opening_id in usage.opening_ids.items() if opening_id == master_id]
    values = [usage.sealed[day] for day in days if day in usage.sealed]
    return MasterSecret(
        id=master_id,
        role=_role(master_id, configured),
        writes=master_id == usage.writing_id,
        data_keys=len(days),
        sealed_values=sum(value.count for value in values),
        last_expires_at=max((value.last_expires_at for value in values), default=None),
        workers=sum(master_id in worker.master_ids for worker in usage.live),
        workers_live=len(usage.live),
    )


def removable(rows: list[MasterSecret]) -> list[MasterSecret]:
    """Return the previous secrets that nothing stored needs, once all live workers switched."""
    if not is_accepted_by_all(rows):
        return []
    return [row for row in rows if row.role is Role.PREVIOUS and not row.data_keys]


def is_accepted_by_all(rows: list[MasterSecret]) -> bool:
    """Whether every live worker accepts the current secret."""
    return all(row.workers == row.workers_live for row in rows if row.role is Role.CURRENT)


def _role(master_id: str | None, configured: list[str]) -> Role:
    if master_id not in configured:
        return Role.NOT_CONFIGURED
    return Role.CURRENT if master_id == configured[0] else Role.PREVIOUS


async def _sealed_by_day(operator: Session) -> Mapping[date, _SealedDay]:
    """Count the values that can still be replayed, by the day whose data key opens them."""
    rows = await operator.database.fetch_all(
        """
        SELECT sealed_day, count(*) AS count, max(created_at) AS last_created_at
          FROM idempotency_records
         WHERE sealed IS NOT NULL
         GROUP BY sealed_day
        """
    )
    return {
        row["sealed_day"]: _SealedDay(
            count=row["count"],
            last_expires_at=unix_seconds(row["last_created_at"] + SECRET_LIFETIME),
        )
        for row in rows
    }
