"""Another replica takes over before an answer began: when, how often, and what stays as it was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from msgspec.structs import replace

from tests.backends.conftest import Build
from tests.backends.wire import (
    COMPLETION,
    STREAM,
    Answer,
    Connection,
    Upstream,
    chunked,
    cut_answer,
    json_answer,
    raw_answer,
    reset_answer,
    running_upstream,
    said,
    stalled_answer,
)
from tollhouse.backends.call_history import PAUSES_SECONDS
from tollhouse.backends.errors import (
    BackendBroke,
    BackendBusy,
    BackendError,
    BackendFailed,
    BackendHungUp,
    BackendMalformed,
    BackendRejected,
    BackendSilent,
    BackendTimedOut,
    BackendUnreachable,
    NoReplica,
)
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.types import UpstreamRequest
from tollhouse.base.clock import HeldClock

FAILURES_MAX = 3
PAUSE = timedelta(seconds=PAUSES_SECONDS[0])


ASK = UpstreamRequest(path="/chat/completions", body=b"{}")


def ask(affinity: bytes | None = None, **values: object) -> UpstreamRequest:
    return replace(ASK, affinity=affinity, **values)


ASK_BESIDE_FALLBACK = ask(model="m", is_last_candidate=False)


async def failure(backend: OpenAiBackend, asked: UpstreamRequest) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await backend.complete(asked)
    return caught.value


async def streamed(backend: OpenAiBackend, asked: UpstreamRequest) -> str:
    """Read a stream to its end; which replica gave it."""
    async with backend.stream(asked) as stream:
        while await stream.next():
            pass
        return stream.replica


async def drawn_to(backend: OpenAiBackend, upstream: Upstream) -> bytes:
    """An affinity that draws to this upstream while all is well."""
    for number in range(1_000):
        affinity = b"session-%d" % number
        _, replica = await backend.complete(ask(affinity))
        if replica == upstream.name:
            return affinity
    pytest.fail("no session is drawn there")


@pytest.mark.parametrize(
    "answer",
    [
        cut_answer(),
        reset_answer(),
        json_answer({}, status=502),
        json_answer({}, status=503),
        json_answer({}, status=504),
        json_answer({}, status=429),
        json_answer({}, status=500),
        json_answer({}, status=529),
        json_answer({}, status=401),
        raw_answer(b"<html>Welcome</html>"),
        cut_answer(chunked(is_ended=False)),
        stalled_answer(),
        stalled_answer(chunked(is_ended=False)),
    ],
)
async def test_another_replica_answers_in_its_place(
    build: Build, upstream: Upstream, other_upstream: Upstream, answer: Answer
) -> None:
    backend = build(upstream, other_upstream)
    affinity = await drawn_to(backend, upstream)
    upstream.answers(answer)
    other_upstream.answers(raw_answer(chunked(STREAM)))

    assert await streamed(backend, ask(affinity, first_event_seconds=0.1)) == other_upstream.name
    assert backend.is_ready("")


async def test_a_replica_that_is_gone_is_gone_around(
    build: Build, upstream: Upstream, other_upstream: Upstream
) -> None:
    backend = build(upstream, other_upstream)
    affinity = await drawn_to(backend, upstream)
    await upstream.stop()

    _, replica = await backend.complete(ask(affinity))

    assert replica == other_upstream.name


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (json_answer({}, status=400), BackendRejected),
        (cut_answer(chunked(said("Hel"), is_ended=False)), BackendBroke),
    ],
)
async def test_the_callers_own_mistake_and_a_begun_answer_go_nowhere_else(
    build: Build,
    upstream: Upstream,
    other_upstream: Upstream,
    answer: Answer,
    kind: type[BackendError],
) -> None:
    backend = build(upstream, other_upstream)
    affinity = await drawn_to(backend, upstream)
    upstream.answers(answer)
    before = len(other_upstream.received)

    with pytest.raises(kind):
        await streamed(backend, ask(affinity))

    assert len(other_upstream.received) == before


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (cut_answer(), BackendHungUp),
        (json_answer({"error": {}}), BackendMalformed),
        (stalled_answer(), BackendSilent),
    ],
)
async def test_what_may_have_been_billed_is_not_repeated(
    build: Build,
    upstream: Upstream,
    other_upstream: Upstream,
    answer: Answer,
    kind: type[BackendError],
) -> None:
    backend = build(upstream, other_upstream, bills_without_answer=True)
    affinity = await drawn_to(backend, upstream)
    upstream.answers(answer)

    assert type(await failure(backend, ask(affinity, answer_seconds=0.1))) is kind


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
async def test_an_answer_with_a_status_of_failure_is_billed_by_nobody(
    build: Build, upstream: Upstream, other_upstream: Upstream, status: int
) -> None:
    backend = build(upstream, other_upstream, bills_without_answer=True)
    affinity = await drawn_to(backend, upstream)
    upstream.answers(json_answer({}, status=status))

    _, replica = await backend.complete(ask(affinity))

    assert replica == other_upstream.name


async def test_what_was_not_sent_is_repeated_wherever_it_is_billed(
    build: Build, upstream: Upstream, other_upstream: Upstream
) -> None:
    backend = build(upstream, other_upstream, bills_without_answer=True)
    affinity = await drawn_to(backend, upstream)
    await upstream.stop()

    _, replica = await backend.complete(ask(affinity))

    assert replica == other_upstream.name


async def test_a_connection_that_was_just_closing_is_replaced(
    build: Build, upstream: Upstream
) -> None:
    """The only replica: what may have been an idle connection's end is tried once more."""
    backend = build(upstream)
    upstream.answers(json_answer(COMPLETION), cut_answer(), json_answer(COMPLETION))

    await backend.complete(ask())
    await backend.complete(ask())

    assert len(upstream.received) == 3


