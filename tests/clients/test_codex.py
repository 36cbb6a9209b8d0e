"""The real Codex, unmodified, against a live gateway whose engine follows a script."""

import json
from pathlib import Path

import pytest

from tests.clients import agents
from tests.clients.conftest import AGENT_MODEL, KNOWN_MODEL, STRICT_MODEL
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
from tools import clients

pytestmark = [pytest.mark.clients, pytest.mark.asyncio(loop_scope="module")]

PATCH = "*** Begin Patch\n*** Add File: patched.txt\n+by a custom tool\n*** End Patch\n"


@pytest.fixture(scope="module", autouse=True)
def is_prepared() -> None:
    assert clients.is_prepared("codex"), "run `make test-clients`"


async def test_three_steps_with_tools_cost_what_the_engine_reports(
    deployment: Deployment, folder: Path, shows: Shows
) -> None:
    shows("codex", "stream", "tools", "multi-turn")
    before = len(deployment.upstream.seen)
    for script in (
        step(1_000, ("exec_command", {"cmd": "echo one > step.txt"})),
        step(1_100, ("multi_agent_v1__close_agent", {"target": "nobody"})),
        step(1_200, ("exec_command", {"cmd": "echo three >> step.txt"})),
        step(1_300, text="It is done."),
    ):
        deployment.upstream.queue(script)

    session = await agents.run("codex", deployment, folder, model=AGENT_MODEL)

    assert session.status == 0, session
    assert session.texts == ["It is done."]
    assert (folder / "step.txt").read_text() == "one\nthree\n"
    credit = await deployment.settled(4)
    assert credit.settled_pico_usd == cost(1_000, 1_100, 1_200, 1_300)
    await assert_conserved(deployment.org.database)
    first, *_, last = sent_to_engine(deployment, before)
    names = [tool["function"]["name"] for tool in first["tools"]]
    assert "exec_command" in names
    assert "multi_agent_v1__close_agent" in names
    assert {tool["type"] for tool in first["tools"]} == {"function"}
    assert first["max_tokens"] == 8_192
    assert "client_metadata" not in first
    assert "web_search_options" not in first
    called = [
        call["function"]["name"] for m in last["messages"] for call in m.get("tool_calls", ())
    ]
    assert called == ["exec_command", "multi_agent_v1__close_agent", "exec_command"]
    outputs = [m["content"] for m in last["messages"] if m["role"] == "tool"]
    assert len(outputs) == 3
    assert "unsupported call" not in outputs[1]
    assert await dropped(deployment) == [["web_search"]] * 4


async def test_an_answer_of_a_schema(deployment: Deployment, folder: Path, shows: Shows) -> None:
    shows("codex", "structured output")
    before = len(deployment.upstream.seen)
    answer = {"city": "Paris", "degrees": 21}
    schema = folder.parent / "schema.json"
    schema.write_text(json.dumps(WEATHER_SCHEMA), encoding="utf-8")
    deployment.upstream.queue(step(1_000, text=json.dumps(answer)))

    options = ("--output-schema", str(schema))
    session = await agents.run("codex", deployment, folder, *options, model=AGENT_MODEL)

    assert session.status == 0, session
    assert [json.loads(text) for text in session.texts] == [answer]
    (sent,) = sent_to_engine(deployment, before)
    assert sent["response_format"]["json_schema"]["schema"] == WEATHER_SCHEMA


async def test_a_prompt_that_is_too_long_is_shortened_in_the_next_turn(
    deployment: Deployment, folder: Path, shows: Shows
) -> None:
    """The turn ends; the next one leaves out the oldest items until their summary is answered."""
    shows("codex", "long prompt")
    before = len(deployment.upstream.seen)
    deployment.upstream.queue(step(1_000, ("exec_command", {"cmd": PRINT_LONG})))
    refuse_long_prompts(deployment)
    deployment.upstream.queue(step(900, text="The text was printed."))
    deployment.upstream.queue(step(950, text="It is done."))

    first = await agents.run("codex", deployment, folder, model=AGENT_MODEL)
    ended = sent_to_engine(deployment, before)
    second = await agents.run("codex", deployment, folder, "resume", "--last", model=AGENT_MODEL)

    assert first.status != 0
    (failure,) = first.failures
    assert failure.startswith("Codex ran out of room in the model's context window.")
    assert len(ended) == 2
    assert second.status == 0, second
    assert second.texts == ["It is done."]
    *refused, compaction, last = sent_to_engine(deployment, before)[1:]
    assert all(LONG in json.dumps(sent) for sent in refused)
    lengths = [len(sent["messages"]) for sent in (*refused[1:], compaction)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]
    for sent in (compaction, last):
        assert LONG not in json.dumps(sent)
    assert "The text was printed." in json.dumps(last)
    credit = await deployment.settled(3 + len(refused))
    assert credit.settled_pico_usd == cost(1_000, 900, 950)
    await assert_conserved(deployment.org.database)


async def test_a_custom_tool_is_called_with_its_text(deployment: Deployment, folder: Path) -> None:
    before = len(deployment.upstream.seen)
    deployment.upstream.queue(step(900, ("apply_patch", {"input": PATCH})))
    deployment.upstream.queue(step(950, text="Patched."))

    session = await agents.run("codex", deployment, folder, model=KNOWN_MODEL)

    assert session.status == 0, session
    assert (folder / "patched.txt").read_text() == "by a custom tool\n"
    assert (await deployment.settled(2)).settled_pico_usd == cost(900, 950)
    first, second = sent_to_engine(deployment, before)
    (tool,) = [
        tool["function"] for tool in first["tools"] if tool["function"]["name"] == "apply_patch"
    ]
    assert "begin_patch" in tool["description"]
    assert (first["verbosity"], first["reasoning_effort"]) == ("low", "medium")
    (call,) = [call["function"] for m in second["messages"] for call in m.get("tool_calls", ())]
    assert (call["name"], json.loads(call["arguments"])) == ("apply_patch", {"input": PATCH})
    assert await dropped(deployment) == [["tool_search", "web_search"]] * 2


async def test_a_cap_stops_the_session_with_a_message(deployment: Deployment, folder: Path) -> None:
    await cap(deployment, 100 * 10**9)
    deployment.upstream.queue(step(50_000, ("exec_command", {"cmd": "echo one > step.txt"})))

    session = await agents.run("codex", deployment, folder, model=AGENT_MODEL)

    assert session.status != 0
    assert (folder / "step.txt").read_text() == "one\n"
    (failure,) = session.failures
    assert "402" in failure
    assert "spending limit" in failure
    assert (await deployment.settled(1)).settled_pico_usd == cost(50_000)
    await assert_conserved(deployment.org.database)


async def test_a_model_that_drops_nothing_refuses_a_web_search(
    deployment: Deployment, folder: Path
) -> None:
    session = await agents.run("codex", deployment, folder, model=STRICT_MODEL)

    assert session.status != 0
    (failure,) = session.failures
    assert "web search" in failure
    assert "drops_unsupported_tools = true" in failure
    assert STRICT_MODEL in failure
    assert await deployment.admitted() == 0


async def dropped(deployment: Deployment) -> list[list[str]]:
    """The dropped tools of every request of the customer, once all are written."""
    rows = await deployment.org.database.fetch_all(
        "SELECT reservation_id FROM ledger_entries WHERE organization_id = $1 AND phase = 0",
        deployment.org.organization_id,
    )
    return [(await deployment.record(str(row["reservation_id"])))["dropped_tools"] for row in rows]
