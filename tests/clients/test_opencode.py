"""The real OpenCode, unmodified, against a live gateway whose engine follows a script."""

import json
from pathlib import Path

import pytest

from tests.clients import agents
from tests.clients.conftest import STRICT_MODEL
from tests.clients.recording import Shows
from tests.clients.sessions import LONG, PRINT_LONG, TOO_LONG, cost, sent_to_engine, step
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import Deployment
from tools import clients

pytestmark = [pytest.mark.clients, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module", autouse=True)
def is_prepared() -> None:
    assert clients.is_prepared("opencode"), "run `make test-clients`"


async def test_a_task_with_tools_costs_what_the_engine_reports(
    deployment: Deployment, folder: Path, shows: Shows
) -> None:
    shows("opencode", "stream", "tools")
    before = len(deployment.upstream.seen)
    command = {"command": "echo one > step.txt", "description": "Write a file"}
    for script in (
        step(1_000, ("bash", command)),
        step(1_100, ("read", {"filePath": str(folder / "step.txt")})),
        step(1_200, text="It is done."),
    ):
        deployment.upstream.queue(script)

    session = await agents.run("opencode", deployment, folder, model=STRICT_MODEL)

    assert session.status == 0, session
    assert session.texts == ["It is done."], session
    assert (folder / "step.txt").read_text() == "one\n"
    credit = await deployment.settled(3)
    assert credit.settled_pico_usd == cost(1_000, 1_100, 1_200)
    await assert_conserved(deployment.org.database)
    first, *_, last = sent_to_engine(deployment, before)
    assert first["stream"] is True
    outputs = [m["content"] for m in last["messages"] if m["role"] == "tool"]
    assert len(outputs) == 2
    assert "one" in outputs[1]


async def test_a_prompt_that_is_too_long_is_shortened(
    deployment: Deployment, folder: Path, shows: Shows
) -> None:
    shows("opencode", "long prompt")
    before = len(deployment.upstream.seen)
    deployment.upstream.queue(step(1_000, ("bash", {"command": PRINT_LONG, "description": "d"})))
    deployment.upstream.queue(TOO_LONG)
    deployment.upstream.queue(step(900, text="The text was printed."))
    deployment.upstream.queue(step(950, text="It is done."))

    session = await agents.run("opencode", deployment, folder, model=STRICT_MODEL)

    assert session.texts[-1] == "It is done.", session
    _, refused, compaction, last = sent_to_engine(deployment, before)
    assert "tools" in refused
    assert "tools" not in compaction
    assert LONG in json.dumps(refused)
    assert LONG not in json.dumps(last)
    assert "The text was printed." in json.dumps(last)
    credit = await deployment.settled(4)
    assert credit.settled_pico_usd == cost(1_000, 900, 950)


async def test_a_session_goes_on_with_its_history(
    deployment: Deployment, folder: Path, shows: Shows
) -> None:
    shows("opencode", "multi-turn")
    before = len(deployment.upstream.seen)
    deployment.upstream.queue(step(1_000, text="First."))
    deployment.upstream.queue(step(1_100, text="Second."))

    first = await agents.run("opencode", deployment, folder, model=STRICT_MODEL, task="One?")
    second = await agents.run(
        "opencode", deployment, folder, "--continue", model=STRICT_MODEL, task="Two?"
    )

    assert (first.texts, second.texts) == (["First."], ["Second."]), (first, second)
    *_, last = sent_to_engine(deployment, before)
    said = [message for message in last["messages"] if message["role"] == "assistant"]
    assert "First." in json.dumps(said)
