"""Six clients, unmodified, with a prompt that is too long for the trial's own small model."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.clients import agents
from tests.clients.framework import DRIVERS, environment
from tests.clients.programs import run_to_end
from tests.support.deployment import MODEL, Deployment, model, offering
from tests.support.engine import Engine
from tests.support.gateway import Gateway, running_gateway
from tollhouse.cli.trial.demo_engine import MODEL as ENGINE_MODEL
from tollhouse.settings import Settings
from tollhouse.trial.llama import SLOT_TOKENS
from tools import clients, sdks

pytestmark = [pytest.mark.clients, pytest.mark.asyncio(loop_scope="module")]

HISTORY_ITEMS_MAX = 6
"""What a session of one turn has: Codex leaves out one after the other."""
CODE = "context_length_exceeded"
OPENAI, ANTHROPIC = (
    max(sdk for sdk in sdks.PYTHON_SDKS if sdk.startswith(family))
    for family in ("openai", "anthropic")
)
PROMPT_TOKENS = 4_031
"""Four thousand words, in the template of the model."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, llama_engine: Engine) -> AsyncIterator[Gateway]:
    """The trial's model, declared with tools, which the agents send."""
    offered = model(
        context_length=SLOT_TOKENS,
        max_output_length=SLOT_TOKENS,
        upstream_model=ENGINE_MODEL,
        features=["tools", "reasoning", "verbosity", "structured_outputs"],
        drops_unsupported_tools=True,
    )
    shelf = offering(settings, llama_engine.base_url, models={MODEL: offered}, takes=[])
    async with running_gateway(shelf) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def are_prepared() -> None:
    assert all(map(clients.is_prepared, ("codex", "claude", "langchain"))), (
        "run `make test-clients`"
    )
    assert all(map(sdks.is_prepared, (OPENAI, ANTHROPIC, sdks.NODE_SDK))), "run `make test-clients`"


@pytest.mark.parametrize(
    ("command", "raised"),
    [
        pytest.param(
            (sdks.python_of(OPENAI), "-P", DRIVERS / "openai_long.py"),
            ["BadRequestError"] * 3 + ["APIError"],
            id="OpenAI Python",
        ),
        pytest.param(
            (clients.NODE, DRIVERS / "openai_long.mjs"),
            ["BadRequestError"] * 3 + ["APIError"],
            id="OpenAI Node",
        ),
        pytest.param(
            (sdks.python_of(ANTHROPIC), "-P", DRIVERS / "anthropic_long.py"),
            ["BadRequestError"] * 2,
            id="Anthropic Python",
        ),
        pytest.param(
            (clients.python_of("langchain"), "-P", DRIVERS / "langchain_long.py"),
            ["ContextOverflowError"] * 4,
            id="LangChain",
        ),
    ],
)
async def test_a_library_raises_its_own_error_with_the_numbers(
    deployment: Deployment, command: tuple[str | Path, ...], raised: list[str]
) -> None:
    ended = await run_to_end(
        *command,
        environment=environment(deployment, packages=sdks.HOME / sdks.NODE_SDK),
    )

    assert [told["raised"] for told in ended.objects] == [[each, CODE] for each in raised]
    for told in ended.objects:
        assert {str(SLOT_TOKENS), str(PROMPT_TOKENS)} <= set(re.findall(r"\d+", told["message"]))
    credit = await deployment.settled(len(raised))
    assert credit.settled_pico_usd == 0


async def test_codex_says_so_and_tries_to_shorten_before_its_next_turn(
    deployment: Deployment, folder: Path
) -> None:
    """Its instructions alone are too long for this model, so that it says the same again."""
    first = await agents.run("codex", deployment, folder, model=MODEL)
    asked_first = await deployment.admitted()
    second = await agents.run("codex", deployment, folder, "resume", "--last", model=MODEL)

    assert asked_first == 1
    for session in (first, second):
        assert session.status != 0
        (failure,) = session.failures
        assert failure.startswith("Codex ran out of room in the model's context window.")
    assert "removing oldest history item" in second.warnings
    assert asked_first < await deployment.admitted() <= asked_first + HISTORY_ITEMS_MAX
    assert (await deployment.credit()).settled_pico_usd == 0


async def test_claude_code_says_so_with_the_length_of_the_context(
    deployment: Deployment, folder: Path
) -> None:
    """Its instructions alone are too long for this model, so that it has nothing to shorten."""
    session = await agents.run(
        *("claude", deployment, folder),
        model=MODEL,
        CLAUDE_CODE_MAX_OUTPUT_TOKENS="1024",
        CLAUDE_CODE_MAX_RETRIES="2",
    )

    assert session.result["is_error"] is True
    assert session.result["terminal_reason"] == "prompt_too_long"
    assert session.result["result"].startswith("Prompt is too long")
    assert f"limit {SLOT_TOKENS}" in session.result["result"]
    assert await deployment.admitted() == 1
    assert (await deployment.credit()).settled_pico_usd == 0
