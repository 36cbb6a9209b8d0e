"""`tollhouse secrets status`; the steps of a rotation are in the guide to keys."""

import asyncio

from tests.cli.commands import Operator, execute
from tollhouse.settings import load
from tollhouse.storage.sealing import Sealer

NEW = "Zx9cVb2nMl5kJh8gFd1sAqW4eRt7yUiO"
SEALED_VALUE = """
    INSERT INTO idempotency_records
           (organization_id, idempotency_key, fingerprint, resource_id, creator_id, created_at,
            sealed, sealed_day)
    VALUES (gen_random_uuid(), 'creation-1', '', gen_random_uuid(), gen_random_uuid(),
            now(), 'sealed', (now() AT TIME ZONE 'UTC')::date)
"""
UNAWARE_WORKER = """
    INSERT INTO instances (id, started_at, heartbeat_at, newest_revision)
    VALUES (gen_random_uuid(), now(), now() + interval '1 hour', '9999')
"""


def rotate(operator: Operator) -> None:
    path = operator.settings_path
    present = load(path, {}).secrets.master
    lines = f'master = "{NEW}"\nprevious_masters = ["{present}"]'
    path.write_text(path.read_text().replace(f'master = "{present}"', lines))
    operator.secrets.append(NEW)


def test_the_status_tells_what_still_needs_the_previous_secret(
    patient: Operator, database_url: str
) -> None:
    patient.do(
        lambda operator: Sealer(operator.database, operator.masters).seal(
            b"a value", bound_to=b"a creation", now=operator.clock.now()
        )
    )
    asyncio.run(execute(database_url, SEALED_VALUE + ";" + UNAWARE_WORKER))
    rotate(patient)

    current, previous = patient.json("secrets", "status")["data"]

    facts = {"object": "master_secret", "workers": 0, "workers_live": 1}
    assert current == facts | {
        "id": current["id"],
        "role": "current",
        "writes": True,
        "data_keys": 0,
        "sealed_values": 0,
        "last_expires_at": None,
    }
    assert previous == facts | {
        "id": previous["id"],
        "role": "previous",
        "writes": False,
        "data_keys": 1,
        "sealed_values": 1,
        "last_expires_at": previous["last_expires_at"],
    }
    assert previous["last_expires_at"] > 0

    patient.do(lambda operator: Sealer(operator.database, operator.masters).rewrap())
    assert "Nothing needs" not in patient.run("secrets", "status").stdout
    asyncio.run(execute(database_url, "DELETE FROM instances"))
    told = patient.run("secrets", "status").stdout
    assert f"Nothing needs {previous['id']} any more." in told
    report = patient.json("doctor")
    (finding,) = [one for one in report["data"] if one["check"] == "master secret"]
    assert finding["outcome"] == "warning"
    assert previous["id"] in finding["found"]


def test_what_live_workers_use_and_the_file_lacks_is_a_failure_and_keeps_serve_from_starting(
    patient: Operator, database_url: str
) -> None:
    worker = UNAWARE_WORKER.replace("revision)", "revision, master_ids)").replace(
        "'9999')", "'9999', '{0123456789abcdef}')"
    )
    asyncio.run(execute(database_url, worker))

    report = patient.json("doctor", exit_code=1)
    refused = patient.run("serve", exit_code=1)
    rows = patient.json("secrets", "status")["data"]

    (finding,) = [one for one in report["data"] if one["check"] == "master secret"]
    assert finding["outcome"] == "failure"
    assert "0123456789abcdef" in finding["found"]
    assert "secrets.previous_masters" in refused.stderr
    assert [row["role"] for row in rows] == ["current", "not configured"]
