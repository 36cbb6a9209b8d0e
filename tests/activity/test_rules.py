"""Rules of activity: days of IDs, filters, pages and sums."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.activity.records import id_of, stranger
from tollhouse.activity import rules
from tollhouse.activity.types import HourlyCount, RecordFilter, RequestRecord, StatusRange
from tollhouse.base.ids import day_of, minted_at, time_ordered_uuid

INSTANTS = st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001 - the zone comes from the strategy
    max_value=datetime(9999, 12, 30, 23, 59, 59),  # noqa: DTZ001 - see above
    timezones=st.just(UTC),
)


@given(INSTANTS)
def test_an_id_tells_the_millisecond_in_which_it_was_minted(at: datetime) -> None:
    identifier = id_of(at)

    minted = minted_at(identifier)

    assert minted is not None
    assert timedelta(0) <= at - minted < timedelta(milliseconds=1)
    assert day_of(identifier) == minted.date()


def test_a_fresh_id_is_of_today() -> None:
    before = datetime.now(UTC).date()
    day = day_of(time_ordered_uuid())

    assert day in (before, datetime.now(UTC).date())


@pytest.mark.parametrize(
    "identifier",
    [
        UUID("94ea7888-c215-409a-834e-16eafdca9b5a"),
        UUID(int=0),
        UUID(int=2**128 - 1),
        UUID("ffffffff-ffff-7fff-bfff-ffffffffffff"),
    ],
    ids=str,
)
def test_an_id_of_another_kind_has_no_day(identifier: UUID) -> None:
    assert day_of(identifier) is None


@pytest.mark.parametrize(
    ("text", "lowest", "highest", "are_failures"),
    [
        ("200", 200, 200, False),
        ("2xx", 200, 299, False),
        ("399", 399, 399, False),
        ("4xx", 400, 499, True),
        ("499", 499, 499, True),
        ("5xx", 500, 599, True),
    ],
)
def test_a_status_is_exact_or_a_class(
    text: str, lowest: int, highest: int, are_failures: bool
) -> None:
    wanted = rules.statuses(text)

    assert wanted == StatusRange(lowest=lowest, highest=highest)
    assert wanted.are_failures is are_failures


@given(
    wanted=st.lists(st.booleans(), max_size=12),
    limit=st.integers(min_value=1, max_value=5),
    examined_max=st.integers(min_value=1, max_value=12),
)
def test_pages_of_bounded_searches_show_each_wanted_request_once(
    wanted: list[bool], limit: int, examined_max: int
) -> None:
    """Played with a list: what the database does, and a reader who goes on from `last_id`."""
    customer = stranger()
    everything = [(customer.record(), is_wanted) for is_wanted in wanted]
    seen: list[RequestRecord] = []
    start = 0
    for _ in range(len(wanted) + 2):
        walked = everything[start : start + examined_max]
        is_full = len(walked) == examined_max
        found = [
            item
            for position, item in enumerate(walked, start=1)
            if item[1] or position == examined_max
        ][: limit + 1]
        is_cut = is_full and bool(found) and found[-1] is walked[-1]
        page = rules.page(found, limit=limit, is_cut=is_cut)
        seen += page.records
        assert len(page.records) <= limit
        if not page.has_more:
            break
        ids = [record.request_id for record, _ in everything]
        assert page.last_id is not None
        start = ids.index(page.last_id) + 1
    else:
        pytest.fail("a page that does not move on")

    assert seen == [record for record, is_wanted in everything if is_wanted]


@given(
    start=st.integers(min_value=0, max_value=10**10),
    length=st.integers(min_value=1, max_value=10**6),
)
def test_hours_are_those_that_a_range_touches(start: int, length: int) -> None:
    hours = rules.hours(start, start + length)

    assert hours.start % 3_600 == hours.end % 3_600 == 0
    assert hours.start <= start < hours.start + 3_600
    assert hours.end - 3_600 < start + length <= hours.end


def test_a_tally_adds_up_every_outcome_and_names_the_failures() -> None:
    parts = [
        counted(hour=0, status=200, requests=3),
        counted(hour=0, status=503, requests=2, error_code="server_is_overloaded"),
        counted(hour=3_600, status=200, requests=1),
    ]

    first, second = rules.tallies(parts)

    assert (first.hour, first.requests, first.input_tokens, first.total_ms) == (0, 5, 50, 500.0)
    assert [(f.status, f.error_code, f.requests) for f in first.failures] == [
        (503, "server_is_overloaded", 2)
    ]
    assert first.latency_counts == (0, 5)
    assert (first.failed, first.refused, first.client_errors) == (2, 0, 0)
    assert (second.hour, second.requests, second.failures) == (3_600, 1, ())
    assert (second.failed, second.refused, second.client_errors) == (0, 0, 0)


@pytest.mark.parametrize(
    ("status", "error_code", "expected"),
    [
        (200, None, "succeeded"),
        (200, "backend_error", "failed"),
        (200, "policy_violation", "refused"),
        (400, "invalid_type", "client_error"),
        (402, "spending_limit_exceeded", "refused"),
        (403, "policy_violation", "refused"),
        (429, "rate_limit_exceeded", "refused"),
        (499, None, "client_error"),
        (500, "server_error", "failed"),
        (501, "unsupported_parameter", "client_error"),
        (503, None, "failed"),
    ],
)
def test_every_request_has_one_outcome(status: int, error_code: str | None, expected: str) -> None:
    assert rules.outcome(status, error_code) == expected


@given(INSTANTS)
def test_a_range_of_time_is_a_range_of_ids(at: datetime) -> None:
    at = at.replace(microsecond=0)
    only = RecordFilter(start=at, end=at + timedelta(seconds=1))

    newest, oldest = rules.bounds(rules.NEWEST, only)

    assert oldest.request_id <= id_of(at) < newest.request_id
    assert oldest.request_id <= id_of(at + timedelta(milliseconds=999)) < newest.request_id
    assert id_of(at + timedelta(seconds=1)) >= newest.request_id
    assert oldest.day == at.date()


def test_a_search_goes_on_from_its_cursor_and_not_from_the_end_of_the_range() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    cursor = rules.cursor(id_of(at))

    assert rules.bounds(cursor, RecordFilter(end=at + timedelta(days=1)))[0] == cursor
    assert rules.bounds(cursor, RecordFilter(end=at - timedelta(days=1)))[0] != cursor


def counted(*, hour: int, status: int, requests: int, error_code: str | None = None) -> HourlyCount:
    return HourlyCount(
        hour=hour,
        group=None,
        status=status,
        error_code=error_code,
        requests=requests,
        input_tokens=10 * requests,
        cached_input_tokens=0,
        output_tokens=0,
        total_ms=100.0 * requests,
        latency_counts=(0, requests),
    )


@pytest.mark.parametrize(("status", "model"), [(200, "m"), (402, "m"), (400, None), (404, None)])
def test_a_model_is_ours_unless_the_request_was_not_understood(
    status: int, model: str | None
) -> None:
    assert rules.known_model(stranger().record(status=status, model="m")) == model


def test_days_are_those_of_utc() -> None:
    assert day_of(id_of(datetime(2026, 3, 1, 23, 59, 59, 999_000, UTC))) == date(2026, 3, 1)
