"""The page of clients says what the last recorded run of `make test-clients` found."""

import json
from pathlib import Path

import pytest

from tools import client_matrix, clients

RESULTS = """<testsuites><testsuite>
<testcase name="a"><properties>
<property name="shows" value='["litellm", "tools", "specification: refused"]'/>
<property name="shows" value='["litellm", "chat", null]'/></properties></testcase>
<testcase name="b"><properties>
<property name="shows" value='["codex", "stream", null]'/></properties>
<failure message="AssertionError: 400 from the gateway&#10;more">trace</failure></testcase>
</testsuite></testsuites>"""


def test_the_page_is_written_from_the_outcome_file() -> None:
    page = client_matrix.PAGE.read_text(encoding="utf-8")

    assert page == client_matrix.page_of(client_matrix.recorded()), "run tools.client_matrix"


def test_outcomes_are_of_the_pinned_versions_of_every_client() -> None:
    found = client_matrix.recorded()

    installed = {*clients.NODE_CLIENTS, *clients.PYTHON_CLIENTS}
    assert set(found) == installed - {*clients.GENERATORS, *clients.LINTERS}
    for client, outcome in found.items():
        assert outcome.versions == clients.versions_of(client), f"{client}: run make test-clients"
        assert outcome.versions
        assert tuple(outcome.abilities) == client_matrix.ABILITIES


def test_every_gap_has_a_reason() -> None:
    kinds = ("specification: ", "engine: ", "client: ")
    for client, outcome in client_matrix.recorded().items():
        for ability, result in outcome.abilities.items():
            assert result == client_matrix.WORKS or result.startswith(kinds), (client, ability)


def test_a_pin_is_what_its_lock_has() -> None:
    for client in clients.PYTHON_CLIENTS:
        lock = (clients.LOCKS / client / "requirements.txt").read_text(encoding="utf-8")
        for name, version in clients.versions_of(client).items():
            assert f"{name}=={version} " in lock


def test_results_become_outcomes_and_failures_reasons() -> None:
    found = client_matrix.outcomes_of(RESULTS)

    assert found["litellm"].abilities["tools"] == "specification: refused"
    assert found["litellm"].abilities["chat"] == "works"
    assert found["litellm"].abilities["stream"] == "not tried"
    assert found["codex"].abilities["stream"] == "fails: AssertionError: 400 from the gateway"
    assert found["codex"].abilities["chat"] == "client: it always streams"
    page = client_matrix.page_of(found)
    assert "(1)" in page
    assert "specification: refused." in page


def test_a_run_writes_outcome_file_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_matrix, "ROOT", tmp_path)
    monkeypatch.setattr(client_matrix, "OUTCOMES", tmp_path / "clients.json")
    monkeypatch.setattr(client_matrix, "PAGE", tmp_path / "clients.md")
    (tmp_path / "results.xml").write_text(RESULTS, encoding="utf-8")

    client_matrix.main([str(tmp_path / "results.xml")])

    written = json.loads((tmp_path / "clients.json").read_text(encoding="utf-8"))
    assert written["litellm"]["abilities"]["chat"] == "works"
    assert (tmp_path / "clients.md").read_text(encoding="utf-8").startswith("# Clients")
