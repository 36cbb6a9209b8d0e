"""How reports are asked for, and what they answer, through the real server."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx2
import pytest
import pytest_asyncio
from openai import AsyncOpenAI, OpenAI

from tests.reports import events
from tests.reports.brute_force import Asked
from tests.reports.past import COSTS, UNSETTLED, USAGE, Past
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import time_ordered_uuid

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAY = 86_400
COMPLETIONS = f"{USAGE}/completions"
FUTURE = "start_time=253402300000"
DAY_OF_USE = datetime.combine(datetime.now(UTC) - timedelta(days=60), time(), UTC)
START = int(DAY_OF_USE.timestamp())

_ONE = """
WITH held AS (
    INSERT INTO ledger_entries (
        organization_id, admitted_day, reservation_id, phase, kind, admitted_at, deadline_at,
        project_id, api_key_id, model, price_revision, instance_id, bills_without_answer, held_pico)
    VALUES ($1, ($2::timestamptz AT TIME ZONE 'UTC')::date, $3, 0, 'reserve', $2, $2, $4, $5, $6,
            1, $3, false, 1000000)
), reserved AS (
    UPDATE accounts SET reserved_pico = reserved_pico + 1000000, ceiling_pico = 10::numeric ^ 30,
                        credit_pico = 10::numeric ^ 30
     WHERE organization_id = $1
)
SELECT 1
"""
_POST = """
SELECT ledger_settle_one(
    ROW($1, $2, ($3::timestamptz AT TIME ZONE 'UTC')::date, $4, 0,
        $5::bigint, 0, 0, 0, $6::bigint, 0, 0, 0, 0, NULL, false, NULL, NULL, 0, 0
    )::ledger_resolution, true)
