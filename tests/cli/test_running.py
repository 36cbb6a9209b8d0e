"""The guide to running it: a backup that is restored holds the same money."""

import asyncio
import re

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts
from tests.support import databases

GUIDE = read("docs/guides/running.md")


def test_a_backup_is_restored_and_adds_up(patient: Operator, database_url: str) -> None:
    _, dump, restore, verify = scripts(GUIDE)
    (name,) = re.findall(r"tollhouse_restored", restore)
    fresh = databases.fresh_name()
    patient.environment.update(
        {
            "DATABASE_URL": database_url,
            "MAINTENANCE_URL": databases.MAINTENANCE_URL,
            "RESTORED_URL": databases.url_of(fresh),
        }
    )
    patient.run("org", "create", "Example Ltd")
    patient.run("credits", "grant", "25", "--reason", "to be found again")

    patient.bash(dump)
    try:
        # The name alone is another one: the server is shared.
        patient.bash(restore.replace(name, fresh))
        verified = patient.bash(verify).stdout
        patient.environment["TOLLHOUSE_DATABASE__URL"] = databases.url_of(fresh)
        assert patient.json("credits", "show")["balance"]["value"] == "25"
    finally:
        asyncio.run(databases.drop(fresh))

    assert verified
