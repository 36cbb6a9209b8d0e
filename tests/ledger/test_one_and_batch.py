"""Two organizations get the same items: one as single items, the other in batches."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from random import Random

import pytest

from tests.ledger.money import DEADLINE, Payer, new_payer
from tests.ledger.sending import Form, send
from tests.support import databases, seeds
from tests.support.wrong_clocks import MovedClock
from tollhouse.base.ids import InstanceId, ReservationId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.batches import BatchResult
from tollhouse.ledger.types import Charge, Hold, OperatorPays, Resolution, ResolutionKind
from tollhouse.storage import partitions
from tollhouse.storage.database import Database
from tollhouse.storage.errors import ConstraintViolated
from tollhouse.storage.partitions import DailyTable

ITEMS = int(os.environ.get("TOLLHOUSE_LEDGER_ITEMS", "400"))
CREDIT = 50_000
DAYS = 12
CAPS = """
    INSERT INTO spending_caps (organization_id, scope, scope_id, period, limit_pico, alert_percent)
    SELECT $1, scope, scope_id, period, limit_pico, 10
      FROM (VALUES ('organization', $1::uuid, 'week', 20000), ('organization', $1, 'month', 40000),
                   ('project', $2::uuid, 'day', 9000), ('project', $2, 'lifetime', 45000),
                   ('api_key', $3::uuid, 'day', 8000), ('api_key', $3, 'week', 15000)
           ) cap (scope, scope_id, period, limit_pico)
