"""`tollhouse request` and `tollhouse requests`, and the guide to them on a running service."""

import asyncio
import signal
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import uuid4

import pytest

from tests.activity.records import Customer, customer_of, stranger
from tests.cli.commands import Operator, refusal
from tests.cli.documents import read, scripts
from tests.cli.test_readme import json_documents
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.policies import new_policy
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.activity.rules import statuses
from tollhouse.activity.types import FailureSource, RecordFilter, RequestRecord
from tollhouse.api.request_search import RequestSearch
from tollhouse.app import connect
from tollhouse.base.clock import SystemClock
from tollhouse.base.ids import PolicyId, RequestId, time_ordered_uuid
from tollhouse.base.policies import Direction, EvaluationOutcome, Mode
from tollhouse.cli.requests.following import RequestFollower
from tollhouse.cli.requests.one_request import bar, steps
from tollhouse.decisions.recorder import DecisionRecorder
from tollhouse.decisions.types import EvaluationRecord, PolicyDecision
from tollhouse.settings import load
from tollhouse.storage.database import Database


@dataclass(frozen=True)
class Past:
    """An organization with requests: every tenth failed."""

    customer: Customer
    admin_key: str
    records: list[RequestRecord]

    @property
    def failures(self) -> list[RequestRecord]:
        """Newest first."""
        return [record for record in self.records[::-1] if record.status == 502]


async def lived(operator: Operator, count: int) -> Past:
    settings = load(operator.settings_path, environment={})
    database = await connect(settings)
    try:
        org = await new_organization_fixture(database)
        customer = await customer_of(org)
        records = [_request(customer, number, count) for number in range(count)]
        recorder = RequestRecorder(database, waiting_records_max=count)
        for record in records:
            recorder.record(record)
        await recorder.write()
        return Past(customer, (await org.admin_key()).value, records)
    finally:
        await database.close()


def _request(customer: Customer, number: int, count: int) -> RequestRecord:
    at = datetime.now(UTC) - timedelta(milliseconds=count - number)
    if number % 10:
        return customer.record(at)
    return customer.record(
        at,
        status=502,
        error_code="backend_error",
        failed_by=FailureSource.BACKEND,
        first_byte_ms=None,
    )


def test_a_request_is_shown_on_a_page_with_its_times(operator: Operator) -> None:
    past = asyncio.run(lived(operator, 11))
    record = past.records[5]

    shown = operator.run("request", str(record.request_id)).stdout
    whole = operator.json("request", str(record.request_id))

    lines = dict(line.split(maxsplit=1) for line in shown.splitlines()[:19])
    assert lines["id"] == str(record.request_id)
    assert lines["outcome"] == "200"
    assert lines["estimated"] == "no"
    assert lines["usd"] == "0.00000125"
    assert lines["organization_id"] == str(past.customer.organization_id)
    table = [line.rsplit(maxsplit=2) for line in shown.splitlines()[23:]]
    assert [(row[0], row[1]) for row in table] == [
        ("queue", "0.500"),
        ("admission", "2.250"),
        ("first byte", "117.750"),
        ("answer", "520.250"),
        ("total", "640.750"),
    ]
    assert {len(row[2]) for row in table} == {40}
    assert whole["organization_id"] == str(past.customer.organization_id)
    assert whole["timings"]["total_ms"] == 640.75


def test_a_failure_says_who_failed(operator: Operator) -> None:
    past = asyncio.run(lived(operator, 1))

    shown = operator.run("request", str(past.records[0].request_id)).stdout

    assert "502 backend_error (failed by the backend)" in shown
    assert "rest" in shown


@pytest.mark.parametrize("identifier", [time_ordered_uuid, uuid4])
def test_an_unknown_request_is_not_found(operator: Operator, identifier: object) -> None:
    assert callable(identifier)
    assert operator.failure_code("request", str(identifier())) == "request_not_found"


def test_what_is_no_id_or_status_is_refused() -> None:
    assert "'yesterday' is not an ID" in refusal("request", "yesterday")
    assert "a class such as 5xx" in refusal("requests", "--status", "bad")


