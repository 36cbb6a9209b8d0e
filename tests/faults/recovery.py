"""What happens after a fault: time passes by the database's clock, and the reaper comes."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.ledger.invariants import assert_conserved
from tests.ledger.money import Payer
from tollhouse.base.ids import InstanceId
from tollhouse.ledger import reaper
from tollhouse.storage.database import Database

LOCK_ACCOUNT = "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE"


@dataclass(frozen=True)
class Money:
    """An account. `unsettled` is the part of `reserved` that the reaper has marked."""

    settled: int = 0
    reserved: int = 0
    unsettled: int = 0
    unknown: int = 0


async def money(database: Database, payer: Payer) -> Money:
    rows = await database.fetch_all(
        """
        SELECT settled_pico, reserved_pico, written_off_unknown_pico,
               (SELECT coalesce(sum(u.held_pico), 0)
                  FROM unsettled_holds u
                 WHERE u.organization_id = a.organization_id) AS unsettled_pico
          FROM accounts a
         WHERE organization_id = $1
        """,
        payer.organization_id,
    )
    row = rows[0]
    return Money(
        settled=int(row["settled_pico"]),
        reserved=int(row["reserved_pico"]),
        unsettled=int(row["unsettled_pico"]),
        unknown=int(row["written_off_unknown_pico"]),
    )


async def reap(database: Database, *dead: InstanceId) -> None:
    """Let these workers be silent for longer than a live one is, and the reaper come."""
    async with database.transaction() as tx:
        await tx.execute(
            """
            UPDATE instances
               SET heartbeat_at = clock_timestamp() - interval '45 seconds'
             WHERE id = ANY($1)
            """,
            dead,
        )
    await reaper.run(database)
    await assert_conserved(database)


async def decide(database: Database) -> None:
    """Let the time of decision come for all that is unsettled."""
    async with database.transaction() as tx:
        await tx.execute("UPDATE unsettled_holds SET decide_at = clock_timestamp()")
    await reaper.run(database)
    await assert_conserved(database)


def through(port: int, database_url: str) -> str:
    """The same database, reached through a proxy."""
    server = urlsplit(database_url)
    return server._replace(netloc=f"{server.username}@127.0.0.1:{port}").geturl()
