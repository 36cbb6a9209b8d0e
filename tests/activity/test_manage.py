"""What an organization sees of its requests, through the real server."""

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest
import pytest_asyncio

from tests.activity.records import Customer, customer_of, days_ago, make_days
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import new_policy
from tests.support.shared_gateway import (
    database,
    database_url,
    gateway,
    org,
    other_org,
    settings,
)
from tollhouse.activity import rules
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.activity.types import FailureSource, RequestOutcome, RequestRecord
from tollhouse.base.attempts import Attempt
from tollhouse.base.ids import PolicyId, policy_id_text, time_ordered_uuid
from tollhouse.base.policies import JUDGED_DIRECTIONS, EvaluationOutcome, Mode
from tollhouse.contract.operation import Operation
from tollhouse.contract.operations import OPERATIONS
from tollhouse.decisions.recorder import DecisionRecorder
from tollhouse.decisions.service import REQUESTS_MAX
from tollhouse.decisions.types import EvaluationRecord, PolicyDecision
from tollhouse.storage.database import Database

__all__ = ["database", "database_url", "gateway", "org", "other_org", "settings"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUESTS = "/manage/v1/organization/requests"
ROLLUPS = "/manage/v1/organization/request_rollups"
HOUR = 3_600
RANGED = [
    each
    for each in OPERATIONS
    if each.query is not None and "end_time" in each.query.__struct_fields__
]


@dataclass(frozen=True)
class Side:
    """An organization, its requests, and an Admin key of its own."""

    org: OrganizationFixture
    customer: Customer
    client: httpx2.AsyncClient

    async def write(self, *records: RequestRecord) -> None:
        recorder = RequestRecorder(self.org.database, waiting_records_max=len(records))
        for record in records:
            recorder.record(record)
        await recorder.write()

    async def page(self, **query: str) -> dict[str, Any]:
        answer = await self.client.get(REQUESTS, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def ids(self, **query: str) -> list[str]:
        return [item["id"] for item in (await self.page(**query))["data"]]

    async def refusal(self, path: str, **query: str) -> tuple[int, str, str | None]:
        answer = await self.client.get(path, params=query)
        error = answer.json()["error"]
        return answer.status_code, error["code"], error["param"]


@pytest_asyncio.fixture(loop_scope="module")
async def side(org: OrganizationFixture, gateway: Gateway) -> AsyncIterator[Side]:
    key = await org.admin_key(("activity:read", "policies:read"))
    async with gateway.client(key.value) as client:
        yield Side(org, await customer_of(org), client)


@pytest_asyncio.fixture(loop_scope="module")
async def foreign(other_org: OrganizationFixture, gateway: Gateway) -> AsyncIterator[Side]:
    key = await other_org.admin_key(("activity:read", "policies:read"))
    async with gateway.client(key.value) as client:
        yield Side(other_org, await customer_of(other_org), client)


async def test_a_request_is_shown_whole(side: Side) -> None:
    record = side.customer.record(
        status=502,
        error_code="backend_error",
        error_param="model",
        failed_by=FailureSource.BACKEND,
        is_stream=True,
        is_estimated=True,
        output_tokens=None,
        requested_model="example/alias",
        label="team-red",
        dropped_tools=("web_search", "tool_search"),
        attempts=(
            Attempt("example/alias", "pool-2", "failed", 5.25),
            Attempt("example/model", "pool-1", "answered", 120.5),
        ),
    )
    await side.write(record)

    answer = await side.client.get(f"{REQUESTS}/{record.request_id}")

    shown = answer.json()
    assert shown.pop("evaluations") == []
    assert shown == {
        "id": str(record.request_id),
        "object": "organization.request",
        "created_at": int(record.started_at.timestamp()),
        "operation": "createChatCompletion",
        "status": 502,
        "outcome": "failed",
        "error_code": "backend_error",
        "error_param": "model",
        "failed_by": "backend",
        "blocked_by": [],
        "model": "example/model",
        "requested_model": "example/alias",
        "label": "team-red",
        "dropped_tools": ["web_search", "tool_search"],
        "attempts": [
            {"model": "example/alias", "replica": "pool-2", "outcome": "failed", "ms": 5.25},
            {"model": "example/model", "replica": "pool-1", "outcome": "answered", "ms": 120.5},
        ],
        "backend": "pool",
        "replica": "pool-1",
        "stream": True,
        "tokens": {"input": 12, "cached_input": 3, "output": None},
        "estimated": True,
        "cost": {"value": "0.00000125", "currency": "usd"},
        "timings": {
            "queue_ms": 0.5,
            "admission_ms": 2.25,
            "judging_ms": None,
            "first_byte_ms": 120.5,
            "total_ms": 640.75,
        },
        "project_id": str(side.customer.project_id),
        "api_key_id": str(side.customer.api_key_id),
    }
    assert (await side.page())["data"] == [shown]


async def test_a_cost_that_is_not_known_is_null_and_one_of_nothing_is_zero(side: Side) -> None:
    unknown = side.customer.record(cost_pico_usd=None)
    free = side.customer.record(cost_pico_usd=0)
    await side.write(unknown, free)

    costs = {item["id"]: item["cost"] for item in (await side.page())["data"]}

    assert costs[str(unknown.request_id)] is None
    assert costs[str(free.request_id)] == {"value": "0", "currency": "usd"}


async def test_a_foreign_request_is_answered_like_one_that_never_was(
    side: Side, foreign: Side
) -> None:
    theirs = foreign.customer.record()
    await foreign.write(theirs)

    for text in (
        theirs.request_id,
        time_ordered_uuid(),
        uuid4(),
        "ffffffff-ffff-7fff-bfff-ffffffffffff",
        "production",
        "a" * 300,
        "%00",
    ):
        found = await side.refusal(f"{REQUESTS}/{text}")
        assert found[0] == 404
        if text != "%00":
            assert found == (404, "request_not_found", "request_id"), text
    assert (await foreign.client.get(f"{REQUESTS}/{theirs.request_id}")).status_code == 200
    assert (await side.page())["data"] == []


async def test_requests_are_paged_newest_first_over_days(side: Side, database: Database) -> None:
    instants = [days_ago(days) + timedelta(minutes=n) for days in (2, 1, 0) for n in range(7)]
    await make_days(database, instants[0], instants[-1])
    records = [side.customer.record(at) for at in instants]
    await side.write(*records)

    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True, "last_id": None}
    while page["has_more"]:
        after = {"after": page["last_id"]} if page["last_id"] else {}
        page = await side.page(limit="4", **after)
        seen += [item["id"] for item in page["data"]]
        assert page["first_id"] == page["data"][0]["id"]
        assert page["last_id"] == page["data"][-1]["id"]

    expected = sorted((str(record.request_id) for record in records), reverse=True)
    assert seen == expected


async def test_an_empty_list_has_no_ids(side: Side) -> None:
    assert await side.page() == {
        "object": "list",
        "data": [],
        "has_more": False,
        "first_id": None,
        "last_id": None,
        "gaps": [],
    }


async def test_what_is_no_request_of_ours_is_no_cursor(side: Side, foreign: Side) -> None:
    theirs = foreign.customer.record()
    await foreign.write(theirs)

    for cursor in (theirs.request_id, time_ordered_uuid(), uuid4(), "x"):
        found = await side.refusal(REQUESTS, after=str(cursor))
        assert found == (400, "invalid_value", "after"), cursor


FILTERS = {
    "status": ("200", "4xx", "5xx"),
    "model": ("example/model",),
    "operation": ("countTokens",),
    "error_code": ("backend_error", "none such"),
    "start": ("0",),
    "end": ("1",),
    "project": ("first",),
    "key": ("second", "third"),
}
"""Every value of each filter; with them left out, every combination of them is asked for."""


CODES = {429: "rate_limit_exceeded", 503: "backend_error"}


@dataclass(frozen=True)
class Mixture:
    """Three keys of two projects, and requests of every sort."""

    side: Side
    customers: dict[str, Customer]
    records: list[RequestRecord]
    middle: datetime

    def expected(self, chosen: dict[str, str]) -> list[str]:
        """By looking at each of them."""
        wanted = [record for record in self.records if self._fits(record, chosen)]
        return sorted((str(record.request_id) for record in wanted), reverse=True)

    def _fits(self, record: RequestRecord, chosen: dict[str, str]) -> bool:
        status = chosen.get("status", "")
        return (
            str(record.status).startswith(status.removesuffix("xx"))
            and chosen.get("model", record.model) == record.model
            and chosen.get("operation", record.operation) == record.operation
            and chosen.get("error_code", record.error_code) == record.error_code
            and record.started_at >= self.at(chosen.get("start", "-9999"))
            and record.started_at < self.at(chosen.get("end", "9999"))
            and chosen.get("project", str(record.project_id))
            in (str(record.project_id), self._name(record, "project"))
            and chosen.get("key", str(record.api_key_id))
            in (str(record.api_key_id), self._name(record, "key"))
        )

    def at(self, seconds: str) -> datetime:
        """So many seconds after half of the requests."""
        return self.middle + timedelta(seconds=int(seconds))

    def _name(self, record: RequestRecord, kind: str) -> str:
        name = next(n for n, c in self.customers.items() if c.api_key_id == record.api_key_id)
        return "first" if kind == "project" and name == "third" else name

    def query(self, chosen: dict[str, str]) -> dict[str, str]:
        given = ("project", "key", "start", "end")
        query = {name: value for name, value in chosen.items() if name not in given}
        for name in ("start", "end"):
            if name in chosen:
                query[f"{name}_time"] = str(int(self.at(chosen[name]).timestamp()))
        if "project" in chosen:
            query["project_id"] = str(self.customers[chosen["project"]].project_id)
        if "key" in chosen:
            query["api_key_id"] = str(self.customers[chosen["key"]].api_key_id)
        return query


@pytest_asyncio.fixture(loop_scope="module")
async def mixture(side: Side) -> Mixture:
    project, owner = await side.org.project(), side.org.organization_id
    first, third = [
        Customer(owner, project.id, (await side.org.project_key(project)).key.id) for _ in range(2)
    ]
    customers = {"first": first, "second": await customer_of(side.org), "third": third}
    middle = datetime.now(UTC).replace(microsecond=0)
    records = [
        customer.record(
            at, status=status, model=model, operation=operation, error_code=CODES.get(status)
        )
        for customer in customers.values()
        for status in (200, 429, 503)
        for model in ("example/model", None)
        for operation, at in (
            ("createChatCompletion", middle - timedelta(milliseconds=1)),
            ("countTokens", middle),
            ("createChatCompletion", middle + timedelta(seconds=1)),
        )
    ]
    # An answer that began and then broke off keeps its status.
    records.append(customers["second"].record(middle, error_code="backend_error"))
    await side.write(*records)
    return Mixture(side, customers, records, middle)


async def test_every_combination_of_filters_finds_what_looking_at_each_finds(
    mixture: Mixture,
) -> None:
    names = list(FILTERS)
    cases = 0
    for values in itertools.product(*([None, *FILTERS[name]] for name in names)):
        chosen = {name: value for name, value in zip(names, values, strict=True) if value}
        found = await mixture.side.ids(limit="100", **mixture.query(chosen))
        assert found == mixture.expected(chosen), chosen
        cases += 1
    assert cases == 4 * 2 * 2 * 3 * 2 * 2 * 2 * 3


async def decided_on(side: Side, policy_id: PolicyId, *records: RequestRecord) -> None:
    """A policy matched these requests, and did not match others."""
    recorder = DecisionRecorder(side.org.database, waiting_decisions_max=2 * len(records))
    for record in records:
        for direction in JUDGED_DIRECTIONS:
            decision = PolicyDecision(
                policy_id=policy_id,
                version=1,
                mode=Mode.ENFORCING,
                outcome=EvaluationOutcome.MATCH,
                threshold=5_000,
                score=9_000,
            )
            recorder.record(
                EvaluationRecord(
                    organization_id=record.organization_id,
                    request_id=record.request_id,
                    project_id=record.project_id,
                    api_key_id=record.api_key_id,
                    direction=direction,
                    mode=Mode.ENFORCING,
                    evaluated_at=record.started_at,
                    judging_ms=1.0,
                    decisions=(decision,),
                )
            )
    await recorder.write()


async def test_requests_are_found_by_how_they_ended(side: Side) -> None:
    statuses = (200, 400, 402, 403, 429, 499, 500, 501, 503)
    codes = (None, "policy_violation", "policy_not_evaluable", "backend_error")
    records = [
        side.customer.record(status=status, error_code=code)
        for status, code in itertools.product(statuses, codes)
    ]
    await side.write(*records)

    for outcome in RequestOutcome:
        ended_so = [
            each for each in records if rules.outcome(each.status, each.error_code) is outcome
        ]
        expected = sorted((str(each.request_id) for each in ended_so), reverse=True)
        assert await side.ids(limit="100", outcome=outcome) == expected, outcome


async def test_requests_are_found_by_a_policy_that_matched_them(mixture: Mixture) -> None:
    side = mixture.side
    policy = await new_policy(side.org, ("publish",))
    other = await new_policy(side.org, ("publish",))
    unwritten = side.customer.record()
    matched = mixture.records[::5]
    await decided_on(side, policy.id, *matched, unwritten)
    await decided_on(side, other.id, *mixture.records[1::5])
    query = {"policy_id": policy_id_text(policy.id)}
    begin = str(int(mixture.middle.timestamp()))

    pages = [await side.page(limit="4", **query)]
    while pages[-1]["has_more"]:
        pages.append(await side.page(limit="4", after=pages[-1]["last_id"], **query))
    failed = await side.ids(limit="100", status="5xx", **query)
    late = await side.ids(limit="100", start_time=begin, **query)
    early = await side.ids(limit="100", end_time=begin, **query)

    def ids(records: list[RequestRecord]) -> list[str]:
        return sorted((str(record.request_id) for record in records), reverse=True)

    assert [item["id"] for page in pages for item in page["data"]] == ids(matched)
    assert failed == ids([record for record in matched if record.status == 503])
    assert late == ids([record for record in matched if record.started_at >= mixture.middle])
    assert early == ids([record for record in matched if record.started_at < mixture.middle])


async def test_a_search_by_policy_goes_on_after_the_decisions_that_it_has_read(
    side: Side,
) -> None:
    policy = await new_policy(side.org, ("publish",))
    now = datetime.now(UTC)
    wanted = side.customer.record(now - timedelta(seconds=9), model="rare")
    records = [
        side.customer.record(now - timedelta(milliseconds=number)) for number in range(REQUESTS_MAX)
    ]
    await side.write(wanted, *records)
    await decided_on(side, policy.id, wanted, *records)
    query = {"policy_id": policy_id_text(policy.id), "model": "rare"}

    found: list[str] = []
    page: dict[str, Any] = {"has_more": True, "last_id": None}
    searches = 0
    while page["has_more"]:
        after = {"after": page["last_id"]} if page["last_id"] else {}
        page = await side.page(**query, **after)
        found += [item["id"] for item in page["data"]]
        searches += 1

    assert found == [str(wanted.request_id)]
    assert searches == 3, "each reads a thousand decisions, two of a request"


async def test_an_unknown_or_foreign_policy_is_not_found(side: Side, foreign: Side) -> None:
    theirs = await new_policy(foreign.org, ("publish",))

    for text in (policy_id_text(theirs.id), f"pol_{uuid4().hex}", "production"):
        found = await side.refusal(REQUESTS, policy_id=text)
        assert found == (404, "policy_not_found", "policy_id"), text


async def test_a_filtered_list_is_paged_like_any_other(mixture: Mixture) -> None:
    chosen = {"status": "5xx", "key": "second"}
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = await mixture.side.page(limit="2", **mixture.query(chosen), **after)
        seen += [item["id"] for item in page["data"]]
        if not page["has_more"]:
            break
        after = {"after": page["last_id"]}

    assert seen == mixture.expected(chosen)


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ({"status": "5x"}, "invalid_value", "status"),
        ({"status": "600"}, "invalid_value", "status"),
        ({"status": "0xx"}, "invalid_value", "status"),
        ({"status": "5XX"}, "invalid_value", "status"),
        ({"status": ""}, "invalid_value", "status"),
        ({"status": "\uff15xx"}, "invalid_value", "status"),
        ({"limit": "0"}, "integer_below_min_value", "limit"),
        ({"limit": "101"}, "integer_above_max_value", "limit"),
        ({"limit": "x"}, "invalid_type", "limit"),
        ({"model": ""}, "string_below_min_length", "model"),
        ({"model": "m" * 201}, "string_above_max_length", "model"),
        ({"operation": ""}, "string_below_min_length", "operation"),
        ({"operation": "o" * 65}, "string_above_max_length", "operation"),
        ({"after": ""}, "string_below_min_length", "after"),
        ({"after": "a" * 201}, "string_above_max_length", "after"),
        ({"code": "x"}, "unknown_parameter", "code"),
        ({"error_code": ""}, "string_below_min_length", "error_code"),
        ({"error_code": "e" * 65}, "string_above_max_length", "error_code"),
        ({"start_time": "-1"}, "integer_below_min_value", "start_time"),
    ],
)
async def test_a_list_that_cannot_be_meant_is_refused(
    side: Side, query: dict[str, str], code: str, param: str
) -> None:
    assert await side.refusal(REQUESTS, **query) == (400, code, param)


