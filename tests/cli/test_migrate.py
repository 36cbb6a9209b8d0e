"""`tollhouse migrate`, and verbs on a database that was not migrated."""

import asyncio
import contextlib
import os
import pty
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cli.commands import SECONDS_MAX, Operator, call, execute
from tests.cli.conftest import deployed
from tests.cli.documents import read, scripts
from tests.support import databases
from tollhouse.storage import revisions


@pytest.fixture
def unmigrated(newcomer: Operator, fresh_url: str) -> Operator:
    """The operator of a deployment whose database is empty."""
    asyncio.run(databases.create(fresh_url.rpartition("/")[2]))
    return deployed(fresh_url, newcomer.directory, newcomer.environment)


def test_what_is_pending_is_said_then_applied_then_gone(unmigrated: Operator) -> None:
    head = revisions.head()
    pending = unmigrated.json("migrate", "--check", exit_code=1)
    refused = unmigrated.run("org", "list", "--json", exit_code=1)
    progress, applied = migrated_at_a_terminal(unmigrated)
    checked = call("--config", str(unmigrated.settings_path), "migrate", "--check")
    again = unmigrated.json("migrate")

    assert pending["pending"] is True
    assert pending["revision"] is None
    assert refused.error["code"] == "schema_mismatch"
    assert "tollhouse migrate" in refused.error["message"]
    assert "triggers" in progress
    assert "100%" in progress
    assert applied == {
        "applied": ", ".join(revisions.known()),
        "revision": head,
        "contracted": head,
    }
    assert checked == 0
    assert again == {"object": "migration", "applied": [], "revision": head, "contracted": head}


def test_the_guide_to_upgrades_expands_then_contracts(unmigrated: Operator) -> None:
    expand, contract, verify = scripts(read("docs/guides/upgrades.md"))

    unmigrated.bash(expand)
    expanded = unmigrated.json("migrate", "--check", "--contract")
    unmigrated.bash(contract)
    verified = unmigrated.bash(verify)

    assert expanded["contract_pending"] is False
    assert expanded["contracted"] == revisions.head()
    assert verified.stdout


def migrated_at_a_terminal(operator: Operator) -> tuple[str, dict[str, str]]:
    """The progress that somebody would see, and what was applied."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [operator.tollhouse, "migrate"],
        cwd=operator.directory,
        env=operator.environment | {"TERM": "xterm", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=terminal,
    )
    os.close(terminal)
    # A terminal that nobody reads holds up whoever writes to it.
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_to_the_end, controller)
        stdout, _ = process.communicate(timeout=SECONDS_MAX)
        progress = reading.result().decode()
    os.close(controller)
    assert process.returncode == 0
    return progress, dict(line.split(maxsplit=1) for line in stdout.decode().splitlines())


def read_to_the_end(controller: int) -> bytes:
    """Until the last one who could write has closed the terminal, which is an error to read."""
    shown = b""
    with contextlib.suppress(OSError):
        while piece := os.read(controller, 65_536):
            shown += piece
    return shown


def test_a_newer_database_is_not_pending_but_too_new(patient: Operator, database_url: str) -> None:
    asyncio.run(execute(database_url, "UPDATE schema_contracted SET version_num = '9999'"))

    for arguments in (("migrate", "--check"), ("migrate",), ("org", "list")):
        refused = patient.run(*arguments, "--json", exit_code=1)

        assert refused.stdout == ""
        assert refused.error["code"] == "schema_mismatch"
        assert "9999, which is newer than this software" in refused.error["message"]


def test_a_missing_database_is_explained(newcomer: Operator, fresh_url: str) -> None:
    operator = deployed(fresh_url, newcomer.directory, newcomer.environment)

    refused = operator.run("audit", "--json", exit_code=1)

    assert refused.error["code"] == "database_missing"
