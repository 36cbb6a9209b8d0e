"""The guide to connection pooling, followed with a real PgBouncer in transaction mode."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts
from tests.support.pgbouncer import running_pgbouncer
from tollhouse.settings import load


@pytest.fixture
def pooled(patient: Operator, tmp_path: Path) -> Iterator[Operator]:
    """A deployment whose configuration leads to PgBouncer; `DIRECT_URL` leads to PostgreSQL."""
    direct = load(patient.settings_path, environment=patient.environment).database.url
    patient.environment.update(DIRECT_URL=direct, DATABASE=urlsplit(direct).path.removeprefix("/"))
    with running_pgbouncer(tmp_path, direct) as url:
        patient.environment["TOLLHOUSE_DATABASE__URL"] = url
        yield patient


def pooling_finding(operator: Operator, exit_code: int) -> dict[str, str]:
    found = operator.json("doctor", exit_code=exit_code)["data"]
    return next(each for each in found if each["check"] in ("pooling", "database"))


def test_the_guide_leads_to_a_worker_behind_pgbouncer(pooled: Operator) -> None:
    settings, doctor = scripts(read("docs/guides/pooling.md"))
    pooled.environment["TOLLHOUSE_DATABASE__PREPARED_STATEMENTS"] = "false"

    pooled.bash(settings)
    examined = " ".join(pooled.bash(doctor).stdout.split())
    with pooled.serving() as service:
        announced = service.announced

    assert "a pooler gives each transaction any server process" in examined
    assert "is ready on" in announced


def test_a_role_without_the_settings_is_refused_with_the_name(pooled: Operator) -> None:
    pooled.environment["TOLLHOUSE_DATABASE__PREPARED_STATEMENTS"] = "false"

    refused = pooled.run("serve", exit_code=1).stderr

    assert "enable_seqscan = off does not reach the server" in " ".join(refused.split())


def test_an_old_pgbouncer_is_refused_with_the_reason(pooled: Operator) -> None:
    pooled.bash(scripts(read("docs/guides/pooling.md"))[0])

    refused = " ".join(pooled.run("serve", exit_code=1).stderr.split())
    found = [
        each for each in pooled.json("doctor", exit_code=1)["data"] if each["outcome"] == "failure"
    ]

    assert "1.21" in refused
    assert "1.21" in found[0]["remedy"]
