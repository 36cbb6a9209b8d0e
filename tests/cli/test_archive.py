"""`tollhouse archive`, and the commands of its guide."""

import json
import tomllib
from pathlib import Path
from uuid import UUID

import msgspec

from tests.activity.records import Customer, days_ago, make_days
from tests.cli.commands import Operator
from tests.cli.documents import blocks, read, scripts
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, parse_uuid
from tollhouse.cli.session import Session
from tollhouse.settings import ArchiveSettings

GUIDE = "docs/guides/archive.md"
OLD = 40
DAYS_KEPT = {"TOLLHOUSE_ACTIVITY__RECORD_DAYS": "30", "TOLLHOUSE_LEDGER__ENTRY_DAYS": "30"}


def with_usage(operator: Operator) -> Customer:
    """An organization with a request and a ledger entry that are old."""
    organization = operator.json("org", "create", "Example Ltd")
    project = operator.json("project", "create", "a project")
    key = operator.json("key", "create", "a key", "--project", project["id"])
    operator.secrets.append(key["value"])
    day = days_ago(OLD).date().isoformat()
    operator.run("credits", "grant", "100", "--reason", "a test")
    operator.run(
        *("ledger", "backfill", "--key", key["id"], "--model", "m", "--amount", "12.5"),
        *("--day", day, "--reason", "a test"),
    )
    customer = Customer(
        OrganizationId(_id(organization)), ProjectId(_id(project)), ProjectKeyId(_id(key))
    )
    operator.do(lambda session: _record(session, customer))
    return customer


def _id(resource: dict[str, str]) -> UUID:
    parsed = parse_uuid(resource["id"])
    assert parsed is not None
    return parsed


async def _record(session: Session, customer: Customer) -> None:
    await make_days(session.database, days_ago(OLD), days_ago(OLD))
    recorder = RequestRecorder(session.database, waiting_records_max=10)
    recorder.record(customer.record(days_ago(OLD)))
    await recorder.write()


def test_the_commands_of_the_guide_archive_read_and_verify(
    patient: Operator, tmp_path: Path
) -> None:
    run, query, verify = scripts(read(GUIDE))
    customer = with_usage(patient)
    patient.environment.update(
        DAYS_KEPT | {"TOLLHOUSE_ARCHIVE__URL": (tmp_path / "archive").as_uri()}
    )
    request_id = patient.do(_request_id)
    patient.environment.update(
        {"ORGANIZATION_ID": str(customer.organization_id), "REQUEST_ID": request_id}
    )

    moved = patient.bash(run).stdout
    found = patient.bash(query).stdout.splitlines()

    assert "ledger_entries" in moved
    assert any(line.split() == ["rows", "1"] for line in found)
    assert [row["request_id"] for row in json.loads(found[-1])["data"]] == [request_id]
    assert "They have the recorded sums." in patient.bash(verify).stdout
    assert patient.json("ledger", "verify")["sound"]
    assert patient.json("archive", "run")["data"] == []
    assert "No day is old enough" in patient.run("archive", "run").stdout


async def _request_id(session: Session) -> str:
    rows = await session.database.fetch_all("SELECT request_id FROM requests")
    return str(rows[0]["request_id"])


def test_a_changed_archive_is_reported(patient: Operator, tmp_path: Path) -> None:
    with_usage(patient)
    patient.environment.update(
        DAYS_KEPT | {"TOLLHOUSE_ARCHIVE__URL": (tmp_path / "archive").as_uri()}
    )
    patient.run("archive", "run")
    for path in (tmp_path / "archive" / "ledger_entries").rglob("*.parquet"):
        path.write_bytes(path.read_bytes() + b"\0")

    verified = patient.json("archive", "verify", exit_code=1)

    assert not verified["sound"]
    assert {each["table"] for each in verified["data"]} == {"ledger_entries"}


def test_without_an_address_the_commands_say_what_to_set(patient: Operator) -> None:
    told = patient.run("archive", "run", exit_code=1).stderr

    assert "archive.url" in told


def test_the_addresses_of_the_guide_are_settings() -> None:
    tables = [tomllib.loads(block)["archive"] for block in blocks(read(GUIDE), "toml")]
    urls = [msgspec.convert(table, ArchiveSettings).url for table in tables]

    assert [url and url.partition(":")[0] for url in urls] == ["file", "s3"]
