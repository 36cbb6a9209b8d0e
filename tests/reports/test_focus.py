"""Costs in the FOCUS format: the columns of version 1.2, and sums that equal the report's."""

import csv
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from tests.reports import events
from tests.reports.brute_force import Asked
from tests.reports.past import COSTS, UNSETTLED, Past, pico
from tollhouse.reports.focus import COLUMNS
from tollhouse.reports.focus_export import DAYS_MAX

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOCUS = "/manage/v1/organization/costs/focus"
EVENTS = 400
SINCE = datetime(2025, 11, 28, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=6)
START, END = int(SINCE.timestamp()), int(UNTIL.timestamp())
MANDATORY = {
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency"),
    *("BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass"),
    *("ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost"),
    *("EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit"),
    *("ProviderName", "PublisherName", "ServiceCategory", "ServiceName"),
}
"""The columns that FOCUS 1.2 demands of every dataset. Only `ChargeClass` may be null here."""
NOT_NULL = MANDATORY - {"ChargeClass"}


async def used(past: Past) -> Past:
    await events.make_partitions(past.connection, SINCE.date(), UNTIL.date())
    await events.hold(
        *(past.connection, past.organization_id, past.keys, EVENTS), since=SINCE, until=UNTIL
    )
    await events.resolve(past.connection, past.organization_id)
    return past


async def rows(past: Past, start: int, end: int, **filters: str) -> list[dict[str, str]]:
    answer = await past.client.get(FOCUS, params={"start_time": start, "end_time": end, **filters})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment;")
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


def total(found: list[dict[str, str]], column: str = "BilledCost") -> int:
    return sum(pico(row[column]) for row in found)


@pytest.mark.parametrize(
    ("start", "end"),
    [(START, END), (START + 3_600, END - 7_200), (START + 90_061, START + 250_003)],
    ids=["whole days", "cut on the hour", "cut to the second"],
)
async def test_every_line_is_one_of_the_report_with_its_exact_amount(
    past: Past, start: int, end: int
) -> None:
    await used(past)

    found = await rows(past, start, end)

    grouping = frozenset(("project_id", "api_key_id", "line_item"))
    report = await past.costs(Asked(start=start, end=end, group_by=grouping))
    by_line = {
        (
            int(datetime.fromisoformat(row["ChargePeriodStart"]).timestamp()) // 86_400 * 86_400,
            (row["SubAccountId"], row["x_ApiKeyId"], row["x_LineItem"]),
        ): pico(row["BilledCost"])
        for row in found
    }
    expected = {
        (day, group): amount for day, lines in report.items() for group, amount in lines.items()
    }
    assert len(by_line) == len(found)
    assert by_line == expected
    assert total(found) > 0


async def test_rows_have_the_columns_and_values_of_the_specification(past: Past) -> None:
    await used(past)

    found = await rows(past, START, END)

    assert set(COLUMNS) >= MANDATORY
    assert list(found[0]) == list(COLUMNS)
    for row in found:
        assert all(row[name] for name in NOT_NULL), row
        assert row["ChargeClass"] == ""
        assert row["BillingCurrency"] == "USD"
        assert (row["ChargeCategory"], row["ChargeFrequency"]) == ("Usage", "Usage-Based")
        costs = {row[name] for name in ("BilledCost", "EffectiveCost", "ListCost")}
        assert costs == {row["ContractedCost"]}
        assert Decimal(row["PricingQuantity"]) > 0
        assert row["PricingUnit"] in ("Tokens", "Requests", "Images")
        assert row["SubAccountName"]
        assert row["BillingAccountId"] == str(past.organization_id)
    months = {(row["BillingPeriodStart"], row["BillingPeriodEnd"]) for row in found}
    assert months == {
        ("2025-11-01T00:00:00Z", "2025-12-01T00:00:00Z"),
        ("2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    }


async def test_a_cut_day_says_which_part_of_it_is_charged(past: Past) -> None:
    await used(past)

    found = await rows(past, START + 3_600, START + 86_400 + 7_200)

    periods = {(row["ChargePeriodStart"], row["ChargePeriodEnd"]) for row in found}
    assert periods == {
        ("2025-11-28T01:00:00Z", "2025-11-29T00:00:00Z"),
        ("2025-11-29T00:00:00Z", "2025-11-29T02:00:00Z"),
    }


async def test_quantities_are_those_of_the_usage_report(past: Past) -> None:
    await used(past)
    parts = {
        "input": (2, -6),
        "cached input": (3,),
        "output": (4,),
        "image": (5,),
        "cache write": (6,),
    }

    found = await rows(past, START, END)

    usage = await past.usage(Asked(start=START, end=END, group_by=frozenset({"model"})))
    for part, places in parts.items():
        exported = sum(
            int(row["ConsumedQuantity"])
            for row in found
            if row["x_LineItem"].rpartition(", ")[2] == part
        )
        assert exported == sum(
            sums[place] if place > 0 else -sums[-place]
            for lines in usage.values()
            for sums in lines.values()
            for place in places
        )
        assert exported > 0


async def test_filters_choose_whose_costs_are_exported(past: Past) -> None:
    await used(past)
    key = str(past.keys.api_key_ids[0])

    found = await rows(past, START, END, api_key_ids=key)

    assert {row["x_ApiKeyId"] for row in found} == {key}
    unknown = await past.client.get(
        FOCUS, params={"start_time": START, "project_ids": "no-such-project"}
    )
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "project_not_found")


async def test_unsettled_requests_are_counted_and_have_no_row(past: Past) -> None:
    await used(past)
    unsettled = await events.mark_unsettled(past.connection, past.organization_id)

    answer = await past.client.get(FOCUS, params={"start_time": START, "end_time": END})

    assert unsettled > 0
    assert answer.headers[UNSETTLED] == str(unsettled)
    report = await past.client.get(COSTS, params={"start_time": START, "end_time": END})
    assert report.headers[UNSETTLED] == str(unsettled)


async def test_names_that_look_like_formulas_are_harmless(past: Past) -> None:
    await used(past)
    await past.connection.execute(
        "UPDATE projects SET name = '=1+1, \"x\"' WHERE organization_id = $1", past.organization_id
    )

    found = await rows(past, START, END)

    assert {row["SubAccountName"] for row in found} == {'\'=1+1, "x"'}


async def test_an_empty_range_has_the_header_alone(past: Past) -> None:
    answer = await past.client.get(FOCUS, params={"start_time": 0, "end_time": 86_400})

    assert answer.text == ",".join(COLUMNS) + "\r\n"


async def test_a_range_that_is_too_long_is_refused(past: Past) -> None:
    end = (DAYS_MAX + 1) * 86_400

    answer = await past.client.get(FOCUS, params={"start_time": 0, "end_time": end})

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "start_time"
