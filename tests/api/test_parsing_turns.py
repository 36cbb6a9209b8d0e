"""In which order large bodies are parsed, and who waits for whom."""

import asyncio
from uuid import UUID

from tollhouse.api.parsing_turns import (
    CHEAP_BYTES_MAX,
    CHEAP_ELEMENTS_MAX,
    CHEAP_PREPARATION_SECONDS,
    ORGANIZATION_PAUSE,
    PREPARATION_ORGANIZATION_PAUSE,
    ParsingTurns,
    is_costly,
)
from tollhouse.base.ids import OrganizationId

GREEDY, OTHER = (OrganizationId(UUID(int=number)) for number in (1, 2))
PARSING_SECONDS = 0.02


async def parse(turns: ParsingTurns, organization: OrganizationId, done: list[str]) -> None:
    async with turns.one(organization):
        done.append("greedy" if organization == GREEDY else "other")
        await asyncio.sleep(0)


async def parse_costly(turns: ParsingTurns, organization: OrganizationId) -> tuple[float, float]:
    loop = asyncio.get_running_loop()
    async with turns.one(organization), turns.costly(organization):
        began = loop.time()
        await asyncio.sleep(PARSING_SECONDS)
        return began, loop.time()


async def test_a_neighbour_does_not_wait_behind_many_of_one_organization() -> None:
    turns, done = ParsingTurns(), list[str]()

    await asyncio.gather(
        *(parse(turns, GREEDY, done) for _ in range(20)), parse(turns, OTHER, done)
    )

    assert done.index("other") == 1


async def test_an_organization_pauses_after_a_costly_body() -> None:
    turns = ParsingTurns()

    first = await parse_costly(turns, GREEDY)
    second = await parse_costly(turns, GREEDY)

    taken = first[1] - first[0]
    assert second[0] - first[1] >= 0.9 * ORGANIZATION_PAUSE * taken


async def test_a_neighbour_waits_for_one_costly_body_and_a_shorter_pause() -> None:
    turns, done = ParsingTurns(), list[str]()
    first = await parse_costly(turns, GREEDY)
    waiting = asyncio.create_task(parse_costly(turns, GREEDY))

    await parse(turns, OTHER, done)
    costly = await parse_costly(turns, OTHER)

    assert done == ["other"], "what is not costly waits for no pause"
    assert costly[0] - first[1] < ORGANIZATION_PAUSE * (first[1] - first[0])
    assert not waiting.done()
    await waiting


async def test_an_organization_pauses_for_the_preparation_of_a_request() -> None:
    turns, done = ParsingTurns(), list[str]()
    loop = asyncio.get_running_loop()
    began = loop.time()
    turns.charge(GREEDY, PARSING_SECONDS, is_costly=False)

    await parse(turns, OTHER, done)
    await parse_costly(turns, OTHER)
    assert loop.time() - began < PREPARATION_ORGANIZATION_PAUSE * PARSING_SECONDS
    await parse(turns, GREEDY, done)

    assert done == ["other", "greedy"]
    assert loop.time() - began >= PREPARATION_ORGANIZATION_PAUSE * PARSING_SECONDS


async def test_a_pause_that_grows_meanwhile_is_waited_for_whole() -> None:
    turns, done = ParsingTurns(), list[str]()
    loop = asyncio.get_running_loop()
    began = loop.time()
    turns.charge(GREEDY, CHEAP_PREPARATION_SECONDS, is_costly=True)
    waiting = asyncio.create_task(parse(turns, GREEDY, done))
    await asyncio.sleep(0)

    turns.charge(GREEDY, PARSING_SECONDS, is_costly=True)
    await waiting

    assert loop.time() - began >= PREPARATION_ORGANIZATION_PAUSE * PARSING_SECONDS


async def test_a_short_preparation_delays_nobody() -> None:
    turns = ParsingTurns()

    turns.charge(GREEDY, CHEAP_PREPARATION_SECONDS, is_costly=False)

    assert not turns._organizations  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


async def test_organizations_are_forgotten_after_their_pause() -> None:
    turns, done = ParsingTurns(), list[str]()

    await parse(turns, GREEDY, done)
    await asyncio.sleep(0.01)

    assert not turns._organizations  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def test_only_large_or_manifold_bodies_are_costly() -> None:
    assert not is_costly(size_bytes=CHEAP_BYTES_MAX, elements=CHEAP_ELEMENTS_MAX)
    assert is_costly(size_bytes=CHEAP_BYTES_MAX + 1, elements=0)
    assert is_costly(size_bytes=1, elements=CHEAP_ELEMENTS_MAX + 1)
