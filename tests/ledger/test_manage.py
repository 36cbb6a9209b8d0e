"""Credits and spending limits as an organization's Admin key sees them."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.ledger.shared_books import database, database_url, org, settings, spender
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.spending import Spender
from tollhouse.base.money import PICO_USD_PER_USD
from tollhouse.settings import LedgerSettings, Settings

__all__ = ["database", "database_url", "org", "settings", "spender"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

CREDITS = "/manage/v1/organization/credits"
LIMITS = "/manage/v1/organization/spending_limits"
USD = PICO_USD_PER_USD
FOREIGN = "01890a5d-ac96-774b-bcce-b302099a8057"


def usd(value: str) -> dict[str, str]:
    return {"value": value, "currency": "usd"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandbox(settings: Settings) -> AsyncIterator[Gateway]:
    ledger = LedgerSettings(is_sandbox=True)
    async with running_gateway(msgspec.structs.replace(settings, ledger=ledger)) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(sandbox: Gateway, org: OrganizationFixture) -> AsyncIterator[httpx2.AsyncClient]:
    """An Admin key at a sandbox."""
    async with sandbox.client((await org.admin_key()).value) as opened:
        yield opened


async def pay(client: httpx2.AsyncClient, value: str, key: str = "payment-1") -> httpx2.Response:
    return await client.post(
        f"{CREDITS}/test_payments",
        json={"amount": {"value": value}},
        headers={"Idempotency-Key": key},
    )


async def test_the_balance_is_told_whole(client: httpx2.AsyncClient, spender: Spender) -> None:
    await spender.grant(10 * USD)
    await spender.spend(USD // 4)
    await spender.reserve(USD)

    answer = await client.get(CREDITS)

    assert answer.json() == {
        "object": "organization.credits",
        "balance": usd("9.75"),
        "available": usd("8.75"),
        "held": usd("1"),
        "unsettled": usd("0"),
        "is_alerting": False,
    }


async def test_what_is_unsettled_is_part_of_what_is_held(
    client: httpx2.AsyncClient, spender: Spender
) -> None:
    await spender.grant(10 * USD)
    hold = await spender.reserve(USD)
    async with spender.org.database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO unsettled_holds (organization_id, admitted_day, reservation_id, held_pico,
                                         admitted_at, project_id, api_key_id, decide_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, now() + interval '1 hour')
            """,
            hold.organization_id,
            hold.admitted_day,
            hold.reservation_id,
            hold.amount_pico_usd,
            hold.admitted_at,
            hold.project_id,
            hold.api_key_id,
        )

    answer = (await client.get(CREDITS)).json()

    assert (answer["held"], answer["unsettled"], answer["available"]) == (
        *(usd("1"), usd("1"), usd("9")),
    )


async def test_a_test_payment_is_credit_once_per_idempotency_key(
    client: httpx2.AsyncClient,
) -> None:
    first = await pay(client, "12.5")
    again = await pay(client, "12.5")
    other = await pay(client, "13")

    assert first.json() == {
        "id": first.json()["id"],
        "object": "organization.credit_entry",
        "kind": "test_payment",
        "amount": usd("12.5"),
        "reason": "test payment",
        "actor": first.json()["actor"],
        "created_at": first.json()["created_at"],
    }
    assert first.json()["actor"]["type"] == "admin_api_key"
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert other.status_code == 409
    assert (await client.get(CREDITS)).json()["available"] == usd("12.5")
    assert (await client.get(f"{CREDITS}/entries")).json()["data"] == [first.json()]


@pytest.mark.parametrize(
    "value",
    ["0", "0.000", "-1", "+1", "1e3", "", ".5", "5.", "1.0000000000001", "1" * 13, "1,5", "\uff11"],
)
async def test_a_payment_that_is_no_amount_above_zero_is_refused(
    client: httpx2.AsyncClient, value: str
) -> None:
    answer = await pay(client, value)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_value"
    assert answer.json()["error"]["param"].startswith("amount")


async def test_without_a_sandbox_there_are_no_test_payments(
    settings: Settings, org: OrganizationFixture
) -> None:
    key = (await org.admin_key()).value
    async with running_gateway(settings) as gateway, gateway.client(key) as client:
        answer = await pay(client, "12.5")
        balance = (await client.get(CREDITS)).json()["balance"]

    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "test_payments_refused"
    assert balance == usd("0")


async def test_entries_are_paged_newest_first(client: httpx2.AsyncClient, spender: Spender) -> None:
    made = [str((await spender.grant(USD)).id) for _ in range(5)]

    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True, "last_id": None}
    while page["has_more"]:
        after = {"after": page["last_id"]} if page["last_id"] else {}
        page = (await client.get(f"{CREDITS}/entries", params={"limit": "2", **after})).json()
        seen += [entry["id"] for entry in page["data"]]

    assert seen == made[::-1]


