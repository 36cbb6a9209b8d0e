"""The guide to retries and timeouts: its program and its command on a running service."""

import json
import re
import sys
from pathlib import Path

import pytest
from openai import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT, Timeout

from tests.cli.commands import Operator, call, free_port
from tests.cli.documents import blocks, read, scripts
from tests.cli.engines import running
from tollhouse.catalog.types import Backend, CatalogJudge
from tollhouse.settings import InferenceSettings

GUIDE = read("docs/guides/retries-and-timeouts.md")


@pytest.mark.nightly
def test_the_program_is_answered_and_paid_once(patient: Operator) -> None:
    (program,) = blocks(GUIDE, "python")
    run, look = scripts(GUIDE)
    config = ("--config", str(patient.settings_path))
    patient.environment["TOLLHOUSE_SERVER__PORT"] = port = str(free_port())
    # The SDK stands beside this interpreter.
    patient.environment["PATH"] = f"{Path(sys.executable).parent}:{patient.environment['PATH']}"
    patient.environment["TOLLHOUSE_URL"] = f"http://127.0.0.1:{port}"
    patient.environment["MODEL"] = "test"
    (patient.directory / "careful.py").write_text(program, encoding="utf-8")
    call(*config, "org", "create", "Example Ltd")
    project = patient.json("project", "create", "search")["id"]
    call(*config, "credits", "grant", "5", "--reason", "pilot project")
    key = patient.created("key", "create", "--project", project, "careful")
    patient.environment["TOLLHOUSE_PROJECT_KEY"] = key["value"]

    with running(patient, "test-upstream", "--port", "0", "--tokens", "16", "--json") as printed:
        offer_test_model(patient, printed)
        with patient.serving():
            told = patient.bash(run).stdout
    looked = patient.bash(look).stdout

    assert re.search(r"^\d+ tokens$", told, re.MULTILINE)
    (record,) = patient.json("requests")["data"]
    assert (record["status"], record["tokens"]["output"]) == (200, 16)
    assert record["id"] not in looked


def offer_test_model(operator: Operator, printed: str) -> None:
    with operator.settings_path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.loads(printed)["configuration"])


def test_the_defaults_that_it_tells_are_the_true_ones() -> None:
    """Where one of them changes, the guide's advice has to be read again."""
    inference = InferenceSettings()
    backend = Backend(replicas=("http://127.0.0.1:8000/v1",))
    judge = CatalogJudge(backend="judge", model="judge", context_length=8192)

    assert f"`inference.head_wait_seconds` ({inference.head_wait_seconds:g})" in GUIDE
    assert f"`inference.keep_alive_seconds` ({inference.keep_alive_seconds:g})" in GUIDE
    assert f"`total_seconds` of the backend ({backend.total_seconds:g})" in GUIDE
    assert f"`judge.deadline_seconds` ({judge.deadline_seconds:g})" in GUIDE


def test_the_defaults_of_the_sdk_are_those_that_it_tells() -> None:
    assert isinstance(DEFAULT_TIMEOUT, Timeout)
    assert (DEFAULT_TIMEOUT.read, DEFAULT_TIMEOUT.connect, DEFAULT_MAX_RETRIES) == (600, 5, 2)
    assert "600 s without a byte; 5 s to connect" in GUIDE
