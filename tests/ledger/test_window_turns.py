"""Caps by day and week at midnight and on Monday under load."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, time, timedelta
from random import Random

import pytest

from tests.ledger.invariants import assert_conserved
from tests.ledger.money import WAIT_MAX, Payer, new_batcher, posted, voided
from tests.ledger.sending import Form, send
from tests.support import databases, seeds
from tests.support.organization_fixture import OrganizationFixture
from tests.support.spending import Spender, spender_of
from tests.support.wrong_clocks import MovedClock
from tollhouse.base.tasks import Tasks
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.errors import Uncovered
from tollhouse.ledger.rules import CAPS, FIRST_CAP_CODE
from tollhouse.ledger.types import CapId, CapScope, Hold, Period
from tollhouse.storage import partitions
from tollhouse.storage.database import Database
from tollhouse.storage.partitions import DailyTable

SHORT = [(scope, period) for scope in CapScope for period in (Period.DAY, Period.WEEK)]
OFFSETS = (timedelta(seconds=-3), timedelta(0), timedelta(seconds=3))
"""The clocks of three workers."""
TICKS = 24
HOLDS_PER_TICK = 12


@pytest.fixture
async def database_url(migrated_template: str) -> AsyncIterator[str]:
    async with databases.temporary(template=migrated_template) as url:
        await MovedClock(url).install()
        yield url


@pytest.fixture
def clock(database_url: str) -> MovedClock:
    return MovedClock(database_url)


@pytest.fixture
async def monday(database: Database) -> datetime:
    """The next midnight from a Sunday to a Monday, with partitions of a week around it."""
    today = datetime.now(UTC).date()
    day = today + timedelta(days=7 - today.weekday())
    async with database.transaction() as tx:
        await partitions.make(
            tx, DailyTable.LEDGER_ENTRIES, first_day=day - timedelta(days=6), last_day=day
        )
    return datetime.combine(day, time.min, UTC)


@pytest.fixture
async def spender(org: OrganizationFixture) -> AsyncIterator[Spender]:
    async with spender_of(org) as opened:
        await opened.grant(10**9)
        yield opened


def payer_of(spender: Spender) -> Payer:
    return Payer(spender.org.organization_id, spender.project_id, spender.api_key_id)


async def used(database: Database) -> Counter[tuple[Period, date]]:
    """What is charged and held in every day and week, added up from the entries."""
    rows = await database.fetch_all(
        """
        SELECT admitted_day, sum(CASE phase WHEN 0 THEN held_pico ELSE posted_pico - held_pico END)
          FROM ledger_entries
         GROUP BY 1
        """
    )
    sums = Counter[tuple[Period, date]]()
    for day, amount in rows:
        for period in (Period.DAY, Period.WEEK):
            sums[period, period.window_start(day)] += int(amount)
    return sums


class Crowd:
    """Three workers that admit and settle at once, and what they were told."""

    def __init__(self, database: Database, tasks: Tasks, random: Random) -> None:
        self._random = random
        self._workers = [(new_batcher(database, tasks), offset) for offset in OFFSETS]
        self._open: list[Hold] = []
        self.refused_on = Counter[date]()
        self.admitted_on = Counter[date]()

    async def tick(self, payer: Payer, now: datetime) -> None:
        """Settle some holds, of either side of midnight, while others are admitted."""
        self._random.shuffle(self._open)
        ending, self._open = self._open[:8], self._open[8:]
        holds = [
            (batcher, payer.hold(self._random.randrange(1, 60), admitted_at=now + offset))
            for batcher, offset in self._workers
            for _ in range(HOLDS_PER_TICK)
        ]
        await asyncio.gather(
            *(self._end(hold) for hold in ending),
            *(self._admit(batcher, hold) for batcher, hold in holds),
        )

    async def _end(self, hold: Hold) -> None:
        batcher, _ = self._random.choice(self._workers)
        amount = self._random.randrange(hold.amount_pico_usd + 1)
        end = voided(hold) if self._random.random() < 0.3 else posted(hold, amount)
        await batcher.resolve(end)

    async def _admit(self, batcher: Batcher, hold: Hold) -> None:
        try:
            await batcher.admit(hold, wait_max=WAIT_MAX)
        except Uncovered:
            self.refused_on[hold.admitted_day] += 1
        else:
            self.admitted_on[hold.admitted_day] += 1
            self._open.append(hold)


@pytest.mark.guarantee("T8")
@pytest.mark.parametrize(("scope", "period"), SHORT)
async def test_a_window_that_turns_under_load_is_never_crossed(
    database: Database,
    clock: MovedClock,
    spender: Spender,
    monday: datetime,
    scope: CapScope,
    period: Period,
) -> None:
    random = seeds.chance("window turns", f"{scope} {period}")
    limit = random.randrange(900, 1_500)
    begin = monday - timedelta(seconds=4)
    await clock.hold(begin)
    place = spender.place(scope, period)
    await spender.set_cap(place, limit, now=begin)
    tasks = Tasks()
    crowd = Crowd(database, tasks, random)
    sunday = monday.date() - timedelta(days=1)

    for number in range(TICKS):
        now = begin + timedelta(seconds=number / 3)
        await clock.hold(now)
        await crowd.tick(payer_of(spender), now)
        assert max(
            amount for (of, _), amount in (await used(database)).items() if of is period
        ) <= (limit)

    assert await tasks.drain(deadline_seconds=60) == 0
    for day in (sunday, monday.date()):
        assert crowd.refused_on[day] > 0
        assert crowd.admitted_on[day] > 0
    await assert_the_rest_fits(database, spender, place, limit, monday)
    await assert_conserved(database)


async def assert_the_rest_fits(
    database: Database, spender: Spender, place: CapId, limit: int, monday: datetime
) -> None:
    """In the window that ended, for a worker whose clock is slow, and in the present one."""
    code = FIRST_CAP_CODE + CAPS.index((place.scope, place.period))
    for admitted_at in (monday - timedelta(seconds=1), monday + timedelta(seconds=1)):
        window = (place.period, place.period.window_start(admitted_at.date()))
        rest = limit - (await used(database))[window]
        payer = payer_of(spender)
        holds = [payer.hold(rest + 1, admitted_at=admitted_at)]
        if rest:
            holds.append(payer.hold(rest, admitted_at=admitted_at))
        result = await send(database, [], holds, Form.ALONE)
        told = [(one.code, one.available_pico_usd) for one in result.decisions if one]
        assert told == [(code, rest), (0, 0)][: len(holds)]


@pytest.mark.guarantee("T8")
async def test_a_batch_of_two_days_is_counted_in_both(
    database: Database, clock: MovedClock, spender: Spender, monday: datetime
) -> None:
    """Settled in one batch too, with a hold of a week that is no longer counted."""
    payer = payer_of(spender)
    await clock.hold(monday - timedelta(days=6))
    old = payer.hold(500, admitted_at=monday - timedelta(days=6), deadline=timedelta(days=30))
    await send(database, [], [old])
    await clock.hold(monday)
    days = [monday - timedelta(seconds=5), monday + timedelta(seconds=5)]
    holds = [payer.hold(100, admitted_at=at) for at in (*days, *days)]
    for batch in (holds[:2], [holds[3], holds[2]]):
        await send(database, [], batch, Form.MIXED)
    for scope, period in SHORT:
        use = await spender.set_cap(spender.place(scope, period), 1_000, now=days[1])
        assert (use.settled_pico_usd, use.reserved_pico_usd) == (0, 200)
    assert [use.reserved_pico_usd for use in await spender.caps(days[0])] == [200, 700] * 3

    await send(database, [posted(hold, 30) for hold in (*holds, old)], [])

    for now, expected in ((days[0], [60, 90]), (days[1], [60, 60])):
        assert [use.settled_pico_usd for use in await spender.caps(now)] == expected * 3
    assert {use.reserved_pico_usd for use in await spender.caps(days[1])} == {0}
