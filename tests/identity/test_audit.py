"""Every change leaves exactly one row; what changed nothing leaves none."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio

from tests.identity.audit_rows import audit_rows
from tests.identity.stage import subscription_id
from tests.identity.table import ASKING, BODIES, QUERIES, ROWS, Row
from tests.support.gateway import Gateway
from tests.support.organization_fixture import (
    HeldAdminKey,
    OrganizationFixture,
    new_organization_fixture,
)
from tests.support.policies import STEPS, new_policy
from tollhouse.base.ids import policy_id_text
from tollhouse.keys import service as keys
from tollhouse.keys.secrets import mint
from tollhouse.keys.types import KeyKind
from tollhouse.organizations.errors import OrganizationClosed
from tollhouse.organizations.types import OrganizationStatus
from tollhouse.projects import service as projects
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACTIONS = {
    "createProjectKey": ("project_api_key.create", "project_api_key"),
    "archiveProject": ("project.archive", "project"),
    "revokeAdminKey": ("admin_api_key.revoke", "admin_api_key"),
    "createProject": ("project.create", "project"),
    "editProject": ("project.edit", "project"),
    "createManagedProjectKey": ("project_api_key.create", "project_api_key"),
    "rotateProjectKey": ("project_api_key.rotate", "project_api_key"),
    "endPreviousProjectKeyValue": ("project_api_key.end_previous", "project_api_key"),
    "suspendProjectKey": ("project_api_key.suspend", "project_api_key"),
    "resumeProjectKey": ("project_api_key.resume", "project_api_key"),
    "revokeProjectKey": ("project_api_key.revoke", "project_api_key"),
    "createAdminKey": ("admin_api_key.create", "admin_api_key"),
    "narrowAdminKey": ("admin_api_key.narrow", "admin_api_key"),
    "createPolicy": ("policy.create", "policy"),
    "editPolicy": ("policy.edit", "policy"),
    "editManagedPolicy": ("policy.edit", "policy"),
    "deletePolicy": ("policy.delete", "policy"),
    "pausePolicy": ("policy.pause", "policy"),
    "publishPolicy": ("policy.publish", "policy"),
    "resumePolicy": ("policy.resume", "policy"),
    "rollBackPolicy": ("policy.roll_back", "policy"),
    "createTestPayment": ("credit.grant", "credit_entry"),
    "setSpendingLimit": ("spending_limit.set", "spending_limit"),
    "clearSpendingLimit": ("spending_limit.clear", "spending_limit"),
    "setRateLimit": ("rate_limit.set", "rate_limit"),
    "clearRateLimit": ("rate_limit.clear", "rate_limit"),
    "createAlertSubscription": ("alert_subscription.create", "alert_subscription"),
    "editAlertSubscription": ("alert_subscription.edit", "alert_subscription"),
    "deleteAlertSubscription": ("alert_subscription.delete", "alert_subscription"),
    "rotateAlertSecret": ("alert_subscription.rotate_secret", "alert_subscription"),
}
SENDING = {"testAlertSubscription", "retryAlertDeliveries"}
"""Operations that change nothing, and leave a row each time."""
CHANGING = [
    row for row in ROWS if row.method != "GET" and row.id not in ASKING and row.id not in SENDING
]
CREATIONS = {
    *("createProjectKey", "createProject", "createManagedProjectKey", "createAdminKey"),
    *("createPolicy", "createTestPayment", "setSpendingLimit"),
    *("setRateLimit", "createAlertSubscription"),
}
REVISED = {name for name, (_, resource) in ACTIONS.items() if resource == "policy"} - CREATIONS
"""Operations that name the revision that they change: it is stale afterwards."""
DELETIONS = {"clearSpendingLimit", "clearRateLimit", "deleteAlertSubscription", "deletePolicy"}
"""Operations after which the thing is no more, so that a second one does not find it."""
PREPARATIONS = {
    "endPreviousProjectKeyValue": "rotateProjectKey",
    "resumeProjectKey": "suspendProjectKey",
    "clearSpendingLimit": "setSpendingLimit",
    "clearRateLimit": "setRateLimit",
}


async def test_the_table_names_an_action_for_every_operation_that_changes_something() -> None:
    assert set(ACTIONS) == {row.id for row in CHANGING if not row.needs_model}


async def _last_row(org: OrganizationFixture, rows_before: int) -> dict[str, Any]:
    rows = await audit_rows(org)
    assert len(rows) == rows_before + 1
    return rows[-1]


@dataclass(frozen=True)
class Scene:
    """An organization with something of each kind, and an Admin key that acts."""

    org: OrganizationFixture
    acting: HeldAdminKey
    client: httpx2.AsyncClient
    targets: dict[str, str]

    async def prepare(self, row: Row) -> None:
        """Bring about the state that the operation needs."""
        for other in ROWS:
            if other.id == PREPARATIONS.get(row.id):
                await self.act(other, "preparation")
        if row.id in REVISED:
            policy = await new_policy(self.org, STEPS.get(row.id, ()))
            self.targets["policy_id"] = policy_id_text(policy.id)

    async def act(self, row: Row, idempotency_key: str) -> httpx2.Response:
        targets = dict(self.targets)
        if row.id in {"revokeAdminKey", "narrowAdminKey"}:
            targets["api_key_id"] = targets["admin_key_id"]
        return await self.client.request(
            row.method,
            row.path.format_map(targets),
            params=QUERIES.get(row.id),
            json=BODIES.get(row.id) if not row.needs_model else {},
            headers={"Idempotency-Key": idempotency_key},
        )


@pytest_asyncio.fixture(loop_scope="module")
async def scene(gateway: Gateway, org: OrganizationFixture) -> AsyncIterator[Scene]:
    acting, project = await org.admin_key(), await org.project()
    project_key = await org.project_key(project)
    other_admin_key = await org.admin_key()
    targets = {
        "project_id": str(project.id),
        "api_key_id": str(project_key.key.id),
        "admin_key_id": str(other_admin_key.key.id),
        "alert_subscription_id": await subscription_id(org),
    }
    async with gateway.client(acting.value) as client:
        yield Scene(org, acting, client, targets)


@pytest.mark.guarantee("T40")
@pytest.mark.parametrize("row", CHANGING, ids=lambda row: row.id)
async def test_a_change_leaves_one_row_and_its_repetition_none(scene: Scene, row: Row) -> None:
    await scene.prepare(row)
    rows_before = len(await audit_rows(scene.org))

    answer = await scene.act(row, "the change")

    if row.needs_model:
        assert answer.status_code == 403, "only customers generate"
        assert len(await audit_rows(scene.org)) == rows_before
        return
    assert answer.status_code == 200, answer.text
    entry = await _last_row(scene.org, rows_before)
    action, resource_type = ACTIONS[row.id]
    assert entry["action"] == action
    assert (entry["resource_type"], entry["resource_id"]) == (resource_type, answer.json()["id"])
    assert (entry["actor_type"], entry["actor_id"]) == (
        "admin_api_key",
        str(scene.acting.key.id),
    )
    assert str(entry["request_id"]) == answer.headers["x-request-id"]
    assert (entry["digest_before"] is None) == (row.id in CREATIONS)
    assert (entry["digest_after"] is None) == (row.id in DELETIONS)
    assert entry["digest_after"] != entry["digest_before"]

    repeated = await scene.act(row, "the change")
    expected = 404 if row.id in DELETIONS else 409 if row.id in REVISED else 200
    assert repeated.status_code == expected
    assert len(await audit_rows(scene.org)) == rows_before + 1


async def test_twenty_identical_changes_at_once_leave_one_row(scene: Scene) -> None:
    rows_before = len(await audit_rows(scene.org))
    for operation in ("suspendProjectKey", "editProject", "archiveProject"):
        row = next(row for row in ROWS if row.id == operation)
        answers = await asyncio.gather(*(scene.act(row, "unused") for _ in range(20)))
        rows_before += 1

        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
        assert len(await audit_rows(scene.org)) == rows_before, operation


async def test_refused_changes_leave_no_row(scene: Scene) -> None:
    rows_before = len(await audit_rows(scene.org))
    refused = [
        await scene.client.post("/v1/organization/policies", json=BODIES["createPolicy"]),
        await scene.client.patch(
            f"/manage/v1/organization/projects/{UUID(int=1)}", json={"name": "x"}
        ),
        await scene.client.post(f"/v1/organization/projects/{UUID(int=1)}/archive"),
        await scene.client.delete(f"/v1/organization/admin_api_keys/{UUID(int=1)}"),
    ]

    assert [answer.status_code for answer in refused] == [400, 404, 404, 404]
    assert len(await audit_rows(scene.org)) == rows_before


@pytest.mark.guarantee("T40")
async def test_digests_chain_from_one_change_to_the_next(scene: Scene) -> None:
    """Suspending and resuming leads back to the very state, so to the very digest."""
    rows_before = len(await audit_rows(scene.org))
    for verb in ("suspendProjectKey", "resumeProjectKey", "revokeProjectKey"):
        await scene.act(next(row for row in ROWS if row.id == verb), "unused")
    suspended, resumed, revoked = (await audit_rows(scene.org))[rows_before:]

    assert suspended["digest_after"] == resumed["digest_before"]
    assert resumed["digest_after"] == suspended["digest_before"]
    assert revoked["digest_before"] == resumed["digest_after"]
    assert len({row["digest_after"] for row in (suspended, resumed, revoked)}) == 3


async def test_what_changes_unaudited_is_in_no_digest(scene: Scene) -> None:
    """A key that was used and a project that was renamed: the key's next row fits its last."""
    rows_before = len(await audit_rows(scene.org))
    await scene.act(next(row for row in ROWS if row.id == "suspendProjectKey"), "unused")
    async with scene.org.database.transaction() as tx:
        await tx.execute(
            "UPDATE project_keys SET last_used_at = now() WHERE organization_id = $1",
            scene.org.organization_id,
        )
    await scene.act(next(row for row in ROWS if row.id == "editProject"), "unused")
    await scene.act(next(row for row in ROWS if row.id == "resumeProjectKey"), "unused")
    suspended, _, resumed = (await audit_rows(scene.org))[rows_before:]

    assert resumed["digest_before"] == suspended["digest_after"]


