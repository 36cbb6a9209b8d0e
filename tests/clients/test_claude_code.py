"""The real Claude Code, unmodified, against a live gateway whose engine follows a script."""

import json
from pathlib import Path

import pytest

from tests.clients import agents
from tests.clients.conftest import AGENT_MODEL
from tests.clients.recording import Shows
from tests.clients.sessions import (
    LONG,
    PRINT_LONG,
    WEATHER_SCHEMA,
    cap,
    cost,
    refuse_long_prompts,
    sent_to_engine,
    step,
)
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import Deployment
from tests.upstream.scripts import UpstreamScript
from tools import clients

pytestmark = [pytest.mark.clients, pytest.mark.asyncio(loop_scope="module")]

COMPACTIONS_MAX = 4
"""The refused step, and the prompts of the summary before the agent leaves out more."""


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

    session = await agents.run("claude", deployment, folder, model=AGENT_MODEL)

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
    session = await agents.run("claude", deployment, folder, *options, model=AGENT_MODEL)

    assert session.status == 0, session
    assert session.result["structured_output"] == answer


async def test_a_prompt_that_is_too_long_is_shortened(
    deployment: Deployment, folder: Path, shows: Shows
) -> None:
    """The third step is refused, the oldest one is left out of the summary, and it goes on."""
    shows("claude", "long prompt")
    before = len(deployment.upstream.seen)
    deployment.upstream.queue(step(1_000, ("Bash", {"command": PRINT_LONG, "description": "d"})))
    deployment.upstream.queue(step(1_100, ("Bash", {"command": "echo two", "description": "d"})))
    refuse_long_prompts(deployment)
    deployment.upstream.queue(step(900, text="<summary>The text was printed.</summary>"))
    deployment.upstream.queue(step(950, text="It is done."))

    session = await agents.run("claude", deployment, folder, model=AGENT_MODEL)

    assert session.status == 0, session
    assert session.result["result"] == "It is done."
    *refused, compaction, last = sent_to_engine(deployment, before)[2:]
    assert all(LONG in json.dumps(sent) for sent in refused)
    assert 1 <= len(refused) <= COMPACTIONS_MAX
    assert "two" in json.dumps(compaction)
    for sent in (compaction, last):
        assert LONG not in json.dumps(sent)
    assert "The text was printed." in json.dumps(last)
    credit = await deployment.settled(4 + len(refused))
    assert credit.settled_pico_usd == cost(1_000, 1_100, 900, 950)
    await assert_conserved(deployment.org.database)


async def test_too_much_output_is_asked_for_again_as_less(
    deployment: Deployment, folder: Path
) -> None:
    before = len(deployment.upstream.seen)
    words = "input length and `max_tokens` exceed context limit: 125000 + 8192 > 131072"
    deployment.upstream.queue(UpstreamScript(status=400, body={"error": {"message": words}}))
    deployment.upstream.queue(step(1_000, text="It is done."))

    session = await agents.run(
        "claude", deployment, folder, model=AGENT_MODEL, CLAUDE_CODE_MAX_RETRIES="1"
    )

    assert session.result["result"] == "It is done.", session
    asked = [sent["max_tokens"] for sent in sent_to_engine(deployment, before)]
    assert asked == [8_192, 131_072 - 125_000 - 1_000]


async def test_a_cap_stops_the_session_with_a_message(deployment: Deployment, folder: Path) -> None:
    await cap(deployment, 100 * 10**9)
    call = ("Bash", {"command": "echo one > step.txt", "description": "d"})
    deployment.upstream.queue(step(50_000, call))

    session = await agents.run("claude", deployment, folder, model=AGENT_MODEL)

    assert session.result["is_error"] is True
    assert (folder / "step.txt").read_text() == "one\n"
    assert "402" in session.result["result"]
    assert "spending limit" in session.result["result"]
    assert (await deployment.settled(1)).settled_pico_usd == cost(50_000)
    await assert_conserved(deployment.org.database)
