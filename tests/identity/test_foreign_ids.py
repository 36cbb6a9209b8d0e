"""A foreign ID is answered like one that never was, to the last byte."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.alerts.subscribing import subscribe
from tests.identity.raw import Answer, Connection, bearer, connected
from tests.identity.sides import (
    ADMIN_KEY_OPERATIONS,
    ALERT_OPERATIONS,
    GIVEN,
    KEY_OPERATIONS,
    MANAGE,
    POLICY_OPERATIONS,
    PROJECT_OPERATIONS,
    Side,
    new_cap,
    new_entry,
    new_limit,
    new_request,
    new_side,
)
from tests.identity.table import ROWS
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.alerts.types import AlertThresholds
from tollhouse.base.ids import time_ordered_uuid

pytestmark = pytest.mark.asyncio(loop_scope="module")

NO_IDS = {
    "a word": "production",
    "a UUID without dashes": uuid4().hex,
    "a UUID in braces": f"%7B{uuid4()}%7D",
    "a URN": f"urn:uuid:{uuid4()}",
    "one character too many": f"{uuid4()}0",
    "an ID of 200 characters": "a" * 200,
    "an ID of 201 characters": "a" * 201,
    "an ID of 20,000 characters": "a" * 20_000,
    "not ASCII": "%C3%A9%E2%82%AC",
    "not UTF-8": "%FF%FE",
    "full-width digits": "%EF%BC%91" * 8,
    "a statement": "'%20OR%20'1'%3D'1",
}


@pytest_asyncio.fixture(loop_scope="module")
async def ours(org: OrganizationFixture) -> Side:
    return await new_side(org)


@pytest_asyncio.fixture(loop_scope="module")
async def theirs(other_org: OrganizationFixture) -> Side:
    return await new_side(other_org)


@pytest_asyncio.fixture(loop_scope="module")
async def connection(gateway: Gateway) -> AsyncIterator[Connection]:
    async with connected(gateway.host, gateway.port) as opened:
        yield opened


@dataclass(frozen=True)
class Caller:
    connection: Connection
    key: str

    async def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        headers = [bearer(self.key), ("idempotency-key", str(uuid4()))]
        content = b"" if body is None else json.dumps(body).encode()
        return await self.connection.ask(method, path, headers, content)


@pytest.fixture
def caller(connection: Connection, ours: Side) -> Caller:
    return Caller(connection, ours.admin.value)


def shown(answer: Answer, sent: object = None) -> tuple[int, list[tuple[str, str]], bytes]:
    """The answer without what differs between any two: instant, request ID, and the ID sent."""
    request_id = answer.header("x-request-id")
    assert request_id is not None
    varying = {"date", "x-request-id"} | ({"content-length"} if sent is not None else set[str]())
    headers = [pair for pair in answer.headers if pair[0] not in varying]
    body = answer.body.replace(request_id.encode(), b"")
    return answer.status, headers, body.replace(f"'{sent}'".encode(), b"''")


@pytest.mark.guarantee("T13")
@pytest.mark.parametrize("operation", PROJECT_OPERATIONS)
async def test_a_foreign_project_is_an_unknown_project(
    caller: Caller, theirs: Side, operation: str
) -> None:
    method, path, body = PROJECT_OPERATIONS[operation]
    rows_before = await theirs.audit_rows()

    foreign = await caller.ask(method, path.format(id=theirs.project.id), body)
    unknown = await caller.ask(method, path.format(id=time_ordered_uuid()), body)

    assert foreign.status == 404
    assert b'"project_not_found"' in foreign.body
    assert shown(foreign) == shown(unknown)
    assert await theirs.audit_rows() == rows_before


@pytest.mark.guarantee("T13")
@pytest.mark.parametrize("operation", KEY_OPERATIONS)
async def test_a_foreign_project_key_is_an_unknown_key(
    caller: Caller, ours: Side, theirs: Side, operation: str
) -> None:
    """Under our project, and under its own, which is unknown in turn."""
    method, verb, body = KEY_OPERATIONS[operation]
    other_project = await ours.org.project()
    misplaced = await ours.org.project_key(other_project)
    rows_before = await theirs.audit_rows(), await ours.audit_rows()

    async def ask(project_id: object, key_id: object) -> Answer:
        path = f"{MANAGE}/projects/{project_id}/api_keys/{key_id}{verb}"
        return await caller.ask(method, path, body)

    unknown_key = await ask(ours.project.id, time_ordered_uuid())
    unknown_project = await ask(time_ordered_uuid(), time_ordered_uuid())
    assert unknown_key.status == unknown_project.status == 404
    assert b'"api_key_not_found"' in unknown_key.body
    for key_id in (theirs.key.key.id, misplaced.key.id, ours.admin.key.id):
        assert shown(await ask(ours.project.id, key_id)) == shown(unknown_key)
    for key_id in (theirs.key.key.id, ours.key.key.id):
        assert shown(await ask(theirs.project.id, key_id)) == shown(unknown_project)
    assert (await theirs.audit_rows(), await ours.audit_rows()) == rows_before


@pytest.mark.guarantee("T13")
@pytest.mark.parametrize("operation", ADMIN_KEY_OPERATIONS)
async def test_a_foreign_admin_key_is_an_unknown_admin_key(
    caller: Caller, ours: Side, theirs: Side, operation: str
) -> None:
    method, path, body = ADMIN_KEY_OPERATIONS[operation]

    unknown = await caller.ask(method, path.format(id=time_ordered_uuid()), body)

    assert unknown.status == 404
    for key_id in (theirs.admin.key.id, theirs.key.key.id, ours.key.key.id):
        assert shown(await caller.ask(method, path.format(id=key_id), body)) == shown(unknown)


@pytest.mark.guarantee("T13")
@pytest.mark.parametrize("operation", ALERT_OPERATIONS)
async def test_a_foreign_alert_subscription_is_an_unknown_one(
    caller: Caller, theirs: Side, operation: str
) -> None:
    method, path, body = ALERT_OPERATIONS[operation]
    subscription, _ = await subscribe(theirs.org, AlertThresholds(cap_percents=(80,)))
    rows_before = await theirs.audit_rows()

    foreign = await caller.ask(method, path.format(id=subscription.id), body)
    unknown = await caller.ask(method, path.format(id=time_ordered_uuid()), body)

    assert foreign.status == 404
    assert b'"alert_subscription_not_found"' in foreign.body
    assert shown(foreign) == shown(unknown)
    assert await theirs.audit_rows() == rows_before


@pytest.mark.guarantee("T13")
async def test_a_foreign_request_is_an_unknown_request(caller: Caller, theirs: Side) -> None:
    path = MANAGE + "/requests/{}"

    foreign = await caller.ask("GET", path.format(await new_request(theirs)))
    unknown = await caller.ask("GET", path.format(time_ordered_uuid()))

    assert foreign.status == 404
    assert shown(foreign) == shown(unknown)


@pytest.mark.guarantee("T13")
async def test_every_operation_with_an_id_in_its_path_is_asked_for_a_foreign_one() -> None:
    """Models belong to no organization."""
    asked = {
        *PROJECT_OPERATIONS,
        *KEY_OPERATIONS,
        *ADMIN_KEY_OPERATIONS,
        *POLICY_OPERATIONS,
        *ALERT_OPERATIONS,
        "retrieveRequest",
    }

    assert {row.id for row in ROWS if "{" in row.path} - asked == {
        *("retrieveModel", "retrieveMessagesModel")
    }


@pytest.mark.guarantee("T13")
@pytest.mark.parametrize("operation", POLICY_OPERATIONS)
async def test_a_foreign_policy_is_an_unknown_policy(
    caller: Caller, theirs: Side, operation: str
) -> None:
    method, path, body = POLICY_OPERATIONS[operation]
    rows_before = await theirs.audit_rows()

    foreign = await caller.ask(method, path.format(id=theirs.policy_id), body)
    unknown = await caller.ask(method, path.format(id=_unknown_policy_id()), body)

    assert foreign.status == 404
    assert b'"policy_not_found"' in foreign.body
    assert shown(foreign) == shown(unknown)
    assert await theirs.audit_rows() == rows_before


async def test_a_policy_cannot_name_a_foreign_project(
    caller: Caller, ours: Side, theirs: Side
) -> None:
    creation = {"name": "a policy", "rule": "Is it so?", "scope": "projects"}
    places = (
        ("POST", f"{GIVEN}/policies", creation),
        ("PATCH", f"{GIVEN}/policies/{ours.policy_id}", {"revision": 2}),
    )
    for method, path, body in places:
        stranger = uuid4()
        unknown = await caller.ask(method, path, body | {"project_ids": [str(stranger)]})
        assert unknown.status == 404
        error = json.loads(unknown.body)["error"]
        assert (error["code"], error["param"]) == ("project_not_found", "project_ids")
        for project_id in (theirs.project.id, theirs.key.key.id, "no-uuid", uuid4().hex, ""):
            sent = [str(ours.project.id), str(project_id)]
            answer = await caller.ask(method, path, body | {"project_ids": sent})
            assert shown(answer, project_id) == shown(unknown, stranger)


def _unknown_policy_id() -> str:
    return f"pol_{uuid4().hex}"


@pytest.mark.parametrize(("name", "noun"), [("project_id", "project"), ("api_key_id", "api_key")])
async def test_what_a_foreign_organization_has_cannot_be_capped_or_limited(
    caller: Caller, ours: Side, theirs: Side, name: str, noun: str
) -> None:
    def places(id_: object) -> list[tuple[str, str, Mapping[str, object] | None]]:
        cap = {name: str(id_), "period": "month", "limit": {"value": "1"}}
        limit = {name: str(id_), "requests_per_minute": 1}
        caps, limits = f"{MANAGE}/spending_limits", f"{MANAGE}/rate_limits"
        return [
            ("PUT", caps, cap),
            ("DELETE", f"{caps}?{name}={id_}&period=month", None),
            ("PUT", limits, limit),
            ("DELETE", f"{limits}?{name}={id_}", None),
        ]

    foreign = theirs.project.id if noun == "project" else theirs.key.key.id
    for position, unknown_place in enumerate(places(uuid4())):
        unknown = await caller.ask(*unknown_place)
        assert unknown.status == 404
        error = json.loads(unknown.body)["error"]
        assert (error["code"], error["param"]) == (f"{noun}_not_found", name)
        for id_ in (foreign, theirs.admin.key.id, ours.admin.key.id, "no-uuid", uuid4().hex):
            assert shown(await caller.ask(*places(id_)[position])) == shown(unknown)


@pytest.mark.guarantee("T13")
@pytest.mark.parametrize("path", [f"{GIVEN}/costs", f"{MANAGE}/usage"])
async def test_a_foreign_filter_is_an_unknown_filter(
    caller: Caller, ours: Side, theirs: Side, path: str
) -> None:
    strangers = {
        "project_ids": (theirs.project.id, theirs.key.key.id, ours.key.key.id),
        "api_key_ids": (theirs.key.key.id, ours.project.id, ours.admin.key.id),
    }
    for name, ids in strangers.items():
        query = f"{path}?start_time=0&{name}="
        stranger = time_ordered_uuid()
        unknown = await caller.ask("GET", f"{query}{stranger}")
        assert unknown.status == 404
        for item in (*ids, "no-uuid", uuid4().hex):
            answer = await caller.ask("GET", f"{query}{item}")
            assert shown(answer, item) == shown(unknown, stranger), item


@pytest.mark.guarantee("T13")
async def test_a_foreign_cursor_is_an_unknown_cursor(
    caller: Caller, ours: Side, theirs: Side
) -> None:
    async with theirs.org.database.transaction() as tx:
        entry = await tx.fetch_value(
            "SELECT id FROM audit_log WHERE organization_id = $1 LIMIT 1",
            theirs.org.organization_id,
        )
    misplaced = await ours.org.project_key(await ours.org.project())
    lists = {
        f"{MANAGE}/projects": [theirs.project.id, ours.key.key.id],
        f"{MANAGE}/projects/{ours.project.id}/api_keys": [theirs.key.key.id, misplaced.key.id],
        f"{GIVEN}/admin_api_keys": [theirs.admin.key.id, ours.key.key.id],
        f"{MANAGE}/audit": [entry, ours.project.id],
        f"{MANAGE}/policies": [theirs.policy_id, ours.policy_id.removeprefix("pol_")],
        f"{MANAGE}/policies/{ours.policy_id}/versions": [
            *(f"{theirs.policy_id}_v1", f"{ours.policy_id}_v2", f"{ours.policy_id}_v01"),
            *(ours.policy_id, "1", f"{ours.policy_id}_v{10**40}"),
        ],
        f"{MANAGE}/credits/entries": [await new_entry(theirs.org), ours.project.id],
        f"{MANAGE}/spending_limits": [await new_cap(theirs.org), ours.project.id],
        f"{MANAGE}/rate_limits": [await new_limit(theirs.org), ours.project.id],
        f"{MANAGE}/requests": [await new_request(theirs), ours.project.id],
    }
    for path, cursors in lists.items():
        unknown = await caller.ask("GET", f"{path}?after={time_ordered_uuid()}")
        assert unknown.status == 400
        for cursor in [*cursors, "no-uuid", uuid4().hex]:
            answer = await caller.ask("GET", f"{path}?after={cursor}")
            assert shown(answer) == shown(unknown), path
            error = json.loads(answer.body)["error"]
            assert (error["code"], error["param"]) == ("invalid_value", "after")


async def test_lists_show_nothing_of_another_organization(
    caller: Caller, ours: Side, theirs: Side
) -> None:
    secret_ids = {
        str(item)
        for item in (
            theirs.org.organization_id,
            theirs.project.id,
            theirs.key.key.id,
            theirs.admin.key.id,
            theirs.policy_id,
        )
    }
    for side in (ours, theirs):
        await new_entry(side.org)
        await new_cap(side.org)
        await new_limit(side.org)
        await new_request(side)
    paths = (
        f"{MANAGE}/requests",
        f"{MANAGE}/credits/entries",
        f"{MANAGE}/spending_limits",
        f"{MANAGE}/rate_limits",
        f"{MANAGE}/projects",
        f"{MANAGE}/projects/{ours.project.id}/api_keys",
        f"{GIVEN}/admin_api_keys",
        f"{MANAGE}/audit",
        f"{MANAGE}/policies",
        f"{MANAGE}/policies/{ours.policy_id}/versions",
        f"{GIVEN}/projects/{ours.project.id}/effective_policies",
    )
    for path in paths:
        for query in ("", "?limit=100") if "effective" not in path else ("",):
            answer = await caller.ask("GET", path + query)

            assert answer.status == 200
            assert json.loads(answer.body)["data"], path
            assert not [item for item in secret_ids if item in answer.body.decode()], path


@pytest.mark.parametrize("text", NO_IDS.values(), ids=NO_IDS)
async def test_text_that_is_no_id_is_answered_like_an_unknown_one(
    caller: Caller, ours: Side, text: str
) -> None:
    for method, path, body in PROJECT_OPERATIONS.values():
        unknown = await caller.ask(method, path.format(id=time_ordered_uuid()), body)
        assert shown(await caller.ask(method, path.format(id=text), body)) == shown(unknown)
    for method, verb, body in KEY_OPERATIONS.values():
        path = f"{MANAGE}/projects/{ours.project.id}/api_keys/{{}}{verb}"
        unknown = await caller.ask(method, path.format(time_ordered_uuid()), body)
        assert shown(await caller.ask(method, path.format(text), body)) == shown(unknown)
    path = MANAGE + "/requests/{}"
    unknown = await caller.ask("GET", path.format(time_ordered_uuid()))
    assert shown(await caller.ask("GET", path.format(text))) == shown(unknown)
    path = GIVEN + "/admin_api_keys/{}"
    unknown = await caller.ask("DELETE", path.format(time_ordered_uuid()))
    assert shown(await caller.ask("DELETE", path.format(text))) == shown(unknown)
    for method, path, body in POLICY_OPERATIONS.values():
        unknown = await caller.ask(method, path.format(id=_unknown_policy_id()), body)
        for no_id in (text, f"pol_{text}", _unknown_policy_id().upper()):
            assert shown(await caller.ask(method, path.format(id=no_id), body)) == shown(unknown)


@pytest.mark.parametrize("text", ["0", "01", "-1", "1.0", "%2B1", "9" * 11, "2147483648", "x"])
async def test_text_that_is_no_version_is_answered_like_an_unknown_one(
    caller: Caller, ours: Side, text: str
) -> None:
    path = f"{MANAGE}/policies/{ours.policy_id}/versions/{{}}"

    unknown = await caller.ask("GET", path.format(2))

    assert unknown.status == 404
    assert b'"policy_version_not_found"' in unknown.body
    assert shown(await caller.ask("GET", path.format(text))) == shown(unknown)


async def test_an_over_long_cursor_is_refused(caller: Caller) -> None:
    answer = await caller.ask("GET", f"{MANAGE}/projects?after={'a' * 201}")

    assert answer.status == 400
    error = json.loads(answer.body)["error"]
    assert (error["code"], error["param"]) == ("string_above_max_length", "after")
