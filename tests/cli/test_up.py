"""`tollhouse up`, `down` and `reset`, as a newcomer meets them."""

import asyncio
import json
import re
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import ROOT, SECONDS_MAX, Operator
from tests.cli.conftest import keys_of
from tests.identity.waiting import until
from tests.support import databases
from tollhouse.cli.trial.folder import Trial, TrialFolder
from tollhouse.cli.trial.processes import is_running

SERIES = re.compile(r"^(tollhouse_\w+)(?:\{([^}]*)\})? ", re.MULTILINE)
METRIC = re.compile(r"\btollhouse_\w+")
GROUPING = re.compile(r"by \(([^)]*)\)")
NOT_CAUSED_BY_THE_EXAMPLES = {
    "tollhouse_activity_dropped_total",
    "tollhouse_backend_replicas_avoided",
    "tollhouse_limit_refusals_total",
    "tollhouse_limits_redis_seconds_bucket",
    "tollhouse_operator_pays_pico_usd_total",
}
HIDING_POSTGRES = "mount -t tmpfs none /usr/lib/postgresql && exec "


def state(operator: Operator) -> Trial:
    found = TrialFolder(operator.settings_path).read()
    assert found is not None
    return found


def test_the_printed_command_gets_an_answer(trial: tuple[Operator, dict[str, Any]]) -> None:
    operator, made = trial

    answer = operator.bash(made["commands"]["curl"], keys_of(made))

    assert json.loads(answer.stdout)["choices"][0]["message"]["content"]


def test_an_error_links_to_a_page_of_the_trial(trial: tuple[Operator, dict[str, Any]]) -> None:
    operator, made = trial

    refused = operator.bash('curl --silent "$TOLLHOUSE_URL/nowhere"', keys_of(made))
    doc_url = json.loads(refused.stdout)["error"]["doc_url"]
    page = operator.bash(f"curl --fail --silent {doc_url}")

    assert doc_url == f"{made['base_url']}/docs/errors/unknown_url"
    assert "<h1>unknown_url</h1>" in page.stdout


def test_it_has_something_to_look_at(trial: tuple[Operator, dict[str, Any]]) -> None:
    operator, _ = trial

    projects = operator.json("project", "list")["data"]
    policies = operator.json("policy", "list")["data"]
    caps = operator.json("caps", "show")["data"]

    assert len(projects) == 2
    assert [policy["state"] for policy in policies] == [
        *("enforcing", "monitoring", "monitoring", "enforcing", "enforcing")
    ]
    withholding = {
        (policy["name"], policy["draft"]["scope"])
        for policy in policies
        if policy["state"] == "enforcing" and policy["draft"]["direction"] != "request"
    }
    assert withholding == {("E-mail addresses in answers", "unattached")}
    assert [cap["is_alerting"] for cap in caps] == [False, True]
    assert operator.json("credits", "show")["available"]["value"].startswith("2")


def test_a_month_of_usage_is_marked_as_made_up(trial: tuple[Operator, dict[str, Any]]) -> None:
    operator, _ = trial

    history = operator.json("credits", "history")["data"]
    past = [entry for entry in history if entry["kind"] == "backfill"]

    assert len(past) == 60
    assert {entry["reason"] for entry in past} == {"example usage, made up by tollhouse up"}


def test_every_kind_of_outcome_is_among_its_requests(
    trial: tuple[Operator, dict[str, Any]],
) -> None:
    operator, made = trial
    found: list[dict[str, Any]] = []

    async def are_recorded() -> bool:
        found[:] = operator.json("requests", "--limit", "100")["data"]
        return len(found) >= 12

    asyncio.run(until(are_recorded))
    failed = {
        (request["failed_by"], request["error_code"]) for request in found if request["failed_by"]
    }
    (unsettled,) = operator.json("ledger", "unsettled")["data"]

    assert failed == {
        ("caller", "policy_violation"),
        ("caller", "invalid_type"),
        ("caller", "model_not_found"),
        ("backend", "backend_error"),
        ("gateway", "policy_evaluator_unavailable"),
    }
    assert unsettled["model"] == "test-billed"
    for policy in operator.json("policy", "list")["data"][:3]:
        asked = f"manage/v1/organization/policies/{policy['id']}/decisions"
        shown = operator.bash(
            f'curl --fail --silent --header "Authorization: Bearer $TOLLHOUSE_ADMIN_KEY" '
            f'"$TOLLHOUSE_URL/{asked}"',
            keys_of(made),
        )
        assert "match" in {each["outcome"] for each in json.loads(shown.stdout)["data"]}


def test_the_dashboard_asks_for_what_a_running_gateway_shows(
    trial: tuple[Operator, dict[str, Any]],
) -> None:
    operator, _ = trial
    port = operator.environment["TOLLHOUSE_SERVER__PROBE_PORT"]
    series = operator.bash(f"curl --fail --silent http://127.0.0.1:{port}/metrics").stdout
    labels_of: dict[str, set[str]] = {}
    for name, labels in SERIES.findall(series):
        labels_of.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    dashboard = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())

    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            (name,) = METRIC.findall(target["expr"])
            if name in NOT_CAUSED_BY_THE_EXAMPLES:
                continue
            asked = {
                label.strip()
                for grouping in GROUPING.findall(target["expr"])
                for label in grouping.split(",")
            }
            assert asked - {"instance"} <= labels_of[name], target["expr"]


