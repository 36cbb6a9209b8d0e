"""Replicas as the operator sees and commands them, through the database, for all workers.

Each worker reports the replicas that it leaves out, and obeys what was ordered by hand.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from tollhouse.backends.call_history import ReplicaUse
from tollhouse.backends.replicas import BY_HAND, Replicas
from tollhouse.base.clock import Clock
from tollhouse.base.ids import InstanceId
from tollhouse.storage import instances
from tollhouse.storage.database import Database, Transaction

EXCHANGE_EVERY_SECONDS: Final = 5.0

_REPORT: Final = """
    INSERT INTO replica_reports (instance_id, backend, replica, model, state, why, trial_at)
    SELECT $1, backend, replica, model, state, why,
           clock_timestamp() + make_interval(secs => trial_seconds)
      FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[])
           r (backend, replica, model, state, why, trial_seconds)
"""
_ORDER: Final = """
    INSERT INTO replica_orders AS known (backend, replica, is_ejected, ordered_at)
    VALUES ($1, $2, $3, clock_timestamp())
    ON CONFLICT (backend, replica) DO UPDATE
       SET is_ejected = EXCLUDED.is_ejected, ordered_at = EXCLUDED.ordered_at
"""
_REPORTED: Final = """
    SELECT backend, replica, model, state, min(why) AS why, count(DISTINCT instance_id) AS workers,
           extract(epoch FROM min(trial_at) - clock_timestamp())::float8 AS trial_seconds
      FROM replica_reports
     WHERE instance_id = ANY($1)
     GROUP BY backend, replica, model, state
     ORDER BY backend COLLATE "C", replica COLLATE "C", model COLLATE "C", state COLLATE "C"
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AvoidedReplica:
    """A replica that workers leave out, for one model of its backend or, if empty, for all."""

    backend: str
    replica: str
    model: str
    state: str
    why: str
    workers: int
    trial_seconds: float | None


class ReplicaReport(NamedTuple):
    """What one worker leaves out, in the order of the table's columns."""

    backend: str
    replica: str
    model: str
    state: ReplicaUse
    why: str
    trial_in_seconds: float | None


class ReplicaOversight:
    """Exchanges reports and orders with the database. One per worker."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        instance_id: InstanceId,
        replicas: Mapping[str, Replicas],
    ) -> None:
        self._database = database
        self._clock = clock
        self._instance_id = instance_id
        self._replicas = replicas
        self._obeyed: dict[tuple[str, str], datetime] = {}
        self._reported: list[ReplicaReport] = []

    async def exchange(self) -> None:
        """Obey new orders, and report what has changed."""
        async with self._database.transaction() as tx:
            await self._obey(tx)
            reports = list(self._reports())
            if reports != self._reported:
                await self._report(tx, reports)
        self._reported = reports

    async def _obey(self, tx: Transaction) -> None:  # all organizations: replicas serve all
        for order in await tx.fetch_all("SELECT * FROM replica_orders"):
            place = order["backend"], order["replica"]
            known = self._replicas.get(order["backend"])
            if known is not None and self._obeyed.get(place) != order["ordered_at"]:
                known.obey(order["replica"], is_ejected=order["is_ejected"])
                self._obeyed[place] = order["ordered_at"]

    def _reports(self) -> Iterator[ReplicaReport]:
        now_seconds = self._clock.monotonic_seconds()
        for backend, replicas in self._replicas.items():
            for each in replicas.all:
                place = backend, each.name
                if each.is_ejected:
                    yield ReplicaReport(*place, "", ReplicaUse.EJECTED, BY_HAND, None)
                elif not each.is_healthy:
                    yield ReplicaReport(*place, "", ReplicaUse.UNHEALTHY, "health checks", None)
                for model, history in each.histories.items():
                    if history.state is not ReplicaUse.IN_USE:
                        wait_seconds = max(0.0, history.trial_at_seconds - now_seconds)
                        yield ReplicaReport(*place, model, history.state, history.why, wait_seconds)

    async def _report(  # all organizations: replicas serve all
        self, tx: Transaction, reports: Sequence[ReplicaReport]
    ) -> None:
        await tx.execute(
            """
            DELETE FROM replica_reports
             WHERE instance_id = $1
                OR instance_id <> ALL($2)
            """,
            self._instance_id,
            await instances.live(tx),
        )
        columns = [[each[place] for each in reports] for place in range(len(ReplicaReport._fields))]
        await tx.execute(_REPORT, self._instance_id, *columns)


async def order(  # all organizations: replicas serve all
    database: Database, backend: str, replica: str, *, is_ejected: bool
) -> None:
    """Order all workers to leave a replica out, or to call it again."""
    async with database.transaction() as tx:
        await tx.execute(_ORDER, backend, replica, is_ejected)


async def avoided(  # all organizations: replicas serve all
    tx: Transaction, workers: Sequence[InstanceId]
) -> list[AvoidedReplica]:
    """Return the replicas that these workers leave out."""
    return [AvoidedReplica(**dict(row)) for row in await tx.fetch_all(_REPORTED, workers)]
