"""The operator sees which replicas are left out, leaves one out, and returns it."""

from tests.cli.commands import Operator
from tollhouse.cli.session import Session

ENGINES = """
[backends.engines]
replicas = ["http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"]
"""


def test_a_replica_is_left_out_and_returned(patient: Operator) -> None:
    patient.settings_path.write_text(patient.settings_path.read_text("utf-8") + ENGINES, "utf-8")

    patient.run("backends", "eject", "engines", "engines-2")
    ejected = ordered(patient)
    patient.run("backends", "return", "engines", "engines-2")

    assert (ejected, ordered(patient)) == ([("engines-2", True)], [("engines-2", False)])
    listed = [
        row for row in patient.json("backends", "list")["data"] if row["backend"] == "engines"
    ]
    assert [(row["replica"], row["state"], row["workers"]) for row in listed] == [
        ("engines-1", "in_use", 0),
        ("engines-2", "in_use", 0),
    ]


def test_what_workers_left_out_is_listed_with_its_reason(patient: Operator) -> None:
    patient.settings_path.write_text(patient.settings_path.read_text("utf-8") + ENGINES, "utf-8")

    async def report(running: Session) -> None:
        async with running.database.transaction() as tx:
            await tx.execute(
                """
                INSERT INTO instances
                       (id, started_at, heartbeat_at, newest_revision)
                SELECT gen_random_uuid(), now(), now(), '0029' FROM generate_series(1, 3)
                """
            )
            await tx.execute(
                """
                INSERT INTO replica_reports
                SELECT id, 'engines', 'engines-1', 'm', 'silent', 'silent', now() + interval '9 s'
                  FROM instances
                 LIMIT 2
                """
            )

    patient.do(report)

    (row,) = [
        row for row in patient.json("backends", "list")["data"] if row["replica"] == "engines-1"
    ]
    assert (row["model"], row["state"], row["reason"], row["workers"]) == (
        *("m", "silent", "silent", 2),
    )
    assert 0 < row["next_trial_seconds"] <= 9


def test_a_replica_that_is_not_in_the_catalog_is_refused(patient: Operator) -> None:
    refused = patient.run("backends", "eject", "engines", "engines-7", exit_code=2)

    assert "no replica 'engines-7'" in refused.stderr


def ordered(operator: Operator) -> list[tuple[str, bool]]:
    async def read(running: Session) -> list[tuple[str, bool]]:
        rows = await running.database.fetch_all("SELECT * FROM replica_orders")
        return [(row["replica"], row["is_ejected"]) for row in rows]

    return operator.do(read)
