"""The shorter guides for operators: their commands, and the settings that they show."""

import logging
import re
from datetime import UTC, datetime

import pytest

from tests.cli.commands import ROOT, Operator
from tests.cli.documents import blocks, read, scripts
from tollhouse.base.ids import RequestId, time_ordered_uuid
from tollhouse.catalog import rules as catalog
from tollhouse.observability import log
from tollhouse.settings import load


def request_line(capsys: pytest.CaptureFixture[str], status: int) -> str:
    log.request_line(
        log.RequestLine(
            timestamp=datetime.now(UTC),
            request_id=RequestId(time_ordered_uuid()),
            method="POST",
            status=status,
            duration_ms=1.5,
        )
    )
    return capsys.readouterr().err


def test_failures_are_found_in_the_log(
    patient: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    (script,) = scripts(read("docs/guides/log-shipping.md"))
    record = logging.LogRecord("tollhouse", logging.ERROR, "", 0, "worker_died", None, None)
    served, failed = request_line(capsys, 200), request_line(capsys, 503)
    error = log.JsonFormatter().format(record)
    (patient.directory / "tollhouse.log").write_text(f"{served}{failed}{error}\n")

    assert patient.bash(script).stdout == f"{error}\n{failed}"


def test_events_to_watch_are_events_of_the_program() -> None:
    _, _, table = read("docs/guides/log-shipping.md").partition("## Lines to watch\n")
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    source = "\n".join(path.read_text() for path in (ROOT / "src/tollhouse").rglob("*.py"))

    events = [event for cell in cells for event in re.findall(r"`([a-z_]+)`", cell)]
    assert events
    assert [event for event in events if f'"{event}"' not in source] == []


def test_a_project_is_renamed_and_an_organization_is_ended(patient: Operator) -> None:
    rename, end = scripts(read("docs/guides/retention-and-erasure.md"))
    patient.run("org", "create", "Example Ltd")
    (organization,) = patient.json("org", "list")["data"]
    project = patient.json("project", "create", "of one person")
    patient.environment.update({"ORGANIZATION_ID": organization["id"], "PROJECT_ID": project["id"]})

    patient.bash(rename)
    shown = patient.bash(end).stdout

    assert patient.json("org", "show", organization["id"])["status"] == "closed"
    assert "organization.close" in shown


def test_the_recipes_for_providers_are_a_catalog(patient: Operator) -> None:
    recipes = blocks(read("docs/guides/provider-recipes.md"), "toml")
    with patient.settings_path.open("a", encoding="utf-8") as file:
        file.write("\n" + "\n".join(recipes))

    names = ("PROVIDER_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY")
    settings = load(patient.settings_path, environment=dict.fromkeys(names, "secret"))
    parsed = catalog.parse(settings.backends, settings.models)

    assert set(parsed.models) == {"example/model", "example/claude", "example/azure-model"}
