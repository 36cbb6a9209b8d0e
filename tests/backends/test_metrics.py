"""What is counted of a backend, by its name and by how its calls end."""

import asyncio

import pytest

from tests.backends.conftest import Build, counted
from tests.backends.wire import (
    COMPLETION,
    STREAM,
    Connection,
    Upstream,
    chunked,
    cut_answer,
    json_answer,
    raw_answer,
    said,
    stalled_answer,
)
from tollhouse.backends.errors import BackendError
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.types import UpstreamRequest

FAILURES_MAX = 3
ASK = UpstreamRequest(path="/chat/completions", body=b"{}")


def calls(outcome: str) -> float:
    return counted(f'calls_total{{backend="tested",outcome="{outcome}"}}')


async def fail(backend: OpenAiBackend) -> None:
    with pytest.raises(BackendError):
        await backend.complete(ASK)


async def streamed(backend: OpenAiBackend) -> None:
    async with backend.stream(ASK) as stream:
        while await stream.next():
            pass


async def test_a_call_is_counted_once_by_how_it_ended(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    names = ("answered", "rejected", "busy", "failed", "nonsense", "left")
    before = {name: calls(name) for name in names}
    upstream.answers(
        json_answer(COMPLETION),
        json_answer({}, status=400),
        json_answer({}, status=429),
        json_answer({}, status=500),
        json_answer({}),
        stalled_answer(),
    )

    await backend.complete(ASK)
    for _ in range(4):
        await fail(backend)
    leaving = asyncio.create_task(backend.complete(ASK))
    await upstream.requests(6)
    leaving.cancel()
    await asyncio.wait([leaving])

    assert {name: calls(name) - before[name] for name in names} == dict.fromkeys(names, 1)


async def test_a_stream_is_counted_when_it_is_left(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    names = ("answered", "broke", "left")
    before = {name: calls(name) for name in names}
    upstream.answers(
        raw_answer(chunked(STREAM)),
        cut_answer(chunked(said("Hel"), is_ended=False)),
        stalled_answer(chunked(said("Hel"), is_ended=False)),
    )

    await streamed(backend)
    with pytest.raises(BackendError):
        await streamed(backend)
    async with backend.stream(ASK) as stream:
        await stream.next()

    assert {name: calls(name) - before[name] for name in names} == dict.fromkeys(names, 1)


async def test_retries_waits_and_calls_under_way_are_counted(
    build: Build, upstream: Upstream, other_upstream: Upstream
) -> None:
    backend = build(upstream, other_upstream)
    retries = counted('retries_total{backend="tested"}')
    waits = counted('first_byte_seconds_count{backend="tested"}')
    answers = iter((cut_answer(), stalled_answer(chunked(said("Hel"), is_ended=False))))

    async def answer(connection: Connection) -> None:
        await next(answers)(connection)

    upstream.answers(answer)
    other_upstream.answers(answer)

    async with backend.stream(ASK) as stream:
        await stream.next()
        under_way = counted('in_flight{backend="tested"}')

    assert under_way == 1
    assert counted('in_flight{backend="tested"}') == 0
    assert counted('retries_total{backend="tested"}') - retries == 1
    assert counted('first_byte_seconds_count{backend="tested"}') - waits == 1


async def test_replicas_that_are_avoided_are_counted(build: Build, upstream: Upstream) -> None:
    backend = build(upstream)
    upstream.answers(json_answer({}, status=503))

    for _ in range(FAILURES_MAX):
        await fail(backend)

    assert counted('replicas_avoided{backend="tested",reason="failing"}') == 1
    assert counted('replicas_avoided{backend="tested",reason="unhealthy"}') == 0
