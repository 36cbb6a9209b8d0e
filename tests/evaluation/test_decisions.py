"""What was decided is written down: once, without a word of what it was about."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.identity.waiting import until
from tests.support.judge import Fault
from tests.support.judged_deployment import BODIES, CHAT, JudgedDeployment
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import (
    PolicyId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    policy_id_text,
    time_ordered_uuid,
)
from tollhouse.base.policies import Direction, EvaluationOutcome, Mode
from tollhouse.decisions import recorder, service, store
from tollhouse.decisions.recorder import DecisionRecorder
from tollhouse.decisions.types import EvaluationRecord, PolicyDecision, ReportedDecision
from tollhouse.policies.types import PolicyScope
from tollhouse.storage import partitions
from tollhouse.storage.partitions import DailyTable

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANAGE = "/manage/v1/organization/policies"
POLICY = PolicyId(uuid4())


def record(
    org: OrganizationFixture, *scores: int | None, threshold: int = 5_000
) -> EvaluationRecord:
    return EvaluationRecord(
        organization_id=org.organization_id,
        request_id=RequestId(time_ordered_uuid()),
        project_id=ProjectId(uuid4()),
        api_key_id=ProjectKeyId(uuid4()),
        direction=Direction.REQUEST,
        mode=Mode.ENFORCING,
        evaluated_at=datetime.now(UTC),
        judging_ms=1.5,
        characters=12,
        content_digest=b"digest",
        decisions=tuple(decision(score, threshold) for score in scores),
    )


def decision(score: int | None, threshold: int) -> PolicyDecision:
    outcome = EvaluationOutcome.FAILED
    if score is not None:
        outcome = EvaluationOutcome.MATCH if score >= threshold else EvaluationOutcome.NO_MATCH
    return PolicyDecision(
        policy_id=POLICY if score != 0 else PolicyId(uuid4()),
        version=1,
        mode=Mode.ENFORCING,
        outcome=outcome,
        threshold=threshold,
        score=score,
        reason=None if score is not None else "timed_out",
    )


def of_the_day(found: EvaluationRecord, days_ago: int) -> EvaluationRecord:
    """The same for a request whose ID was minted so many days ago."""
    milliseconds = timedelta(days=days_ago) // timedelta(milliseconds=1)
    request_id = RequestId(UUID(int=found.request_id.int - (milliseconds << 80)))
    return replace(found, request_id=request_id)


async def listed(judged: JudgedDeployment, path: str, **query: object) -> dict[str, Any]:
    async with judged.deployment.administrator() as client:
        answer = await client.get(path, params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_match_can_be_read_with_its_score_and_nothing_that_was_said(
    judged: JudgedDeployment,
) -> None:
    policy_id = await judged.forbid("bread", direction=Direction.REQUEST)
    quiet = await judged.forbid("wine", mode=Mode.MONITORING, direction=Direction.REQUEST)
    answer = await judged.send(CHAT, BODIES[CHAT]("Where are bread and wine?"))
    request_id = answer.headers["x-request-id"]
    found: dict[str, Any] = {}

    async def is_there() -> bool:
        for each in (policy_id, quiet):
            found[each] = (await listed(judged, f"{MANAGE}/{each}/decisions"))["data"]
        return all(found.values())

    await until(is_there)
    (match,), (watched,) = found[policy_id], found[quiet]
    assert match["request_id"] == request_id
    assert (match["outcome"], match["action"], match["version"]) == ("match", "blocked", 1)
    assert match["score_basis_points"] == 9_000
    assert match["lowest_basis_points"] <= 9_000 <= match["highest_basis_points"]
    assert (watched["action"], watched["mode"]) == ("would_block", "monitoring")
    start = int((datetime.now(UTC) - timedelta(days=1)).timestamp())
    rollups = await listed(judged, f"{MANAGE}/{policy_id}/rollups", start_time=start)
    (rollup,) = rollups["data"]
    assert (rollup["matches"], rollup["no_matches"], rollup["failures"]) == (1, 0, 0)
    assert rollup["score_counts"][90] == sum(rollup["score_counts"]) == 1
    rows = await judged.deployment.org.database.fetch_all(
        "SELECT e::text AS text FROM evaluations e WHERE organization_id = $1",
        judged.deployment.org.organization_id,
    )
    assert len(rows) == 2
    assert not any("bread" in row["text"] for row in rows)


async def test_a_selected_policy_that_is_paused_is_skipped_recorded_and_told(
    judged: JudgedDeployment,
) -> None:
    direct, free = Direction.BOTH, PolicyScope.UNATTACHED
    paused = await judged.forbid("bread", direction=direct, scope=free)
    other = await judged.forbid("cheese", direction=Direction.REQUEST)
    body = BODIES[CHAT]("Where is bread?", policy_ids=[paused])
    assert (await judged.send(CHAT, body)).status_code == 403
    async with judged.deployment.administrator() as client:
        pause = {"revision": (await client.get(f"{MANAGE}/{paused}")).json()["revision"]}

        async def is_recorded() -> bool:
            return bool((await listed(judged, f"{MANAGE}/{paused}/decisions"))["data"])

        await until(is_recorded)
        told = await client.post(f"{MANAGE}/{paused}/pause", json=pause)

    answers: list[Any] = []

    async def is_answered() -> bool:
        answers.append(await judged.send(CHAT, body))
        return answers[-1].status_code == 200

    await until(is_answered)
    assert told.headers["x-tollhouse-selecting-requests"] == "1"
    path = f"/manage/v1/organization/requests/{answers[-1].headers['x-request-id']}"
    found: list[Any] = []

    async def is_there() -> bool:
        async with judged.deployment.administrator() as client:
            record = await client.get(path)
        found[:] = record.json().get("evaluations", [])
        return len(found) == len((Direction.REQUEST, Direction.RESPONSE))

    await until(is_there)
    outcomes = {
        (each["direction"], decision["id"]): decision["outcome"]
        for each in found
        for decision in each["decisions"]
    }
    assert outcomes == {
        ("request", other): "no_match",
        ("request", paused): "skipped",
        ("response", paused): "skipped",
    }


async def test_a_failure_says_why(judged: JudgedDeployment) -> None:
    policy_id = await judged.forbid("bread", direction=Direction.REQUEST)
    judged.judge.fails = lambda _: Fault.LOW_COVERAGE
    await judged.send(CHAT, BODIES[CHAT]("Where is wine?"))
    found: list[Any] = []

    async def is_there() -> bool:
        found[:] = (await listed(judged, f"{MANAGE}/{policy_id}/decisions"))["data"]
        return bool(found)

    await until(is_there)
    assert found[0]["outcome"] == "failed"
    assert found[0]["reason"] == "uncovered"
    assert found[0]["action"] == "blocked"


async def test_decisions_are_paged_newest_first(judged: JudgedDeployment) -> None:
    policy_id = await judged.forbid("bread", direction=Direction.BOTH)
    org = judged.deployment.org
    notes = DecisionRecorder(org.database, waiting_decisions_max=100)
    for _ in range(5):
        notes.record(record(org, 9_000, 0))
    await notes.write()
    path = f"{MANAGE}/{policy_id_text(POLICY)}/decisions"
    async with org.database.transaction() as tx:
        found = await service.page(tx, org.organization_id, POLICY, after=None, limit=10)
        first = found[1]
        place = service.place_of(first.request_id, first.direction)
        rest = await service.page(tx, org.organization_id, POLICY, after=place, limit=10)

    assert len(found) == 5
    assert [each.request_id for each in found] == sorted(
        (each.request_id for each in found), reverse=True
    )
    assert rest == found[2:]
    async with judged.deployment.administrator() as client:
        unknown = await client.get(path)
        wrong = await client.get(f"{MANAGE}/{policy_id}/decisions", params={"after": "nonsense"})
    assert unknown.status_code == 404
    assert wrong.status_code == 400


async def test_of_one_request_the_answer_comes_first_on_pages_of_any_size(
    org: OrganizationFixture,
) -> None:
    notes = DecisionRecorder(org.database, waiting_decisions_max=100)
    for days_ago in (1, 0, 0):
        of_request = of_the_day(record(org, 9_000), days_ago)
        notes.record(of_request)
        notes.record(replace(of_request, direction=Direction.RESPONSE))
    await notes.write()

    async with org.database.transaction() as tx:
        found = await service.page(tx, org.organization_id, POLICY, after=None, limit=10)
        singly: list[ReportedDecision] = []
        place = None
        while page := await service.page(tx, org.organization_id, POLICY, after=place, limit=1):
            singly += page
            place = service.place_of(page[0].request_id, page[0].direction)

    assert [each.direction for each in found] == [Direction.RESPONSE, Direction.REQUEST] * 3
    times = [each.request_id for each in found]
    assert times == sorted(times, reverse=True)
    assert singly == found


async def test_a_page_goes_on_after_the_last_decision_of_the_page_before(
    judged: JudgedDeployment,
) -> None:
    policy_id = await judged.forbid("bread", direction=Direction.REQUEST)
    path = f"{MANAGE}/{policy_id}/decisions"
    for number in range(2):
        await judged.send(CHAT, BODIES[CHAT](f"Bake bread number {number}."))

    async def are_there() -> bool:
        return len((await listed(judged, path))["data"]) == 2

    await until(are_there)
    first = await listed(judged, path, limit=1)
    second = await listed(judged, path, limit=1, after=first["last_id"])
    elsewhere = first["last_id"].replace("_request", "_nowhere")
    async with judged.deployment.administrator() as client:
        refused = await client.get(path, params={"after": elsewhere})

    assert (first["has_more"], second["has_more"]) == (True, False)
    assert first["data"][0]["id"] > second["data"][0]["id"]
    assert refused.status_code == 400


async def test_what_is_written_twice_counts_once(org: OrganizationFixture) -> None:
    one = record(org, 9_999, 10_000, 4_999, None, 0)
    for _ in range(2):
        notes = DecisionRecorder(org.database, waiting_decisions_max=100)
        notes.record(one)
        await notes.write()

    today = datetime.now(UTC)
    days = service.days(int(today.timestamp()) - 86_400, None, now=today)
    async with org.database.transaction() as tx:
        (tally,) = await service.tallies(tx, org.organization_id, POLICY, days)
        day = one.evaluated_at.date()
        (kept,) = await store.evaluations_of(tx, org.organization_id, one.request_id, day)

    assert tally.outcomes[EvaluationOutcome.MATCH] == 2
    assert tally.outcomes[EvaluationOutcome.NO_MATCH] == 1
    assert tally.outcomes[EvaluationOutcome.FAILED] == 1
    assert (tally.score_counts[99], tally.score_counts[49]) == (2, 1)
    assert [each.score for each in kept.decisions] == [9_999, 10_000, 4_999, None, 0]
    assert kept.content_digest == b"digest"


async def test_what_finds_no_room_is_dropped_and_the_rest_is_written(
    org: OrganizationFixture,
) -> None:
    notes = DecisionRecorder(org.database, waiting_decisions_max=3)
    for _ in range(5):
        notes.record(record(org, 1, 2))
    await notes.flush(deadline_seconds=60)

    rows = await org.database.fetch_all(
        "SELECT count(*) FROM evaluations WHERE organization_id = $1", org.organization_id
    )
    assert rows[0][0] == 1


async def test_one_statement_writes_a_bounded_number(org: OrganizationFixture) -> None:
    notes = DecisionRecorder(org.database, waiting_decisions_max=100_000)
    each = recorder.DECISIONS_MAX // 2 + 1
    for _ in range(3):
        notes.record(record(org, *[0] * each))
    await notes.write()

    rows = await org.database.fetch_all(
        "SELECT sum(cardinality(scores)) FROM evaluations WHERE organization_id = $1",
        org.organization_id,
    )
    assert rows[0][0] == 3 * each


async def test_old_days_are_dropped(org: OrganizationFixture) -> None:
    old = (datetime.now(UTC) - timedelta(days=40)).date()
    tables = (DailyTable.EVALUATIONS, DailyTable.POLICY_DECISIONS)
    async with org.database.transaction() as tx:
        for table in tables:
            await partitions.make(tx, table, first_day=old, last_day=old)
        missing = [await partitions.missing(tx, each, days_ahead=7) for each in tables]

    for table in tables:
        await partitions.remove_old(org.database, table, days_kept=30)
    await service.remove_old_sums(org.database, datetime.now(UTC))

    async with org.database.transaction() as tx:
        for table in tables:
            assert await partitions.older_than(tx, table, old + timedelta(days=1)) == []
        assert [await partitions.missing(tx, each, days_ahead=7) for each in tables] == missing