async def test_the_use_of_an_admin_key_is_in_no_digest(scene: Scene) -> None:
    rows_before = len(await audit_rows(scene.org))
    made = await scene.org.admin_key()
    async with scene.org.database.transaction() as tx:
        await tx.execute(
            "UPDATE admin_keys SET last_used_at = now() WHERE organization_id = $1",
            scene.org.organization_id,
        )
    await scene.org.revoke_admin_key(made)
    created, revoked = (await audit_rows(scene.org))[rows_before:]

    assert revoked["digest_before"] == created["digest_after"]


async def test_the_audit_list_shows_what_was_written(scene: Scene) -> None:
    await scene.act(next(row for row in ROWS if row.id == "suspendProjectKey"), "unused")

    listed = await scene.client.get("/manage/v1/organization/audit", params={"limit": 1})

    (entry,) = listed.json()["data"]
    row = (await audit_rows(scene.org))[-1]
    assert entry == {
        "id": str(row["id"]),
        "object": "organization.audit_entry",
        "occurred_at": int(row["occurred_at"].timestamp()),
        "actor": {"type": "admin_api_key", "id": str(scene.acting.key.id), "name": None},
        "action": "project_api_key.suspend",
        "resource": {"type": "project_api_key", "id": scene.targets["api_key_id"]},
        "changes": [{"field": "suspended_at", "before": None, "after": _instant(row)}],
        "digest_before": row["digest_before"].hex(),
        "digest_after": row["digest_after"].hex(),
        "request_id": str(row["request_id"]),
    }
    assert listed.json()["has_more"] is True


