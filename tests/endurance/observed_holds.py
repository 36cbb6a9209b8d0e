"""Whether every hold without an end has a live worker or is unsettled, read at random moments."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Final
from uuid import UUID

from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

LOOK_SECONDS_MAX: Final = 0.5
SILENT_MAX: Final = timedelta(seconds=60)
"""How long after the last heartbeat of its worker a hold may be open and not unsettled."""
OVERDUE_MAX: Final = timedelta(seconds=90)
"""How long after its deadline a hold may be open and not unsettled."""
UNDECIDED_MAX: Final = timedelta(seconds=30)
"""How long after the moment for a decision a hold may be unsettled."""

_HOLDS: Final = """
    SELECT count(*) AS open,
           count(u.decide_at) AS unsettled,
           count(*) FILTER (WHERE u.decide_at IS NULL
                              AND (i.heartbeat_at < clock_timestamp() - $1::interval
                                   OR i.heartbeat_at IS NULL)) AS orphaned,
           count(*) FILTER (WHERE u.decide_at IS NULL
                              AND e.deadline_at < clock_timestamp() - $2::interval) AS overdue,
           count(*) FILTER (WHERE u.decide_at < clock_timestamp() - $3::interval) AS undecided
      FROM ledger_entries e
      LEFT JOIN instances i ON i.id = e.instance_id
      LEFT JOIN unsettled_holds u USING (organization_id, admitted_day, reservation_id)
     WHERE e.organization_id = ANY ($4::uuid[])
       AND e.phase = 0
       AND NOT EXISTS (SELECT FROM ledger_entries r
                        WHERE r.organization_id = e.organization_id
                          AND r.admitted_day = e.admitted_day
                          AND r.reservation_id = e.reservation_id
                          AND r.phase = 1)
"""


class HoldObserver:
    """Looks at the committed holds of some organizations until it is cancelled."""

    def __init__(self, database: Database, chance: Random) -> None:
        self._database = database
        self._chance = chance
        self.organizations: list[UUID] = []
        self.looks = 0
        self.open_now = self.unsettled_now = 0
        self.open_max = self.unsettled_max = 0
        self.faults: list[str] = []

    async def run(self) -> None:
        """Look at random moments; a database that is away is looked at later."""
        while True:
            with suppress(DatabaseUnavailable):
                await self.look()
            await asyncio.sleep(self._chance.uniform(0, LOOK_SECONDS_MAX))

    async def look(self) -> None:
        """Read all holds without an end in one statement, and note what is wrong with them."""
        rows = await self._database.fetch_all(
            _HOLDS, SILENT_MAX, OVERDUE_MAX, UNDECIDED_MAX, self.organizations
        )
        row = rows[0]
        self.looks += 1
        self.open_now, self.unsettled_now = row["open"], row["unsettled"]
        self.open_max = max(self.open_max, self.open_now)
        self.unsettled_max = max(self.unsettled_max, self.unsettled_now)
        self.faults += [
            f"look {self.looks}: {row[kind]} holds {kind}"
            for kind in ("orphaned", "overdue", "undecided")
            if row[kind]
        ]
