"""The guides to generated verbs, followed to their ends on a running service."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day

import asyncpg
import pytest

from tests.activity.records import customer_of
from tests.cli.commands import Operator, new_project
from tests.cli.documents import blocks, read, scripts
from tests.cli.test_readme import json_documents
from tests.reports import events
from tests.reports.events import Keys
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.redis_server import running_redis
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.activity.types import FailureSource, RequestRecord
from tollhouse.alerts import rules
from tollhouse.app import connect
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.errors import CAP_ERRORS, CreditExhausted, ProjectCapReached
from tollhouse.ledger.types import Period
from tollhouse.settings import load

ALERTS = "docs/guides/alerts.md"
CREDITS = "docs/guides/credits-and-caps.md"
UNTIL = datetime.combine(datetime.now(UTC).replace(day=1), time_of_day(), UTC)
SINCE = UNTIL - timedelta(days=2)
FROM, LAST, NEXT = (str((SINCE + timedelta(days=days)).date()) for days in range(3))


@contextmanager
def served(operator: Operator, admin_key: str) -> Generator[None]:
    """The service, with its address and the key in the environment."""
    with operator.serving() as server:
        address = server.announced.split("is ready on ")[1].split()[0].strip(",.")
        operator.environment.update({"TOLLHOUSE_URL": address, "TOLLHOUSE_ADMIN_KEY": admin_key})
        yield


def test_the_guide_to_the_command_line(patient: Operator) -> None:
    (script,) = scripts(read("docs/guides/command-line.md"))
    patient.run("org", "create", "Example Ltd")
    admin = patient.created("admin-key", "create", "everything")
    elsewhere = patient.directory / "elsewhere"
    elsewhere.mkdir()

    with served(patient, admin["value"]):
        done = Operator(elsewhere, patient.environment).bash(script).stdout

    assert "Example Ltd" in done
    assert "thp_" in done
    assert ["state", "monitoring"] in [line.split() for line in done.splitlines()]
    assert (elsewhere / "costs.csv").read_text().startswith("BilledCost,")


def test_the_guide_to_alerts(patient: Operator) -> None:
    subscribe, manage, tested, rotate, own = scripts(read(ALERTS))
    new_project(patient)
    admin = patient.created("admin-key", "create", "platform")

    subscribed = patient.bash(subscribe).stdout
    with served(patient, admin["value"]):
        [made] = json_documents(patient.bash(manage).stdout)
    patient.environment["SUBSCRIPTION_ID"] = made["id"]

    assert "whsec_" in subscribed
    assert made["cap_percents"] == [80, 95]
    assert "This is a test alert." in patient.bash(tested).stdout
    assert "whsec_" in patient.bash(rotate).stdout
    subscribed_to = [line.split() for line in patient.bash(own).stdout.splitlines()]
    assert ["backend_down", "yes"] in subscribed_to


def test_the_receiver_of_the_guide_accepts_what_is_genuine_alone() -> None:
    (block,) = blocks(read(ALERTS), "python")
    program: dict[str, object] = {}
    exec(block, program)  # noqa: S102 - the program of the guide
    verify = program["verify"]
    assert callable(verify)
    new, old, other = (rules.secret_text(bytes([number]) * 32) for number in range(3))
    now, body = int(time.time()), b'{"type": "test"}'

    def headers(secrets: list[str], sent_at: int = now) -> dict[str, str]:
        signature = rules.signatures(secrets, "an-id", sent_at, body)
        return {
            "webhook-id": "an-id",
            "webhook-timestamp": str(sent_at),
            "webhook-signature": signature,
        }

    for secret in (new, old):
        verify(headers([new, old]), body, secret)
    for wrong, content, secret in (
        (headers([new, old]), body, other),
        (headers([new]), body + b" ", new),
        ({**headers([new]), "webhook-id": "another"}, body, new),
        ({**headers([new]), "webhook-timestamp": str(now - 1)}, body, new),
        (headers([new], now - 301), body, new),
        (headers([]), body, new),
    ):
        with pytest.raises(ValueError, match=r"too old|not signed"):
            verify(wrong, content, secret)


def test_the_guide_to_attribution(patient: Operator) -> None:
    keys, _by_label = scripts(read("docs/guides/attribution.md"))
    patient.environment["PROJECT_ID"] = new_project(patient)

    made = patient.bash(keys).stdout

    assert made.count('"name":"alice"') == 1


def test_the_guide_to_credit_and_caps(patient: Operator) -> None:
    grant, correct, set_caps, clear, pay = scripts(read(CREDITS))
    project = new_project(patient)
    key = patient.created("key", "create", "--project", project, "batch jobs")
    admin = patient.created("admin-key", "create", "finance")
    patient.environment.update({"PROJECT_ID": project, "KEY_ID": key["id"]})

    assert "25 USD" in patient.bash(grant).stdout
    assert "granted twice" in patient.bash(correct).stdout
    caps = patient.bash(set_caps).stdout
    cleared = patient.bash(clear).stdout
    patient.environment["TOLLHOUSE_LEDGER__IS_SANDBOX"] = "true"
    with served(patient, admin["value"]):
        payment, balance = json_documents(patient.bash(pay).stdout)

    assert f"project:{project}:month" in caps
    assert f"api_key:{key['id']}:lifetime" in caps
    assert f"project:{project}:month" in cleared
    assert payment["kind"] == "test_payment"
    assert balance["available"] == {"value": "32.5", "currency": "usd"}


def test_the_guide_explains_every_402_in_its_own_words() -> None:
    guide = read(CREDITS)
    needed, available, held = (PicoUsd(milli_usd * 10**9) for milli_usd in (12, 4, 10))
    shown = ProjectCapReached(needed=needed, available=available, held=held, period=Period.DAY)

    assert f"> {shown}\n" in guide
    assert shown.retry_after_seconds is not None
    for refusal_class in (CreditExhausted, *CAP_ERRORS.values()):
        assert f"| [`{refusal_class.code}`]" in guide


def test_the_guide_to_limits(patient: Operator) -> None:
    set_limits, manage, clear, doctor = scripts(read("docs/guides/limits.md"))
    project = new_project(patient)
    (organization,) = patient.json("org", "list")["data"]
    key = patient.created("key", "create", "--project", project, "batch jobs")
    admin = patient.created("admin-key", "create", "platform")
    patient.environment.update(
        {"ORGANIZATION_ID": organization["id"], "PROJECT_ID": project, "KEY_ID": key["id"]}
    )

    with running_redis() as server:
        patient.environment["TOLLHOUSE_REDIS__URL"] = server.url
        limits = patient.bash(set_limits).stdout
        with served(patient, admin["value"]):
            own, listed = json_documents(patient.bash(manage).stdout)
        cleared = patient.bash(clear).stdout
        examined = patient.bash(doctor).stdout

    assert f"project:{project}:operator" in limits
    assert f"api_key:{key['id']}:operator" in limits
    assert (own["owner"], own["requests_per_minute"]) == ("organization", 300)
    assert len(listed["data"]) == 4
    assert cleared.count("yes") == 2
    assert "eviction policy noeviction" in " ".join(examined.split())


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
    keys = Keys([project.id] * 2, held)
    await events.hold(connection, org.organization_id, keys, count, since=SINCE, until=UNTIL)
    await events.resolve(connection, org.organization_id)
    await events.mark_unsettled(connection, org.organization_id)


def test_the_table_of_costs_adds_up_to_the_document(patient: Operator) -> None:
    asyncio.run(spend(patient, 200))
    range_ = ("--from", FROM, "--to", str(UNTIL.date()))

    page = patient.json("costs", *range_)
    lines = patient.run("costs", *range_).stdout.splitlines()
    by_item = patient.run("costs", *range_, "--by", "line_item").stdout

    amounts = [result["amount"]["value"] for bucket in page["data"] for result in bucket["results"]]
    assert [line.split()[-2] for line in lines[1:3]] == amounts
    assert lines[0].split() == ["start_time", "amount"]
    assert any(line.startswith("Total: ") for line in lines)
    assert "no final cost yet" in lines[-1]
    assert "input" in by_item


def test_the_guide_to_costs(patient: Operator) -> None:
    guide = read("docs/guides/reading-costs.md")
    for written, meant in (
        ("2026-08-01", FROM),
        ("2026-09-01", NEXT),
        ("1785542400", str(int(SINCE.timestamp()))),
    ):
        assert written in guide
        guide = guide.replace(written, meant)
    by_command, costs, usage = scripts(guide)
    admin_key = asyncio.run(spend(patient, 50))

    assert FROM in patient.bash(by_command).stdout
    with served(patient, admin_key):
        assert '"object":"organization.costs.result"' in patient.bash(costs).stdout
        assert '"object":"page"' in patient.bash(usage).stdout


def test_the_guide_to_exports(patient: Operator) -> None:
    guide = read("docs/guides/exports.md")
    for written, meant in (
        ("2026-08-01", FROM),
        ("2026-09-01", NEXT),
        ("1785542400", str(int(SINCE.timestamp()))),
        ("1788220800", str(int(SINCE.timestamp()) + 86_400)),
    ):
        assert written in guide
        guide = guide.replace(written, meant)
    by_command, by_api, nightly = scripts(guide)
    admin_key = asyncio.run(spend(patient, 50))

    patient.bash(by_command)
    exported = (patient.directory / "costs.csv").read_text()
    with served(patient, admin_key):
        patient.bash(by_api)
        patient.bash(nightly)

    assert exported.startswith("BilledCost,")
    assert exported.count("\n") > 1
    assert (patient.directory / "costs.csv").read_text().startswith("BilledCost,")
    nights = [path.read_text() for path in patient.directory.glob("costs-*.csv")]
    assert len(nights) == 3
    assert all(night.startswith("BilledCost,") for night in nights)


async def lived(operator: Operator, count: int) -> tuple[list[RequestRecord], str]:
    """Requests of one key, of which every tenth failed, and an Admin key of theirs."""
    settings = load(operator.settings_path, environment={})
    database = await connect(settings)
    try:
        org = await new_organization_fixture(database)
        customer = await customer_of(org)
        now = datetime.now(UTC)
        failed = {
            "status": 502,
            "error_code": "backend_error",
            "failed_by": FailureSource.BACKEND,
            "first_byte_ms": None,
        }
        records = [
            customer.record(
                now - timedelta(milliseconds=count - number), **({} if number % 10 else failed)
            )
            for number in range(count)
        ]
        recorder = RequestRecorder(database, waiting_records_max=count)
        for record in records:
            recorder.record(record)
        await recorder.write()
        return records, (await org.admin_key()).value
    finally:
        await database.close()


def test_the_guide_to_requests(patient: Operator) -> None:
    one, latest, by_api, hours = scripts(read("docs/guides/requests.md"))
    records, admin_key = asyncio.run(lived(patient, 30))
    patient.environment.update(
        {"REQUEST_ID": str(records[0].request_id), "KEY_ID": str(records[0].api_key_id)}
    )

    assert "backend_error" in patient.bash(one).stdout
    assert patient.bash(latest).stdout.count("backend_error") == 5
    with served(patient, admin_key):
        shown, listed = json_documents(patient.bash(by_api).stdout)
        (counted,) = json_documents(patient.bash(hours).stdout)
    assert shown["failed_by"] == "backend"
    failed = [str(record.request_id) for record in records[::-1] if record.status == 502]
    assert [item["id"] for item in listed["data"]] == failed
    results = [result for bucket in counted["data"] for result in bucket["results"]]
    assert sum(result["requests"] for result in results) == 30
