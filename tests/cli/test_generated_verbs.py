"""Every verb that is made from an operation, on a host and over HTTP, with one table for both."""

import asyncio
import json
import shlex
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.cli.commands import Operator
from tollhouse.cli.verbs.nouns import OFFERED
from tollhouse.contract.operation import OperatorOperation

UNKNOWN = "01890a5d-ac96-774b-bcce-b302099a8057"


@dataclass(frozen=True)
class Step:
    """A command line, the number of audit rows that it writes, and the code that it fails with.

    `keeps` is the name under which later lines use the ID of its answer.
    """

    line: str
    rows: int = 0
    keeps: str = ""
    fails: str = ""


STEPS = (
    Step("whoami"),
    Step("project create search", 1, "project"),
    Step("project create search"),
    Step("project create search --again", 1, "other"),
    Step("project edit {other} --name archive --model a --model b", 1),
    Step("project edit archive --clear model", 1),
    Step("project list"),
    Step("project show search"),
    Step("key create batch --project search --cap 5 --expires 30d --model a", 2, "key"),
    Step("key create batch --project search --cap 5 --expires 30d --model a"),
    Step("key list --project search"),
    Step("key show batch"),
    Step("key show {key} --project search"),
    Step("key rotate batch --overlap-seconds 60", 1),
    Step("key end-previous batch", 1),
    Step("key suspend batch", 1),
    Step("key resume batch", 1),
    Step("credits show"),
    Step("credits test-payment $12.50", 1),
    Step("credits history"),
    Step("caps set 20 --period month --project search", 1),
    Step("caps set 2 --period day --key batch --alert-percent 50", 1),
    Step("caps show"),
    Step("caps clear --period month --project search", 1),
    Step("limits set --requests 60 --key batch", 1),
    Step("limits show"),
    Step("limits clear --key batch", 1),
    Step("costs --from 7d --by line_item"),
    Step("costs export --output costs.csv"),
    Step("usage --from 2d --by model --per 1h"),
    Step("usage completions --from 2d"),
    Step("requests --project search --status 5xx"),
    Step(f"request {UNKNOWN}", fails="request_not_found"),
    Step("requests report --from 1d"),
    Step("models list"),
    Step("admin-key create finance --permission billing:read --permission audit:read", 1),
    Step("admin-key list"),
    Step("admin-key show finance"),
    Step("admin-key narrow finance --permission billing:read", 1),
    Step("admin-key revoke finance --yes", 1),
    Step('policy create "No names" --rule @rule.txt --scope organization', 1, "policy"),
    Step('policy edit "No names" --match-threshold-basis-points 700 --project search', 1),
    Step('policy edit "No names" --clear match-threshold-basis-points --clear project', 1),
    Step('policy publish "No names"', 1),
    Step('policy pause "No names"', 1),
    Step('policy resume "No names"', 1),
    Step('policy edit "No names" --mode enforcing', 1),
    Step('policy publish "No names" --refuse-until-judged', 1),
    Step('policy rollback "No names" 1', 1),
    Step("policy list"),
    Step("policy show {policy}"),
    Step('policy diff "No names"'),
    Step('policy versions "No names"'),
    Step('policy version "No names" 1'),
    Step("policy effective search"),
    Step('policy lint "No names"'),
    Step('policy test "No names" --text "Call Ada."', fails="no_judge"),
    Step('policy decisions "No names"'),
    Step('policy report "No names"'),
    Step("policy create draft --rule 'Is it?'", 1),
    Step("policy delete draft --yes", 1),
    Step('rule lint "Say bread"'),
    Step('rule test "Is it bread?" --text bread', fails="no_judge"),
    Step("alerts create finance --url https://alerts.example.com/x --cap-percent 80", 1),
    Step("alerts edit finance --name team --url https://alerts.example.com/x --credit-below 5", 1),
    Step("alerts list"),
    Step("alerts show team"),
    Step("alerts rotate-secret team", 1),
    Step("alerts test team", 1),
    Step("alerts retry team", 1),
    Step("alerts deliveries"),
    Step("alerts delete team --yes", 1),
    Step("audit --limit 5"),
    Step("key revoke batch --yes", 1),
    Step("project archive search --yes", 1),
)
OF_OPERATOR = (
    Step('org create "Example Ltd"', 1, "organization"),
    Step("org list --limit 1"),
    Step('org show "Example Ltd"'),
    Step("org suspend {organization}", 1),
    Step("org resume {organization}", 1),
    Step("org checks grant {organization} identity", 1),
    Step("org checks list {organization}"),
    Step("org checks revoke {organization} identity", 1),
    Step("project create search --org {organization}", 1),
    Step("org limits set {organization} --requests 600 --project search", 1),
    Step("org limits clear {organization} --project search", 1),
    Step("credits grant 25 --reason pilot --org {organization}", 1),
    Step("credits grant 25 --reason pilot --org {organization}"),
    Step("credits grant --kind correction --reason wrong --org {organization} -- -5", 1),
    Step("alerts create ops --url https://a.example/x --cap-percent 80 --org {organization}", 1),
    Step("alerts backends ops --org {organization}", 1),
    Step("alerts backends ops --no-backend-down --org {organization}", 1),
    Step("session list"),
    Step(f"session end {UNKNOWN}", fails="session_ended"),
    Step("org close {organization} --yes", 1),
    Step("credits grant 1 --reason late --org {organization}", 1),
    Step("project create late --org {organization}", fails="organization_closed"),
)


