"""The real Claude Code, unmodified, against a live gateway whose engine follows a script."""

import json
from pathlib import Path

import pytest

from tests.clients import claude_code
from tests.clients.conftest import AGENT_MODEL
from tests.clients.recording import Shows
from tests.clients.sessions import WEATHER_SCHEMA, cap, cost, sent_to_engine, step
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import Deployment
from tools import clients

pytestmark = [pytest.mark.clients, pytest.mark.asyncio(loop_scope="module")]

GUIDE = "docs/guides/coding-agents.md"


@pytest.fixture(scope="module", autouse=True)
def is_prepared() -> None:
    assert clients.is_prepared("claude"), "run `make test-clients`"


async def test_three_steps_with_tools_cost_what_the_engine_reports(
    deployment: Deployment, folder: Path, shows: Shows
) -> None:
    shows("claude", "stream", "tools", "multi-turn")
    before = len(deployment.upstream.seen)
    for script in (
        step(1_000, ("Bash", {"command": "echo one > step.txt", "description": "d"})),
        step(1_100, ("Bash", {"command": "echo two >> step.txt", "description": "d"})),
        step(1_200, ("Bash", {"command": "echo three >> step.txt", "description": "d"})),
        step(1_300, text="It is done."),
    ):
        deployment.upstream.queue(script)

    session = await claude_code.run(deployment, folder, guide=GUIDE, model=AGENT_MODEL)

    assert session.status == 0, session
    assert session.result["result"] == "It is done."
    assert (folder / "step.txt").read_text() == "one\ntwo\nthree\n"
    credit = await deployment.settled(4)
    assert credit.settled_pico_usd == cost(1_000, 1_100, 1_200, 1_300)
    await assert_conserved(deployment.org.database)
    assert session.result["usage"]["input_tokens"] == 1_000 + 1_100 + 1_200 + 1_300
    first, *_, last = sent_to_engine(deployment, before)
    assert "Bash" in [tool["function"]["name"] for tool in first["tools"]]
    assert first["max_tokens"] == 8_192
    assert first["reasoning_effort"]
    roles = [message["role"] for message in last["messages"]]
    assert roles.count("tool") == 3
    assert roles[0] == "system"


async def test_an_answer_of_a_schema(deployment: Deployment, folder: Path, shows: Shows) -> None:
    shows("claude", "structured output")
    answer = {"city": "Paris", "degrees": 21}
    deployment.upstream.queue(step(1_000, ("StructuredOutput", answer)))
    deployment.upstream.queue(step(1_100, text="It is done."))

    options = ("--json-schema", json.dumps(WEATHER_SCHEMA))
    session = await claude_code.run(deployment, folder, *options, guide=GUIDE, model=AGENT_MODEL)

    assert session.status == 0, session
    assert session.result["structured_output"] == answer


async def test_a_cap_stops_the_session_with_a_message(deployment: Deployment, folder: Path) -> None:
    await cap(deployment, 100 * 10**9)
    call = ("Bash", {"command": "echo one > step.txt", "description": "d"})
    deployment.upstream.queue(step(50_000, call))

    session = await claude_code.run(deployment, folder, guide=GUIDE, model=AGENT_MODEL)

    assert session.result["is_error"] is True
    assert (folder / "step.txt").read_text() == "one\n"
    assert "402" in session.result["result"]
    assert "spending limit" in session.result["result"]
    assert (await deployment.settled(1)).settled_pico_usd == cost(50_000)
    await assert_conserved(deployment.org.database)
