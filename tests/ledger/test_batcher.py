"""The batcher: nothing is lost, nothing is done twice, nobody waits for another's trouble."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.identity.proxy import Proxy, proxied
from tests.identity.waiting import holding, until, until_a_lock_is_awaited
from tests.ledger.money import WAIT_MAX, Payer, new_batcher, new_payer, posted, voided
from tests.ledger.sending import Form, send
from tests.support.gateway import settings_for
from tollhouse.app import connect
from tollhouse.base.ids import OrganizationId, ReservationId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.base.tasks import Tasks
from tollhouse.ledger.batcher import MIXED_BATCHES_MAX, MIXED_ITEMS_MAX, Batcher
from tollhouse.ledger.errors import (
    AdmissionImpossible,
    AdmissionUndecided,
    ClockIsWrong,
    CreditExhausted,
    DeadlinePassed,
    ResolutionSetAside,
)
from tollhouse.ledger.types import Charge, Hold, Resolution, ResolutionKind, ResolutionResult
from tollhouse.storage.database import Database

DRAIN_SECONDS = 60.0


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    running = Tasks()
    yield running
    assert await running.drain(deadline_seconds=DRAIN_SECONDS) == 0


@pytest.fixture
def batcher(database: Database, tasks: Tasks) -> Batcher:
    return new_batcher(database, tasks)


async def balance(database: Database, payer: Payer) -> tuple[int, int]:
    """Settled and reserved."""
    async with database.transaction() as tx:
        row = await tx.fetch_one(
            "SELECT settled_pico, reserved_pico FROM accounts WHERE organization_id = $1",
            payer.organization_id,
        )
    assert row is not None
    return int(row["settled_pico"]), int(row["reserved_pico"])


async def test_a_hold_is_reserved_then_charged_and_the_rest_is_free_again(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    hold = payer.hold(60)

    await batcher.admit(hold, wait_max=WAIT_MAX)
    assert await balance(database, payer) == (0, 60)

    assert await batcher.resolve(posted(hold, 25)) is ResolutionResult.NOW
    assert await balance(database, payer) == (25, 0)
    await batcher.admit(payer.hold(75), wait_max=WAIT_MAX)


async def test_a_refusal_says_what_was_needed_and_whether_waiting_can_help(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    hold = payer.hold(60)
    await batcher.admit(hold, wait_max=WAIT_MAX)

    with pytest.raises(CreditExhausted) as held:
        await batcher.admit(payer.hold(50), wait_max=WAIT_MAX)
    assert (held.value.needed, held.value.available, held.value.held) == (50, 40, 60)
    assert held.value.retry_after_seconds is not None

    await batcher.resolve(posted(hold, 60))
    with pytest.raises(CreditExhausted) as final:
        await batcher.admit(payer.hold(50), wait_max=WAIT_MAX)
    assert final.value.retry_after_seconds is None


async def test_a_large_request_that_is_refused_does_not_stop_a_small_one_behind_it(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    results = await asyncio.gather(
        *(batcher.admit(payer.hold(amount), wait_max=WAIT_MAX) for amount in (60, 60, 40)),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [type(None), CreditExhausted, type(None)]


async def test_what_is_resolved_before_an_answer_is_committed_before_it(
    database: Database, database_url: str, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    hold = payer.hold(60)
    await batcher.admit(hold, wait_max=WAIT_MAX)
    lock = "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE"

    async with holding(database_url, lock, payer.organization_id):
        answering = asyncio.create_task(batcher.resolve_before_answer(voided(hold)))
        await until_a_lock_is_awaited(database_url)
        assert not answering.done()

    await answering
    assert await balance(database, payer) == (0, 0)


@pytest.mark.guarantee("I3")
async def test_a_hold_ends_once_however_often_it_is_resolved(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    hold = payer.hold(60)
    await batcher.admit(hold, wait_max=WAIT_MAX)

    outcomes = [await batcher.resolve(posted(hold, 25)) for _ in range(3)]
    outcomes.append(await batcher.resolve(voided(hold)))

    assert outcomes == [
        ResolutionResult.NOW,
        ResolutionResult.BEFORE,
        ResolutionResult.BEFORE,
        ResolutionResult.BEFORE,
    ]
    assert await balance(database, payer) == (25, 0)
    assert await batcher.resolve(voided(payer.hold(1))) is ResolutionResult.NO_HOLD


@pytest.mark.guarantee("I3")
async def test_of_two_ends_in_one_batch_the_first_counts_and_the_second_is_told_so(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    hold, other = payer.hold(60), payer.hold(10)
    await asyncio.gather(*(batcher.admit(one, wait_max=WAIT_MAX) for one in (hold, other)))

    # The first item goes alone; whatever comes meanwhile is one batch.
    ends = [voided(other), posted(hold, 25), voided(hold), posted(hold, 60)]
    outcomes = await asyncio.gather(*(batcher.resolve(end) for end in ends))

    assert outcomes == [
        ResolutionResult.NOW,
        ResolutionResult.NOW,
        ResolutionResult.BEFORE,
        ResolutionResult.BEFORE,
    ]
    assert await balance(database, payer) == (25, 0)


@pytest.mark.guarantee("T8")
async def test_a_hold_of_a_wrong_clock_or_past_its_deadline_is_refused(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    now = datetime.now(UTC)

    for minutes in (-11, 11):
        wrong = payer.hold(1, admitted_at=now + timedelta(minutes=minutes))
        with pytest.raises(ClockIsWrong):
            await batcher.admit(wrong, wait_max=WAIT_MAX)
    late = payer.hold(1, admitted_at=now - timedelta(minutes=2), deadline=timedelta(minutes=1))
    with pytest.raises(DeadlinePassed):
        await batcher.admit(late, wait_max=WAIT_MAX)

    assert await balance(database, payer) == (0, 0)


async def test_a_caller_who_leaves_leaves_no_hold_behind(
    database: Database, database_url: str, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    connection = await locked(database_url, payer)

    leaving = asyncio.create_task(batcher.admit(payer.hold(60), wait_max=WAIT_MAX))
    await until_a_lock_is_awaited(database_url)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    with pytest.raises(AdmissionUndecided):
        await batcher.admit(payer.hold(30), wait_max=timedelta(milliseconds=50))
    await connection.close()

    await until_balanced(database, payer, (0, 0))


async def test_a_locked_organization_holds_up_nobody_else_and_loses_nothing(
    database: Database, database_url: str, batcher: Batcher
) -> None:
    locked_out = await new_payer(database, credit=100)
    others = [await new_payer(database, credit=100) for _ in range(20)]
    connection = await locked(database_url, locked_out)

    waiting = [
        asyncio.create_task(batcher.admit(locked_out.hold(10), wait_max=WAIT_MAX)) for _ in range(5)
    ]
    await until_a_lock_is_awaited(database_url)
    for _ in range(3):
        holds = [payer.hold(10) for payer in others]
        await asyncio.gather(*(batcher.admit(hold, wait_max=WAIT_MAX) for hold in holds))
        await asyncio.gather(*(batcher.resolve(posted(hold, 5)) for hold in holds))
    assert not any(task.done() for task in waiting)

    await connection.close()
    await asyncio.gather(*waiting)
    assert await balance(database, locked_out) == (0, 50)


async def test_many_locked_organizations_leave_room_for_the_others(
    database: Database, database_url: str, batcher: Batcher
) -> None:
    """More of them than there are places for batches of one's own."""
    locked_out = [await new_payer(database, credit=100) for _ in range(8)]
    connections = [await locked(database_url, payer) for payer in locked_out]
    free = await new_payer(database, credit=100)

    waiting = [
        asyncio.create_task(batcher.admit(payer.hold(10), wait_max=WAIT_MAX))
        for payer in locked_out
        for _ in range(2)
    ]
    await until_a_lock_is_awaited(database_url)
    await asyncio.gather(*(batcher.admit(free.hold(10), wait_max=WAIT_MAX) for _ in range(4)))
    assert not any(task.done() for task in waiting)

    for connection in connections:
        await connection.close()
    await asyncio.gather(*waiting)
    for payer in locked_out:
        assert await balance(database, payer) == (0, 20)