async def test_unknown_and_foreign_projects_and_keys_are_not_found(
    side: Side, foreign: Side
) -> None:
    await foreign.write(foreign.customer.record())
    admin = await side.org.admin_key()
    for project in (foreign.customer.project_id, side.customer.api_key_id, uuid4(), "x"):
        found = await side.refusal(REQUESTS, project_id=str(project))
        assert found == (404, "project_not_found", "project_id"), project
    for key in (foreign.customer.api_key_id, admin.key.id, uuid4(), "x"):
        found = await side.refusal(REQUESTS, api_key_id=str(key))
        assert found == (404, "api_key_not_found", "api_key_id"), key


async def rollups(side: Side, **query: str) -> dict[str, Any]:
    answer = await side.client.get(ROLLUPS, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_hours_are_told_whole(side: Side, foreign: Side) -> None:
    at = days_ago(1).replace(minute=30, second=0, microsecond=0)
    start = int(at.timestamp()) - 1_800
    await foreign.write(foreign.customer.record(at))
    await side.write(
        side.customer.record(at, total_ms=20.0),
        side.customer.record(at, total_ms=40.0),
        side.customer.record(at, status=499, error_code=None, total_ms=60.0),
        side.customer.record(at, status=503, error_code="service_unavailable", total_ms=80.0),
        side.customer.record(at, status=503, error_code="service_unavailable", total_ms=100.0),
        side.customer.record(at + timedelta(hours=2)),
    )

    page = await rollups(
        side, start_time=str(start + 5), end_time=str(start + 2 * HOUR + 1), group_by="model"
    )

    assert [bucket["start_time"] for bucket in page["data"]] == [
        *(start, start + HOUR, start + 2 * HOUR)
    ]
    assert page["object"] == "page"
    assert page["latency_bounds_ms"][:3] == [30, 100, 300]
    assert page["data"][0] == {
        "object": "bucket",
        "start_time": start,
        "end_time": start + HOUR,
        "results": [
            {
                "object": "organization.requests.result",
                "requests": 5,
                "failed": 2,
                "refused": 0,
                "client_errors": 1,
                "failures": [
                    {"status": 499, "error_code": None, "requests": 1},
                    {"status": 503, "error_code": "service_unavailable", "requests": 2},
                ],
                "input_tokens": 60,
                "cached_input_tokens": 15,
                "output_tokens": 225,
                "mean_total_ms": 60.0,
                "latency_counts": [1, 3, 1, 0, 0, 0, 0, 0, 0, 0],
                "project_id": None,
                "api_key_id": None,
                "model": "example/model",
            }
        ],
    }
    assert page["data"][1]["results"] == []
    assert page["data"][2]["results"][0]["requests"] == 1


@pytest.mark.parametrize("group_by", [None, "project_id", "api_key_id", "model"])
async def test_groups_add_up_to_what_a_look_at_each_request_finds(
    mixture: Mixture, group_by: str | None
) -> None:
    start = int((datetime.now(UTC) - timedelta(hours=1)).timestamp())
    query = {} if group_by is None else {"group_by": group_by}

    page = await rollups(mixture.side, start_time=str(start), **query)

    found: dict[str, int] = {}
    for result in (result for bucket in page["data"] for result in bucket["results"]):
        name = "all" if group_by is None else str(result[group_by])
        found[name] = found.get(name, 0) + result["requests"]
    expected: dict[str, int] = {}
    for record in mixture.records:
        name = "all" if group_by is None else str(getattr(record, group_by))
        expected[name] = expected.get(name, 0) + 1
    assert found == expected


async def test_an_empty_range_has_neither_requests_nor_sums(side: Side) -> None:
    for query in ({"start_time": "9", "end_time": "9"}, {"start_time": "253402300799"}):
        assert (await rollups(side, **query))["data"] == []
    assert await side.ids(start_time="9", end_time="9") == []


@pytest.mark.parametrize("operation", RANGED, ids=lambda operation: operation.id)
async def test_a_range_that_ends_before_it_begins_is_refused_everywhere(
    side: Side, gateway: Gateway, operation: Operation
) -> None:
    key = await side.org.admin_key((operation.access.permission.value,))
    policy = await new_policy(side.org, ("publish",))
    path = operation.path.format(policy_id=policy_id_text(policy.id))

    async with gateway.client(key.value) as client:
        found = await replace(side, client=client).refusal(path, start_time="9", end_time="8")

    assert found == (400, "invalid_value", "end_time")


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ({}, "missing_required_parameter", "start_time"),
        ({"start_time": "-1"}, "integer_below_min_value", "start_time"),
        ({"start_time": "0"}, "invalid_value", "end_time"),
        ({"start_time": "0", "end_time": str(744 * HOUR + 1)}, "invalid_value", "end_time"),
        ({"start_time": "0", "end_time": "1", "group_by": "status"}, "invalid_value", "group_by"),
        ({"start_time": "0", "end_time": "1", "limit": "1"}, "unknown_parameter", "limit"),
    ],
)
async def test_sums_that_cannot_be_meant_are_refused(
    side: Side, query: dict[str, str], code: str, param: str
) -> None:
    assert await side.refusal(ROLLUPS, **query) == (400, code, param)