"""
STORED = {
    "accounts": "'organization_id'",
    "spending_counters": "'organization_id', 'scope_id'",
    "spending_alerts": "'organization_id', 'scope_id', 'id', 'raised_at'",
    "cost_daily": "'organization_id', 'project_id', 'api_key_id'",
    "cost_hourly": "'organization_id', 'project_id', 'api_key_id'",
    "ledger_entries": (
        "'organization_id', 'project_id', 'api_key_id', 'reservation_id', 'recorded_at'"
    ),
    "unsettled_holds": (
        "'organization_id', 'project_id', 'api_key_id', 'reservation_id', 'unsettled_at'"
    ),
}
"""Tables, and their columns that differ between the two."""


@pytest.fixture
async def database_url(migrated_template: str) -> AsyncIterator[str]:
    async with databases.temporary(template=migrated_template) as url:
        await MovedClock(url).install()
        yield url


class Twins:
    """The two organizations, and what was done to both."""

    def __init__(self, database: Database, single: Payer, batch: Payer) -> None:
        self._database = database
        self._payers = {Form.ALONE: single, Form.OWN: batch}
        self._worker = InstanceId(time_ordered_uuid())
        self.holds: list[dict[Form, Hold]] = []

    async def admit(self, hold: Hold, *, is_retry: bool = False) -> None:
        """Admit a hold of both, or both again."""
        known = next((each for each in self.holds if hold in each.values()), None)
        both = known or {
            form: replace(
                hold,
                organization_id=payer.organization_id,
                project_id=payer.project_id,
                api_key_id=payer.api_key_id,
                reservation_id=ReservationId(time_ordered_uuid()),
            )
            for form, payer in self._payers.items()
        }
        told = [await self._send(form, [], [both[form]], is_retry=is_retry) for form in both]
        assert told[0] == told[1], hold
        if known is None:
            self.holds.append(both)

    async def resolve(self, of: dict[Form, Hold], end: Resolution) -> None:
        told = [await self._send(form, [_of(hold, end)], []) for form, hold in of.items()]
        assert told[0] == told[1], end

    async def resolve_and_admit(self, of: dict[Form, Hold], end: Resolution, hold: Hold) -> None:
        """As a pair, and by the statement of batches, which has the end twice."""
        alone, own = self._payers[Form.ALONE], self._payers[Form.OWN]
        held = {
            form: replace(
                hold,
                organization_id=payer.organization_id,
                project_id=payer.project_id,
                api_key_id=payer.api_key_id,
                reservation_id=ReservationId(time_ordered_uuid()),
            )
            for form, payer in ((Form.ALONE, alone), (Form.OWN, own))
        }
        pair = await self._send(Form.MIXED, [_of(of[Form.ALONE], end)], [held[Form.ALONE]])
        again = _of(of[Form.OWN], end)
        batch = await self._send(Form.OWN, [again, again], [held[Form.OWN]])
        assert isinstance(pair, BatchResult) == isinstance(batch, BatchResult), (pair, batch)
        if isinstance(pair, BatchResult) and isinstance(batch, BatchResult):
            assert (pair.resolved, pair.decisions) == (batch.resolved[:1], batch.decisions), end
        self.holds.append(held)

    async def mark_unsettled(self, of: dict[Form, Hold]) -> None:
        async with self._database.transaction() as tx:
            for hold in of.values():
                await tx.execute(
                    """
                    INSERT INTO unsettled_holds (organization_id, admitted_day, reservation_id,
                           held_pico, admitted_at, project_id, api_key_id, decide_at)
                    SELECT $1, admitted_day, reservation_id, held_pico, admitted_at,
                           project_id, api_key_id, deadline_at
                      FROM ledger_find_entries($1, $2, $3, 0)
                     WHERE NOT EXISTS (SELECT FROM ledger_find_entries($1, $2, $3, 1))
                    ON CONFLICT DO NOTHING
                    """,
                    hold.organization_id,
                    [hold.reservation_id],
                    [hold.admitted_day],
                )

    async def stored(self, form: Form) -> dict[str, list[str]]:
        """All rows of one organization, without what differs."""
        found: dict[str, list[str]] = {}
        async with self._database.transaction() as tx:
            for table, own in STORED.items():
                rows = await tx.fetch_all(
                    f"""
                    SELECT (to_jsonb(t) - ARRAY[{own}])::text AS line
                      FROM {table} t
                     WHERE organization_id = $1
                     ORDER BY 1
                    """,  # noqa: S608 - constants  # pyright: ignore[reportArgumentType]
                    self._payers[form].organization_id,
                )
                found[table] = [row["line"] for row in rows]
        return found

    async def _send(
        self, form: Form, ends: list[Resolution], holds: list[Hold], *, is_retry: bool = False
    ) -> BatchResult | str:
        try:
            return await send(
                *(self._database, ends, holds, form), instance_id=self._worker, is_retry=is_retry
            )
        except ConstraintViolated as error:
            return error.constraint


def _of(hold: Hold, end: Resolution) -> Resolution:
    return replace(
        end,
        organization_id=hold.organization_id,
        reservation_id=hold.reservation_id,
        admitted_day=hold.admitted_day,
    )


async def capped(database: Database) -> Payer:
    payer = await new_payer(database, credit=CREDIT)
    async with database.transaction() as tx:
        await tx.execute(CAPS, payer.organization_id, payer.project_id, payer.api_key_id)
    return payer


def drawn_end(random: Random, hold: Hold) -> Resolution:
    """Charge up to all of a hold and sometimes more, with every column in use."""
    kind = random.choice([*[ResolutionKind.POST] * 4, *ResolutionKind])
    amount = 0 if kind is ResolutionKind.VOID else random.randint(0, hold.amount_pico_usd)
    if random.random() < 0.03:
        amount = hold.amount_pico_usd + 1
    cut = sorted(random.randint(0, amount) for _ in range(4))
    parts = [PicoUsd(end - start) for start, end in zip([0, *cut], [*cut, amount], strict=True)]
    tokens = random.randint(0, 9)
    written = random.randint(1, tokens) if tokens and random.random() < 0.4 else 0
    is_full = kind is ResolutionKind.POST and amount == hold.amount_pico_usd
    return Resolution(
        organization_id=hold.organization_id,
        reservation_id=hold.reservation_id,
        admitted_day=hold.admitted_day,
        kind=kind,
        charge=Charge(
            input_tokens=tokens,
            cache_write_tokens=written,
            cached_input_tokens=random.randint(0, 9),
            output_tokens=random.randint(0, 9),
            images=random.randint(0, 2),
            input_pico_usd=parts[0],
            cache_write_pico_usd=PicoUsd(random.randint(0, parts[0]) if written else 0),
            cached_input_pico_usd=parts[1],
            output_pico_usd=parts[2],
            image_pico_usd=parts[3],
            request_pico_usd=parts[4],
        ),
        excess_pico_usd=PicoUsd(random.randint(0, 3) if is_full else 0),
        delivered_tokens=random.choice([None, 4]),
        is_estimated=random.random() < 0.3,
        operator_pays=random.choice([None, OperatorPays.WORKER_LOST]),
        model=random.choice([None, None, "the model that answered"]),
    )


# Entries that a random charge makes are not those of any price list.
@pytest.mark.tampers
async def test_a_single_item_and_a_batch_of_it_are_equal(
    database: Database, database_url: str
) -> None:
    random = seeds.chance("one and batch")
    clock = MovedClock(database_url)
    twins = Twins(database, await capped(database), await capped(database))
    payer = await new_payer(database)
    today = datetime.now(UTC).date()
    async with database.transaction() as tx:
        await partitions.make(
            *(tx, DailyTable.LEDGER_ENTRIES),
            first_day=today,
            last_day=today + timedelta(days=DAYS),
        )
    now = datetime.combine(today, time(12), UTC)

    for number in range(ITEMS):
        now += timedelta(hours=random.choice([0, 0, 1, 2]) * (DAYS - 1) * 24 / ITEMS)
        await clock.hold(now)
        begun = now - timedelta(seconds=random.choice([0, 5, 300, 601 if number % 9 == 0 else 1]))
        amount = random.choice([0, 1, 100, 900, 3_000])
        hold = payer.hold(
            amount, admitted_at=begun, deadline=random.choice([DEADLINE, timedelta(days=9)])
        )
        match random.choice(["admit", "admit", "resolve", "resolve", "pair", "retry", "mark"]):
            case "resolve" if twins.holds:
                of = random.choice(twins.holds[-30:])
                await twins.resolve(of, drawn_end(random, of[Form.OWN]))
            case "pair" if twins.holds:
                of = random.choice(twins.holds[-30:])
                await twins.resolve_and_admit(of, drawn_end(random, of[Form.OWN]), hold)
            case "retry" if twins.holds:
                known = random.choice(twins.holds[-9:])[Form.OWN]
                await twins.admit(known, is_retry=True)
            case "mark" if twins.holds:
                await twins.mark_unsettled(random.choice(twins.holds[-9:]))
            case _:
                await twins.admit(hold)

    single, batch = [await twins.stored(form) for form in (Form.ALONE, Form.OWN)]
    assert single == batch
    assert all(single[table] for table in STORED.keys() - {"unsettled_holds"})
