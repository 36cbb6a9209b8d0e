"""What requests are for: stored if switched on, bounded, deletable, and equal to the ledger."""

import time
from collections import Counter
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
from tollhouse.reports.types import DELETED, UNRECORDED

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTING = "/manage/v1/organization/attribution"
USAGE = "/manage/v1/organization/usage"
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


async def report(deployment: Deployment, path: str, *group_by: str) -> list[dict[str, Any]]:
    """All results of a report of the last day."""
    async with deployment.administrator() as admin:
        answer = await admin.get(path, params={**span(), "group_by": group_by})
    assert answer.status_code == 200, answer.text
    return [result for bucket in answer.json()["data"] for result in bucket["results"]]


async def costs(deployment: Deployment, dimension: str) -> dict[str, int]:
    """Pico-dollars by value, after all reports and the ledger's entries agreed on their sum."""
    found: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    for group_by in ([dimension], ["model", dimension, "project_id", "api_key_id"]):
        found.clear()
        for result in await report(deployment, USAGE, *group_by):
            found[result["attribution"]] += pico(result["amount"]["value"])
        sums[f"usage by {group_by}"] = found.total()
    for path in (USAGE, "/v1/organization/costs"):
        results = await report(deployment, path)
        sums[path] = sum(pico(result["amount"]["value"]) for result in results)
    rows = await deployment.org.database.fetch_all(
        "SELECT sum(posted_pico) FROM ledger_entries WHERE organization_id = $1 AND phase = 1",
        deployment.org.organization_id,
    )
    sums["ledger"] = int(rows[0][0])
    assert len(set(sums.values())) == 1, sums
    return dict(found)


async def stored(deployment: Deployment) -> int:
    rows = await deployment.org.database.fetch_all(
        "SELECT count(*) FROM request_attributions WHERE organization_id = $1",
        deployment.org.organization_id,
    )
    return rows[0][0]


async def test_nothing_is_stored_unless_it_is_switched_on(deployment: Deployment) -> None:
    await send(deployment, CHAT, chat(user="alice"))
    await deployment.settled(1)

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
    assert counts["(other)"] == 2
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


@pytest.mark.parametrize(
    ("path", "group_by"),
    [
        (USAGE, ["user", "metadata.team"]),
        (USAGE, ["prompt"]),
        ("/v1/organization/costs", ["user"]),
    ],
)
async def test_what_cannot_be_grouped_by_is_refused(
    deployment: Deployment, path: str, group_by: list[str]
) -> None:
    async with deployment.administrator() as admin:
        answer = await admin.get(path, params={**span(), "group_by": group_by})

    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith("group_by")


async def test_pages_by_value_have_at_most_31_days(deployment: Deployment) -> None:
    params = {"start_time": 0, "end_time": 86_400 * 40, "group_by": "user", "limit": 180}
    async with deployment.administrator() as admin:
        first = (await admin.get(USAGE, params=params)).json()
        params["page"] = first["next_page"]
        second = (await admin.get(USAGE, params=params)).json()
        params["group_by"] = "metadata.team"
        other = await admin.get(USAGE, params=params)

    assert (len(first["data"]), len(second["data"]), second["has_more"]) == (31, 9, False)
    assert other.status_code == 400


async def test_days_whose_requests_are_gone_are_refused(deployment: Deployment) -> None:
    database = deployment.org.database
    async with database.transaction() as tx:
        await tx.execute("INSERT INTO closed_days (day) VALUES ('2020-05-05')")
    params = {"start_time": 1_588_636_800, "end_time": 1_588_723_200}
    async with deployment.administrator() as admin:
        whole = await admin.get(USAGE, params=params)
        by_value = await admin.get(USAGE, params={**params, "group_by": "user"})

    assert whole.status_code == 200
    assert by_value.status_code == 400
    assert by_value.json()["error"]["param"] == "group_by"
