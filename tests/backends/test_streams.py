"""Streams: records into chunks, the ways in which they end, and what is left of them."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from tests.backends.conftest import Build
from tests.backends.wire import (
    COMPLETION,
    DONE,
    EVENTS_HEAD,
    FINISHED,
    STREAM,
    USAGE,
    Answer,
    Connection,
    Upstream,
    chunked,
    cut_answer,
    json_answer,
    raw_answer,
    record,
    reset_answer,
    said,
    stalled_answer,
    whole,
)
from tollhouse.backends.call import LINGER_SECONDS
from tollhouse.backends.errors import (
    BackendBroke,
    BackendError,
    BackendHungUp,
    BackendMalformed,
    BackendRejected,
    BackendSilent,
    BackendTimedOut,
)
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.port import BackendPort
from tollhouse.backends.types import UpstreamChunk, UpstreamRequest, UpstreamUsage

ASK = UpstreamRequest(path="/chat/completions", body=b'{"stream":true}')
UNTIL_CLOSED = EVENTS_HEAD + b"connection: close\r\n\r\n"


async def read(backend: BackendPort, chunks: list[UpstreamChunk]) -> None:
    async with backend.stream(ASK) as stream:
        while arrived := await stream.next():
            chunks.extend(arrived)


async def collected(backend: OpenAiBackend) -> list[UpstreamChunk]:
    chunks: list[UpstreamChunk] = []
    await read(backend, chunks)
    return chunks


async def until_failure(backend: OpenAiBackend) -> tuple[list[UpstreamChunk], BackendError]:
    chunks: list[UpstreamChunk] = []
    with pytest.raises(BackendError) as caught:
        await read(backend, chunks)
    return chunks, caught.value


def text(chunks: Sequence[UpstreamChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


async def test_chunks_come_as_they_were_sent(backend: OpenAiBackend, upstream: Upstream) -> None:
    upstream.answers(raw_answer(chunked(STREAM)))

    chunks = await collected(backend)

    assert text(chunks) == "Hello."
    assert chunks[2].choices[0].finish_reason == "stop"
    assert chunks[3].usage == UpstreamUsage(prompt_tokens=3, completion_tokens=2)
    assert upstream.received[0].headers["accept"] == "text/event-stream"


async def test_a_chunk_is_given_as_soon_as_it_is_there(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    may_go_on = asyncio.Event()

    async def answer(connection: Connection) -> None:
        await connection.send(chunked(said("first"), is_ended=False))
        await may_go_on.wait()
        rest = said("second") + record(FINISHED) + DONE
        await connection.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))

    upstream.answers(answer)

    async with backend.stream(ASK) as stream:
        assert text(await stream.next()) == "first"
        assert stream.replica == upstream.name
        may_go_on.set()
        assert text(await stream.next()) == "second"
        while await stream.next():
            pass


async def test_a_finished_stream_gives_its_connection_back(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    upstream.answers(raw_answer(chunked(STREAM, is_ended=False), b"0\r\n\r\n"))

    for _ in range(5):
        await collected(backend)

    assert upstream.connections == 1


async def test_a_finished_stream_may_be_closed_late(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    """A buffered answer is judged and sent before its call is closed."""
    upstream.answers(raw_answer(chunked(STREAM, is_ended=False), b"0\r\n\r\n"))

    for _ in range(2):
        async with backend.stream(ASK) as stream:
            while await stream.next():
                pass
            await asyncio.sleep(2 * LINGER_SECONDS)

    assert upstream.connections == 1


async def test_asking_again_after_the_end_is_the_end(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    upstream.answers(raw_answer(chunked(STREAM)))

    async with backend.stream(ASK) as stream:
        while await stream.next():
            pass
        assert await stream.next() == ()


@pytest.mark.parametrize("offset", range(1, len(STREAM), 7))
async def test_a_stream_may_be_cut_into_pieces_anywhere(
    backend: OpenAiBackend, upstream: Upstream, offset: int
) -> None:
    upstream.answers(raw_answer(chunked(STREAM[:offset], STREAM[offset:])))

    assert text(await collected(backend)) == "Hello."


LENIENT = [
    said("Hello.") + record(FINISHED),
    said("Hello.") + record(FINISHED) + record({"index": 0, "delta": {}}, usage=USAGE),
    b": thinking\n\n" + said("Hello.") + b"data:\n\n" + record(FINISHED) + b"data:[DONE]\n\n",
    said("Hello.") + b"data: [DONE] \n\n",
    said("Hello.") + DONE + b"data: what comes later is not read\n\n",
    record(object="chat.completion.chunk", error=None, extra={"a": 1}) + said("Hello.") + DONE,
    (said("Hello.") + DONE).replace(b"\n", b"\r\n"),
]


@pytest.mark.parametrize("stream", LENIENT)
async def test_what_engines_do_differently_is_understood(
    backend: OpenAiBackend, upstream: Upstream, stream: bytes
) -> None:
    upstream.answers(cut_answer(UNTIL_CLOSED + stream))

    assert text(await collected(backend)) == "Hello."


async def test_every_choice_that_began_must_end(backend: OpenAiBackend, upstream: Upstream) -> None:
    begun = said("Hel", index=0) + said("Good", index=1) + record(FINISHED)
    upstream.answers(
        cut_answer(UNTIL_CLOSED + begun),
        cut_answer(UNTIL_CLOSED + begun + record({**FINISHED, "index": 1})),
    )

    _, failed = await until_failure(backend)
    whole_chunks = await collected(backend)

    assert type(failed) is BackendBroke
    assert len(whole_chunks) == 4


BROKEN: list[tuple[Answer, type[BackendError], str]] = [
    (cut_answer(UNTIL_CLOSED), BackendBroke, ""),
    (cut_answer(UNTIL_CLOSED + DONE), BackendBroke, ""),
    (cut_answer(UNTIL_CLOSED + record(usage=USAGE)), BackendBroke, ""),
    (cut_answer(UNTIL_CLOSED + said("Hel")), BackendBroke, "Hel"),
    (cut_answer(UNTIL_CLOSED + said("Hel") + said("lo")[:-1]), BackendBroke, "Hel"),
    (cut_answer(chunked(said("Hel"), is_ended=False)), BackendBroke, "Hel"),
    (cut_answer(chunked(said("Hel"), said("lo"))[:-20]), BackendBroke, "Hel"),
    (reset_answer(chunked(said("Hel"), is_ended=False)), BackendBroke, "Hel"),
    (raw_answer(chunked(said("Hel") + b'data: {"error":{}}\n\n')), BackendMalformed, "Hel"),
    (raw_answer(chunked(said("Hel") + b"event: error\ndata: oops\n\n")), BackendMalformed, "Hel"),
    (raw_answer(chunked(said("Hel") + b'data: {"choices":[\n\n')), BackendMalformed, "Hel"),
    (raw_answer(chunked(said("Hel") + b'data: {"choices":7}\n\n')), BackendMalformed, "Hel"),
    (raw_answer(chunked(said("Hel") + b'data: "\xff"\n\n')), BackendMalformed, "Hel"),
    (raw_answer(chunked(b'data: {"error":"no"}\n\n')), BackendMalformed, ""),
    (raw_answer(chunked(b"data: " + b"[" * 100_000 + b"\n\n")), BackendMalformed, ""),
    (stalled_answer(UNTIL_CLOSED, *[b"x" * 1_048_576] * 9), BackendBroke, ""),
    (json_answer({"error": {"message": "no"}}), BackendMalformed, ""),
    (json_answer(COMPLETION), BackendMalformed, ""),
    (raw_answer(whole(STREAM, kind="text/plain")), BackendMalformed, ""),
    (
        raw_answer(whole(STREAM, kind="text/event-stream", headers="content-encoding: br\r\n")),
        BackendMalformed,
        "",
    ),
    (json_answer({"message": "too hot"}, status=400), BackendRejected, ""),
    (cut_answer(), BackendHungUp, ""),
]


@pytest.mark.parametrize(("answer", "kind", "given"), BROKEN)
async def test_what_was_understood_is_given_before_the_failure(
    backend: OpenAiBackend,
    upstream: Upstream,
    answer: Answer,
    kind: type[BackendError],
    given: str,
) -> None:
    upstream.answers(answer)

    chunks, failed = await until_failure(backend)

    assert type(failed) is kind
    assert failed.replica == upstream.name
    assert text(chunks) == given
    await upstream.no_answer_under_way()


@pytest.mark.parametrize("is_ended", [True, False])
async def test_bytes_that_are_not_http_fail_the_stream(
    backend: OpenAiBackend, upstream: Upstream, is_ended: bool
) -> None:
    upstream.answers(cut_answer(chunked(said("Hel"), is_ended=is_ended), b"garbage\r\n\r\n"))

    _, failed = await until_failure(backend)

    assert type(failed) in {BackendBroke, BackendMalformed}
    await upstream.no_answer_under_way()


async def test_a_failure_is_raised_again_when_asked_again(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    upstream.answers(raw_answer(chunked(said("Hel") + b'data: {"error":{}}\n\n')))

    async with backend.stream(ASK) as stream:
        await stream.next()
        for _ in range(2):
            with pytest.raises(BackendMalformed):
                await stream.next()


async def test_absurd_usage_in_a_record_is_no_usage(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    absurd = record(FINISHED, usage={"prompt_tokens": -3})
    upstream.answers(raw_answer(chunked(said("Hello.") + absurd + DONE)))

    chunks = await collected(backend)

    assert text(chunks) == "Hello."
    assert [chunk.usage for chunk in chunks] == [None, None]


async def test_unknown_fields_are_dropped(backend: OpenAiBackend, upstream: Upstream) -> None:
    strange = record({"index": 0, "delta": {"content": "x", "secret": 1}, "y": 2}, id="cmpl-1")
    upstream.answers(raw_answer(chunked(strange + record(FINISHED) + DONE)))

    first, _ = await collected(backend)

    assert "secret" not in str(msgspec.to_builtins(first))


STALLS: list[tuple[Answer, dict[str, float], str]] = [
    (stalled_answer(), {"first_event_seconds": 0.05}, ""),
    (stalled_answer(UNTIL_CLOSED), {"first_event_seconds": 0.05}, ""),
    (stalled_answer(UNTIL_CLOSED + b": wait\n\n"), {"first_event_seconds": 0.05}, ""),
    (stalled_answer(UNTIL_CLOSED + said("Hel")), {"idle_seconds": 0.05}, "Hel"),
    (stalled_answer(UNTIL_CLOSED + said("Hel") + b": wait\n\n"), {"idle_seconds": 0.05}, "Hel"),
    (stalled_answer(), {"total_seconds": 0.05}, ""),
    (stalled_answer(UNTIL_CLOSED), {"total_seconds": 0.05}, ""),
]


@pytest.mark.parametrize(("answer", "deadline", "given"), STALLS)
async def test_a_stall_is_a_deadline_and_ends_the_connection(
    build: Build, upstream: Upstream, answer: Answer, deadline: dict[str, float], given: str
) -> None:
    backend = build(upstream, **deadline)
    upstream.answers(answer)

    chunks, failed = await until_failure(backend)

    assert type(failed) is (BackendTimedOut if "total_seconds" in deadline else BackendSilent)
    assert failed.replica == upstream.name
    assert text(chunks) == given
    await upstream.no_connection()


async def test_a_stream_that_never_ends_is_ended(build: Build, upstream: Upstream) -> None:
    async def answer(connection: Connection) -> None:
        await connection.send(UNTIL_CLOSED)
        while True:
            await connection.send(said("and so on "))

    backend = build(upstream, total_seconds=0.2)
    upstream.answers(answer)

    _, failed = await until_failure(backend)

    assert type(failed) is BackendTimedOut
    await upstream.no_connection()


@pytest.mark.clock
@pytest.mark.parametrize("bound", ["idle_seconds", "total_seconds"])
async def test_a_caller_who_takes_long_is_no_slow_engine(
    build: Build, upstream: Upstream, bound: str
) -> None:
    may_go_on = asyncio.Event()

    async def answer(connection: Connection) -> None:
        await connection.send(UNTIL_CLOSED + said("Hel"))
        await may_go_on.wait()
        await connection.send(said("lo.") + record(FINISHED) + DONE)
        connection.cut()

    backend = build(upstream, **{bound: 0.5})
    upstream.answers(answer)

    async with backend.stream(ASK) as stream:
        first = await stream.next()
        # Nothing can be awaited here: that time passes is what is tried.
        await asyncio.sleep(0.6)
        may_go_on.set()
        await upstream.no_answer_under_way()
        second = await stream.next()

    assert text([*first, *second]) == "Hello."


@pytest.mark.parametrize("begun", [b"", UNTIL_CLOSED, UNTIL_CLOSED + said("Hel")])
async def test_leaving_a_stream_ends_its_connection(
    backend: OpenAiBackend, upstream: Upstream, begun: bytes
) -> None:
    upstream.answers(stalled_answer(begun))
    reading = asyncio.create_task(collected(backend))
    await upstream.requests(1)
    reading.cancel()

    await upstream.no_connection()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_a_stream_that_is_left_without_reading_ends_its_connection(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    upstream.answers(stalled_answer(UNTIL_CLOSED + said("Hel")))

    async with backend.stream(ASK) as stream:
        await stream.next()

    await upstream.no_connection()