def _instant(row: dict[str, Any]) -> str:
    return row["occurred_at"].isoformat().replace("+00:00", "Z")


async def test_a_cap_that_is_lowered_shows_both_amounts(scene: Scene) -> None:
    path = "/manage/v1/organization/spending_limits"
    for amount in ("100", "1"):
        body = {"period": "month", "limit": {"value": amount}}
        assert (await scene.client.put(path, json=body)).status_code == 200
    cleared = await scene.client.delete(path, params={"period": "month"})
    assert cleared.status_code == 200

    gone, lowered, made = await _listed_changes(scene, 3)

    hundred, one = str(100 * 10**12), str(10**12)
    assert lowered == {"limit_pico_usd": (hundred, one)}
    assert made["limit_pico_usd"] == (None, hundred)
    assert gone["limit_pico_usd"] == (one, None)
    assert (
        gone.keys()
        == made.keys()
        == {*("scope", "scope_id", "period", "limit_pico_usd", "alert_percent")}
    )


async def test_an_edited_policy_names_its_fields_and_shows_no_rule(scene: Scene) -> None:
    rules = ["Is it short?", "Is it a longer question? " * 40 + "Is it?"]
    created = await scene.client.post(
        "/v1/organization/policies",
        json={"name": "first", "rule": rules[0]},
        headers={"Idempotency-Key": "a policy"},
    )
    path = f"/v1/organization/policies/{created.json()['id']}"
    edit = {"revision": 1, "name": "second", "rule": rules[1], "mode": "enforcing"}
    assert (await scene.client.patch(path, json=edit)).status_code == 200

    edited, made = await _listed_changes(scene, 2)

    assert [*edited] == ["name", "revision", "draft.rule", "draft.mode", "updated_at"]
    assert edited["name"] == ("first", "second")
    assert edited["revision"] == (1, 2)
    assert edited["draft.mode"] == ("monitoring", "enforcing")
    assert edited["draft.rule"] == (_digested(rules[0]), _digested(rules[1]))
    assert made["draft.rule"] == (None, _digested(rules[0]))
    written = str(await audit_rows(scene.org))
    assert [rule for rule in rules if rule in written] == []


