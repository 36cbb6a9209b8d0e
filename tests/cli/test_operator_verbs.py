"""What generated verbs do for the operator of a host, beyond the table of all verbs."""

import asyncio
import json
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx2
import msgspec
import pytest

from tests.activity.records import Customer, customer_of
from tests.cli.commands import (
    SECONDS_MAX,
    Operator,
    at_a_terminal,
    execute,
    new_project,
    refusal,
)
from tests.support.organization_fixture import new_organization_fixture
from tests.support.policies import new_policy
from tests.support.wrong_clocks import wrong_clock
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.activity.types import FailureSource, RequestRecord
from tollhouse.app import connect
from tollhouse.base.ids import (
    OrganizationId,
    PolicyId,
    RequestId,
    SessionId,
    minted_at,
    time_ordered_uuid,
)
from tollhouse.base.policies import Direction, EvaluationOutcome, Mode
from tollhouse.cli.session import Session
from tollhouse.decisions.recorder import DecisionRecorder
from tollhouse.decisions.types import EvaluationRecord, PolicyDecision
from tollhouse.sessions import service as sessions
from tollhouse.sessions.types import ConsoleSession
from tollhouse.settings import load

DESTRUCTIVE = [
    ("org", "close"),
    ("project", "archive"),
    ("key", "revoke"),
    ("admin-key", "revoke"),
    ("policy", "delete"),
    ("alerts", "delete"),
    ("ledger", "settle", "--amount", "1", "--reason", "a test"),
    ("ledger", "release", "--reason", "a test"),
]


@pytest.mark.parametrize("verb", DESTRUCTIVE)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_who_cannot_be_asked_must_say_yes(verb: tuple[str, ...], form: tuple[str, ...]) -> None:
    assert "Pass --yes" in refusal(*verb, str(uuid4()), *form)


def test_at_a_terminal_the_answer_decides(operator: Operator) -> None:
    made = operator.json("org", "create", "To be closed")["id"]

    assert at_a_terminal(operator, ["org", "close", made], "n").exit_code == 1
    assert operator.json("org", "show", made)["status"] == "active"
    assert at_a_terminal(operator, ["org", "close", made], "y").exit_code == 0
    assert operator.json("org", "show", made)["status"] == "closed"


def test_nothing_is_created_in_a_closed_organization(patient: Operator) -> None:
    project = new_project(patient)
    key = patient.created("key", "create", "--project", project, "production")["id"]
    (organization,) = patient.json("org", "list")["data"]
    patient.run("org", "close", organization["id"], "--yes")
    before = patient.json("audit")["data"]

    refused = [
        patient.failure_code("project", "create", "late"),
        patient.failure_code("admin-key", "create", "finance"),
        patient.failure_code("key", "create", "--project", project, "batch"),
        patient.failure_code("key", "rotate", key, "--overlap-seconds", "0"),
    ]

    assert refused == 4 * ["organization_closed"]
    assert patient.json("audit")["data"] == before


RENAME_BADLY = r"UPDATE organizations SET name = U&'\001B[2J\001B]0;owned\0007\009B31m\202Eeno'"


def test_what_a_terminal_would_obey_is_written_out(patient: Operator, database_url: str) -> None:
    """The product takes no such names; whoever writes to the database may."""
    patient.run("org", "create", "Example Ltd")
    asyncio.run(execute(database_url, RENAME_BADLY))

    listed = patient.run("org", "list").stdout
    shown = patient.run("org", "show", listed.splitlines()[1].split()[0]).stdout

    for text in (listed, shown):
        assert r"\x1b[2J\x1b]0;owned\x07\x9b31m\u202eeno" in text
        assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("columns", ["60", "200"])
def test_a_narrow_terminal_cuts_nothing_off(patient: Operator, columns: str) -> None:
    new_project(patient)
    rule = "Does the text name a person?"
    policy = patient.json("policy", "create", "No names", "--rule", rule)["id"]

    listed = patient.run("policy", "list", FORCE_COLOR="1", NO_COLOR="1", COLUMNS=columns).stdout

    words = listed.split()
    assert policy in words
    assert "draft" in words


