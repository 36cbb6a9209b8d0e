"""`tollhouse attribution`, and the commands of its guide."""

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts

GUIDE = "docs/guides/attribution.md"


def test_the_commands_of_the_guide_run(patient: Operator) -> None:
    keys, settings, _by_api, delete = scripts(read(GUIDE))
    patient.json("org", "create", "Example Ltd")
    project = patient.json("project", "create", "a project")
    patient.environment["PROJECT_ID"] = project["id"]

    made = patient.bash(keys).stdout
    shown = patient.bash(settings).stdout
    deleted = patient.bash(delete).stdout

    assert made.count('"name": "alice"') + made.count('"name":"alice"') == 1
    assert "metadata.team" in shown
    assert "Total: 0 USD" in shown
    assert "deleted" in deleted
    setting = patient.json("attribution", "show")
    assert (setting["dimensions"], setting["retention_days"]) == (["user", "metadata.team"], 30)


def test_an_unknown_dimension_is_a_usage_error(patient: Operator) -> None:
    patient.json("org", "create", "Example Ltd")

    refused = patient.run("attribution", "set", "prompt", exit_code=2).stderr
    assert "`metadata.` and a name" in refused
    assert patient.json("attribution", "set")["dimensions"] == []