async def test_a_new_connection_that_is_closed_is_not_replaced(
    build: Build, upstream: Upstream
) -> None:
    upstream.answers(cut_answer(), json_answer(COMPLETION))

    assert type(await failure(build(upstream), ask())) is BackendHungUp


@pytest.mark.parametrize("status", [429, 503])
async def test_the_only_replica_is_not_asked_twice_when_it_says_no(
    build: Build, upstream: Upstream, status: int
) -> None:
    backend = build(upstream)
    upstream.answers(json_answer({}, status=status))

    await failure(backend, ask())

    assert len(upstream.received) == 1


async def test_busy_everywhere_is_busy(
    build: Build, upstream: Upstream, other_upstream: Upstream
) -> None:
    for each in (upstream, other_upstream):
        each.answers(json_answer({}, status=429, headers="retry-after: 9\r\n"))

    failed = await failure(build(upstream, other_upstream), ask())

    assert type(failed) is BackendBusy
    assert failed.retry_after_seconds == 9
    assert len(upstream.received) == len(other_upstream.received) == 1


@pytest.fixture
async def four_upstreams() -> AsyncIterator[list[Upstream]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running_upstream()) for _ in range(4)]


@pytest.mark.guarantee("T41")
async def test_a_call_visits_each_replica_once(
    build: Build, four_upstreams: list[Upstream]
) -> None:
    backend = build(*four_upstreams)
    for each in four_upstreams:
        each.answers(json_answer({}, status=503))

    assert type(await failure(backend, ask())) is BackendFailed

    assert [len(each.received) for each in four_upstreams] == [1, 1, 1, 1]


async def test_a_call_that_may_not_move_ends_at_its_first_replica(
    build: Build, upstream: Upstream, other_upstream: Upstream
) -> None:
    """Its caller has left, or its hold is over."""
    for each in (upstream, other_upstream):
        each.answers(json_answer({}, status=503))

    await failure(build(upstream, other_upstream), ask(may_move=lambda: False))

    assert len(upstream.received) + len(other_upstream.received) == 1


async def test_attempts_at_two_replicas_together_have_no_more_time_than_one(
    build: Build, upstream: Upstream, other_upstream: Upstream
) -> None:
    for each in (upstream, other_upstream):
        each.answers(stalled_answer())
    backend = build(upstream, other_upstream, total_seconds=0.3)

    failed = await failure(backend, ask(answer_seconds=0.2))

    assert type(failed) is BackendTimedOut
    assert len(upstream.received) == len(other_upstream.received) == 1


@pytest.mark.guarantee("T41")
async def test_an_ejected_replica_is_tried_again_and_returns(
    build: Build, upstream: Upstream, clock: HeldClock
) -> None:
    backend = build(upstream)
    upstream.answers(json_answer({}, status=500))
    for _ in range(FAILURES_MAX):
        assert type(await failure(backend, ASK_BESIDE_FALLBACK)) is BackendFailed

    assert not backend.is_ready("m")
    ejected = await failure(backend, ASK_BESIDE_FALLBACK)
    clock.advance(PAUSE)
    tried = await failure(backend, ASK_BESIDE_FALLBACK)
    still_ejected = await failure(backend, ASK_BESIDE_FALLBACK)
    clock.advance(2 * PAUSE)
    upstream.answers(json_answer(COMPLETION))
    await backend.complete(ASK_BESIDE_FALLBACK)
    await backend.complete(ASK_BESIDE_FALLBACK)

    assert type(ejected) is NoReplica
    assert (ejected.kind, ejected.code, ejected.retry_after_seconds) == (
        503,
        "service_unavailable",
        5,
    )
    assert not ejected.may_have_been_billed
    assert type(tried) is BackendFailed
    assert type(still_ejected) is NoReplica
    assert backend.is_ready("m")


async def test_the_last_replica_is_called_where_no_fallback_could_answer(
    build: Build, upstream: Upstream
) -> None:
    backend = build(upstream)
    upstream.answers(json_answer({}, status=500))

    for _ in range(2 * FAILURES_MAX):
        assert type(await failure(backend, ask(model="m"))) is BackendFailed

    upstream.answers(json_answer(COMPLETION))
    await backend.complete(ask(model="m"))


