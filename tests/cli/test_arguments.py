"""What commands accept as an argument."""

from datetime import UTC, datetime

import click
import pytest

from tollhouse.cli.arguments import INSTANT


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-11-19", datetime(2026, 11, 19, tzinfo=UTC)),
        ("2026-11-19T10:00:00", datetime(2026, 11, 19, 10, tzinfo=UTC)),
        ("2026-11-19T10:00:00Z", datetime(2026, 11, 19, 10, tzinfo=UTC)),
        ("2026-11-19 10:00:00+00", datetime(2026, 11, 19, 10, tzinfo=UTC)),
        ("2026-11-19 10:00:00.25+00", datetime(2026, 11, 19, 10, 0, 0, 250_000, tzinfo=UTC)),
        ("2026-11-19 10:00:00.123456+00", datetime(2026, 11, 19, 10, 0, 0, 123_456, tzinfo=UTC)),
        ("2026-11-19 15:30:00+05:30", datetime(2026, 11, 19, 10, tzinfo=UTC)),
        ("2026-11-18 23:00:00-11", datetime(2026, 11, 19, 10, tzinfo=UTC)),
    ],
)
def test_a_time_is_taken_as_people_and_as_postgresql_write_it(
    given: str, expected: datetime
) -> None:
    converted = INSTANT.convert(given, None, None)

    assert (converted, converted.tzinfo) == (expected, UTC)


@pytest.mark.parametrize(
    "given",
    ["yesterday", "", "infinity", "2026-02-30", "0001-01-01 00:00:00+01", "2026-11-19 25:00"],
)
def test_what_is_no_time_is_refused_with_the_forms(given: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not a time.*2026-01-31 12:00:00"):
        INSTANT.convert(given, None, None)
