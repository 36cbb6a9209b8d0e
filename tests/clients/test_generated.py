"""The OpenAPI document has no fault, and clients from it compile strictly and reach a gateway."""

from pathlib import Path

import pytest

from tests.clients.generated import DOCUMENT, Program
from tests.clients.programs import run_to_end
from tests.clients.sessions import step
from tests.support.deployment import MODEL, Deployment
from tools import clients

pytestmark = [pytest.mark.clients, pytest.mark.asyncio(loop_scope="module")]

TEXT = "The gate is open and the toll is paid."


@pytest.mark.parametrize("linter", clients.LINTERS)
async def test_a_linter_finds_no_error_in_the_document(tmp_path: Path, linter: str) -> None:
    assert clients.is_prepared(linter), "run `make test-clients`"
    (tmp_path / ".spectral.yaml").write_text('extends: ["spectral:oas"]\n', encoding="utf-8")
    environment = {"HOME": str(tmp_path), "REDOCLY_TELEMETRY": "off"}

    program = (clients.NODE, clients.program_of(linter))
    ended = await run_to_end(*program, "lint", DOCUMENT, environment=environment, folder=tmp_path)

    assert ended.status == 0, ended.written


@pytest.mark.parametrize("client", clients.GENERATORS)
async def test_a_generated_client_makes_minimal_typed_calls(
    deployment: Deployment, tmp_path: Path, client: str
) -> None:
    assert clients.is_prepared(client), "run `make test-clients`"
    program = Program(client=client, folder=tmp_path)
    deployment.upstream.queue(step(10, text=TEXT))
    deployment.upstream.queue(step(10, ("get_weather", {"city": "Paris"})))
    deployment.upstream.queue(step(10, text=TEXT))

    for ended in (await program.generate(), await program.check_types()):
        assert ended.status == 0, ended.written + ended.warnings

    assert await program.run(deployment) == {
        "chat": TEXT,
        "tools": "get_weather",
        "responses": TEXT,
        "count": True,
        "models": [MODEL, True],
        "policies": ["draft", 2, "revision_conflict", "enforcing", "paused"],
        "keys": [True, True],
        "costs": [7, True, False],
    }
