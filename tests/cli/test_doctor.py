"""`tollhouse doctor` on healthy and on broken deployments."""

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.commands import Operator, execute, free_port
from tests.cli.conftest import deployed
from tests.cli.pooler import running_pooler
from tests.support.redis_server import running_redis
from tollhouse.base.findings import FindingOutcome
from tollhouse.cli.doctor.database import connections_finding, version_finding
from tollhouse.cli.doctor.deployment import ledger_finding
from tollhouse.cli.doctor.redis import redis_finding
from tollhouse.ledger.verifier import VerificationState
from tollhouse.limits.health import RedisHealth

EVERY_CHECK = [
    *("settings", "file mode", "secrets", "traces", "listener", "probe listener", "catalog"),
    *("judge", "redis", "database", "pooling", "database version", "server role", "standbys"),
    *(
        "durability",
        "clock",
        "snapshots",
        "disk",
        "replica",
        "connections",
        "schema",
        "master secret",
        "workers",
        "job leases",
    ),
    *("ledger", "ledger days", "request days", "decision days", "data keys", "sealed values"),
]


def examined(operator: Operator) -> dict[str, Any]:
    """The findings of a deployment that is not healthy, by check."""
    report = operator.json("doctor", exit_code=1)
    assert report["healthy"] is False
    return {finding["check"]: finding for finding in report["data"]}


def test_a_healthy_deployment_passes_every_check(operator: Operator) -> None:
    report = operator.json("doctor")

    assert report["healthy"] is True
    assert [finding["check"] for finding in report["data"]] == EVERY_CHECK
    assert {finding["outcome"] for finding in report["data"]} == {"ok"}


def test_a_file_that_everybody_may_read_and_a_database_that_is_down_are_failures(
    newcomer: Operator,
) -> None:
    address = f"postgresql://root@127.0.0.1:{free_port()}/tollhouse"
    patient = deployed(address, newcomer.directory, newcomer.environment)
    patient.settings_path.chmod(0o644)

    findings = examined(patient)

    assert findings["file mode"]["outcome"] == "failure"
    assert findings["file mode"]["remedy"] == "chmod 600 tollhouse.toml"
    assert findings["database"]["outcome"] == "failure"
    assert "cannot be reached" in findings["database"]["found"]
    assert findings["database"]["remedy"].startswith("Start it")


def test_another_schema_is_a_failure_and_ends_the_examination(
    patient: Operator, database_url: str
) -> None:
    asyncio.run(execute(database_url, "UPDATE schema_contracted SET version_num = '9999'"))

    findings = examined(patient)

    assert findings["schema"]["outcome"] == "failure"
    assert "9999" in findings["schema"]["found"]
    assert "newer" in findings["schema"]["remedy"]
    assert "master secret" not in findings


def test_a_refused_login_is_explained_without_the_password(newcomer: Operator) -> None:
    address = "postgresql://tollhouse_stranger:a-password@127.0.0.1:5432/tollhouse"
    patient = deployed(address, newcomer.directory, newcomer.environment)
    patient.secrets.append("a-password")

    finding = examined(patient)["database"]

    assert "refused the login" in finding["found"]


def test_an_unreadable_configuration_is_a_failure(newcomer: Operator) -> None:
    finding = examined(newcomer)["settings"]

    assert finding["outcome"] == "failure"
    assert "tollhouse init" in finding["found"]


async def test_a_pooler_in_transaction_mode_is_a_failure(
    patient: Operator, database_url: str
) -> None:
    async with running_pooler(database_url) as address:
        patient.environment["TOLLHOUSE_DATABASE__URL"] = address

        finding = (await asyncio.to_thread(examined, patient))["pooling"]

    assert finding["outcome"] == "failure"
    assert "does not reach the server" in finding["found"]
    assert "transaction mode" in finding["remedy"]


def test_what_a_purge_has_left_and_a_stranger_on_our_port_are_failures(
    patient: Operator, database_url: str
) -> None:
    asyncio.run(leave_behind(database_url))
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        patient.environment["TOLLHOUSE_SERVER__PORT"] = str(stranger.getsockname()[1])

        findings = examined(patient)

    assert findings["listener"]["outcome"] == "failure"
    assert findings["listener"]["found"].endswith("is used by another program")
    assert findings["data keys"]["found"] == "1 data keys are older than 48 hours"
    assert findings["sealed values"]["found"] == "1 sealed values are older than 25 hours"
    assert findings["workers"]["outcome"] == "ok"
    assert findings["workers"]["found"] == "1 running"
    assert findings["job leases"]["outcome"] == "warning"


