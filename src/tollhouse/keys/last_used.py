"""`last_used_at`: written in batches, at most once per key and minute, off the request's path."""

from datetime import datetime, timedelta
from uuid import UUID

from tollhouse.base.ids import OrganizationId
from tollhouse.keys import store
from tollhouse.keys.types import Admin, Caller
from tollhouse.storage.database import Database

RESOLUTION = timedelta(seconds=60)
FLUSH_EVERY_SECONDS = 5.0
_REMEMBERED_KEYS_MAX = 100_000


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
                await store.touch_project_keys(tx, project_keys, resolution=RESOLUTION)
            if admin_keys:
                await store.touch_admin_keys(tx, admin_keys, resolution=RESOLUTION)
