"""Two replicas of vLLM: a session stays where it is remembered, and no tenant feels another's.

vLLM on CPU remembers prompts in blocks of 128 tokens, so that the prompts here are long.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import pytest_asyncio

from tests.journeys.engine_customer import EngineCustomer, request_id_of, text_of_whole, tokens_of
from tests.support.deployment import MODEL, Deployment, customer_of, model, offering
from tests.support.engine import Engine
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.vllm import CONTEXT_TOKENS, NAME, VllmEngine, running_vllm
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.vllm]

MORTAL_NAME = "scripted-2"
"""The second replica of the backend."""
SESSIONS_MAX = 30
"""One of two replicas is missed by all of them once in a billion times."""
STORY = "The gate is open and the toll is paid. " * 40
STORY_BLOCK_TOKENS = 384


@dataclass(frozen=True)
class Turn:
    """One answer of a session, and which replica gave it."""

    answer: Any
    replica: str

    @property
    def cached_tokens(self) -> int:
        return tokens_of(self.answer.usage).cached_input


@pytest.fixture(scope="module")
def mortal() -> Iterator[VllmEngine]:
    """The replica that the last test kills; nobody else has it."""
    with running_vllm() as running:
        yield running


@pytest.fixture(scope="module")
def replicas(vllm_engine: Engine, mortal: VllmEngine) -> tuple[Engine, Engine]:
    return vllm_engine, mortal


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, replicas: tuple[Engine, ...]) -> AsyncIterator[Gateway]:
    offered = model(
        context_length=CONTEXT_TOKENS,
        max_output_length=256,
        upstream_model=NAME,
        features=["cache_salt"],
    )
    urls = [engine.base_url for engine in replicas]
    async with running_gateway(offering(settings, *urls, models={MODEL: offered})) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def deployment(
    gateway: Gateway, upstream: ScriptedUpstream, org: OrganizationFixture
) -> Deployment:
    return await customer_of(gateway, upstream, org)


@pytest.fixture
def customer(deployment: Deployment, replicas: tuple[Engine, ...]) -> EngineCustomer:
    return EngineCustomer(deployment, *replicas)


async def turn(
    customer: EngineCustomer, session: str, *messages: dict[str, Any], **fields: object
) -> Turn:
    """Two tokens of an answer, told under a session."""
    asked: Any = {"messages": list(messages), "temperature": 0, "max_tokens": 2, **fields}
    headers = {"X-Service-Session-ID": session}
    answer = await customer.ask(**asked, extra_headers=headers)
    record = await customer.deployment.record(str(request_id_of(answer.id)))
    return Turn(answer, record["replica"])


def said(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


async def on_every_replica(customer: EngineCustomer, *messages: dict[str, Any]) -> dict[str, Turn]:
    """The first answer of each replica, and of sessions of its own."""
    first: dict[str, Turn] = {}
    for number in range(SESSIONS_MAX):
        told = await turn(customer, f"session {number}", *messages)
        first.setdefault(told.replica, told)
        if len(first) == 2:
            return first
    pytest.fail("all sessions went to one replica")


async def test_a_session_stays_and_its_second_turn_is_remembered(customer: EngineCustomer) -> None:
    turns: list[Turn] = []
    for number in range(4):
        question = said(f"{number}. {STORY}")
        first = await turn(customer, f"session {number}", question)
        reply = {"role": "assistant", "content": text_of_whole(first.answer)}
        second = await turn(customer, f"session {number}", question, reply, said("Go on."))
        assert second.replica == first.replica
        assert first.cached_tokens == 0
        assert second.cached_tokens >= STORY_BLOCK_TOKENS
        turns += [first, second]

    await customer.check(*(told.answer for told in turns))


async def test_sessions_are_spread_over_the_replicas(customer: EngineCustomer) -> None:
    first = await on_every_replica(customer, said("Hi."))

    assert len(first) == 2


async def test_a_prompt_cache_key_draws_like_a_session(customer: EngineCustomer) -> None:
    asked: Any = {"messages": [said(STORY)], "temperature": 0, "max_tokens": 2}
    keys = [f"key {number}" for number in range(4)]

    cold = [await customer.ask(**asked, prompt_cache_key=key) for key in keys]
    warm = [await customer.ask(**asked, prompt_cache_key=key) for key in keys]

    replicas = [
        [
            (await customer.deployment.record(str(request_id_of(answer.id))))["replica"]
            for answer in answers
        ]
        for answers in (cold, warm)
    ]
    assert replicas[0] == replicas[1]
    assert min(tokens_of(answer.usage).cached_input for answer in warm) >= STORY_BLOCK_TOKENS
    await customer.check(*cold, *warm)


async def test_no_tenant_feels_what_another_has_asked(
    customer: EngineCustomer,
    gateway: Gateway,
    upstream: ScriptedUpstream,
    other_org: OrganizationFixture,
) -> None:
    """Neither another organization nor another project, on any replica, by the same words."""
    stranger = EngineCustomer(await customer_of(gateway, upstream, other_org), customer.engine)
    project = await customer.deployment.org.project("another project")
    key = await customer.deployment.org.project_key(project)
    colleague = EngineCustomer(
        replace(customer.deployment, project=project, key=key), customer.engine
    )

    own = await on_every_replica(customer, said(STORY))
    foreign = await on_every_replica(stranger, said(STORY))
    neighbours = await on_every_replica(colleague, said(STORY))
    again = await turn(customer, "session 0", said(STORY))

    for told in (*own.values(), *foreign.values(), *neighbours.values()):
        assert told.cached_tokens == 0
    assert again.cached_tokens >= STORY_BLOCK_TOKENS


async def test_a_session_moves_when_its_replica_dies(
    customer: EngineCustomer, mortal: VllmEngine
) -> None:
    """The last test here: what it kills stays dead."""
    homes: dict[str, tuple[str, dict[str, Any]]] = {}
    answers: list[Any] = []
    for number in range(SESSIONS_MAX):
        session, question = f"session {number}", said(f"{number}. {STORY}")
        first = await turn(customer, session, question)
        homes[first.replica] = session, question
        answers.append(first.answer)
        if len(homes) == 2:
            break
    moving, staying = homes.pop(MORTAL_NAME), homes.popitem()

    mortal.kill()
    moved = [await turn(customer, *moving), await turn(customer, *moving)]
    stayed = await turn(customer, *staying[1])

    assert {told.replica for told in (*moved, stayed)} == {staying[0]}
    assert moved[0].cached_tokens == 0
    assert moved[1].cached_tokens >= STORY_BLOCK_TOKENS
    assert stayed.cached_tokens >= STORY_BLOCK_TOKENS
    answers += [told.answer for told in (*moved, stayed)]
    credit = await customer.deployment.settled(len(answers))
    assert credit.settled_pico_usd == sum(
        tokens_of(answer.usage).cost_pico_usd for answer in answers
    )
