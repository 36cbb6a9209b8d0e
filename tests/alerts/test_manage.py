"""Alert subscriptions as an organization's Admin key manages them."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.alerts.receiver import accept, running_receiver
from tests.support.gateway import Gateway, run_jobs, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import database, database_url, org, settings
from tollhouse.settings import AlertSettings, QuotaSettings, Settings

__all__ = ["database", "database_url", "org", "settings"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

SUBSCRIPTIONS = "/manage/v1/organization/alert_subscriptions"
DELIVERIES = "/manage/v1/organization/alert_deliveries"
BODY: dict[str, Any] = {
    "name": "finance",
    "url": "https://receiver.example/alerts",
    "cap_percents": [90, 50, 90],
    "credit_below": {"value": "5"},
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings) -> AsyncIterator[Gateway]:
    allowing = msgspec.structs.replace(
        settings,
        alerts=AlertSettings(allowed_networks=("127.0.0.0/8",)),
        quotas=QuotaSettings(alert_subscriptions=3, alert_attempts_per_hour=5),
    )
    async with running_gateway(allowing) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway: Gateway, org: OrganizationFixture) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.client((await org.admin_key()).value) as opened:
        yield opened


async def create(
    client: httpx2.AsyncClient, key: str = "subscribe-1", **changes: object
) -> httpx2.Response:
    body = {name: value for name, value in {**BODY, **changes}.items() if value is not None}
    return await client.post(SUBSCRIPTIONS, json=body, headers={"Idempotency-Key": key})


async def test_a_subscription_is_created_once_and_shows_its_secret_then_alone(
    client: httpx2.AsyncClient,
) -> None:
    created = (await create(client)).json()
    replayed = await create(client)
    read = (await client.get(f"{SUBSCRIPTIONS}/{created['id']}")).json()

    assert created["secret"].startswith("whsec_")
    assert replayed.json() == created
    assert replayed.headers["idempotent-replayed"] == "true"
    assert read == {name: value for name, value in created.items() if name != "secret"}
    assert read["cap_percents"] == [50, 90]
    assert read["credit_below"] == {"value": "5", "currency": "usd"}
    assert (await client.get(SUBSCRIPTIONS)).json()["data"] == [read]


async def test_an_edit_keeps_the_secret_and_a_deletion_takes_the_deliveries(
    gateway: Gateway,
    client: httpx2.AsyncClient,
) -> None:
    path = f"{SUBSCRIPTIONS}/{(await create(client)).json()['id']}"

    edited = await client.put(path, json={**BODY, "name": "platform", "credit_percents": [80]})
    await run_jobs(gateway.application, "alert-look")
    deliveries = (await client.get(DELIVERIES)).json()["data"]
    deleted = await client.delete(path)

    assert edited.json()["name"] == "platform"
    assert "secret" not in edited.json()
    # Nothing was granted, so that the credit is below 5 dollars already.
    assert [item["type"] for item in deliveries] == ["credit.threshold_reached"]
    assert deleted.json()["deleted"] is True
    assert (await client.get(DELIVERIES)).json()["data"] == []
    missing = await client.get(path)
    assert missing.json()["error"]["code"] == "alert_subscription_not_found"


async def test_a_test_alert_is_delivered_and_its_state_is_shown(
    gateway: Gateway, client: httpx2.AsyncClient
) -> None:
    async with running_receiver() as receiver:
        created = (await create(client, url=receiver.url, credit_below=None)).json()
        path = f"{SUBSCRIPTIONS}/{created['id']}"

        sent = (await client.post(f"{path}/test")).json()
        again = (await client.post(f"{path}/test")).json()
        await run_jobs(gateway.application, "alert-delivery")

    [delivery] = (await client.get(DELIVERIES)).json()["data"]
    assert sent["status"] == "pending"
    assert again["id"] == sent["id"] == delivery["id"] == receiver.received[0].id
    assert (delivery["status"], delivery["last_status_code"]) == ("delivered", 204)


async def test_what_has_failed_is_attempted_again(
    gateway: Gateway, client: httpx2.AsyncClient
) -> None:
    answers = iter([b"HTTP/1.1 410 Gone\r\n\r\n"])
    async with running_receiver(lambda got: next(answers, accept(got))) as receiver:
        created = (await create(client, url=receiver.url, credit_below=None)).json()
        path = f"{SUBSCRIPTIONS}/{created['id']}"
        await client.post(f"{path}/test")
        await run_jobs(gateway.application, "alert-delivery")
        [failed] = (await client.get(DELIVERIES)).json()["data"]

        retried = await client.post(f"{path}/retry")
        await run_jobs(gateway.application, "alert-delivery")

    [delivered] = (await client.get(DELIVERIES)).json()["data"]
    assert (failed["status"], retried.json()["id"]) == ("failed", created["id"])
    assert (delivered["status"], delivered["attempts"]) == ("delivered", 1)
    assert len({got.id for got in receiver.received}) == 1


async def test_edits_send_no_more_than_the_attempts_of_an_hour(
    gateway: Gateway, client: httpx2.AsyncClient
) -> None:
    async with running_receiver() as receiver:
        created = (await create(client, url=receiver.url)).json()
        path = f"{SUBSCRIPTIONS}/{created['id']}"
        await run_jobs(gateway.application, "alert-look")
        for below in range(6, 16):
            edit = {**BODY, "url": receiver.url, "credit_below": {"value": str(below)}}
            assert (await client.put(path, json=edit)).is_success
            await run_jobs(gateway.application, "alert-look")
        await run_jobs(gateway.application, "alert-delivery")

    shown = (await client.get(DELIVERIES)).json()["data"]
    withheld = [each for each in shown if each["status"] == "withheld"]
    assert (len(receiver.received), len(withheld)) == (5, 6)
    assert all("quotas.alert_attempts_per_hour" in each["last_error"] for each in withheld)


async def test_a_rotated_secret_is_shown_once_and_the_previous_one_ends(
    client: httpx2.AsyncClient,
) -> None:
    created = (await create(client)).json()
    rotate = f"{SUBSCRIPTIONS}/{created['id']}/rotate_secret"

    rotated = await client.post(
        rotate, json={"overlap_seconds": 60}, headers={"Idempotency-Key": "rotate-1"}
    )

    assert rotated.json()["secret"] not in (None, created["secret"])
    assert rotated.json()["previous_secret_expires_at"] > created["created_at"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"url": None}, "invalid_parameter_combination"),
        ({"emails": ["a@b.example"]}, "invalid_parameter_combination"),
        ({"cap_percents": [], "credit_below": None}, "missing_required_parameter"),
        ({"cap_percents": [0]}, "integer_below_min_value"),
        ({"cap_percents": [101]}, "integer_above_max_value"),
        ({"url": "ftp://receiver.example/"}, "invalid_value"),
        ({"url": "https://user:password@receiver.example/"}, "invalid_value"),
        ({"url": "https://receiver.example/ x"}, "invalid_value"),
        ({"url": None, "emails": ["a@b.example\r\nBcc: c@d.example"]}, "invalid_value"),
        ({"url": None, "emails": ["a@b.example"]}, "invalid_value"),
        ({"backend_down": True}, "unknown_parameter"),
    ],
)
async def test_what_cannot_work_is_refused(
    client: httpx2.AsyncClient, changes: dict[str, Any], code: str
) -> None:
    refused = await create(client, **changes)

    assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)


async def test_an_organization_has_as_many_subscriptions_as_its_quota(
    client: httpx2.AsyncClient,
) -> None:
    for number in range(3):
        assert (await create(client, key=f"subscribe-{number}")).is_success

    refused = await create(client, key="subscribe-3")

    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "quota_exceeded")


async def test_reading_and_writing_need_their_permissions(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    async with gateway.client((await org.admin_key(("alerts:read",))).value) as reader:
        assert (await reader.get(SUBSCRIPTIONS)).is_success
        assert (await create(reader)).status_code == 403
    async with gateway.client((await org.admin_key(("policies:read",))).value) as other:
        assert (await other.get(DELIVERIES)).status_code == 403


async def test_changes_are_audited_without_the_secret(client: httpx2.AsyncClient) -> None:
    created = (await create(client)).json()
    path = f"{SUBSCRIPTIONS}/{created['id']}"
    await client.post(f"{path}/rotate_secret", json={}, headers={"Idempotency-Key": "rotate-1"})
    await client.post(f"{path}/test")
    await client.delete(path)

    audit = await client.get("/manage/v1/organization/audit")

    entries = audit.json()["data"]
    assert [entry["action"] for entry in entries[:4]] == [
        f"alert_subscription.{verb}" for verb in ("delete", "test", "rotate_secret", "create")
    ]
    created_fields = {change["field"]: change["after"] for change in entries[3]["changes"]}
    assert created_fields["thresholds.cap_percents"] == ["50", "90"]
    assert "whsec_" not in audit.text
