"""The recorder: writes in batches, loses only what it counts, and counts nothing twice."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from statistics import median
from time import perf_counter
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import msgspec
import pytest

from tests.activity.records import Customer, days_ago, stranger
from tests.identity.measures import counted
from tests.identity.proxy import Proxy, proxied
from tests.identity.waiting import holding, until_a_lock_is_awaited
from tests.support import seeds
from tests.support.gateway import settings_for
from tollhouse.activity.recorder import BATCH_MAX, RequestRecorder
from tollhouse.activity.types import RequestRecord
from tollhouse.app import connect
from tollhouse.base.attempts import Attempt
from tollhouse.base.ids import RequestId
from tollhouse.observability import registry
from tollhouse.observability.log import CALLERS_TEXT_LENGTH_MAX
from tollhouse.storage.database import Database

WRITTEN = "tollhouse_activity_written_total"
DEADLINE_SECONDS = 120.0
LOGGER = "tollhouse.activity"


def dropped(reason: str) -> int:
    return counted(f'tollhouse_activity_dropped_total{{reason="{reason}"}}')


@pytest.fixture
def recorder(database: Database) -> RequestRecorder:
    return RequestRecorder(database, waiting_records_max=2_000)


async def written(database: Database) -> set[UUID]:
    return {row["request_id"] for row in await database.fetch_all("SELECT * FROM requests")}


async def rolled_up(database: Database) -> int:
    rows = await database.fetch_all(
        "SELECT coalesce(sum(requests), 0)::int AS n FROM request_hours"
    )
    return rows[0]["n"]


async def write(recorder: RequestRecorder, *records: RequestRecord) -> None:
    for record in records:
        recorder.record(record)
    await recorder.write()


async def test_a_record_is_kept_whole(
    database: Database, recorder: RequestRecorder, customer: Customer
) -> None:
    record = customer.record(
        status=502,
        error_code="backend_error",
        error_param="model",
        failed_by="backend",
        requested_model="example/alias",
        label="team-red",
        dropped_tools=("web_search", "mcp"),
        attempts=(Attempt("example/alias", "pool-2", "failed", 5.25),),
    )

    await write(recorder, record)

    (row,) = await database.fetch_all("SELECT * FROM requests")
    assert dict(row) == {
        "organization_id": customer.organization_id,
        "day": record.started_at.date(),
        "request_id": record.request_id,
        "project_id": customer.project_id,
        "api_key_id": customer.api_key_id,
        "operation": "createChatCompletion",
        "started_at": record.started_at,
        "status": 502,
        "error_code": "backend_error",
        "failed_by": "backend",
        "model": "example/model",
        "backend": "pool",
        "replica": "pool-1",
        "is_stream": False,
        "input_tokens": 12,
        "cached_input_tokens": 3,
        "output_tokens": 45,
        "cost_pico": 1_250_000,
        "queue_ms": 0.5,
        "admission_ms": 2.25,
        "judging_ms": None,
        "first_byte_ms": 120.5,
        "total_ms": 640.75,
        "is_estimated": False,
        "error_param": "model",
        "requested_model": "example/alias",
        "label": "team-red",
        "dropped_tools": "web_search, mcp",
        "attempts": ('[{"model":"example/alias","replica":"pool-2","outcome":"failed","ms":5.25}]'),
    }


async def test_what_waits_is_written_in_batches_and_in_one_turn(
    database: Database, recorder: RequestRecorder, customer: Customer
) -> None:
    records = [customer.record() for _ in range(3 * BATCH_MAX + 1)]
    before = counted(WRITTEN)

    await write(recorder, *records)

    assert await written(database) == {record.request_id for record in records}
    assert await rolled_up(database) == len(records)
    assert counted(WRITTEN) - before == len(records)


async def test_a_full_queue_drops_the_new_record_and_counts_it(
    database: Database, customer: Customer
) -> None:
    recorder = RequestRecorder(database, waiting_records_max=3)
    records = [customer.record() for _ in range(5)]
    before = dropped("no_room")

    await write(recorder, *records)
    assert dropped("no_room") - before == 2
    await write(recorder, customer.record())

    found = await written(database)
    assert {record.request_id for record in records[:3]} < found
    assert len(found) == 4


async def test_a_record_that_is_noted_twice_counts_once(
    database: Database, recorder: RequestRecorder, customer: Customer
) -> None:
    record, other = customer.record(), customer.record()

    await write(recorder, record, record, other)
    await write(recorder, record)

    assert await written(database) == {record.request_id, other.request_id}
    assert await rolled_up(database) == 2


@pytest.mark.parametrize(
    "facts",
    [
        {"request_id": RequestId(UUID("94ea7888-c215-409a-834e-16eafdca9b5a"))},
        {"status": 999},
        {"status": 70_000},
        {"input_tokens": -1},
        {"output_tokens": 2**63},
        {"model": "\0"},
        {"model": "\ud800"},
        {"replica": "\ud800"},
    ],
    ids=str,
)
async def test_a_record_that_the_database_refuses_takes_no_other_with_it(
    database: Database, recorder: RequestRecorder, customer: Customer, facts: dict[str, object]
) -> None:
    sound = [customer.record() for _ in range(40)]
    broken = msgspec.structs.replace(customer.record(), **facts)
    before = dropped("refused")

    await write(recorder, *sound[:30], broken, *sound[30:])

    assert await written(database) == {record.request_id for record in sound}
    assert await rolled_up(database) == len(sound)
    assert dropped("refused") - before == 1


async def test_days_without_a_table_are_refused_in_a_bounded_number_of_tries(
    database: Database,
    recorder: RequestRecorder,
    customer: Customer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lost = [customer.record(days_ago(60)) for _ in range(BATCH_MAX)]
    before = dropped("refused")

    with caplog.at_level(logging.ERROR, LOGGER):
        await write(recorder, *lost, customer.record())

    assert dropped("refused") - before == len(lost)
    assert len(await written(database)) == 1
    assert len(caplog.records) <= 65


@pytest.fixture
async def wire(database_url: str) -> AsyncIterator[Proxy]:
    parts = urlsplit(database_url)
    async with proxied(str(parts.hostname), parts.port or 5432) as proxy:
        yield proxy


@pytest.fixture
async def remote(wire: Proxy, database_url: str) -> AsyncIterator[Database]:
    """The same database behind a wire that can be cut."""
    parts = urlsplit(database_url)
    url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{wire.port}").geturl()
    opened = await connect(settings_for(url))
    yield opened
    await opened.close()


async def test_a_batch_whose_answer_is_lost_is_written_again_and_counted_once(
    database: Database, remote: Database, wire: Proxy, customer: Customer
) -> None:
    recorder = RequestRecorder(remote, waiting_records_max=1_000)
    first = [customer.record() for _ in range(10)]
    # The session and its prepared statement are there already: the next answer is the batch's.
    await write(recorder, *first)
    second = [customer.record() for _ in range(10)]

    wire.swallow_answers()
    losing = asyncio.create_task(write(recorder, *second))
    await wire.answer_swallowed.wait()
    await wire.cut()
    await losing
    assert await rolled_up(database) == 20
    wire.hear_answers()
    await wire.open()
    await write(recorder, customer.record())

    assert len(await written(database)) == 21
    assert await rolled_up(database) == 21


async def test_while_the_database_is_away_records_wait_up_to_the_bound(
    database: Database,
    remote: Database,
    wire: Proxy,
    customer: Customer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = RequestRecorder(remote, waiting_records_max=50)
    records = [customer.record() for _ in range(60)]
    before = dropped("no_room")
    await wire.cut()

    with caplog.at_level(logging.WARNING, LOGGER):
        for record in records:
            await write(recorder, record)
    await wire.open()
    await recorder.write()

    told = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    assert told == ["activity_delayed", "activity_gap"]
    assert dropped("no_room") - before == 10
    assert await written(database) == {record.request_id for record in records[:50]}


async def test_a_turn_that_is_cancelled_loses_nothing(
    database: Database, database_url: str, recorder: RequestRecorder, customer: Customer
) -> None:
    async with holding(database_url, "LOCK TABLE request_hours IN ACCESS EXCLUSIVE MODE"):
        writing = asyncio.create_task(write(recorder, customer.record()))
        await until_a_lock_is_awaited(database_url)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
    await recorder.flush(deadline_seconds=DEADLINE_SECONDS)

    assert len(await written(database)) == 1
    assert await rolled_up(database) == 1


async def test_a_flush_ends_in_time_and_counts_what_it_gives_up(
    database_url: str, recorder: RequestRecorder, customer: Customer
) -> None:
    before = dropped("stopped")
    for _ in range(7):
        recorder.record(customer.record())

    async with holding(database_url, "LOCK TABLE request_hours IN ACCESS EXCLUSIVE MODE"):
        await recorder.flush(deadline_seconds=0.05)

    assert dropped("stopped") - before == 7


async def test_a_turn_and_the_last_one_do_not_write_side_by_side(
    database: Database, database_url: str, recorder: RequestRecorder, customer: Customer
) -> None:
    async with holding(database_url, "LOCK TABLE request_hours IN ACCESS EXCLUSIVE MODE"):
        turn = asyncio.create_task(write(recorder, customer.record()))
        await until_a_lock_is_awaited(database_url)
        recorder.record(customer.record())
        last = asyncio.create_task(recorder.flush(deadline_seconds=DEADLINE_SECONDS))
        rows = await database.fetch_all(
            "SELECT count(*) AS waiting FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        assert rows[0]["waiting"] == 1
    await asyncio.gather(turn, last)

    assert len(await written(database)) == 2


async def test_hours_are_the_sums_of_their_requests(
    database: Database, recorder: RequestRecorder, customer: Customer
) -> None:
    at = days_ago(1).replace(minute=10)
    records = [
        customer.record(at, total_ms=29.9),
        customer.record(at, total_ms=30.0),
        customer.record(at, total_ms=999.0, input_tokens=None, output_tokens=None),
        customer.record(at, total_ms=400_000.0, cached_input_tokens=None),
        customer.record(at, status=502, error_code="backend_error", total_ms=5.0),
        customer.record(at + timedelta(hours=1), total_ms=5.0),
        customer.record(at, model="another", total_ms=5.0),
    ]

    await write(recorder, *records[:3])
    await write(recorder, *records[3:])

    rows = await database.fetch_all("SELECT * FROM request_hours ORDER BY hour, model, status")
    assert [
        (row["model"], row["status"], row["error_code"], row["requests"], row["input_tokens"])
        for row in rows
    ] == [
        ("another", 200, "", 1, 12),
        ("example/model", 200, "", 4, 36),
        ("example/model", 502, "backend_error", 1, 12),
        ("example/model", 200, "", 1, 12),
    ]
    whole = rows[1]
    assert whole["hour"] == at.replace(minute=0, second=0, microsecond=0)
    assert whole["latency_counts"] == [1, 1, 0, 1, 0, 0, 0, 0, 0, 1]
    assert whole["total_ms"] == pytest.approx(401_058.9)
    assert (whole["cached_input_tokens"], whole["output_tokens"]) == (9, 135)


@pytest.mark.parametrize("status", [400, 404])
async def test_a_model_that_only_its_caller_knows_makes_no_row_of_its_own(
    database: Database, recorder: RequestRecorder, customer: Customer, status: int
) -> None:
    await write(recorder, *(customer.record(status=status, model=f"guess {n}") for n in range(20)))

    (hour,) = await database.fetch_all("SELECT model, requests FROM request_hours")
    assert tuple(hour) == ("", 20)
    found = await database.fetch_all("SELECT count(DISTINCT model) AS models FROM requests")
    assert found[0]["models"] == 20


async def test_a_key_that_a_caller_pasted_as_a_model_is_not_kept(
    database: Database, recorder: RequestRecorder, customer: Customer
) -> None:
    await write(recorder, customer.record(status=404, model="thp_" + "Z9" * 24))

    (row,) = await database.fetch_all("SELECT model FROM requests")
    assert row["model"] == "thp_[redacted]"


async def test_a_parameter_that_a_caller_invented_is_redacted_and_shortened(
    database: Database, recorder: RequestRecorder, customer: Customer
) -> None:
    invented = f"thp_{'Z9' * 24}\n{'x' * 1_000}"
    await write(
        recorder, customer.record(status=400, error_param=invented), customer.record(status=400)
    )

    rows = await database.fetch_all("SELECT error_param FROM requests ORDER BY error_param")
    assert [row["error_param"] for row in rows] == [
        f"thp_[redacted]?{'x' * 1_000}"[:CALLERS_TEXT_LENGTH_MAX],
        None,
    ]


async def test_workers_that_write_the_same_hours_at_once_add_up(database: Database) -> None:
    """In a circle of locks one of them would be ended by the database, and write again."""
    chance = seeds.chance()
    customers = [stranger() for _ in range(10)]
    recorders = [RequestRecorder(database, waiting_records_max=10_000) for _ in range(4)]
    sent: Counter[UUID] = Counter()
    for recorder in recorders:
        for _ in range(1_200):
            customer = chance.choice(customers)
            sent[customer.organization_id] += 1
            recorder.record(customer.record(status=chance.choice([200, 429, 503])))

    await asyncio.gather(*(recorder.write() for recorder in recorders))

    rows = await database.fetch_all(
        "SELECT organization_id, sum(requests)::int AS n FROM request_hours GROUP BY 1"
    )
    assert {row["organization_id"]: row["n"] for row in rows} == sent
    assert len(await written(database)) == 4_800


async def test_a_batch_is_one_statement(
    database: Database, database_url: str, recorder: RequestRecorder, customer: Customer
) -> None:
    """What a request costs the database must not be a transaction."""
    await write(recorder, *(customer.record() for _ in range(BATCH_MAX)))
    connection = await asyncpg.connect(database_url)
    try:
        transactions = await connection.fetchval("SELECT count(DISTINCT xmin::text) FROM requests")
    finally:
        await connection.close()

    assert transactions == 1


@pytest.mark.nightly
@pytest.mark.clock
def test_noting_costs_a_request_less_than_5_microseconds(customer: Customer) -> None:
    recorder = RequestRecorder(database=None, waiting_records_max=1_000_000)  # pyright: ignore[reportArgumentType] - never reached
    record = customer.record()
    rounds: list[float] = []
    for _ in range(9):
        before = perf_counter()
        for _ in range(10_000):
            recorder.record(record)
        rounds.append((perf_counter() - before) / 10_000)

    assert median(rounds) < 5e-6


def of_model(metric: str, model: str, kind: str | None = None) -> int:
    rest = "" if kind is None else f'kind="{kind}",'
    return counted(f'tollhouse_{metric}{{{rest}model="{model}"}}')


async def test_usage_and_cost_are_counted_once_by_model(
    recorder: RequestRecorder, customer: Customer
) -> None:
    model = "counted/model"
    streamed = customer.record(model=model, is_stream=True)

    await write(recorder, streamed, customer.record(model=model))
    await recorder.write()

    assert of_model("tokens_total", model, "input") == 24
    assert of_model("tokens_total", model, "cached_input") == 6
    assert of_model("tokens_total", model, "output") == 90
    assert of_model("cost_pico_usd_total", model) == 2_500_000
    assert of_model("first_token_seconds_count", model) == 1


async def test_a_request_without_a_cost_or_a_backend_counts_no_usage(
    recorder: RequestRecorder, customer: Customer
) -> None:
    unsettled = customer.record(model="unsettled/model", cost_pico_usd=None)
    unknown = customer.record(model="of-a-caller", backend=None, status=404)

    await write(recorder, unsettled, unknown)

    assert of_model("cost_pico_usd_total", "unsettled/model") == 0
    assert of_model("tokens_total", "unsettled/model", "input") == 0
    assert "of-a-caller" not in registry.exposition(None).decode()


async def test_the_length_of_the_buffer_is_shown(
    recorder: RequestRecorder, customer: Customer
) -> None:
    series = 'tollhouse_queue_length{queue="activity"}'
    recorder.record(customer.record())
    assert counted(series) == 1

    await recorder.write()

    assert counted(series) == 0