def test_requests_are_listed_newest_first_and_by_filter(patient: Operator) -> None:
    past = asyncio.run(lived(patient, 120))
    newest = [str(record.request_id) for record in past.records[::-1]]
    failed = [str(record.request_id) for record in past.failures]

    latest = patient.json("requests", "--limit", "5")
    failures = patient.json("requests", "--outcome", "failed")
    narrowed = patient.json(
        *("requests", "--status", "502", "--key", str(past.customer.api_key_id)),
        *("--model", "example/model", "--limit", "2"),
    )
    table = patient.run("requests", "--limit", "1").stdout.splitlines()

    assert [item["id"] for item in latest["data"]] == newest[:5]
    assert (latest["has_more"], latest["last_id"]) == (True, newest[4])
    assert [item["id"] for item in failures["data"]] == failed
    assert failures["has_more"] is False
    assert [item["id"] for item in narrowed["data"]] == failed[:2]
    assert table[0].split() == [
        *("created_at", "id", "ended", "project", "key", "model", "total_ms", "usd")
    ]
    assert "a project key" in table[1]
    assert newest[0] in table[1]
    assert patient.json("requests", "--model", "none such")["data"] == []
    stranger = ("requests", "--key", str(uuid4()))
    assert patient.failure_code(*stranger) == "api_key_not_found"


def test_requests_are_listed_by_project_code_and_time(patient: Operator) -> None:
    past = asyncio.run(lived(patient, 30))
    failed = [str(record.request_id) for record in past.failures]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%d")
    today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00")

    def ids(*options: str) -> list[str]:
        return [item["id"] for item in patient.json("requests", *options)["data"]]

    assert ids("--error-code", "backend_error") == failed
    assert ids("--error-code", "none_such") == []
    project = str(past.customer.project_id)
    assert ids("--project", project, "--status", "502", "--to", tomorrow) == failed
    assert ids("--from", tomorrow) == []
    assert ids("--to", today, "--from", "2000-01-01") == []
    assert patient.failure_code("requests", "--project", str(uuid4())) == "project_not_found"
    assert patient.failure_code("requests", "--policy", f"pol_{uuid4().hex}") == "policy_not_found"
    assert "begins with pol_" in refusal("requests", "--policy", "bread")
    assert "leave out --to" in refusal("requests", "--follow", "--to", tomorrow)


def test_the_command_follows_requests_until_it_is_interrupted(patient: Operator) -> None:
    past = asyncio.run(lived(patient, 1))
    new = past.customer.record()
    # A run of the tests in the background ignores the signal, and its children would too.
    with subprocess.Popen(
        ["/usr/bin/env", "--default-signal=INT", patient.tollhouse, "requests", "--follow"],
        cwd=patient.directory,
        env=patient.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        first = following.stdout.readline()
        asyncio.run(_write(patient, new))
        second = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        rest, errors = following.communicate()

    assert str(past.records[0].request_id) in first, errors
    assert "502 backend_error (failed by the backend)" in first
    assert str(new.request_id) in second
    assert (following.returncode, rest, errors) == (0, "", "")


async def _write(operator: Operator, record: RequestRecord) -> None:
    database = await connect(load(operator.settings_path, environment={}))
    recorder = RequestRecorder(database, waiting_records_max=1)
    recorder.record(record)
    await recorder.write()
    await database.close()


async def test_what_is_followed_is_shown_once_and_when_it_ends(
    database: Database, org: OrganizationFixture
) -> None:
    customer = await customer_of(org)
    now = datetime.now(UTC)
    recorder = RequestRecorder(database, waiting_records_max=1_000)
    failures = RequestSearch(only=RecordFilter(statuses=statuses("5xx")))
    follower = RequestFollower(database, SystemClock(), org.organization_id, failures)

    async def write(*records: RequestRecord) -> None:
        for record in records:
            recorder.record(record)
        await recorder.write()

    def failed(seconds: int) -> RequestRecord:
        return customer.record(now - timedelta(seconds=seconds), status=503)

    async def following() -> list[RequestId]:
        return [record.request_id for record in (await follower.following()).page.records]

    old = [failed(30), failed(20), failed(10)]
    await write(*old, customer.record(now))
    begun = (await follower.first(limit=2)).page.records
    assert [record.request_id for record in begun] == [old[2].request_id, old[1].request_id]
    assert await following() == []

    new, slow, ancient = failed(0), failed(25), failed(3_600)
    await write(new, slow, ancient, customer.record(now))
    assert await following() == [new.request_id, slow.request_id]
    assert await following() == []


def test_a_search_goes_on_where_a_page_came_out_short(patient: Operator) -> None:
    past = asyncio.run(lived(patient, 10_050))
    oldest = past.records[0]
    asyncio.run(_rename_model(patient, oldest))

    found = patient.json("requests", "--model", "a rare one")

    assert [item["id"] for item in found["data"]] == [str(oldest.request_id)]


async def _rename_model(operator: Operator, record: RequestRecord) -> None:
    database = await connect(load(operator.settings_path, environment={}))
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE requests SET model = 'a rare one' WHERE request_id = $1", record.request_id
        )
    await database.close()