def test_of_several_organizations_one_must_be_named(patient: Operator) -> None:
    assert patient.failure_code("project", "list") == "organization_not_found"
    for name in ("first", "second"):
        patient.run("org", "create", name)

    refused = patient.run("project", "list", exit_code=2)

    assert "Give --org" in refused.stderr
    assert patient.json("project", "list", "--org", "second")["data"] == []


@pytest.mark.guarantee("T8")
@pytest.mark.parametrize("hours", [1, -1])
def test_a_wrong_clock_of_the_operator_changes_no_time_of_a_key(
    patient: Operator, hours: int
) -> None:
    create = ["key", "create", "--project", new_project(patient), "production", "--expires", "1d"]
    began = int(time.time())

    finished = patient.shell(
        [patient.tollhouse, *create, "--json"], wrong_clock(timedelta(hours=hours))
    )

    created = json.loads(finished.stdout)
    at = minted_at(UUID(created["id"]))
    assert at is not None
    assert began <= created["created_at"] <= time.time()
    assert abs(at.timestamp() - created["created_at"]) < 60
    midnight = created["created_at"] // 86_400 * 86_400
    assert created["expires_at"] == midnight + 2 * 86_400


def test_the_command_line_makes_an_admin_key_when_all_are_revoked(patient: Operator) -> None:
    new_project(patient)
    patient.created("admin-key", "create", "everything")
    revoker = patient.created(
        "admin-key", "create", "cleaner", "--permission", "admin_api_keys:revoke"
    )

    with patient.serving() as server:
        url = server.announced.split()[4].rstrip(",")
        for key in patient.json("admin-key", "list")["data"]:
            if key["id"] != revoker["id"]:
                assert revoke_over_http(url, revoker["value"], key["id"]) == 200
        assert revoke_over_http(url, revoker["value"], revoker["id"]) == 200
        assert patient.json("admin-key", "list")["data"] == []
        replacement = patient.created("admin-key", "create", "replacement")
        assert revoke_over_http(url, replacement["value"], replacement["id"]) == 200


def revoke_over_http(url: str, admin_key: str, revoked_id: str) -> int:
    """The status of a revocation that one Admin key asks for."""
    path = f"{url}/v1/organization/admin_api_keys/{revoked_id}"
    headers = {"authorization": f"Bearer {admin_key}"}
    return httpx2.delete(path, headers=headers, trust_env=False, timeout=SECONDS_MAX).status_code


def test_a_key_that_may_revoke_admin_keys_comes_with_a_warning(patient: Operator) -> None:
    new_project(patient)

    made = patient.run("admin-key", "create", "x", "--permission", "admin_api_keys:revoke")

    assert "can revoke every other Admin key" in made.stdout


def test_a_session_of_the_console_is_listed_and_ended(operator: Operator) -> None:
    organization_id = operator.json("org", "create", "Signed in")["id"]
    session_id = _sign_in(operator, organization_id)

    (listed,) = operator.json("session", "list")["data"]
    assert (listed["id"], listed["person_name"]) == (session_id, "alice@example.com")
    assert listed["organizations"] == [organization_id]
    assert operator.json("session", "end", session_id)["id"] == session_id

    assert operator.json("session", "list")["data"] == []
    latest = operator.json("audit", "--org", organization_id)["data"][0]
    assert (latest["actor"]["type"], latest["action"]) == ("operator", "session.end")


def _sign_in(operator: Operator, organization_id: str) -> str:
    now = datetime.now(UTC)
    opened = ConsoleSession(
        id=SessionId(time_ordered_uuid()),
        owner_id=time_ordered_uuid(),
        key_digest=None,
        person_name="alice@example.com",
        groups=("admins",),
        organization_ids=(OrganizationId(UUID(organization_id)),),
        created_at=now,
        expires_at=now + timedelta(hours=12),
    )

    async def begin(running: Session) -> None:
        request_id = RequestId(time_ordered_uuid())
        await sessions.begin(running.database, opened, request_id=request_id)

    operator.do(begin)
    return str(opened.id)