async def test_a_replica_that_fails_for_one_model_is_in_use_for_others(
    build: Build, upstream: Upstream
) -> None:
    backend = build(upstream)
    upstream.answers(json_answer({}, status=500))

    for _ in range(FAILURES_MAX):
        await failure(backend, ASK_BESIDE_FALLBACK)

    assert not backend.is_ready("m")
    assert backend.is_ready("another")


async def test_a_replica_that_names_a_pause_is_left_alone_where_a_fallback_can_answer(
    build: Build, upstream: Upstream, clock: HeldClock
) -> None:
    backend = build(upstream)
    upstream.answers(json_answer({}, status=429, headers="retry-after: 9\r\n"))

    await failure(backend, ASK_BESIDE_FALLBACK)
    clock.advance(timedelta(seconds=8))
    left_alone = await failure(backend, ASK_BESIDE_FALLBACK)
    busy = await failure(backend, ask(model="m"))
    clock.advance(timedelta(seconds=9))
    upstream.answers(json_answer(COMPLETION))
    await backend.complete(ASK_BESIDE_FALLBACK)

    assert type(left_alone) is NoReplica
    assert type(busy) is BackendBusy
    assert len(upstream.received) == 3


async def test_requests_that_fail_by_themselves_eject_nothing(
    build: Build, upstream: Upstream
) -> None:
    """Else one caller could take a backend away from all others."""
    backend = build(upstream)
    upstream.answers(json_answer({}, status=400))

    for _ in range(2 * FAILURES_MAX):
        await failure(backend, ask())

    assert backend.is_ready("")


@pytest.mark.parametrize(
    "answer",
    [
        cut_answer(chunked(is_ended=False)),
        raw_answer(chunked(b"data: {\n\n")),
        json_answer({"error": {}}),
    ],
)
async def test_streams_that_never_begin_eject_their_replica(
    build: Build, upstream: Upstream, answer: Answer
) -> None:
    backend = build(upstream)
    upstream.answers(answer)

    for _ in range(FAILURES_MAX):
        with pytest.raises(BackendError):
            await streamed(backend, ask())

    assert not backend.is_ready("")


async def test_streams_that_break_later_eject_their_replica(
    build: Build, upstream: Upstream
) -> None:
    backend = build(upstream)
    may_break = asyncio.Event()

    async def answer(connection: Connection) -> None:
        await connection.send(chunked(said("Hel"), is_ended=False))
        await may_break.wait()
        connection.cut()

    upstream.answers(answer)

    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(backend.stream(ask())) for _ in range(FAILURES_MAX)
        ]
        for stream in streams:
            await stream.next()
        may_break.set()
        for stream in streams:
            with pytest.raises(BackendBroke):
                await stream.next()

    assert not backend.is_ready("")


async def test_while_one_call_tries_no_other_does(
    build: Build, upstream: Upstream, clock: HeldClock
) -> None:
    backend = build(upstream)
    upstream.answers(*[cut_answer()] * FAILURES_MAX, stalled_answer(), json_answer(COMPLETION))
    for _ in range(FAILURES_MAX):
        await failure(backend, ASK_BESIDE_FALLBACK)
    clock.advance(PAUSE)
    trial = asyncio.create_task(backend.complete(ASK_BESIDE_FALLBACK))
    await upstream.requests(FAILURES_MAX + 1)

    meanwhile = await failure(backend, ASK_BESIDE_FALLBACK)
    trial.cancel()
    await asyncio.wait([trial])
    clock.advance(2 * PAUSE)
    await backend.complete(ASK_BESIDE_FALLBACK)

    assert type(meanwhile) is NoReplica
    assert backend.is_ready("m"), "a trial that its caller abandoned makes room for another"


async def test_sessions_stay_with_their_replica_while_another_dies(
    build: Build, four_upstreams: list[Upstream]
) -> None:
    backend = build(*four_upstreams)
    sessions = [b"session-%d" % number for number in range(40)]
    before = {key: (await backend.complete(ask(key)))[1] for key in sessions}
    dead = four_upstreams[0]
    await dead.stop()

    after = {key: (await backend.complete(ask(key)))[1] for key in sessions}

    assert {key for key in sessions if before[key] != after[key]} == {
        key for key in sessions if before[key] == dead.name
    }


async def test_a_session_that_fills_its_replica_is_served_elsewhere(
    build: Build, upstream: Upstream, other_upstream: Upstream
) -> None:
    backend = build(upstream, other_upstream)
    affinity = await drawn_to(backend, upstream)
    for each in (upstream, other_upstream):
        each.answers(stalled_answer())
    before = len(upstream.received), len(other_upstream.received)

    calls = [asyncio.create_task(backend.complete(ask(affinity))) for _ in range(8)]
    await upstream.requests(before[0] + 5)
    await other_upstream.requests(before[1] + 3)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)


async def test_the_failure_of_the_last_attempt_is_told(
    build: Build, upstream: Upstream, other_upstream: Upstream
) -> None:
    backend = build(upstream, other_upstream)
    affinity = await drawn_to(backend, upstream)
    upstream.answers(json_answer({}, status=503))
    await other_upstream.stop()

    failed = await failure(backend, ask(affinity))

    assert type(failed) is BackendUnreachable
    assert failed.replica == other_upstream.name