def test_steps_follow_each_other_and_fill_the_whole() -> None:
    record = stranger().record(judging_ms=10.0, first_byte_ms=100.0, total_ms=200.0)

    found = steps(record)

    assert [step.name for step in found] == [
        *("queue", "admission", "judging", "first byte", "answer"),
    ]
    assert all(early.end_ms == late.start_ms for early, late in pairwise(found))
    assert found[-1].end_ms == 200.0
    assert [bar(step, 200.0).count("█") for step in found] == [1, 1, 3, 18, 20]


def test_times_that_contradict_each_other_are_shown_without_harm() -> None:
    record = stranger().record(queue_ms=500.0, first_byte_ms=100.0, total_ms=50.0)

    found = steps(record)

    assert [(step.start_ms, step.end_ms) for step in found] == [
        *((0.0, 500.0), (500.0, 502.25), (502.25, 502.25), (502.25, 502.25)),
    ]
    assert {len(bar(step, found[-1].end_ms)) for step in found} == {40}


def test_a_request_that_took_no_time_has_an_empty_bar() -> None:
    record = stranger().record(queue_ms=None, admission_ms=None, first_byte_ms=None, total_ms=0.0)

    (rest,) = steps(record)

    assert bar(rest, 0.0) == "·" * 40


def test_the_guide_can_be_followed_to_its_end(patient: Operator) -> None:
    one, latest, by_api, hours = scripts(read("docs/guides/requests.md"))
    past = asyncio.run(lived(patient, 30))
    patient.environment.update(
        {
            "REQUEST_ID": str(past.records[0].request_id),
            "KEY_ID": str(past.customer.api_key_id),
            "TOLLHOUSE_ADMIN_KEY": past.admin_key,
        }
    )

    assert "failed by the backend" in patient.bash(one).stdout
    assert patient.bash(latest).stdout.count("backend_error") == 5
    with patient.serving() as server:
        patient.environment["TOLLHOUSE_URL"] = next(
            word.strip(",") for word in server.announced.split() if "://" in word
        )
        shown, listed = json_documents(patient.bash(by_api).stdout)
        (counted,) = json_documents(patient.bash(hours).stdout)
    assert shown["failed_by"] == "backend"
    assert [item["id"] for item in listed["data"]] == [str(r.request_id) for r in past.failures]
    results = [result for bucket in counted["data"] for result in bucket["results"]]
    assert sum(result["requests"] for result in results) == 30


async def refused_by_policy(operator: Operator) -> RequestRecord:
    """A request that a policy of the name `No bread` refused."""
    settings = load(operator.settings_path, environment={})
    database = await connect(settings)
    try:
        org = await new_organization_fixture(database, "refused")
        customer = await customer_of(org)
        policy = await new_policy(org, ("publish",), name="No bread")
        record = customer.record(
            datetime.now(UTC),
            status=403,
            error_code="policy_violation",
            failed_by=FailureSource.CALLER,
        )
        recorder = RequestRecorder(database, waiting_records_max=1)
        recorder.record(record)
        await recorder.write()
        decisions = DecisionRecorder(database, waiting_decisions_max=1)
        decisions.record(_examination(record, policy.id))
        await decisions.write()
        return record
    finally:
        await database.close()


def _examination(record: RequestRecord, policy_id: PolicyId) -> EvaluationRecord:
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


def test_the_policy_that_refused_a_request_is_shown_by_its_name(operator: Operator) -> None:
    record = asyncio.run(refused_by_policy(operator))
    request_id = str(record.request_id)

    shown = operator.json("request", request_id)
    told = operator.run("request", request_id).stdout
    organization = ("--org", str(record.organization_id))
    listed = operator.json("requests", *organization)["data"]
    lines = operator.run("requests", *organization).stdout

    assert [each["name"] for each in shown["blocked_by"]] == ["No bread"]
    assert [each["policy_name"] for each in shown["decisions"]] == ["No bread"]
    assert "403 policy_violation by policy 'No bread' (refused)" in told
    assert listed[0]["blocked_by"] == shown["blocked_by"]
    assert "policy_violation by policy 'No bread'" in lines
    assert (
        f"'No bread' ({shown['blocked_by'][0]['id']}, version 1) "
        "matched the request: score 90 %, threshold 50 %"
    ) in told
    assert shown["blocked_by"][0]["score_basis_points"] == 9_000
    assert shown["blocked_by"][0]["match_threshold_basis_points"] == 5_000
    assert [each["match_threshold_basis_points"] for each in shown["decisions"]] == [5_000]
    policy = ("--policy", shown["blocked_by"][0]["id"])
    found = operator.json("requests", *organization, *policy)["data"]
    assert [item["id"] for item in found] == [request_id]