def test_an_endpoint_for_spans_without_the_extra_is_a_failure_and_refuses_to_serve(
    patient: Operator,
) -> None:
    hidden = patient.directory / "hidden"
    hidden.mkdir()
    # Run by every interpreter that finds it: from then on the package is not to be had.
    hiding = "import sys\nsys.modules['opentelemetry'] = None\n"
    (hidden / "sitecustomize.py").write_text(hiding, encoding="utf-8")
    patient.environment["PYTHONPATH"] += f":{hidden}"
    patient.environment["TOLLHOUSE_OTEL__ENDPOINT"] = "http://127.0.0.1:4318/v1/traces"

    finding = examined(patient)["traces"]
    refused = patient.run("serve", exit_code=1)

    assert finding["outcome"] == "failure"
    assert finding["remedy"] == "Install tollhouse[otel], or remove the setting."
    assert "Error: otel.endpoint: the packages that send spans" in refused.stderr


def test_a_day_without_its_table_is_a_failure(patient: Operator, database_url: str) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    asyncio.run(execute(database_url, f"DROP TABLE requests_{tomorrow:%Y%m%d}"))

    findings = examined(patient)

    assert findings["request days"]["outcome"] == "failure"
    assert findings["request days"]["found"] == "no table for 1 of today and the next 2 days"
    assert findings["ledger days"]["outcome"] == "ok"


async def leave_behind(url: str) -> None:
    """A worker that accepts more than we do and does not purge, and what was not purged.

    Its heartbeat is ahead, so that it is alive however long the machine stands still.
    """
    await execute(
        url,
        """
        INSERT INTO data_keys (day, wrapped)
        VALUES (current_date - 4, 'wrapped'), (current_date, 'wrapped');
        INSERT INTO idempotency_records (organization_id, idempotency_key, fingerprint,
               resource_id, creator_id, created_at, sealed, sealed_day)
        SELECT gen_random_uuid(), 'creation', '', gen_random_uuid(), gen_random_uuid(),
               now() - age, 'sealed', current_date
          FROM unnest(ARRAY[interval '26 hours', interval '23 hours']) AS age;
        INSERT INTO instances (id, started_at, heartbeat_at, newest_revision)
        VALUES (gen_random_uuid(), now(), now() + interval '1 hour', '9999')
        """,
    )


def test_a_redis_that_answers_is_described_and_one_that_does_not_is_a_failure(
    patient: Operator,
) -> None:
    with running_redis() as server:
        patient.environment["TOLLHOUSE_REDIS__URL"] = server.url
        well = patient.json("doctor")
    lost = examined(patient)["redis"]

    (found,) = [finding for finding in well["data"] if finding["check"] == "redis"]
    assert found["outcome"] == "ok"
    assert found["found"].startswith("version ")
    assert lost["outcome"] == "failure"
    assert "each worker counts traffic alone" in lost["remedy"]


@pytest.mark.parametrize(
    ("version", "policy", "memory_bytes_max", "outcome"),
    [
        ("7.0.15", "noeviction", 10**9, FindingOutcome.OK),
        ("8.1.3", "allkeys-lru", 0, FindingOutcome.OK),
        ("7.0.15", "allkeys-lru", 10**9, FindingOutcome.WARNING),
        ("7.2.4", "volatile-ttl", 10**9, FindingOutcome.WARNING),
        ("6.2.14", "noeviction", 0, FindingOutcome.WARNING),
    ],
)
def test_a_redis_that_is_old_or_forgets_is_worth_a_look(
    version: str, policy: str, memory_bytes_max: int, outcome: FindingOutcome
) -> None:
    found = RedisHealth(
        address="cache.example:6379",
        version=version,
        eviction_policy=policy,
        memory_bytes_max=memory_bytes_max,
        replicas=0,
    )

    assert redis_finding(found).outcome is outcome


@pytest.mark.parametrize(
    ("major", "outcome"), [(14, FindingOutcome.FAILURE), (15, FindingOutcome.OK)]
)
def test_postgresql_15_is_needed(major: int, outcome: FindingOutcome) -> None:
    assert version_finding(major).outcome is outcome


@pytest.mark.parametrize(
    ("needed", "outcome"), [(97, FindingOutcome.OK), (98, FindingOutcome.WARNING)]
)
def test_more_connections_than_the_server_takes_are_told(
    needed: int, outcome: FindingOutcome
) -> None:
    finding = connections_finding(needed, 97)

    assert finding.outcome is outcome
    assert str(needed) in finding.found


@pytest.mark.parametrize(
    ("differing", "age", "outcome", "found"),
    [
        (0, timedelta(minutes=5), "ok", "verified or created within the last 0:05:00"),
        (0, timedelta(hours=25), "warning", "was not verified for 1 day, 1:00:00"),
        (2, timedelta(minutes=5), "failure", "numbers of 2 organizations differ"),
    ],
)
def test_what_the_continuous_verification_found_is_shown(
    differing: int, age: timedelta, outcome: str, found: str
) -> None:
    state = VerificationState(differing_organizations=differing, oldest_age=age)

    finding = ledger_finding(state)

    assert finding.outcome == outcome
    assert found in finding.found
