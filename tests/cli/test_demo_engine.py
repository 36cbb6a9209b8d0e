"""`tollhouse demo-engine`, as people start it and as it refuses."""

import os
import socket
from pathlib import Path
from urllib.request import urlopen

from tests.cli.commands import SECONDS_MAX, Operator
from tests.cli.engines import offered, running
from tollhouse.trial.llama import SLOT_TOKENS
from tollhouse.trial.model_file import model_file


def test_it_says_where_it_is_and_how_to_offer_it(newcomer: Operator) -> None:
    arguments = ("demo-engine", "--port", "0", "--model-file", str(model_file()), "--json")

    with running(newcomer, *arguments) as announced:
        base_url, backend, model = offered(announced)

        with urlopen(f"{base_url}/models", timeout=SECONDS_MAX) as answer:  # noqa: S310 - loopback
            assert answer.status == 200
    assert list(backend.replicas) == [base_url]
    assert model.context_length == SLOT_TOKENS


def test_without_the_extra_it_says_what_to_install(curious: Operator) -> None:
    refused = curious.run("demo-engine", exit_code=1)

    assert "pip install 'tollhouse[demo]'" in refused.stderr


def test_a_download_that_fails_says_what_to_do(newcomer: Operator) -> None:
    refused = newcomer.run(
        "demo-engine",
        exit_code=1,
        HOME=str(newcomer.directory),
        PIP_NO_INDEX="1",
        PIP_CONFIG_FILE=os.devnull,
    )

    assert "with --model-file" in refused.stderr
    assert list((newcomer.directory / ".cache/tollhouse/models").iterdir()) == []


def test_what_is_no_model_is_refused(newcomer: Operator) -> None:
    file = newcomer.directory / "model.gguf"
    file.write_bytes(b"nothing")

    refused = newcomer.run("demo-engine", "--port", "0", "--model-file", str(file), exit_code=1)

    assert f"{file} may be no GGUF file" in refused.stderr


def test_a_port_that_is_taken_is_said_to_be(newcomer: Operator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])

        refused = newcomer.run(
            *("demo-engine", "--port", port, "--model-file", str(model_file())), exit_code=1
        )

    assert f"something else may hold port {port}" in refused.stderr


def test_the_model_is_pinned_in_the_package() -> None:
    pinned = Path(__file__).parents[2] / "src" / "tollhouse" / "trial" / "models.txt"

    assert "--hash=sha256:" in pinned.read_text(encoding="utf-8")