"""


@pytest_asyncio.fixture(loop_scope="module", scope="module", autouse=True)
async def days(connection: asyncpg.Connection) -> AsyncIterator[None]:
    first = DAY_OF_USE.date() - timedelta(days=1)
    await events.make_partitions(connection, first, first + timedelta(days=3))
    yield


async def used(
    past: Past, at: datetime, *, key: int = 0, model: str = "m", tokens: int = 0, pico: int = 0
) -> None:
    """One settled request."""
    reservation_id = await held(past, at, key=key, model=model)
    await past.connection.execute(
        *(_POST, past.organization_id, reservation_id, at, "post", tokens, pico)
    )


async def held(past: Past, at: datetime, *, key: int = 0, model: str = "m") -> UUID:
    """One request that is not settled."""
    reservation_id, keys = time_ordered_uuid(), past.keys
    await past.connection.execute(
        *(_ONE, past.organization_id, at, reservation_id),
        *(keys.project_ids[key], keys.api_key_ids[key], model),
    )
    return reservation_id


async def ask(past: Past, query: str, path: str = COSTS) -> httpx2.Response:
    return await past.client.get(f"{path}?{query}")


async def refusal(past: Past, query: str, path: str = COSTS) -> tuple[int, str, str | None]:
    answer = await ask(past, query, path)
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


async def test_a_page_of_costs_is_given_whole(past: Past) -> None:
    await used(past, DAY_OF_USE + timedelta(hours=1), tokens=3, pico=10)
    await used(past, DAY_OF_USE + timedelta(hours=2), tokens=4, pico=500_000)
    project, key = past.keys.project_ids[0], past.keys.api_key_ids[0]

    answer = await ask(
        past,
        f"start_time={START}&end_time={START + 2 * DAY}&limit=1"
        "&group_by=line_item,project_id,api_key_id",
    )

    page = answer.json()
    assert page == {
        "object": "page",
        "data": [
            {
                "object": "bucket",
                "start_time": START,
                "end_time": START + DAY,
                "results": [
                    {
                        "object": "organization.costs.result",
                        "amount": {"value": "0.00000050001", "currency": "usd"},
                        "line_item": "m, input",
                        "project_id": str(project),
                        "api_key_id": str(key),
                    }
                ],
            }
        ],
        "has_more": True,
        "next_page": page["next_page"],
    }
    assert 0 < len(page["next_page"]) <= 500
    assert answer.headers[UNSETTLED] == "0"


async def test_a_page_of_usage_is_given_whole(past: Past) -> None:
    await used(past, DAY_OF_USE + timedelta(hours=1, minutes=59), tokens=3, pico=10)

    answer = await ask(
        past, f"start_time={START + 3600}&end_time={START + 7200}&bucket_width=1h", USAGE
    )

    assert answer.json() == {
        "object": "page",
        "data": [
            {
                "object": "bucket",
                "start_time": START + 3600,
                "end_time": START + 7200,
                "results": [
                    {
                        "object": "organization.usage.result",
                        "amount": {"value": "0.00000000001", "currency": "usd"},
                        "requests": 1,
                        "estimated_requests": 0,
                        "input_tokens": 3,
                        "cached_input_tokens": 0,
                        "cache_write_tokens": 0,
                        "output_tokens": 0,
                        "images": 0,
                        "project_id": None,
                        "api_key_id": None,
                        "model": None,
                    }
                ],
            }
        ],
        "has_more": False,
        "next_page": None,
    }
    assert answer.headers[UNSETTLED] == "0"


async def test_unsettled_is_absent_and_free_is_zero(past: Past) -> None:
    query = f"start_time={START}&end_time={START + DAY}"
    await held(past, DAY_OF_USE)
    await events.mark_unsettled(past.connection, past.organization_id)
    unsettled = await ask(past, query)
    await used(past, DAY_OF_USE, tokens=3)
    free = await ask(past, query)
    by_item = await ask(past, f"{query}&group_by=line_item")

    assert [bucket["results"] for bucket in unsettled.json()["data"]] == [[]]
    assert unsettled.headers[UNSETTLED] == "1"
    amount = {"value": "0.000001", "currency": "usd"}
    told = {"start_time": START, "requests": 1, "amount": amount}
    assert unsettled.json()["unsettled"] == [told]
    (result,) = free.json()["data"][0]["results"]
    assert result["amount"] == {"value": "0", "currency": "usd"}
    assert free.headers[UNSETTLED] == "1"
    (item,) = by_item.json()["data"][0]["results"]
    assert (item["line_item"], item["amount"]["value"]) == ("m, input", "0")


async def test_a_range_without_an_end_ends_now_and_counts_the_present_second(past: Past) -> None:
    now = datetime.now(UTC)
    await used(past, now, tokens=3, pico=7)
    start = int(now.timestamp()) // DAY * DAY

    page = (await ask(past, f"start_time={start}")).json()

    assert page["data"][0]["results"][0]["amount"]["value"] == "0.000000000007"


@pytest.mark.parametrize("path", [COSTS, USAGE, COMPLETIONS])
@pytest.mark.parametrize("query", ["start_time=5&end_time=5", FUTURE])
async def test_an_empty_range_has_an_empty_page(past: Past, path: str, query: str) -> None:
    answer = await ask(past, query, path)

    empty: dict[str, Any] = {"object": "page", "data": [], "has_more": False, "next_page": None}
    assert (answer.status_code, answer.json()) == (200, empty)
    assert answer.headers[UNSETTLED] == "0"


async def test_the_end_that_was_understood_on_the_first_page_holds_on_all(past: Past) -> None:
    """Between the pages a second passes, and usage arrives that the first page's end excludes."""
    start = int(datetime.now(UTC).timestamp()) // DAY * DAY - DAY
    first = (await ask(past, f"start_time={start}&limit=1")).json()
    await used(past, datetime.now(UTC) + timedelta(seconds=5), tokens=3, pico=7)

    last = (await ask(past, f"start_time={start}&limit=180&page={first['next_page']}")).json()

    assert [bucket["results"] for bucket in last["data"]] == [[]] * len(last["data"])
    assert last["has_more"] is False