async def test_a_month_of_hours_fits_into_one_answer(side: Side) -> None:
    page = await rollups(side, start_time="0", end_time=str(744 * HOUR))

    assert len(page["data"]) == 744


async def test_more_groups_than_an_answer_holds_are_refused(side: Side) -> None:
    async with side.org.database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO request_hours
            SELECT $1, '2026-01-01T00:00Z', gen_random_uuid(), gen_random_uuid(), '', 200, '', 1,
                   0, 0, 0, 1, '{1,0,0,0,0,0,0,0,0,0}'
              FROM generate_series(1, 10001)
            """,
            side.org.organization_id,
        )
    hour = {"start_time": "1767225600", "end_time": "1767225601"}

    assert await side.refusal(ROLLUPS, group_by="api_key_id", **hour) == (
        *(400, "invalid_value", "group_by"),
    )
    (bucket,) = (await rollups(side, **hour))["data"]
    assert bucket["results"][0]["requests"] == 10_001


async def test_decisions_of_policies_need_the_permission_for_them(
    mixture: Mixture, gateway: Gateway
) -> None:
    side = mixture.side
    policy = await new_policy(side.org, ("publish",))
    await decided_on(side, policy.id, mixture.records[0])
    request = f"{REQUESTS}/{mixture.records[0].request_id}"
    narrow = await side.org.admin_key(("activity:read",))

    async with gateway.client(narrow.value) as client:
        searched = await client.get(REQUESTS, params={"policy_id": policy_id_text(policy.id)})
        shown = await client.get(request)

    assert searched.status_code == 403
    assert searched.json()["error"]["code"] == "insufficient_permissions"
    assert shown.json()["evaluations"] == []
