"""`tollhouse key peppers` and `retire-pepper`; their tables are in the guide to keys."""

import asyncio

import asyncpg

from tests.cli.commands import Operator, call, execute

WORKER_WITH_VERSION_1 = """
    INSERT INTO instances (id, started_at, heartbeat_at, pepper_versions, newest_revision)
    VALUES (gen_random_uuid(), now(), now() + interval '1 hour', '{1}', '9999')
"""
FACTS = {"object": "pepper", "workers": 0, "workers_live": 0, "configured": True}


def add_pepper(operator: Operator, version: int, pepper: str) -> None:
    """The section of the peppers is the last one that `init` writes."""
    with operator.settings_path.open("a") as file:
        file.write(f'{version} = "{pepper}"\n')
    operator.secrets.append(pepper)


def test_a_new_version_is_used_and_the_old_one_retired(patient: Operator) -> None:
    config = ("--config", str(patient.settings_path))
    call(*config, "org", "create", "Example Ltd")
    call(*config, "admin-key", "create", "old")
    add_pepper(patient, 2, "the second pepper, long and mixed 0123")
    call(*config, "admin-key", "create", "new")

    known = patient.json("key", "peppers")["data"]
    retired = patient.json("key", "retire-pepper", "1", "--yes")

    assert known == [
        FACTS | {"version": 1, "secrets": 1, "mints": False},
        FACTS | {"version": 2, "secrets": 1, "mints": True},
    ]
    assert retired == {"object": "pepper.retired", "version": 1, "secrets_ended": 1}


def test_only_the_version_that_a_key_is_made_with_is_entered(
    patient: Operator, database_url: str
) -> None:
    """A live worker knows version 1 alone; one more like it must still be able to start."""
    config = ("--config", str(patient.settings_path))
    call(*config, "org", "create", "Example Ltd")
    add_pepper(patient, 2, "the second pepper, long and mixed 0123")
    asyncio.run(execute(database_url, WORKER_WITH_VERSION_1))

    call(*config, "admin-key", "create", "finance")

    known = {row["version"]: row for row in patient.json("key", "peppers")["data"]}
    assert (known[1]["secrets"], known[2]["secrets"]) == (1, 0)
    assert asyncio.run(entered(database_url)) == [1]


async def entered(url: str) -> list[int]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT version FROM peppers ORDER BY version")
    await connection.close()
    return [row["version"] for row in rows]


def test_what_is_unknown_or_the_only_one_cannot_be_retired(patient: Operator) -> None:
    config = ("--config", str(patient.settings_path))
    call(*config, "org", "create", "Example Ltd")
    call(*config, "admin-key", "create", "the only one")

    assert patient.failure_code("key", "retire-pepper", "7", "--yes") == "pepper_not_found"
    assert patient.failure_code("key", "retire-pepper", "1", "--yes") == "pepper_needed"
