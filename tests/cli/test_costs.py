"""`tollhouse costs`, and the guide to it, followed step by step on a running service."""

import asyncio
from datetime import UTC, datetime, time, timedelta

import asyncpg

from tests.cli.commands import Operator, refusal
from tests.cli.documents import read, scripts
from tests.reports import events
from tests.reports.events import Keys
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.app import connect
from tollhouse.settings import load
from tollhouse.storage.database import Database

UNTIL = datetime.combine(datetime.now(UTC).replace(day=1), time(), UTC)
SINCE = UNTIL - timedelta(days=2)
FROM, LAST, NEXT, TO = (str((SINCE + timedelta(days=days)).date()) for days in range(4))


async def spend(operator: Operator, count: int) -> str:
    """Two keys that used something on the last two days of a month; an Admin key of theirs."""
    settings = load(operator.settings_path, environment={})
    database = await connect(settings)
    connection = await asyncpg.connect(settings.database.url)
    try:
        org = await new_organization_fixture(database)
        await _use(connection, org, count)
        return (await org.admin_key()).value
    finally:
        await connection.close()
        await database.close()


async def _use(connection: asyncpg.Connection, org: OrganizationFixture, count: int) -> None:
    project = await org.project()
    held = [(await org.project_key(project)).key.id for _ in range(2)]
    await events.make_partitions(connection, SINCE.date(), UNTIL.date())
    await events.hold(
        *(connection, org.organization_id, Keys([project.id] * 2, held), count),
        since=SINCE,
        until=UNTIL,
    )
    await events.resolve(connection, org.organization_id)
    await events.mark_unsettled(connection, org.organization_id)


def test_the_table_has_every_day_and_adds_up_to_the_document(patient: Operator) -> None:
    asyncio.run(spend(patient, 200))

    page = patient.json("costs", "--from", FROM, "--to", TO)
    shown = patient.run("costs", "--from", FROM, "--to", TO).stdout
    by_item = patient.run("costs", "--from", FROM, "--to", TO, "--by", "line_item").stdout
    by_user = patient.run("costs", "--from", FROM, "--to", TO, "--by", "user").stdout
    named = patient.json("costs", "--from", FROM, "--to", TO, "--by", "metadata.team")

    amounts = [result["amount"]["value"] for bucket in page["data"] for result in bucket["results"]]
    lines = [line.split() for line in shown.splitlines()]
    assert page["estimated_requests"] > 0
    assert f"The cost of {page['estimated_requests']} request" in shown
    assert lines[0] == ["day", "usd", "bar"]
    assert [line[:2] for line in lines[1:4]] == [
        [FROM, amounts[0]],
        [LAST, amounts[1]],
        [NEXT, "-"],
    ]
    assert max(len(line[2]) for line in lines[1:3]) == 30
    total = [line for line in shown.splitlines() if line.startswith("Total: ")]
    assert total == [line for line in by_item.splitlines() if line.startswith("Total: ")]
    assert total == [line for line in by_user.splitlines() if line.startswith("Total: ")]
    assert "example/large, cached input" in by_item
    assert by_user.splitlines()[1].split()[:3] == [FROM, "(unrecorded)", amounts[0]]
    assert [
        (result["attribution"], result["amount"]["value"])
        for bucket in named["data"]
        for result in bucket["results"]
    ] == [("(unrecorded)", amount) for amount in amounts]
    assert "attribution" not in page["data"][0]["results"][0]
    assert page["unsettled_requests"] > 0
    assert (page["has_more"], page["next_page"]) == (False, None)
    assert f"{page['unsettled_requests']} request" in shown
    assert "no final cost yet. The amounts above do not include them." in shown


def test_a_deployment_without_usage_shows_its_days(patient: Operator) -> None:
    async def create() -> None:
        settings = load(patient.settings_path, environment={})
        database: Database = await connect(settings)
        await new_organization_fixture(database)
        await database.close()

    asyncio.run(create())

    shown = patient.run("costs").stdout
    assert len(shown.splitlines()) == 1 + 31 + 2
    assert "Total: 0 USD" in shown


def test_wrong_calls_are_refused() -> None:
    assert "Invalid value for '--from'" in refusal("costs", "--from", "yesterday")
    assert "Invalid value for '--by'" in refusal("costs", "--by", "user_id")


def test_an_empty_range_is_refused(patient: Operator) -> None:
    asyncio.run(spend(patient, 1))
    ended = patient.run("costs", "--from", TO, "--to", FROM, "--json", exit_code=2)

    assert ended.error["code"] == "invalid_value"


def test_more_days_than_are_shown_are_refused(patient: Operator) -> None:
    asyncio.run(spend(patient, 1))
    ended = patient.run("costs", "--from", "1970-01-01", "--json", exit_code=2)

    assert ended.error["code"] == "usage"
    assert "at most 10000 can be shown" in ended.error["message"]


def test_the_guide_can_be_followed_to_its_end(patient: Operator) -> None:
    guide = read("docs/guides/reading-costs.md")
    for written, meant in (
        ("2026-08-01", FROM),
        ("2026-09-01", NEXT),
        ("1785542400", str(int(SINCE.timestamp()))),
    ):
        assert written in guide
        guide = guide.replace(written, meant)
    by_command, costs, usage = scripts(guide)
    patient.environment["TOLLHOUSE_ADMIN_KEY"] = asyncio.run(spend(patient, 50))

    assert LAST in patient.bash(by_command).stdout
    with patient.serving() as server:
        patient.environment["TOLLHOUSE_URL"] = next(
            word.strip(",") for word in server.announced.split() if "://" in word
        )
        assert '"object":"organization.costs.result"' in patient.bash(costs).stdout
        assert '"object":"page"' in patient.bash(usage).stdout