@pytest.mark.parametrize("form", Form)
async def test_of_two_resolutions_the_first_one_counts(
    database: Database, batcher: Batcher, form: Form
) -> None:
    payer = await new_payer(database, credit=100)
    hold = payer.hold(60)
    await batcher.admit(hold, wait_max=WAIT_MAX)

    result = await send(database, [voided(hold), posted(hold, 25)], [], form)

    assert result.resolved == [ResolutionResult.NOW, ResolutionResult.BEFORE]
    assert await balance(database, payer) == (0, 0)


async def test_a_refusal_does_not_promise_what_is_unsettled(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    hold = payer.hold(60)
    await batcher.admit(hold, wait_max=WAIT_MAX)
    async with database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO unsettled_holds (organization_id, admitted_day, reservation_id, held_pico,
                                         admitted_at, project_id, api_key_id, decide_at)
            SELECT organization_id, admitted_day, reservation_id, held_pico, admitted_at,
                   project_id, api_key_id, deadline_at + interval '1 day'
              FROM ledger_entries
             WHERE organization_id = $1
            """,
            payer.organization_id,
        )

    with pytest.raises(CreditExhausted) as refused:
        await batcher.admit(payer.hold(50), wait_max=WAIT_MAX)

    assert (refused.value.available, refused.value.held) == (40, 0)
    assert refused.value.retry_after_seconds is None


async def test_a_day_without_its_table_is_our_failure_not_the_callers(
    database: Database, database_url: str, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    connection = await asyncpg.connect(database_url)
    await connection.execute("DROP TABLE " + ", ".join(await day_tables(connection)))
    await connection.close()

    with pytest.raises(AdmissionImpossible) as refused:
        await batcher.admit(payer.hold(10), wait_max=WAIT_MAX)

    assert refused.value.kind == 503
    assert await balance(database, payer) == (0, 0)


async def day_tables(connection: asyncpg.Connection) -> list[str]:
    rows = await connection.fetch(
        """
        SELECT inhrelid::regclass::text
          FROM pg_inherits
         WHERE inhparent = 'ledger_entries'::regclass
        """
    )
    return [row["inhrelid"] for row in rows]


async def test_a_poisoned_settlement_is_set_aside_and_its_batch_goes_on(
    database: Database, database_url: str, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=1000)
    holds = [payer.hold(10) for _ in range(8)]
    await asyncio.gather(*(batcher.admit(hold, wait_max=WAIT_MAX) for hold in holds))
    poison = posted(holds[3], 11)  # the schema refuses a charge above the hold

    connection = await locked(database_url, payer)
    first = batcher.resolve(posted(holds[0], 5))
    rest = [batcher.resolve(poison if hold is holds[3] else posted(hold, 5)) for hold in holds[1:]]
    admission = asyncio.create_task(batcher.admit(payer.hold(10), wait_max=WAIT_MAX))
    await until_a_lock_is_awaited(database_url)
    await connection.close()

    outcomes = await asyncio.gather(first, *rest, return_exceptions=True)
    await admission
    assert [outcome for outcome in outcomes if outcome is ResolutionResult.NOW] == [
        ResolutionResult.NOW
    ] * 7
    assert isinstance(outcomes[3], ResolutionSetAside)
    assert await balance(database, payer) == (35, 20)


async def test_an_amount_beyond_the_columns_range_poisons_nobody_else(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=1000)
    holds = [payer.hold(10) for _ in range(3)]
    await asyncio.gather(*(batcher.admit(hold, wait_max=WAIT_MAX) for hold in holds))

    outcomes = await asyncio.gather(
        *(batcher.resolve(posted(hold, 2**70 if hold is holds[1] else 5)) for hold in holds),
        return_exceptions=True,
    )
    assert outcomes[0] is outcomes[2] is ResolutionResult.NOW
    assert isinstance(outcomes[1], ResolutionSetAside)


async def test_what_a_request_cost_above_its_hold_is_the_houses(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    hold = payer.hold(60)
    await batcher.admit(hold, wait_max=WAIT_MAX)
    charge = replace(posted(hold, 60), excess_pico_usd=PicoUsd(7))

    assert await batcher.resolve(charge) is ResolutionResult.NOW

    assert await balance(database, payer) == (60, 0)
    async with database.transaction() as tx:
        excess = await tx.fetch_value(
            "SELECT written_off_excess_pico FROM accounts WHERE organization_id = $1",
            payer.organization_id,
        )
    assert excess == 7


async def test_a_settlement_writes_the_reports_and_a_void_does_not(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=1000)
    free, paid, void = (payer.hold(100) for _ in range(3))
    for hold in (free, paid, void):
        await batcher.admit(hold, wait_max=WAIT_MAX)
    used = Charge(input_tokens=3, output_tokens=4, input_pico_usd=PicoUsd(6))
    await batcher.resolve(replace(posted(paid, 0), charge=used))
    await batcher.resolve(replace(posted(free, 0), charge=Charge(input_tokens=1)))
    await batcher.resolve(voided(void))

    for table in ("cost_daily", "cost_hourly"):
        async with database.transaction() as tx:
            rows = await tx.fetch_all(
                "SELECT requests, input_tokens, output_tokens, input_pico FROM cost_daily"
                if table == "cost_daily"
                else "SELECT requests, input_tokens, output_tokens, input_pico FROM cost_hourly"
            )
        assert [tuple(row) for row in rows] == [(2, 4, 4, 6)]


async def test_an_answer_that_was_lost_is_asked_for_again_and_counts_once(
    database: Database, database_url: str, tasks: Tasks
) -> None:
    payer = await new_payer(database, credit=1000)
    server = urlsplit(database_url)
    async with proxied("127.0.0.1", server.port or 5432) as proxy:
        url = server._replace(netloc=f"{server.username}@127.0.0.1:{proxy.port}").geturl()
        far = await connect(settings_for(url))
        batcher = new_batcher(far, tasks)
        warm = payer.hold(1)
        await batcher.admit(warm, wait_max=WAIT_MAX)

        holds = [payer.hold(10) for _ in range(4)]
        admitting = [asyncio.create_task(batcher.admit(hold, wait_max=WAIT_MAX)) for hold in holds]
        await lose_answers(proxy)
        await asyncio.gather(*admitting)
        assert await balance(database, payer) == (0, 41)

        settling = [batcher.resolve(posted(hold, 5)) for hold in holds]
        await lose_answers(proxy)
        outcomes = await asyncio.gather(*settling)
        assert set(outcomes) <= {ResolutionResult.NOW, ResolutionResult.BEFORE}
        assert await balance(database, payer) == (20, 1)
        await batcher.resolve(voided(warm))
        await far.close()


async def test_a_lost_answer_is_asked_for_as_a_retry_also_after_a_locked_account_was_skipped(
    database: Database, database_url: str, tasks: Tasks
) -> None:
    """A mixed batch skips the account; the batch that waits for it must know of the first try."""
    payer = await new_payer(database, credit=100)
    server = urlsplit(database_url)
    async with proxied("127.0.0.1", server.port or 5432) as proxy:
        url = server._replace(netloc=f"{server.username}@127.0.0.1:{proxy.port}").geturl()
        far = await connect(settings_for(url))
        batcher = new_batcher(far, tasks)
        await batcher.admit(payer.hold(1), wait_max=WAIT_MAX)

        proxy.swallow_answers()
        admission = asyncio.create_task(batcher.admit(payer.hold(10), wait_max=WAIT_MAX))
        await until_balanced(database, payer, (0, 11))
        connection = await locked(database_url, payer)
        await proxy.cut()
        proxy.hear_answers()
        await proxy.open()
        await until_a_lock_is_awaited(database_url)
        await connection.close()

        await admission
        assert await balance(database, payer) == (0, 11)
        await far.close()


async def test_a_settlement_goes_on_when_whoever_awaits_it_is_cancelled(
    database: Database, database_url: str, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    holds = [payer.hold(10) for _ in range(3)]
    await asyncio.gather(*(batcher.admit(hold, wait_max=WAIT_MAX) for hold in holds))
    connection = await locked(database_url, payer)

    settling = [asyncio.create_task(settle(batcher, hold)) for hold in holds]
    admission = asyncio.create_task(batcher.admit(payer.hold(10), wait_max=WAIT_MAX))
    await until_a_lock_is_awaited(database_url)
    for task in settling[:2]:
        task.cancel()
    await connection.close()

    await admission
    assert await settling[2] is ResolutionResult.NOW
    assert await balance(database, payer) == (15, 10)


async def settle(batcher: Batcher, hold: Hold) -> ResolutionResult:
    return await batcher.resolve(posted(hold, 5))


async def test_a_retry_that_was_refused_before_is_decided_anew(
    database: Database, batcher: Batcher
) -> None:
    """Only what was committed is repeated as it is."""
    payer = await new_payer(database, credit=10)
    hold = payer.hold(20)
    with pytest.raises(CreditExhausted):
        await batcher.admit(hold, wait_max=WAIT_MAX)
    with pytest.raises(CreditExhausted):
        await batcher.admit(hold, wait_max=WAIT_MAX)


async def test_a_smaller_hold_of_a_request_is_admitted_by_the_larger_one_that_was_stored_late(
    database: Database, batcher: Batcher
) -> None:
    payer = await new_payer(database, credit=100)
    hold = payer.hold(20)
    await batcher.admit(hold, wait_max=WAIT_MAX)
    smaller = replace(hold, amount_pico_usd=PicoUsd(10))
    await batcher.admit(smaller, wait_max=WAIT_MAX, may_be_stored=True)
    assert await balance(database, payer) == (0, 20)


async def lose_answers(proxy: Proxy) -> None:
    """Let statements through, swallow what the server says, and break the line."""
    proxy.swallow_answers()
    await proxy.answer_swallowed.wait()
    await proxy.cut()
    proxy.hear_answers()
    await proxy.open()


async def locked(database_url: str, payer: Payer) -> asyncpg.Connection:
    """Somebody else's transaction on the account; closing the connection ends it."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("BEGIN")
    await connection.execute(
        "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE", payer.organization_id
    )
    return connection


async def until_balanced(database: Database, payer: Payer, expected: tuple[int, int]) -> None:
    async def is_so() -> bool:
        return await balance(database, payer) == expected

    await until(is_so)


async def test_items_behind_a_bug_are_carried_out(
    batcher: Batcher, caplog: pytest.LogCaptureFixture
) -> None:
    """Both runners of mixed batches meet an item that no statement can be made of."""

    def resolution(number: int) -> Resolution:
        organization_id = OrganizationId(time_ordered_uuid())
        if number % MIXED_ITEMS_MAX == 0 and number < MIXED_BATCHES_MAX * MIXED_ITEMS_MAX:
            return cast("Resolution", SimpleNamespace(organization_id=organization_id))
        return Resolution(
            organization_id=organization_id,
            reservation_id=ReservationId(time_ordered_uuid()),
            admitted_day=datetime.now(UTC).date(),
            kind=ResolutionKind.VOID,
        )

    items = MIXED_BATCHES_MAX * MIXED_ITEMS_MAX + 3
    answers = [batcher.resolve(resolution(number)) for number in range(items)]
    async with asyncio.timeout(DRAIN_SECONDS):
        results = await asyncio.gather(*answers, return_exceptions=True)

    assert all(isinstance(result, AdmissionUndecided) for result in results[:-3])
    assert results[-3:] == [ResolutionResult.NO_HOLD] * 3
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "task_failed"
    ] * MIXED_BATCHES_MAX
