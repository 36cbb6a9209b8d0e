"""Cache writes: a part of the input with its own line item."""

from dataclasses import replace
from datetime import UTC, datetime, time

import pytest

from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.invariants import assert_conserved
from tests.ledger.sending import Form, send
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import unix_seconds
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.types import Charge, Hold, Resolution, ResolutionKind
from tollhouse.reports import store
from tollhouse.reports.types import CostFilter, CostQuery, CostSubject, ReportSpan, Sums, Width
from tollhouse.storage.errors import ConstraintViolated

OTHER_MODEL = "the model that answered"
WRITTEN = Charge(
    input_tokens=10,
    cache_write_tokens=4,
    input_pico_usd=PicoUsd(70),
    cache_write_pico_usd=PicoUsd(40),
)


def posted(hold: Hold, charge: Charge, *, model: str | None = None) -> Resolution:
    return Resolution(
        organization_id=hold.organization_id,
        reservation_id=hold.reservation_id,
        admitted_day=hold.admitted_day,
        kind=ResolutionKind.POST,
        charge=charge,
        model=model,
    )


async def rollups(ledger: DirectLedger) -> list[list[tuple[object, ...]]]:
    """Input and writes by model, of entries, days and hours."""
    async with ledger.connection() as connection:
        found = [
            await connection.fetch(
                f"""
                SELECT model, sum(input_tokens)::int, sum(input_pico)::int,
                       sum(cache_write_tokens)::int, sum(cache_write_pico)::int
                  FROM {table}
                 GROUP BY 1
                HAVING sum(input_tokens) > 0
                 ORDER BY 1
                """  # noqa: S608 - our own tables
            )
            for table in ("ledger_entries", "cost_daily", "cost_hourly")
        ]
    return [[tuple(row) for row in rows] for rows in found]


async def used(ledger: DirectLedger) -> list[Sums]:
    """The sums of today from days, hours and entries, as reports read them."""
    start = unix_seconds(datetime.combine(datetime.now(UTC).date(), time.min, UTC))
    span = ReportSpan(start=start, end=start + Width.DAY)
    query = CostQuery(
        subject=CostSubject.COSTS,
        start=start,
        width=Width.DAY,
        only=CostFilter(),
        grouping=frozenset(),
    )
    async with ledger.org.database.transaction() as tx:
        return [
            found.sums
            for read in (store.days, store.hours, store.entries)
            for found in await read(tx, ledger.org.organization_id, query, span)
        ]


# Without the mark, the check after the test does not know of the fallback.
@pytest.mark.tampers
@pytest.mark.parametrize("form", Form)
async def test_a_batch_counts_writes_beside_other_requests_and_fallbacks(
    org: OrganizationFixture, database_url: str, form: Form
) -> None:
    ledger = await open_ledger(org, database_url)
    holds = [await ledger.hold(100) for _ in range(4)]
    plain = replace(WRITTEN, cache_write_tokens=0, cache_write_pico_usd=PicoUsd(0))
    ends = [
        posted(holds[0], WRITTEN),
        posted(holds[1], plain),
        posted(holds[2], WRITTEN, model=OTHER_MODEL),
        posted(holds[3], plain, model=OTHER_MODEL),
    ]

    for _ in range(2):
        await send(org.database, ends, [], form)

    each = (20, 140, 4, 40)
    assert await rollups(ledger) == [[("a model", *each), (OTHER_MODEL, *each)]] * 3
    await assert_conserved(org.database, fallbacks={OTHER_MODEL})


async def test_a_write_that_is_no_input_is_refused(
    org: OrganizationFixture, database_url: str
) -> None:
    ledger = await open_ledger(org, database_url)
    too_much = replace(WRITTEN, cache_write_pico_usd=PicoUsd(71))

    with pytest.raises(ConstraintViolated, match="cache_writes_are_input"):
        await send(org.database, [posted(await ledger.hold(100), too_much)], [])


async def test_reports_count_writes_as_a_part_of_the_input(
    org: OrganizationFixture, database_url: str
) -> None:
    ledger = await open_ledger(org, database_url)
    await ledger.post(await ledger.hold(100), 60)

    before = await used(ledger)
    await ledger.post(await ledger.hold(100), 60, written=20)
    after = await used(ledger)

    await assert_conserved(org.database)
    assert [(sums.input_pico_usd, sums.cache_write_pico_usd) for sums in before] == [(30, 0)] * 3
    assert [(sums.input_pico_usd, sums.cache_write_pico_usd) for sums in after] == [(60, 20)] * 3
    assert [sums.cache_write_tokens for sums in after] == [2] * 3