@pytest.mark.parametrize("path", [COSTS, USAGE])
async def test_bounds_and_words_are_refused_by_name(past: Past, path: str) -> None:
    many = ",".join(str(uuid4()) for _ in range(101))
    wrong_grouping = "model" if path == COSTS else "line_item"
    for query, code, param in (
        ("", "missing_required_parameter", "start_time"),
        ("start_time=5&end_time=4", "invalid_value", "end_time"),
        ("start_time=-1", "integer_below_min_value", "start_time"),
        ("start_time=1&limit=181", "integer_above_max_value", "limit"),
        ("start_time=1&limit=0", "integer_below_min_value", "limit"),
        ("start_time=1&bucket_width=1m", "invalid_value", "bucket_width"),
        (f"start_time=1&group_by={wrong_grouping}", "invalid_value", "group_by[0]"),
        (f"start_time=1&project_ids={many}", "array_above_max_length", "project_ids"),
        (f"start_time=1&page={'a' * 501}", "string_above_max_length", "page"),
        ("start_time=1&user_ids=a", "unknown_parameter", "user_ids"),
    ):
        assert await refusal(past, query, path) == (400, code, param), query


async def test_the_longest_range_is_paged_through_to_its_end(past: Past) -> None:
    last = 253_402_300_799
    start = last - 2 * DAY
    pages = await past.pages(COSTS, Asked(start, last), limit=1)

    assert pages[-1]["data"][0]["end_time"] == last + 1
    assert len(pages) == 3


@pytest.mark.parametrize("path", [COSTS, USAGE])
async def test_unknown_and_foreign_filters_are_not_found(
    past: Past, other_org: OrganizationFixture, path: str
) -> None:
    theirs = await other_org.project()
    their_key = (await other_org.project_key(theirs)).key.id
    admin_key = (await past.org.admin_key()).key.id
    ours, our_key = past.keys.project_ids[0], past.keys.api_key_ids[0]
    for item in (theirs.id, uuid4(), "no-uuid", our_key, f"{ours},{theirs.id}"):
        found = await refusal(past, f"start_time=0&end_time=9&project_ids={item}", path)
        assert found == (404, "project_not_found", "project_ids"), item
    for item in (their_key, uuid4(), "no-uuid", ours, admin_key, f"{our_key},{their_key}"):
        found = await refusal(past, f"start_time=0&end_time=9&api_key_ids={item}", path)
        assert found == (404, "api_key_not_found", "api_key_ids"), item


async def test_archived_projects_and_revoked_keys_stay_readable(past: Past) -> None:
    project = await past.org.project()
    held_key = await past.org.project_key(project)
    await past.org.revoke_project_key(held_key)
    await past.org.archive(project)

    answer = await ask(
        past, f"start_time=0&project_ids={project.id}&api_key_ids={held_key.key.id}&limit=1"
    )

    assert answer.status_code == 200


@pytest.mark.parametrize("form", ["repeated", "comma", "bracket", "encoded bracket"])
async def test_lists_are_read_in_every_spelling(past: Past, form: str) -> None:
    for key in (0, 4, 8):
        await used(past, DAY_OF_USE, key=key, tokens=1, pico=key + 1)
    chosen = [str(past.keys.api_key_ids[key]) for key in (0, 8)]
    lists = {"api_key_ids": chosen, "group_by": ["api_key_id", "project_id"]}
    name = {"bracket": "{}[]", "encoded bracket": "{}%5B%5D"}.get(form, "{}")
    spelled = [
        f"{name.format(field)}={item}"
        for field, items in lists.items()
        for item in ([",".join(items)] if form == "comma" else items)
    ]

    page = (
        await ask(past, f"start_time={START}&end_time={START + DAY}&" + "&".join(spelled))
    ).json()

    results = page["data"][0]["results"]
    assert {result["api_key_id"] for result in results} == set(chosen)
    assert {result["project_id"] for result in results} == {
        str(past.keys.project_ids[key]) for key in (0, 8)
    }


