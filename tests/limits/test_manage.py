"""Rate limits as an organization's Admin key sees them."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.support.gateway import Gateway
from tests.support.limits import set_limit
from tests.support.organization_fixture import HeldProjectKey, OrganizationFixture
from tollhouse.base.traffic import TrafficLimits
from tollhouse.limits.types import LimitOwner

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMITS = "/manage/v1/organization/rate_limits"
FOREIGN = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway: Gateway, org: OrganizationFixture) -> AsyncIterator[httpx2.AsyncClient]:
    key = (await org.admin_key()).value
    async with gateway.client(key) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def held(org: OrganizationFixture) -> HeldProjectKey:
    return await org.project_key(await org.project())


async def listed(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    return (await client.get(LIMITS)).json()["data"]


async def test_a_limit_is_set_shown_replaced_and_cleared(
    client: httpx2.AsyncClient, held: HeldProjectKey
) -> None:
    place = {"project_id": str(held.key.project_id)}

    answer = await client.put(
        LIMITS, json={**place, "requests_per_minute": 600, "concurrent_requests": 20}
    )

    shown = answer.json()
    assert shown == {
        "id": f"project:{held.key.project_id}:organization",
        "object": "organization.rate_limit",
        "scope": "project",
        "project_id": str(held.key.project_id),
        "api_key_id": None,
        "owner": "organization",
        "requests_per_minute": 600,
        "tokens_per_minute": None,
        "concurrent_requests": 20,
    }
    assert await listed(client) == [shown]
    replaced = (await client.put(LIMITS, json={**place, "tokens_per_minute": 10**12})).json()
    assert replaced == shown | {
        "requests_per_minute": None,
        "tokens_per_minute": 10**12,
        "concurrent_requests": None,
    }
    cleared = await client.delete(LIMITS, params=place)
    assert cleared.json() == {
        "id": shown["id"],
        "object": "organization.rate_limit.deleted",
        "deleted": True,
    }
    assert await listed(client) == []
    again = await client.delete(LIMITS, params=place)
    assert (again.status_code, again.json()["error"]["code"]) == (404, "rate_limit_not_found")


async def test_the_operators_limit_is_read_and_not_touched(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    await set_limit(org, TrafficLimits(requests_per_minute=10), owner=LimitOwner.OPERATOR)

    await client.put(LIMITS, json={"requests_per_minute": 1000})
    both = await listed(client)
    await client.delete(LIMITS)
    left = await listed(client)
    refused = await client.delete(LIMITS)

    assert [(one["owner"], one["requests_per_minute"]) for one in both] == [
        ("operator", 10),
        ("organization", 1000),
    ]
    assert left == both[:1]
    assert refused.status_code == 404


async def test_a_cleared_limit_leaves_all_others(
    client: httpx2.AsyncClient, org: OrganizationFixture, held: HeldProjectKey
) -> None:
    other = await org.project_key(await org.project())
    sibling = await org.project_key(await org.project())
    places: list[dict[str, str]] = [
        {},
        *({"project_id": str(key.project_id)} for key in (held.key, other.key, sibling.key)),
        *({"api_key_id": str(key.id)} for key in (held.key, other.key, sibling.key)),
    ]
    for place in places:
        await client.put(LIMITS, json={**place, "requests_per_minute": 1})
    left = {one["id"] for one in await listed(client)}
    assert len(left) == len(places)

    for place in places:
        cleared = await client.delete(LIMITS, params=place)
        left.remove(cleared.json()["id"])
        assert {one["id"] for one in await listed(client)} == left


async def test_limits_of_every_kind_are_paged_each_once(
    client: httpx2.AsyncClient, org: OrganizationFixture, held: HeldProjectKey
) -> None:
    places: list[dict[str, str]] = [
        {"api_key_id": str(held.key.id)},
        {},
        {"project_id": str(held.key.project_id)},
    ]
    await set_limit(org, TrafficLimits(tokens_per_minute=1), owner=LimitOwner.OPERATOR)
    for place in places:
        answer = await client.put(LIMITS, json={**place, "requests_per_minute": 1})
        assert answer.status_code == 200

    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True, "last_id": None}
    while page["has_more"]:
        after = {"after": page["last_id"]} if page["last_id"] else {}
        page = (await client.get(LIMITS, params={"limit": "1", **after})).json()
        seen += [f"{item['scope']} {item['owner']}" for item in page["data"]]

    assert seen == [
        "organization operator",
        "organization organization",
        "project organization",
        "api_key organization",
    ]


async def test_a_page_goes_on_from_a_limit_that_was_cleared_meanwhile(
    client: httpx2.AsyncClient, held: HeldProjectKey
) -> None:
    of_key = {"api_key_id": str(held.key.id)}
    of_project = {"project_id": str(held.key.project_id)}
    for place in (of_key, of_project):
        await client.put(LIMITS, json={**place, "requests_per_minute": 1})

    first = (await client.get(LIMITS, params={"limit": "1"})).json()
    await client.delete(LIMITS, params=of_project)
    second = (await client.get(LIMITS, params={"after": first["last_id"]})).json()

    assert [item["api_key_id"] for item in second["data"]] == [str(held.key.id)]


@pytest.mark.parametrize(
    "cursor",
    [
        f"organization:{FOREIGN}:operator",
        f"project:{FOREIGN}:month",
        f"team:{FOREIGN}:operator",
        "project:x:operator",
        "x",
    ],
)
async def test_what_cannot_be_a_limit_of_ours_is_no_cursor(
    client: httpx2.AsyncClient, cursor: str
) -> None:
    answer = await client.get(LIMITS, params={"after": cursor})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "after")


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "invalid_parameter_combination", None),
        ({"requests_per_minute": None}, "invalid_parameter_combination", None),
        ({"requests_per_minute": 0}, "integer_below_min_value", "requests_per_minute"),
        ({"requests_per_minute": 10**7 + 1}, "integer_above_max_value", "requests_per_minute"),
        ({"requests_per_minute": "1"}, "invalid_type", "requests_per_minute"),
        ({"tokens_per_minute": 0}, "integer_below_min_value", "tokens_per_minute"),
        ({"tokens_per_minute": 10**12 + 1}, "integer_above_max_value", "tokens_per_minute"),
        ({"concurrent_requests": -1}, "integer_below_min_value", "concurrent_requests"),
        ({"concurrent_requests": 10**6 + 1}, "integer_above_max_value", "concurrent_requests"),
        ({"requests_per_minute": 1, "owner": "operator"}, "unknown_parameter", "owner"),
        (
            {"requests_per_minute": 1, "project_id": "a", "api_key_id": "b"},
            *("invalid_parameter_combination", "api_key_id"),
        ),
    ],
)
async def test_a_limit_that_cannot_be_meant_is_refused(
    client: httpx2.AsyncClient, body: dict[str, object], code: str, param: str | None
) -> None:
    answer = await client.put(LIMITS, json=body)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == (code, param)