async def recorded(operator: Operator, *, is_refused: bool) -> RequestRecord:
    """A request of an organization of its own, which a policy of the name `No bread` refused."""
    settings = load(operator.settings_path, environment={})
    database = await connect(settings)
    try:
        org = await new_organization_fixture(database, uuid4().hex[:8])
        customer: Customer = await customer_of(org)
        policy = await new_policy(org, ("publish",), name="No bread")
        refused = {
            "status": 403,
            "error_code": "policy_violation",
            "failed_by": FailureSource.CALLER,
        }
        record = customer.record(datetime.now(UTC), **(refused if is_refused else {}))
        recorder = RequestRecorder(database, waiting_records_max=1)
        recorder.record(record)
        await recorder.write()
        if is_refused:
            decisions = DecisionRecorder(database, waiting_decisions_max=1)
            decisions.record(_match(record, policy.id))
            await decisions.write()
        return record
    finally:
        await database.close()


def _match(record: RequestRecord, policy_id: PolicyId) -> EvaluationRecord:
    matched = PolicyDecision(
        policy_id=policy_id,
        version=1,
        mode=Mode.ENFORCING,
        outcome=EvaluationOutcome.MATCH,
        threshold=5_000,
        score=9_000,
    )
    return EvaluationRecord(
        organization_id=record.organization_id,
        request_id=record.request_id,
        project_id=record.project_id,
        api_key_id=record.api_key_id,
        direction=Direction.REQUEST,
        mode=Mode.ENFORCING,
        evaluated_at=record.started_at,
        judging_ms=1.0,
        decisions=(matched,),
    )


def test_a_request_of_any_organization_is_found_with_the_policy_that_refused_it(
    operator: Operator,
) -> None:
    asyncio.run(recorded(operator, is_refused=False))
    record = asyncio.run(recorded(operator, is_refused=True))
    request_id = str(record.request_id)

    shown = operator.json("request", request_id)
    told = operator.run("request", request_id).stdout
    organization = ("--org", str(record.organization_id))
    lines = operator.run("requests", *organization).stdout

    assert [each["name"] for each in shown["blocked_by"]] == ["No bread"]
    assert ["status", "403"] in [line.split() for line in told.splitlines()]
    assert "No bread" in told
    assert "No bread" in lines
    found = operator.json("requests", *organization, "--policy", "No bread")["data"]
    assert [item["id"] for item in found] == [request_id]
    assert operator.failure_code("request", str(uuid4())) == "request_not_found"


def test_the_command_follows_requests_until_it_is_interrupted(patient: Operator) -> None:
    first_record = asyncio.run(recorded(patient, is_refused=False))
    organization = ("--org", str(first_record.organization_id))
    # A run of the tests in the background ignores the signal, and its children would too.
    with subprocess.Popen(
        [
            *("/usr/bin/env", "--default-signal=INT", patient.tollhouse),
            *("requests", "--follow", *organization),
        ],
        cwd=patient.directory,
        env=patient.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        first = following.stdout.readline()
        new = asyncio.run(_again(patient, first_record))
        second = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        rest, errors = following.communicate()

    assert str(first_record.request_id) in first, errors
    assert str(new) in second
    assert (following.returncode, rest, errors) == (0, "", "")


async def _again(operator: Operator, record: RequestRecord) -> RequestId:
    new = RequestId(time_ordered_uuid())
    database = await connect(load(operator.settings_path, environment={}))
    recorder = RequestRecorder(database, waiting_records_max=1)
    recorder.record(msgspec.structs.replace(record, request_id=new))
    await recorder.write()
    await database.close()
    return new
