"""Each column of the ledger is verified, by both verifiers, or is named here with a reason.

The columns come from the schema: a new one fails until it is verified or named.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import asyncpg
import pytest

from tests.ledger import independent_verifier
from tests.ledger.direct_ledger import DirectLedger
from tests.ledger.mixed_ledger import mixed_ledger
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import service, verification
from tollhouse.ledger.types import CapId, CapScope, Period

pytestmark = pytest.mark.tampers

DERIVED: Final = {
    "accounts": "account",
    "spending_counters": "counter",
    "cost_daily": "cost_daily",
    "cost_hourly": "cost_hourly",
}
"""Tables that are compared column by column, and how `ledger verify` calls them."""
SOURCES: Final = (
    *("ledger_entries", "ledger_closings", "credit_grants", "spending_caps", "unsettled_holds"),
)
"""Tables that the others follow from."""
ALERTED = "says that an alert was raised, which the amounts do not tell"
REASON = "tells about a grant, and no amount follows from it"
MARK = "tells about the hold, whose entry decides"
ENTRY = "tells how the request was admitted, and no amount follows from it"
UNVERIFIED: Final = {
    "accounts": {
        "is_alerted": ALERTED,
        "frozen_until": "no amount follows from a move to another cell",
    },
    "spending_counters": {
        "is_alerted": ALERTED,
        "short_is_alerted": ALERTED,
        "short_start": "names a window, whose amounts are found to differ",
    },
    "credit_grants": dict.fromkeys(
        ("id", "kind", "reason", "actor_type", "actor_id", "created_at"), REASON
    ),
    "unsettled_holds": dict.fromkeys(
        (
            *("organization_id", "admitted_day", "admitted_at", "project_id", "api_key_id"),
            *("unsettled_at", "decide_at"),
            *("provable_charge", "delivered_tokens", "is_estimated"),
        ),
        MARK,
    ),
    "ledger_entries": dict.fromkeys(
        ("recorded_at", "instance_id", "bills_without_answer", "is_backfill"),
        ENTRY,
    )
    | {"operator_pays": "excuses what other columns say; test_verification.py changes both"},
}
"""Columns whose change is not found, with the reason."""
RULES: Final = {"delivered_tokens", "deadline_at"}
"""Columns of entries that rules are about, and no sum: only `ledger verify` knows the rules."""
CHANGES: Final = {
    "numeric": "coalesce({0}, 0) + 1",
    "bigint": "coalesce({0}, 0) + 1000",
    "smallint": "1 - {0}",
    "boolean": "NOT {0}",
    "text": "'x' || coalesce({0}, '')",
    "uuid": "gen_random_uuid()",
    "date": "CASE WHEN isfinite({0}) THEN {0} + 1 ELSE current_date END",
    "timestamp with time zone": "{0} - interval '25 hours'",
    "jsonb": "'{{}}'",
}
"""How a value of each type is changed."""

Found = tuple[set[str], list[str]]
"""What `ledger verify` names, and what the independent verifier says."""


@dataclass(frozen=True)
class Tampering:
    """Changes one value of the ledger at a time, and looks at what the verifiers find."""

    ledger: DirectLedger
    connection: "asyncpg.Connection[asyncpg.Record]"

    async def columns(self, table: str) -> list[tuple[str, str, bool]]:
        """Return the name and the type of each column, and whether it is part of the key."""
        rows = await self.connection.fetch(
            """
            SELECT a.attname::text, format_type(a.atttypid, NULL), a.attnum = ANY (i.indkey)
              FROM pg_attribute a
              JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
             WHERE a.attrelid = $1::text::regclass
               AND a.attnum > 0
               AND NOT a.attisdropped
            """,
            table,
        )
        return [(row[0], row[1], row[2]) for row in rows]

    async def loosen(self, table: str) -> None:
        """Keep a copy of a table, and let anything be written to it."""
        checks = await self.connection.fetch(
            "SELECT conname::text FROM pg_constraint"
            " WHERE conrelid = $1::text::regclass AND contype = 'c'",
            table,
        )
        for check in checks:
            await self.connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {check[0]}")
        await self.connection.execute(f"CREATE TABLE saved_{table} AS SELECT * FROM {table}")  # noqa: S608 - our own tables

    async def found(self, table: str, column: str, kind: str) -> AsyncIterator[Found]:
        """Change one row after the other; yield what each of the verifiers finds."""
        count: int = await self.connection.fetchval(f"SELECT count(*) FROM saved_{table}")  # noqa: S608 - our own tables
        for number in range(count):
            with suppress(asyncpg.UniqueViolationError, asyncpg.CheckViolationError):
                await self.connection.execute(
                    f"UPDATE {table} SET {column} = {CHANGES[kind].format(column)}"  # noqa: S608 - our own tables
                    f" WHERE (tableoid, ctid) = (SELECT tableoid, ctid FROM {table} one"
                    f" ORDER BY one::text OFFSET {number} LIMIT 1)"
                )
                yield await self._differences()
                await self.connection.execute(
                    f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM saved_{table}"  # noqa: S608 - our own tables
                )

    async def _differences(self) -> Found:
        org = self.ledger.org
        found = await verification.verify(org.database, org.organization_id)
        faults = await independent_verifier.faults(org.database)
        return {difference.name for difference in found}, faults


@pytest.fixture
async def tampering(org: OrganizationFixture, database_url: str) -> AsyncIterator[Tampering]:
    ledger = await mixed_ledger(org, database_url)
    for period in (Period.LIFETIME, Period.WEEK):
        place = CapId(scope=CapScope.PROJECT, scope_id=ledger.project_id, period=period)
        async with org.database.mutation(org.authority()) as tx:
            await service.set_cap(tx, place, limit_pico_usd=PicoUsd(9_000), alert_percent=80)
    async with ledger.connection() as connection:
        await connection.execute("SET session_replication_role = replica")
        yield Tampering(ledger, connection)


@pytest.mark.guarantee("I7")
@pytest.mark.parametrize("table", DERIVED)
async def test_each_changed_value_of_a_derived_table_is_found(
    tampering: Tampering, table: str
) -> None:
    await tampering.loosen(table)
    for column, kind, is_key in await tampering.columns(table):
        if column in UNVERIFIED.get(table, ()):
            continue
        outcomes = [found async for found in tampering.found(table, column, kind)]

        assert outcomes
        for names, faults in outcomes:
            assert names if is_key else names == {f"{DERIVED[table]}.{column}"}
            assert faults, column


@pytest.mark.parametrize("table", SOURCES)
async def test_a_changed_column_of_a_source_is_found(tampering: Tampering, table: str) -> None:
    await tampering.loosen(table)
    for column, kind, _ in await tampering.columns(table):
        outcomes = [found async for found in tampering.found(table, column, kind)]

        is_found = any(names for names, _ in outcomes)
        assert is_found is (column not in UNVERIFIED.get(table, ())), column
        if is_found and column not in RULES:
            assert any(faults for _, faults in outcomes), column
