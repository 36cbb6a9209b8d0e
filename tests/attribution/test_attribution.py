"""What requests are for: stored if switched on, bounded, deletable, and equal to the ledger."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.activity.records import Customer
from tests.messages.test_messages import PATH as MESSAGES
from tests.messages.test_messages import message
from tests.reports.past import pico
from tests.support.deployment import MODEL, Deployment, chat
from tollhouse.activity import store as activity_store
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.attribution import service
from tollhouse.attribution.types import DELETED, OTHER, UNRECORDED

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTING = "/manage/v1/organization/attribution"
COSTS = f"{SETTING}/costs"
DELETIONS = f"{SETTING}/deletions"
CHAT = "/v1/chat/completions"


async def store(deployment: Deployment, *dimensions: str, days: int = 30) -> None:
    body = {"dimensions": dimensions, "retention_days": days}
    async with deployment.administrator() as admin:
        answer = await admin.put(SETTING, json=body)
    assert answer.status_code == 200, answer.text


async def send(deployment: Deployment, path: str, body: dict[str, Any]) -> str:
    """Send a request once its key is looked up anew; return its ID when its record is written."""
    async with deployment.customer() as client:
        answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    request_id = answer.headers["x-request-id"]
    await deployment.record(request_id)
    return request_id


def span() -> dict[str, int]:
    now = int(time.time())
    return {"start_time": now - 86_400, "end_time": now + 60}


async def costs(deployment: Deployment, dimension: str) -> dict[str, int]:
    """Pico-dollars by value, after their sum was compared with the cost report of `/v1`."""
    async with deployment.administrator() as admin:
        answer = await admin.get(COSTS, params={"dimension": dimension, **span()})
        report = await admin.get("/v1/organization/costs", params=span())
    assert answer.status_code == 200, answer.text
    found = {line["value"]: pico(line["amount"]["value"]) for line in answer.json()["data"]}
    reported = sum(
        pico(result["amount"]["value"])
        for day in report.json()["data"]
        for result in day["results"]
    )
    assert sum(found.values()) == pico(answer.json()["total"]["value"]) == reported
    return found


async def stored(deployment: Deployment) -> int:
    rows = await deployment.org.database.fetch_all(
        "SELECT count(*) FROM request_attributions WHERE organization_id = $1",
        deployment.org.organization_id,
    )
    return rows[0][0]


async def test_nothing_is_stored_unless_it_is_switched_on(deployment: Deployment) -> None:
    await send(deployment, CHAT, chat(user="alice"))

    async with deployment.administrator() as admin:
        setting = (await admin.get(SETTING)).json()

    assert (setting["dimensions"], setting["retention_days"]) == ([], 30)
    assert await stored(deployment) == 0
    assert list(await costs(deployment, "user")) == [UNRECORDED]


async def test_every_endpoint_is_attributed_and_sums_equal_the_ledger(
    deployment: Deployment,
) -> None:
    await store(deployment, "user", "safety_identifier", "metadata.team")
    responses = {"model": MODEL, "input": "Say something."}
    tagged: dict[str, Any] = {"metadata": {"team": "red", "other": "not stored"}}

    await send(deployment, CHAT, chat(user="alice", safety_identifier="s-1", **tagged))
    await send(deployment, "/v1/responses", {**responses, "user": "alice", **tagged})
    await send(deployment, MESSAGES, message(metadata={"user_id": "alice", "team": "blue"}))
    await send(deployment, CHAT, chat(user="bob"))
    await send(deployment, CHAT, chat())
    await deployment.settled(5)

    by_user = await costs(deployment, "user")
    by_team = await costs(deployment, "metadata.team")
    assert set(by_user) == {"alice", "bob", UNRECORDED}
    assert set(by_team) == {"red", "blue", UNRECORDED}
    assert set(await costs(deployment, "safety_identifier")) == {"s-1", UNRECORDED}
    assert by_user["alice"] == by_team["red"] + by_team["blue"] > 0


async def test_a_deleted_value_is_gone_and_no_sum_changes(deployment: Deployment) -> None:
    await store(deployment, "user")
    for name in ("alice", "alice", "bob"):
        await send(deployment, CHAT, chat(user=name))
    await deployment.settled(3)
    before = await costs(deployment, "user")

    async with deployment.administrator() as admin:
        body = {"dimension": "user", "value": "alice"}
        deleted = (await admin.post(DELETIONS, json=body)).json()
        again = (await admin.post(DELETIONS, json=body)).json()
        audit = (await admin.get("/manage/v1/organization/audit")).text

    after = await costs(deployment, "user")
    assert (deleted["deleted"], deleted["days"], again["deleted"]) == (True, 1, False)
    assert after == {DELETED: before["alice"], "bob": before["bob"]}
    assert "attribution.delete_value" in audit
    assert "alice" not in audit
    assert await everywhere(deployment, "alice") == 0


async def everywhere(deployment: Deployment, value: str) -> int:
    """How many rows of the organization still have a value."""
    rows = await deployment.org.database.fetch_all(
        """
        SELECT (SELECT count(*) FROM attribution_values v
                 WHERE organization_id = $1 AND to_jsonb(v)::text LIKE '%' || $2 || '%')
             + (SELECT count(*) FROM requests r
                 WHERE organization_id = $1 AND to_jsonb(r)::text LIKE '%' || $2 || '%')
        """,
        deployment.org.organization_id,
        value,
    )
    return rows[0][0]


async def test_values_after_their_retention_are_removed_and_costs_stay(
    deployment: Deployment,
) -> None:
    await store(deployment, "user", days=3)
    await send(deployment, CHAT, chat(user="alice"))
    await deployment.settled(1)
    before = await costs(deployment, "user")
    database = deployment.org.database
    async with database.transaction() as tx:
        for table in ("attribution_values", "request_attributions"):
            await tx.execute(
                f"UPDATE {table} SET day = day - 5 WHERE organization_id = $1",  # noqa: S608 - a name  # pyright: ignore[reportArgumentType]
                deployment.org.organization_id,
            )

    await service.retention_job(database).run()

    assert await stored(deployment) == 0
    assert await everywhere(deployment, "alice") == 0
    assert await costs(deployment, "user") == {UNRECORDED: before["alice"]}


async def records(deployment: Deployment, values: Sequence[str]) -> None:
    """Write a record for each value, as a worker does."""
    customer = Customer(
        deployment.org.organization_id, deployment.project.id, deployment.key.key.id
    )
    recorder = RequestRecorder(deployment.org.database, waiting_records_max=10_000)
    now = datetime.now(UTC)
    for place, value in enumerate(values):
        at = now - timedelta(milliseconds=place)
        recorder.record(customer.record(at, attribution=(("user", value),)))
    await recorder.write()


async def test_values_of_a_day_are_bounded(deployment: Deployment) -> None:
    bound = activity_store.VALUES_PER_DAY_MAX
    await records(deployment, [f"v{number}" for number in range(bound)])

    await records(deployment, ["new", "v7", "newer"])

    rows = await deployment.org.database.fetch_all(
        """
        SELECT v.value, count(*)
          FROM request_attributions a
          JOIN attribution_values v ON v.organization_id = $1 AND v.id = a.value_id
         WHERE a.organization_id = $1
         GROUP BY 1
        """,
        deployment.org.organization_id,
    )
    counts = {row[0]: row[1] for row in rows}
    assert counts[OTHER] == 2
    assert counts["v7"] == 2
    assert len(counts) == bound + 1


async def test_a_record_that_is_written_twice_counts_once(deployment: Deployment) -> None:
    customer = Customer(
        deployment.org.organization_id, deployment.project.id, deployment.key.key.id
    )
    record = customer.record(attribution=(("user", "alice"), ("metadata.team", "red")))
    database = deployment.org.database

    written = [await activity_store.insert(database, [record]) for _ in range(2)]

    assert written == [1, 0]
    assert await stored(deployment) == 2


async def test_a_record_that_was_dropped_is_unrecorded_not_lost(deployment: Deployment) -> None:
    await store(deployment, "user")
    for name in ("alice", "bob"):
        await send(deployment, CHAT, chat(user=name))
    await deployment.settled(2)
    before = await costs(deployment, "user")
    async with deployment.org.database.transaction() as tx:
        await tx.execute(
            """
            DELETE FROM request_attributions a
             USING attribution_values v
             WHERE a.organization_id = $1 AND v.organization_id = $1
               AND v.id = a.value_id AND v.value = 'bob'
            """,
            deployment.org.organization_id,
        )

    assert await costs(deployment, "user") == {
        "alice": before["alice"],
        UNRECORDED: before["bob"],
    }


async def test_long_and_unprintable_values_are_cut(deployment: Deployment) -> None:
    await store(deployment, "metadata.team")
    await send(deployment, CHAT, chat(metadata={"team": "x\n" + "y" * 5_000}))
    await deployment.settled(1)

    (value,) = await costs(deployment, "metadata.team")

    assert value.startswith("x?yyy")
    assert len(value) < 600


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", SETTING, {"dimensions": ["prompt"]}),
        ("PUT", SETTING, {"dimensions": ["user"] * 5}),
        ("PUT", SETTING, {"dimensions": ["user"], "retention_days": 0}),
        ("POST", DELETIONS, {"dimension": "user", "value": ""}),
    ],
)
async def test_what_cannot_be_stored_is_refused(
    deployment: Deployment, method: str, path: str, body: dict[str, Any]
) -> None:
    async with deployment.administrator() as admin:
        answer = await admin.request(method, path, json=body)

    assert answer.status_code == 400


async def test_a_range_is_bounded(deployment: Deployment) -> None:
    async with deployment.administrator() as admin:
        answer = await admin.get(
            COSTS, params={"dimension": "user", "start_time": 0, "end_time": 86_400 * 40}
        )

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "end_time"