async def test_a_first_publication_shows_every_field_of_the_version(scene: Scene) -> None:
    await new_policy(scene.org, ("publish",))

    (published,) = await _listed_changes(scene, 1)

    assert published["published.number"] == (None, 1)
    assert published["published.content.mode"] == (None, "monitoring")
    assert published["state"] == ("draft", "monitoring")
    assert "published" not in published


async def test_a_new_key_shows_neither_its_secret_nor_what_changes_unaudited(scene: Scene) -> None:
    row = next(row for row in ROWS if row.id == "createManagedProjectKey")
    created = await scene.act(row, "a new key")

    (made,) = await _listed_changes(scene, 1)

    assert made["name"] == (None, "a key")
    assert made["project_id"] == (None, scene.targets["project_id"])
    assert made.keys().isdisjoint({"last_used_at", "project_name", "value"})
    assert created.json()["value"] not in str(await audit_rows(scene.org))


async def _listed_changes(scene: Scene, limit: int) -> list[dict[str, tuple[object, object]]]:
    """Of the latest entries, newest first: by field, what was and what is."""
    listed = await scene.client.get("/manage/v1/organization/audit", params={"limit": limit})
    return [
        {change["field"]: (change["before"], change["after"]) for change in entry["changes"]}
        for entry in listed.json()["data"]
    ]


def _digested(text: str) -> dict[str, object]:
    written = f'"{text}"'
    return {"sha256": hashlib.sha256(written.encode()).hexdigest(), "length": len(written)}


async def test_every_verb_of_the_operator_leaves_one_row(database: Database) -> None:
    org = await new_organization_fixture(database)
    project = await org.project()
    held = await org.project_key(project)
    admin = await org.admin_key()
    await org.suspend_project_key(held)
    async with database.mutation(org.authority()) as tx:
        await keys.resume_project_key(tx, project.id, held.key.id)
    await org.revoke_project_key(held)
    await org.revoke_admin_key(admin)
    async with database.mutation(org.authority()) as tx:
        await projects.edit(tx, project.id, name="another name")
    await org.archive(project)
    for status in (
        OrganizationStatus.SUSPENDED,
        OrganizationStatus.ACTIVE,
        OrganizationStatus.CLOSED,
    ):
        await org.set_status(status)

    rows = await audit_rows(org)

    assert [row["action"] for row in rows] == [
        "organization.create",
        "project.create",
        "project_api_key.create",
        "admin_api_key.create",
        "project_api_key.suspend",
        "project_api_key.resume",
        "project_api_key.revoke",
        "admin_api_key.revoke",
        "project.edit",
        "project.archive",
        "organization.suspended",
        "organization.active",
        "organization.closed",
    ]
    for row in rows:
        assert (row["actor_type"], row["actor_id"], row["request_id"]) == ("operator", None, None)
        assert len(row["digest_after"]) == 32


async def test_what_the_operator_repeats_leaves_no_row(database: Database) -> None:
    org = await new_organization_fixture(database)
    project = await org.project("search")
    held = await org.project_key(project)
    admin = await org.admin_key()
    secret = mint(KeyKind.PROJECT)
    rows_before = len(await audit_rows(org))
    async with database.mutation(org.authority()) as tx:
        await keys.resume_project_key(tx, project.id, held.key.id)
    async with database.mutation(org.authority()) as tx:
        await projects.edit(tx, project.id, name="search")
    await org.set_status(OrganizationStatus.ACTIVE)
    assert len(await audit_rows(org)) == rows_before

    await org.suspend_project_key(held)
    await org.suspend_project_key(held)
    await org.revoke_project_key(held)
    await org.revoke_project_key(held)
    await org.revoke_admin_key(admin)
    await org.revoke_admin_key(admin)
    await org.archive(project)
    await org.archive(project)
    assert len(await audit_rows(org)) == rows_before + 4
    assert secret.value not in str(await audit_rows(org))


async def test_closing_an_organization_is_final(org: OrganizationFixture) -> None:
    await org.set_status(OrganizationStatus.CLOSED)
    rows_before = len(await audit_rows(org))
    with pytest.raises(OrganizationClosed):
        await org.set_status(OrganizationStatus.ACTIVE)

    assert len(await audit_rows(org)) == rows_before