def names_of(steps: tuple[Step, ...]) -> set[str]:
    """The commands of operations that the steps run: the longest name that begins each line."""
    lines = (f"{step.line} " for step in steps)
    found = ([name for name in OFFERED if line.startswith(f"{name} ")] for line in lines)
    return {max(names, key=len) for names in found if names}


def test_the_tables_have_every_verb() -> None:
    of_operator = {
        name for name, operation in OFFERED.items() if isinstance(operation, OperatorOperation)
    }

    assert OFFERED.keys() - of_operator - names_of(STEPS) == set()
    assert of_operator - names_of(OF_OPERATOR) == set()


def rows_in(url: str) -> int:
    async def count() -> int:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval("SELECT count(*) FROM audit_log")
        finally:
            await connection.close()

    return asyncio.run(count())


def follow(user: Operator, url: str, steps: tuple[Step, ...]) -> None:
    kept: dict[str, str] = {}
    (user.directory / "rule.txt").write_text("Does the text name\na person?\n")
    before = rows_in(url)
    for step in steps:
        line = shlex.split(step.line.format(**kept))
        place = line.index("--") if "--" in line else len(line)
        ended = user.run(*line[:place], "--json", *line[place:], exit_code=1 if step.fails else 0)
        after = rows_in(url)
        assert (step.line, after - before) == (step.line, step.rows)
        before = after
        if step.fails:
            assert (step.line, ended.error["code"]) == (step.line, step.fails)
            continue
        answer: dict[str, Any] = json.loads(ended.stdout)
        if step.keeps:
            kept[step.keeps] = answer["id"]


@pytest.fixture
def sandbox(patient: Operator) -> Operator:
    patient.environment["TOLLHOUSE_LEDGER__IS_SANDBOX"] = "true"
    return patient


@pytest.fixture
def remote(sandbox: Operator, tmp_path: Path) -> Generator[Operator]:
    """Somebody elsewhere, with a URL and an Admin key."""
    sandbox.run("org", "create", "Example Ltd")
    admin = sandbox.created("admin-key", "create", "everything")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with sandbox.serving() as server:
        url = server.announced.split("is ready on ")[1].split()[0].strip(",.")
        variables = {"TOLLHOUSE_URL": url, "TOLLHOUSE_ADMIN_KEY": admin["value"]}
        yield Operator(elsewhere, sandbox.environment | variables)


def test_each_works_on_a_host_with_one_audit_row_for_each_change(
    sandbox: Operator, database_url: str
) -> None:
    sandbox.run("org", "create", "Example Ltd")

    follow(sandbox, database_url, STEPS)

    assert (sandbox.directory / "costs.csv").read_text().startswith("BilledCost,")
    actors = {row["actor"]["type"] for row in sandbox.json("audit", "--limit", "500")["data"]}
    assert actors == {"operator"}


def test_each_works_with_a_url_and_a_key_alone(remote: Operator, database_url: str) -> None:
    follow(remote, database_url, STEPS)

    assert (remote.directory / "costs.csv").read_text().startswith("BilledCost,")
    refused = remote.run("credits", "grant", "1", "--reason", "x", "--json", exit_code=1)
    assert refused.error["code"] == "only_for_the_operator"


def test_what_only_the_operator_may_do_runs_on_the_host(
    sandbox: Operator, database_url: str
) -> None:
    sandbox.run("org", "create", "Other Ltd")

    follow(sandbox, database_url, OF_OPERATOR)
