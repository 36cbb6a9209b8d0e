"""What was decided is written down: once, without a word of what it was about."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.identity.waiting import until
from tests.support.courthouse import BODIES, CHAT, Courthouse
from tests.support.judge import Fault
from tests.support.world import World
from tollhouse.base.ids import (
    PolicyId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    policy_id_text,
    time_ordered_uuid,
)
from tollhouse.decisions import recorder, retention, service
from tollhouse.decisions.recorder import DecisionRecorder
from tollhouse.decisions.types import Direction as Way
from tollhouse.decisions.types import Examination, Outcome, PolicyDecision
from tollhouse.decisions.types import Mode as Counting
from tollhouse.policies.types import Direction, Mode
from tollhouse.storage import partitions
from tollhouse.storage.partitions import DailyTable

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANAGE = "/manage/v1/organization/policies"
POLICY = PolicyId(uuid4())


def examination(world: World, *scores: int | None, threshold: int = 5_000) -> Examination:
    return Examination(
        organization_id=world.organization_id,
        request_id=RequestId(time_ordered_uuid()),
        project_id=ProjectId(uuid4()),
        api_key_id=ProjectKeyId(uuid4()),
        direction=Way.REQUEST,
        mode=Counting.ENFORCING,
        examined_at=datetime.now(UTC),
        judging_ms=1.5,
        characters=12,
        content_digest=b"digest",
        decisions=tuple(decision(score, threshold) for score in scores),
    )


def decision(score: int | None, threshold: int) -> PolicyDecision:
    outcome = Outcome.FAILED
    if score is not None:
        outcome = Outcome.MATCH if score >= threshold else Outcome.NO_MATCH
    return PolicyDecision(
        policy_id=POLICY if score != 0 else PolicyId(uuid4()),
        version=1,
        mode=Counting.ENFORCING,
        outcome=outcome,
        threshold=threshold,
        score=score,
        reason=None if score is not None else "timed_out",
    )


async def listed(courthouse: Courthouse, path: str, **query: object) -> dict[str, Any]:
    async with courthouse.shop.administrator() as client:
        answer = await client.get(path, params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_match_can_be_read_with_its_score_and_nothing_that_was_said(
    courthouse: Courthouse,
) -> None:
    policy_id = await courthouse.forbid("bread", direction=Direction.REQUEST)
    quiet = await courthouse.forbid("wine", mode=Mode.MONITORING, direction=Direction.REQUEST)
    answer = await courthouse.send(CHAT, BODIES[CHAT]("Where are bread and wine?"))
    request_id = answer.headers["x-request-id"]
    found: dict[str, Any] = {}

    async def is_there() -> bool:
        for each in (policy_id, quiet):
            found[each] = (await listed(courthouse, f"{MANAGE}/{each}/decisions"))["data"]
        return all(found.values())

    await until(is_there)
    (match,), (watched,) = found[policy_id], found[quiet]
    assert match["request_id"] == request_id
    assert (match["outcome"], match["action"], match["version"]) == ("match", "blocked", 1)
    assert match["score_basis_points"] == 9_000
    assert match["lowest_basis_points"] <= 9_000 <= match["highest_basis_points"]
    assert (watched["action"], watched["mode"]) == ("would_block", "monitoring")
    start = int((datetime.now(UTC) - timedelta(days=1)).timestamp())
    rollups = await listed(courthouse, f"{MANAGE}/{policy_id}/rollups", start_time=start)
    (rollup,) = rollups["data"]
    assert (rollup["matches"], rollup["no_matches"], rollup["failures"]) == (1, 0, 0)
    assert rollup["score_counts"][90] == sum(rollup["score_counts"]) == 1
    rows = await courthouse.shop.world.database.fetch_all(
        "SELECT e::text AS text FROM examinations e WHERE organization_id = $1",
        courthouse.shop.world.organization_id,
    )
    assert len(rows) == 2
    assert not any("bread" in row["text"] for row in rows)


async def test_a_failure_says_why(courthouse: Courthouse) -> None:
    policy_id = await courthouse.forbid("bread", direction=Direction.REQUEST)
    courthouse.judge.fails = lambda _: Fault.LOW_COVERAGE
    await courthouse.send(CHAT, BODIES[CHAT]("Where is wine?"))
    found: list[Any] = []

    async def is_there() -> bool:
        found[:] = (await listed(courthouse, f"{MANAGE}/{policy_id}/decisions"))["data"]
        return bool(found)

    await until(is_there)
    assert found[0]["outcome"] == "failed"
    assert found[0]["reason"] == "uncovered"
    assert found[0]["action"] == "blocked"


async def test_decisions_are_paged_newest_first(courthouse: Courthouse) -> None:
    policy_id = await courthouse.forbid("bread", direction=Direction.BOTH)
    world = courthouse.shop.world
    notes = DecisionRecorder(world.database, waiting_decisions_max=100)
    for _ in range(5):
        notes.note(examination(world, 9_000, 0))
    await notes.write()
    path = f"{MANAGE}/{policy_id_text(POLICY)}/decisions"
    async with world.database.transaction() as tx:
        found = await service.page(tx, world.organization_id, POLICY, after=None, limit=10)
        first = found[1]
        place = service.place_of(first.request_id, first.direction)
        rest = await service.page(tx, world.organization_id, POLICY, after=place, limit=10)

    assert len(found) == 5
    assert [each.request_id for each in found] == sorted(
        (each.request_id for each in found), reverse=True
    )
    assert rest == found[2:]
    async with courthouse.shop.administrator() as client:
        unknown = await client.get(path)
        wrong = await client.get(f"{MANAGE}/{policy_id}/decisions", params={"after": "nonsense"})
    assert unknown.status_code == 404
    assert wrong.status_code == 400


async def test_a_page_goes_on_after_the_last_decision_of_the_page_before(
    courthouse: Courthouse,
) -> None:
    policy_id = await courthouse.forbid("bread", direction=Direction.REQUEST)
    path = f"{MANAGE}/{policy_id}/decisions"
    for number in range(2):
        await courthouse.send(CHAT, BODIES[CHAT](f"Bake bread number {number}."))

    async def are_there() -> bool:
        return len((await listed(courthouse, path))["data"]) == 2

    await until(are_there)
    first = await listed(courthouse, path, limit=1)
    second = await listed(courthouse, path, limit=1, after=first["last_id"])
    elsewhere = first["last_id"].replace("_request", "_nowhere")
    async with courthouse.shop.administrator() as client:
        refused = await client.get(path, params={"after": elsewhere})

    assert (first["has_more"], second["has_more"]) == (True, False)
    assert first["data"][0]["id"] > second["data"][0]["id"]
    assert refused.status_code == 400


async def test_what_is_written_twice_counts_once(world: World) -> None:
    one = examination(world, 9_999, 10_000, 4_999, None, 0)
    for _ in range(2):
        notes = DecisionRecorder(world.database, waiting_decisions_max=100)
        notes.note(one)
        await notes.write()

    today = datetime.now(UTC)
    days = service.days(int(today.timestamp()) - 86_400, None, now=today)
    async with world.database.transaction() as tx:
        (tally,) = await service.tallies(tx, world.organization_id, POLICY, days)
        (kept,) = await service.of_request(tx, world.organization_id, one.request_id)

    assert tally.outcomes[Outcome.MATCH] == 2
    assert tally.outcomes[Outcome.NO_MATCH] == 1
    assert tally.outcomes[Outcome.FAILED] == 1
    assert (tally.score_counts[99], tally.score_counts[49]) == (2, 1)
    assert [each.score for each in kept.decisions] == [9_999, 10_000, 4_999, None, 0]
    assert kept.content_digest == b"digest"


async def test_what_finds_no_room_is_dropped_and_the_rest_is_written(world: World) -> None:
    notes = DecisionRecorder(world.database, waiting_decisions_max=3)
    for _ in range(5):
        notes.note(examination(world, 1, 2))
    await notes.flush(deadline_seconds=60)

    rows = await world.database.fetch_all(
        "SELECT count(*) FROM examinations WHERE organization_id = $1", world.organization_id
    )
    assert rows[0][0] == 1


async def test_one_statement_writes_a_bounded_number(world: World) -> None:
    notes = DecisionRecorder(world.database, waiting_decisions_max=100_000)
    each = recorder.DECISIONS_MAX // 2 + 1
    for _ in range(3):
        notes.note(examination(world, *[0] * each))
    await notes.write()

    rows = await world.database.fetch_all(
        "SELECT sum(cardinality(scores)) FROM examinations WHERE organization_id = $1",
        world.organization_id,
    )
    assert rows[0][0] == 3 * each


async def test_old_days_are_dropped(world: World) -> None:
    old = (datetime.now(UTC) - timedelta(days=40)).date()
    tables = (DailyTable.EXAMINATIONS, DailyTable.POLICY_DECISIONS)
    async with world.database.transaction() as tx:
        for table in tables:
            await partitions.make(tx, table, first_day=old, last_day=old)

    await retention.remove_old_days(world.database, decision_days=30)
    await retention.remove_old_sums(world.database, datetime.now(UTC))

    async with world.database.transaction() as tx:
        for table in tables:
            assert await partitions.older_than(tx, table, old + timedelta(days=1)) == []
            assert await partitions.missing(tx, table, days_ahead=7) == 0