def test_all_is_well_says_the_doctor(trial: tuple[Operator, dict[str, Any]]) -> None:
    operator, _ = trial

    findings = operator.json("doctor")["data"]

    assert {finding["outcome"] for finding in findings} == {"ok"}


def test_a_second_up_changes_nothing_and_shows_no_key(
    trial: tuple[Operator, dict[str, Any]],
) -> None:
    operator, made = trial
    before = state(operator)

    again = operator.json("up")

    assert state(operator) == before
    assert again == made | {"keys": None}


def test_a_second_up_says_how_to_get_the_keys_that_its_commands_need(
    trial: tuple[Operator, dict[str, Any]],
) -> None:
    operator, made = trial
    project = operator.json("project", "list")["data"][0]["id"]

    told = operator.run("up").stdout.splitlines()
    (admin,) = (line for line in told if line.startswith("tollhouse admin-key create"))
    (customer,) = (line for line in told if line.startswith("tollhouse key create"))
    operator.bash(admin)
    shown = operator.bash(customer.replace("PROJECT_ID", project) + " --json").stdout
    keys = keys_of(made) | {"TOLLHOUSE_PROJECT_KEY": json.loads(shown)["value"]}
    answer = operator.bash(made["commands"]["curl"], keys)

    assert f"export TOLLHOUSE_URL={made['base_url']}" in told
    assert json.loads(answer.stdout)["choices"]


@pytest.mark.nightly
def test_down_stops_it_up_goes_on_and_reset_leaves_nothing(curious: Operator) -> None:
    before = set(curious.directory.iterdir())
    made = curious.json("up")
    running, server = state(curious).processes.values(), state(curious).server
    assert server is not None

    told = curious.json("down")
    assert not any(map(is_running, running))
    assert told["stopped"] == ["gateway", "engine", "PostgreSQL"]
    assert told["kept"][-1] == server.folder
    with socket.create_server(("127.0.0.1", int(curious.environment["TOLLHOUSE_SERVER__PORT"]))):
        found = curious.run("doctor", exit_code=1).stdout
    assert "the trial is not running" in found
    with socket.create_server(("127.0.0.1", server.port)):
        refused = curious.run("up", exit_code=1).stderr
    assert f"Port {server.port}, which the PostgreSQL of this trial uses" in refused
    assert "database.url" in refused

    curious.json("up")
    answer = curious.bash(made["commands"]["curl"], keys_of(made))
    assert json.loads(answer.stdout)["choices"]

    removed = curious.json("reset", "--yes")
    assert removed["is_database_kept"] is False
    assert not Path(server.folder).exists()
    assert set(curious.directory.iterdir()) == before


@pytest.mark.nightly
def test_keys_are_not_lost_to_a_port_that_is_taken(curious: Operator) -> None:
    port = int(curious.environment["TOLLHOUSE_SERVER__PORT"])
    with socket.create_server(("127.0.0.1", port)):
        refused = curious.run("up", exit_code=1)

    assert f"Cannot listen on 127.0.0.1, port {port}: Address already in use" in refused.stderr
    assert "change server.port" in refused.stderr
    assert curious.json("up")["keys"]


@pytest.mark.nightly
def test_a_given_server_is_used_and_left_as_it_was(curious: Operator, fresh_url: str) -> None:
    curious.json("up", "--database-url", fresh_url)

    assert state(curious).server is None
    curious.run("reset", "--yes")
    # Which would fail if it were still there.
    asyncio.run(databases.create(fresh_url.rpartition("/")[2]))


@pytest.mark.nightly
def test_a_killed_up_is_begun_anew(curious: Operator) -> None:
    process = subprocess.Popen(
        [curious.tollhouse, "up"],
        cwd=curious.directory,
        env=curious.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    draft = curious.directory / "tollhouse.toml.partial"

    async def has_begun() -> bool:
        return draft.exists()

    asyncio.run(until(has_begun))
    process.send_signal(signal.SIGKILL)
    process.wait(SECONDS_MAX)
    forsaken = state(curious)
    assert forsaken.server is not None

    made = curious.json("up")

    assert not Path(forsaken.server.folder).exists()
    assert not any(map(is_running, forsaken.processes.values()))
    assert json.loads(curious.bash(made["commands"]["curl"], keys_of(made)).stdout)["choices"]


def test_what_up_did_not_make_is_not_touched(newcomer: Operator) -> None:
    newcomer.settings_path.write_text("# of value\n", encoding="utf-8")

    for verb in (["up"], ["down"], ["reset", "--yes"]):
        newcomer.run(*verb, exit_code=1)

    assert newcomer.settings_path.read_text(encoding="utf-8") == "# of value\n"
    assert [path.name for path in newcomer.directory.iterdir()] == ["tollhouse.toml"]


def test_without_postgresql_it_says_exactly_what_to_do(newcomer: Operator) -> None:
    unshare = ["/usr/bin/unshare", "--mount"]
    hidden = [*unshare, "bash", "-c", HIDING_POSTGRES + f"{newcomer.tollhouse} up"]
    allowed = subprocess.run([*unshare, "true"], check=False, capture_output=True)
    if allowed.returncode or not Path("/usr/lib/postgresql").is_dir():
        pytest.skip("this machine lets nobody hide a folder")

    refused = newcomer.shell(hidden, {"PATH": "/usr/bin:/bin:/usr/sbin"}, exit_code=1)

    assert "sudo apt-get install postgresql" in refused.stderr
    assert "tollhouse up --database-url postgresql://" in refused.stderr