async def test_a_limit_is_set_shown_changed_and_cleared(
    client: httpx2.AsyncClient, spender: Spender
) -> None:
    await spender.grant(100 * USD)
    await spender.spend(4 * USD)
    await spender.reserve(USD)
    project_id = str(spender.project_id)

    answer = await client.put(
        LIMITS, json={"project_id": project_id, "period": "month", "limit": {"value": "5.5"}}
    )

    shown = answer.json()
    assert shown == {
        "id": f"project:{project_id}:month",
        "object": "organization.spending_limit",
        "scope": "project",
        "project_id": project_id,
        "api_key_id": None,
        "period": "month",
        "limit": usd("5.5"),
        "used": usd("4"),
        "held": usd("1"),
        "remaining": usd("0.5"),
        "alert_percent": 80,
        "is_alerting": False,
    }
    assert (await client.get(LIMITS)).json()["data"] == [shown]
    lowered = await client.put(
        LIMITS,
        json={
            "project_id": project_id,
            "period": "month",
            "limit": usd("1"),
            "alert_percent": 100,
        },
    )
    assert (lowered.json()["remaining"], lowered.json()["is_alerting"]) == (usd("-4"), True)
    place = {"project_id": project_id, "period": "month"}
    cleared = await client.delete(LIMITS, params=place)
    assert cleared.json() == {
        "id": shown["id"],
        "object": "organization.spending_limit.deleted",
        "deleted": True,
    }
    assert (await client.get(LIMITS)).json()["data"] == []
    again = await client.delete(LIMITS, params=place)
    assert (again.status_code, again.json()["error"]["code"]) == (404, "spending_limit_not_found")


async def test_limits_of_every_kind_are_paged_each_once(
    client: httpx2.AsyncClient, spender: Spender
) -> None:
    places: list[dict[str, str]] = [
        {},
        {"project_id": str(spender.project_id)},
        {"api_key_id": str(spender.api_key_id)},
    ]
    for place in places:
        for period in ("month", "lifetime", "day", "week"):
            body = {**place, "period": period, "limit": {"value": "1"}}
            assert (await client.put(LIMITS, json=body)).status_code == 200

    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True, "last_id": None}
    while page["has_more"]:
        after = {"after": page["last_id"]} if page["last_id"] else {}
        page = (await client.get(LIMITS, params={"limit": "4", **after})).json()
        seen += [f"{item['scope']} {item['period']}" for item in page["data"]]

    assert seen == [
        f"{scope} {period}"
        for scope in ("api_key", "organization", "project")
        for period in ("day", "lifetime", "month", "week")
    ]


async def test_a_page_goes_on_from_a_limit_that_was_cleared_meanwhile(
    client: httpx2.AsyncClient, spender: Spender
) -> None:
    of_key = {"api_key_id": str(spender.api_key_id)}
    of_project = {"project_id": str(spender.project_id)}
    for place in (of_key, of_project):
        body = {**place, "period": "month", "limit": {"value": "1"}}
        assert (await client.put(LIMITS, json=body)).status_code == 200

    first = (await client.get(LIMITS, params={"limit": "1"})).json()
    cleared = await client.delete(LIMITS, params={**of_key, "period": "month"})
    second = (await client.get(LIMITS, params={"after": first["last_id"]})).json()

    assert cleared.status_code == 200
    assert [item["project_id"] for item in second["data"]] == [str(spender.project_id)]
    assert second["has_more"] is False


@pytest.mark.parametrize(
    "cursor", [f"organization:{FOREIGN}:month", f"project:{FOREIGN}:year", "project:x:month", "x"]
)
async def test_what_cannot_be_a_limit_of_ours_is_no_cursor(
    client: httpx2.AsyncClient, cursor: str
) -> None:
    answer = await client.get(LIMITS, params={"after": cursor})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "after")


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"limit": {"value": "1"}}, "missing_required_parameter", "period"),
        ({"period": "month"}, "missing_required_parameter", "limit"),
        ({"period": "year", "limit": {"value": "1"}}, "invalid_value", "period"),
        ({"period": "month", "limit": {"value": "-1"}}, "invalid_value", "limit.value"),
        ({"period": "month", "limit": {"value": 1}}, "invalid_type", "limit.value"),
        (
            {"period": "month", "limit": {"value": "1", "currency": "eur"}},
            *("invalid_value", "limit.currency"),
        ),
        ({"period": "month", "limit": {"amount": "1"}}, "unknown_parameter", "limit.amount"),
        (
            {"period": "month", "limit": {"value": "1"}, "alert_percent": 0},
            *("integer_below_min_value", "alert_percent"),
        ),
        (
            {"period": "month", "limit": {"value": "1"}, "alert_percent": 101},
            *("integer_above_max_value", "alert_percent"),
        ),
        (
            {"period": "month", "limit": {"value": "1"}, "project_id": "a", "api_key_id": "b"},
            *("invalid_parameter_combination", "api_key_id"),
        ),
    ],
)
async def test_a_limit_that_cannot_be_meant_is_refused(
    client: httpx2.AsyncClient, body: dict[str, object], code: str, param: str
) -> None:
    answer = await client.put(LIMITS, json=body)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == (code, param)