async def test_the_official_sdk_reads_costs_page_by_page(past: Past, gateway: Gateway) -> None:
    await used(past, DAY_OF_USE, key=0, tokens=1, pico=10**6)
    await used(past, DAY_OF_USE, key=8, tokens=1, pico=10**6 - 1)
    admin = (await past.org.admin_key()).value
    question: dict[str, Any] = {
        "start_time": START - DAY,
        "end_time": START + DAY,
        "group_by": ["api_key_id", "line_item"],
        "api_key_ids": [str(past.keys.api_key_ids[0])],
        "project_ids": [str(past.keys.project_ids[0]), str(past.keys.project_ids[8])],
        "limit": 1,
    }

    async with AsyncOpenAI(
        api_key=admin, admin_api_key=admin, base_url=f"{gateway.base_url}/v1"
    ) as client:
        first = await client.admin.organization.usage.costs(**question)
        assert first.next_page is not None
        second = await client.admin.organization.usage.costs(**question, page=first.next_page)

    def blocking() -> Any:  # noqa: ANN401 - what the SDK returns
        with OpenAI(
            api_key=admin, admin_api_key=admin, base_url=f"{gateway.base_url}/v1"
        ) as blocking_client:
            return blocking_client.admin.organization.usage.costs(**question)

    assert (await asyncio.to_thread(blocking)).model_dump() == first.model_dump()
    assert (first.has_more, first.data[0].results) == (True, [])
    assert (second.has_more, second.next_page) == (False, None)
    (result,) = second.data[0].results
    assert result.object == "organization.costs.result"
    assert result.api_key_id == str(past.keys.api_key_ids[0])
    assert (result.line_item, result.project_id) == ("m, input", None)
    assert result.amount is not None
    assert (result.amount.value, result.amount.currency) == (0.000001, "usd")


async def test_a_cursor_fits_only_the_report_that_it_came_with(
    past: Past, gateway: Gateway, other_org: OrganizationFixture
) -> None:
    ours = past.keys.project_ids[0]
    query = f"start_time={START}&end_time={START + 3 * DAY}&project_ids={ours}&group_by=project_id"
    page = (await ask(past, f"{query}&limit=1")).json()["next_page"]
    assert (await ask(past, f"{query}&limit=180&page={page}")).json()["has_more"] is False
    swapped = page[:-1] + ("A" if page[-1] != "A" else "B")
    for changed in (
        f"{query}&page={swapped}",
        f"{query}&page={page[1:]}",
        f"{query}&page=next",
        f"{query},api_key_id&page={page}",
        f"{query}&api_key_ids={past.keys.api_key_ids[0]}&page={page}",
        f"{query.replace(str(START), str(START + 1), 1)}&page={page}",
        f"{query.replace(str(START + 3 * DAY), str(START + 4 * DAY))}&page={page}",
        f"start_time={START}&end_time={START + 3 * DAY}&group_by=project_id&page={page}",
    ):
        assert await refusal(past, changed) == (400, "invalid_value", "page"), changed
    assert await refusal(past, f"{query}&page={page}", USAGE) == (400, "invalid_value", "page")

    general = f"start_time={START}&end_time={START + 3 * DAY}&limit=1"
    foreign = (await ask(past, general)).json()["next_page"]
    async with gateway.client((await other_org.admin_key()).value) as stranger:
        answer = await stranger.get(f"{COSTS}?{general}&page={foreign}")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_value", "page")


async def test_nothing_of_another_organization_is_counted(
    past: Past, other_org: OrganizationFixture
) -> None:
    await used(past, DAY_OF_USE, tokens=1, pico=5)
    theirs = other_org.organization_id

    await past.connection.execute(
        """
        INSERT INTO cost_daily
        SELECT $2, day, project_id, api_key_id, model, requests, input_tokens, cached_input_tokens,
               output_tokens, images, input_pico, cached_input_pico, output_pico, image_pico,
               request_pico
          FROM cost_daily WHERE organization_id = $1
        """,
        *(past.organization_id, theirs),
    )

    page = (await ask(past, f"start_time={START}&end_time={START + DAY}")).json()
    assert page["data"][0]["results"][0]["amount"]["value"] == "0.000000000005"
