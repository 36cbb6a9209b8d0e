"""`last_used_at`: written in batches, at most once per key and minute, off the request's path."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from tollhouse.base.ids import OrganizationId
from tollhouse.keys.types import Admin, Caller
from tollhouse.storage.database import Database, Transaction

RESOLUTION = timedelta(seconds=60)
FLUSH_EVERY_SECONDS = 5.0
_REMEMBERED_KEYS_MAX = 100_000

Marks = Mapping[tuple[OrganizationId, UUID], datetime]


class LastUsed:
    """One per worker. Marks are lost with the worker: the column is coarse by contract."""

    def __init__(self) -> None:
        self._recorded: dict[UUID, datetime] = {}
        self._project_keys: dict[tuple[OrganizationId, UUID], datetime] = {}
        self._admin_keys: dict[tuple[OrganizationId, UUID], datetime] = {}

    def mark(self, caller: Caller, now: datetime) -> None:
        """Note a use; most calls find the key marked within the last minute and do nothing."""
        recorded = self._recorded.get(caller.key_id)
        if recorded is not None and now - recorded < RESOLUTION:
            return
        if len(self._recorded) >= _REMEMBERED_KEYS_MAX:
            self._recorded.clear()
        self._recorded[caller.key_id] = now
        marks = self._admin_keys if isinstance(caller, Admin) else self._project_keys
        marks[caller.organization_id, caller.key_id] = now

    async def flush(self, database: Database) -> None:
        """Write what was marked. Other workers' fresher marks are left alone."""
        project_keys, self._project_keys = self._project_keys, {}
        admin_keys, self._admin_keys = self._admin_keys, {}
        async with database.transaction() as tx:
            if project_keys:
                await _touch_project_keys(tx, project_keys)
            if admin_keys:
                await _touch_admin_keys(tx, admin_keys)


async def _touch_project_keys(tx: Transaction, marks: Marks) -> None:
    """Write last uses; a row that somebody holds is left for the next minute."""
    await tx.execute(
        """
        WITH due AS (
            SELECT k.organization_id, k.id, mark.used_at
              FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[])
                   AS mark (organization_id, id, used_at)
              JOIN project_keys k ON k.organization_id = mark.organization_id AND k.id = mark.id
             WHERE k.last_used_at IS NULL OR k.last_used_at <= mark.used_at - $4::interval
               FOR UPDATE OF k SKIP LOCKED
        )
        UPDATE project_keys k
           SET last_used_at = due.used_at
          FROM due
         WHERE k.organization_id = due.organization_id
           AND k.id = due.id
        """,
        *_columns(marks),
        RESOLUTION,
    )


async def _touch_admin_keys(tx: Transaction, marks: Marks) -> None:
    """Write last uses; a row that somebody holds is left for the next minute."""
    await tx.execute(
        """
        WITH due AS (
            SELECT k.organization_id, k.id, mark.used_at
              FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[])
                   AS mark (organization_id, id, used_at)
              JOIN admin_keys k ON k.organization_id = mark.organization_id AND k.id = mark.id
             WHERE k.last_used_at IS NULL OR k.last_used_at <= mark.used_at - $4::interval
               FOR UPDATE OF k SKIP LOCKED
        )
        UPDATE admin_keys k
           SET last_used_at = due.used_at
          FROM due
         WHERE k.organization_id = due.organization_id
           AND k.id = due.id
        """,
        *_columns(marks),
        RESOLUTION,
    )


def _columns(marks: Marks) -> tuple[list[OrganizationId], list[UUID], list[datetime]]:
    return (
        [organization_id for organization_id, _ in marks],
        [key_id for _, key_id in marks],
        list(marks.values()),
    )
