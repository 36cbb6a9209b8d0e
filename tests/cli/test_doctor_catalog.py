"""What `tollhouse doctor` says of the catalog, and of the replicas in it."""

import asyncio
import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.backends.wire import running_upstream
from tests.cli.commands import Operator, free_port
from tests.support.certificates import make_certificates
from tests.support.judge import Fault, ScriptedJudge, running_judge
from tollhouse.base.findings import FindingOutcome
from tollhouse.cli.doctor.catalog import replicas_finding

MODEL = """
[models."example/model-a"]
backend = "{backend}"
context_length = 4096
max_output_length = 1024
pricing = {{ prompt = "0.0000025", completion = "0.00001" }}
"""


class Engine(BaseHTTPRequestHandler):
    """Well, for whoever has the credential."""

    def do_GET(self) -> None:
        is_let_in = self.headers["authorization"] == "Bearer sk-hunter2"
        is_well = self.path == "/health" and is_let_in
        if self.path == "/v1/models":
            is_well = self.headers["x-api-key"] == "sk-hunter2" and bool(
                self.headers["anthropic-version"]
            )
        if self.path == "/openai/models?api-version=2024-10-21":
            is_well = self.headers["api-key"] == "sk-hunter2" and not is_let_in
        self.send_response(200 if is_well else 401)
        self.end_headers()

    def do_POST(self) -> None:
        """Count as an engine whose template has a system prompt of its own."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tokens = 7 if "system" in body else 1_376
        is_known = self.path == "/v1/messages/count_tokens"
        self.send_response(200 if is_known else 404)
        answer = json.dumps({"input_tokens": tokens}).encode()
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        """Say nothing."""


@pytest.fixture
def engine_url() -> Generator[str, None, None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def configure(patient: Operator, *lines: str) -> None:
    with patient.settings_path.open("a", encoding="utf-8") as file:
        file.write("\n".join(["", *lines, ""]))


def examined(patient: Operator, *, exit_code: int = 0) -> dict[str, dict[str, Any]]:
    report = patient.json("doctor", exit_code=exit_code)
    return {finding["check"]: finding for finding in report["data"]}


def test_a_catalog_whose_replicas_answer_is_healthy(patient: Operator, engine_url: str) -> None:
    patient.secrets.append("sk-hunter2")
    patient.environment["ENGINE_KEY"] = "sk-hunter2"
    configure(
        patient,
        "[backends.engine]",
        f'replicas = ["{engine_url}"]',
        'api_key_variable = "ENGINE_KEY"',
        MODEL.format(backend="engine"),
    )

    findings = examined(patient)

    assert findings["catalog"]["found"] == "models: 1, backends: 1"
    assert findings["backend engine"] == {
        "check": "backend engine",
        "outcome": "ok",
        "found": "1 of 1 replicas answer",
        "remedy": None,
    }


async def test_a_replica_of_a_private_authority_is_asked_with_it(
    patient: Operator, tmp_path: Path
) -> None:
    certificates = make_certificates(tmp_path / "engine")
    async with running_upstream(certificates.server_context()) as upstream:
        line = f'replicas = ["{upstream.url}"]'
        ca_file = f'ca_file = "{certificates.authority}"'
        configure(patient, "[backends.named]", line, ca_file, "[backends.unnamed]", line)

        findings = await asyncio.to_thread(examined, patient, exit_code=1)

    assert findings["backend named"]["found"] == "1 of 1 replicas answer"
    assert "has a certificate that was refused: " in findings["backend unnamed"]["found"]


def test_a_replica_of_azure_is_asked_with_its_version_and_header(
    patient: Operator, engine_url: str
) -> None:
    patient.secrets.append("sk-hunter2")
    patient.environment.update({"AZURE_KEY": "sk-hunter2", "OLD_KEY": "sk-old"})
    lines = f'replicas = ["{engine_url.removesuffix("/v1")}"]\ndialect = "azure"\n'
    version = 'api_version = "2024-10-21"'
    configure(
        patient,
        f'[backends.azure]\n{lines}{version}\napi_key_variable = "AZURE_KEY"',
        f'[backends.stale]\n{lines}{version}\napi_key_variable = "OLD_KEY"',
    )

    findings = examined(patient, exit_code=1)

    assert findings["backend azure"]["found"] == "1 of 1 replicas answer"
    assert "answers 401 to GET /openai/models" in findings["backend stale"]["found"]


def test_a_replica_of_anthropic_is_asked_for_its_models(patient: Operator, engine_url: str) -> None:
    patient.secrets.append("sk-hunter2")
    patient.environment["CLAUDE_KEY"] = "sk-hunter2"
    lines = f'replicas = ["{engine_url}"]\ndialect = "anthropic"\napi_key_variable = "CLAUDE_KEY"'
    configure(patient, f"[backends.claude]\n{lines}")

    assert examined(patient)["backend claude"]["found"] == "1 of 1 replicas answer"


def test_every_replica_is_asked_and_the_bad_ones_are_named(
    patient: Operator, engine_url: str
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    patient.secrets.append("sk-hunter2")
    patient.environment.update({"ENGINE_KEY": "sk-hunter2", "OLD_KEY": "sk-old"})
    configure(
        patient,
        "[backends.half]",
        f'replicas = ["{engine_url}", "{nowhere}"]',
        'api_key_variable = "ENGINE_KEY"',
        "[backends.stale]",
        f'replicas = ["{engine_url}"]',
        'api_key_variable = "OLD_KEY"',
        "[backends.down]",
        f'replicas = ["{nowhere}"]',
    )

    findings = examined(patient, exit_code=1)

    assert findings["backend half"]["outcome"] == "warning"
    assert findings["backend half"]["found"] == (
        f"1 of 2 replicas answer: {nowhere} cannot be connected to"
    )
    assert findings["backend stale"]["outcome"] == "failure"
    assert "answers 401 to GET /health" in findings["backend stale"]["found"]
    assert findings["backend down"]["outcome"] == "failure"
    assert "replicas, health_path, ca_file or the credential" in findings["backend down"]["remedy"]


def test_a_bad_catalog_is_explained_and_the_rest_is_examined_all_the_same(
    patient: Operator,
) -> None:
    configure(patient, MODEL.format(backend="absent"))

    findings = examined(patient, exit_code=1)

    assert findings["catalog"]["outcome"] == "failure"
    assert findings["catalog"]["found"] == (
        'models."example/model-a".backend: there is no such backend'
    )
    assert findings["database"]["outcome"] == "ok"


def test_the_service_refuses_to_start_with_a_bad_catalog(patient: Operator) -> None:
    configure(patient, MODEL.format(backend="absent"))

    refused = patient.run("serve", exit_code=1)

    assert refused.stderr == ('Error: models."example/model-a".backend: there is no such backend\n')


def test_a_credential_that_is_missing_is_found_by_its_place(patient: Operator) -> None:
    configure(
        patient,
        "[backends.engine]",
        'replicas = ["http://127.0.0.1:1/v1"]',
        'api_key_variable = "ENGINE_KEY"',
    )

    finding = examined(patient, exit_code=1)["settings"]

    assert finding["found"].startswith('backends."engine".api_key_variable: the environment')


def test_a_long_list_of_faults_is_cut() -> None:
    urls = tuple(f"http://engine-{number}" for number in range(9))
    faults: list[str | None] = ["is down"] * 8

    most, all_ = (
        replicas_finding("backend x", urls, [None, *faults]),
        replicas_finding("backend x", urls[1:], faults),
    )

    assert most.outcome is FindingOutcome.WARNING
    assert most.found.startswith("1 of 9 replicas answer: http://engine-1 is down; http://engine-2")
    assert most.found.endswith("http://engine-5 is down; and 3 more")
    assert all_.outcome is FindingOutcome.FAILURE


def configure_judge(patient: Operator, judge: ScriptedJudge, *lines: str) -> None:
    configure(
        patient,
        "[backends.judge]",
        f'replicas = ["{judge.base_url}"]',
        "[judge]",
        'backend = "judge"',
        'model = "a-judge"',
        "context_length = 8192",
        *lines,
    )


async def test_the_judge_is_asked_for_its_tokens_and_one_question(patient: Operator) -> None:
    judge = ScriptedJudge(answers=lambda _: 0.9)
    async with running_judge(judge):
        configure_judge(patient, judge)
        found = (await asyncio.to_thread(examined, patient))["judge"]
        configure(patient, "coverage_min_basis_points = 9900")
        wary = (await asyncio.to_thread(examined, patient))["judge"]
        judge.fails = lambda _: Fault.NO_LOGPROBS
        silent = (await asyncio.to_thread(examined, patient, exit_code=1))["judge"]

    assert found["outcome"] == "ok"
    assert found["found"] == "3 spellings of yes and no are used; they are 98.00 % of its answer"
    assert wary["outcome"] == "warning"
    assert silent["outcome"] == "failure"
    assert silent["found"] == "cannot be asked: garbled"


def test_without_a_judge_that_is_said(patient: Operator) -> None:
    assert examined(patient)["judge"]["found"].startswith("none")


def configure_counting(patient: Operator, url: str, counter: str, *lines: str) -> None:
    """A model whose prompts are bounded by bytes, on an engine that counts them."""
    configure(
        patient,
        "[backends.engine]",
        f'replicas = ["{url}"]',
        'health_path = "/none"',
        f'counts_tokens_by = "{counter}"',
        MODEL.format(backend="engine"),
        'tokenizer = "bytes"',
        *lines,
    )


TEMPLATE = "template of example/model-a"


def test_a_template_that_adds_more_than_is_reserved_is_told_with_what_to_declare(
    patient: Operator, engine_url: str
) -> None:
    configure_counting(patient, engine_url, "messages")
    short = examined(patient, exit_code=1)[TEMPLATE]
    configure(patient, "template_tokens = 1376")

    enough = examined(patient, exit_code=1)[TEMPLATE]

    assert short["outcome"] == "warning"
    assert short["found"] == "the engine counts 1376 tokens for one word, and 304 are reserved"
    assert short["remedy"].startswith("Set template_tokens = 1376 for the model.")
    assert enough["outcome"] == "ok"
    assert enough["found"] == "the engine counts 1376 tokens for one word, and 1424 are reserved"


def test_an_engine_that_counts_no_chats_says_nothing_about_its_template(
    patient: Operator, engine_url: str
) -> None:
    configure_counting(patient, engine_url, "tokenize")

    found = examined(patient, exit_code=1)[TEMPLATE]

    assert (found["outcome"], found["found"]) == (
        "ok",
        "not compared: the engine does not count tokens of chats",
    )
