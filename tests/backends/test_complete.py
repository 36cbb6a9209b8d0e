"""Whole answers: what becomes of each thing that an upstream can do."""

import asyncio
import gzip

import msgspec
import pytest

from tests.backends.conftest import API_KEY, Build
from tests.backends.wire import (
    COMPLETION,
    Answer,
    Upstream,
    cut_answer,
    json_answer,
    raw_answer,
    reset_answer,
    stalled_answer,
    whole,
)
from tollhouse.backends.errors import (
    BackendBroke,
    BackendBusy,
    BackendError,
    BackendFailed,
    BackendHungUp,
    BackendMalformed,
    BackendRejected,
    BackendTimedOut,
    BackendUnauthorized,
    BackendUnreachable,
)
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.types import UpstreamRequest, UpstreamUsage

ASK = UpstreamRequest(path="/chat/completions", body=b'{"model":"m"}')


async def failure(backend: OpenAiBackend) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await backend.complete(ASK)
    return caught.value


async def test_an_answer_comes_with_the_replica_that_gave_it(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    answer, replica = await backend.complete(ASK)

    assert answer.choices[0].message.content == "Hello."
    assert answer.usage == UpstreamUsage(prompt_tokens=3, completion_tokens=2)
    assert replica == upstream.name


@pytest.mark.guarantee("T30")
async def test_nothing_but_the_gateway_own_headers_is_sent(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    await backend.complete(ASK)

    (received,) = upstream.received
    assert (received.method, received.target) == ("POST", "/v1/chat/completions")
    assert received.body == ASK.body
    assert received.headers == {
        "host": upstream.url.removeprefix("http://").removesuffix("/v1"),
        "accept": "application/json",
        "accept-encoding": "identity",
        "authorization": f"Bearer {API_KEY}",
        "content-length": str(len(ASK.body)),
        "content-type": "application/json",
        "user-agent": "tollhouse",
    }


async def test_a_backend_without_a_key_gets_no_authorization(
    build: Build, upstream: Upstream
) -> None:
    await build(upstream, api_key=None).complete(ASK)

    assert "authorization" not in upstream.received[0].headers


async def test_connections_are_used_again(backend: OpenAiBackend, upstream: Upstream) -> None:
    for _ in range(5):
        await backend.complete(ASK)

    assert upstream.connections == 1


REFUSED = {"error": {"message": "too hot", "type": "invalid_request_error"}}
TOO_MANY = "This model takes at most 2048 tools."


@pytest.mark.parametrize(
    ("answer", "kind", "status", "may_have_been_billed"),
    [
        (json_answer(REFUSED, status=400), BackendRejected, 422, False),
        (json_answer(REFUSED, status=413), BackendRejected, 422, False),
        (json_answer(REFUSED, status=422), BackendRejected, 422, False),
        (json_answer({}, status=401), BackendUnauthorized, 502, False),
        (json_answer({}, status=402), BackendUnauthorized, 502, False),
        (json_answer({}, status=403), BackendUnauthorized, 502, False),
        (json_answer({}, status=404), BackendUnauthorized, 502, False),
        (json_answer({}, status=429), BackendBusy, 503, False),
        (json_answer({}, status=500), BackendFailed, 502, False),
        (json_answer({}, status=503), BackendFailed, 502, False),
        (json_answer(COMPLETION, status=206), BackendMalformed, 502, True),
        (json_answer({"error": {"message": "no"}}), BackendMalformed, 502, True),
        (json_answer({"error": "no", **COMPLETION}), BackendMalformed, 502, True),
        (json_answer({"choices": []}), BackendMalformed, 502, True),
        (json_answer({"choices": [{"index": "0"}]}), BackendMalformed, 502, True),
        (json_answer([]), BackendMalformed, 502, True),
        (raw_answer(whole(b'{"choices": [')), BackendMalformed, 502, True),
        (raw_answer(whole(b'{"choices": "\xff"}')), BackendMalformed, 502, True),
        (raw_answer(whole(b"[" * 100_000)), BackendMalformed, 502, True),
        (raw_answer(whole(b"<html>", kind="text/html")), BackendMalformed, 502, True),
        (cut_answer(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), BackendMalformed, 502, True),
        (cut_answer(), BackendHungUp, 502, True),
        (reset_answer(), BackendHungUp, 502, True),
        (cut_answer(b"HTTP/1.1 200 OK\r\ncontent-"), BackendHungUp, 502, True),
        (cut_answer(whole(b'{"choices":[]}')[:-3]), BackendBroke, 502, True),
        (reset_answer(whole(b'{"choices":[]}')[:-3]), BackendBroke, 502, True),
    ],
)
async def test_each_failure_has_its_class(
    build: Build,
    upstream: Upstream,
    answer: Answer,
    kind: type[BackendError],
    status: int,
    may_have_been_billed: bool,
) -> None:
    backend = build(upstream, bills_without_answer=True)
    upstream.answers(answer)

    failed = await failure(backend)

    assert type(failed) is kind
    assert failed.kind == status
    assert failed.may_have_been_billed is may_have_been_billed
    assert failed.replica == upstream.name
    await upstream.no_answer_under_way()


async def test_a_refused_connection_was_not_billed(build: Build, upstream: Upstream) -> None:
    backend = build(upstream)
    await upstream.stop()

    failed = await failure(backend)

    assert type(failed) is BackendUnreachable
    assert failed.kind == 502
    assert not failed.may_have_been_billed


@pytest.mark.guarantee("T34")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(
    build: Build, upstream: Upstream, other_upstream: Upstream, status: int
) -> None:
    backend = build(upstream)
    upstream.answers(json_answer({}, status=status, headers=f"location: {other_upstream.url}\r\n"))

    assert type(await failure(backend)) is BackendUnauthorized

    assert other_upstream.received == []


async def test_a_compressed_answer_is_refused_unopened(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    body = gzip.compress(msgspec.json.encode(COMPLETION))
    upstream.answers(raw_answer(whole(body, headers="content-encoding: gzip\r\n")))

    assert type(await failure(backend)) is BackendMalformed


async def test_an_answer_of_any_size_is_bounded(backend: OpenAiBackend, upstream: Upstream) -> None:
    endless = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    upstream.answers(stalled_answer(endless, *[b" " * 1_048_576] * 65))

    assert type(await failure(backend)) is BackendMalformed
    await upstream.no_answer_under_way()


@pytest.mark.guarantee("T30")
@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ({"error": {"message": TOO_MANY, "code": "context_length_exceeded"}}, TOO_MANY),
        ({"object": "error", "message": "too hot"}, "too hot"),
        ({"detail": "too hot"}, "too hot"),
        ({"error": "too hot"}, "too hot"),
        ({"error": {"message": "one\r\ntwo\u2028\x1b[31mthree\u202e"}}, "one two [31mthree"),
        ({"error": {"message": "x" * 9_000}}, "x" * 500),
    ],
)
async def test_what_a_backend_says_about_the_request_is_passed_on_cleaned(
    backend: OpenAiBackend, upstream: Upstream, said: object, heard: str
) -> None:
    upstream.answers(json_answer(said, status=400))

    assert (await failure(backend)).message == f"The backend refused the request: {heard}"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no",
        b"{}",
        b'{"error": {"message": 7}}',
        b'{"detail": [{"loc": []}]}',
        b'{"message": "\xff"}',
        b"[" * 50_000,
        b'{"message": "' + b"x" * 70_000 + b'"}',
    ],
)
async def test_a_refusal_that_says_nothing_readable_is_a_refusal(
    backend: OpenAiBackend, upstream: Upstream, body: bytes
) -> None:
    upstream.answers(raw_answer(whole(body, status=400)))

    assert (await failure(backend)).message == "The backend refused the request."


@pytest.mark.guarantee("T30")
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", 1),
        ("retry-after: 0\r\n", 1),
        ("retry-after: 7\r\n", 7),
        ("Retry-After: 86400\r\n", 60),
        ("retry-after: -3\r\n", 1),
        ("retry-after: \u0667\r\n", 1),
        (f"retry-after: {'9' * 5000}\r\n", 1),
        ("retry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\n", 1),
    ],
)
async def test_a_busy_backend_says_when_to_come_back(
    backend: OpenAiBackend, upstream: Upstream, header: str, seconds: int
) -> None:
    upstream.answers(json_answer({}, status=429, headers=header))

    failed = await failure(backend)

    assert failed.code == "server_is_overloaded"
    assert failed.retry_after_seconds == seconds


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1, "completion_tokens": 2},
        {"prompt_tokens": 3, "completion_tokens": 10**12},
        {"prompt_tokens": "3", "completion_tokens": 2},
        {"prompt_tokens": 3.5},
        {"prompt_tokens": True},
        {"completion_tokens": 2},
        {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": -1}},
        {"prompt_tokens": 10**40},
        "many",
        {},
    ],
)
async def test_absurd_usage_is_no_usage(
    backend: OpenAiBackend, upstream: Upstream, usage: object
) -> None:
    upstream.answers(json_answer({**COMPLETION, "usage": usage}))

    answer, _ = await backend.complete(ASK)

    assert answer.usage is None
    assert answer.choices[0].message.content == "Hello."


async def test_an_answer_that_does_not_come_in_time_is_a_deadline(
    build: Build, upstream: Upstream
) -> None:
    backend = build(upstream, total_seconds=0.05)
    upstream.answers(stalled_answer())

    failed = await failure(backend)

    assert type(failed) is BackendTimedOut
    assert failed.kind == 504
    assert failed.should_retry is False
    assert failed.may_have_been_billed
    assert failed.replica == upstream.name
    await upstream.no_connection()


async def test_an_answer_that_stops_in_its_middle_is_a_deadline(
    build: Build, upstream: Upstream
) -> None:
    backend = build(upstream, total_seconds=0.05)
    upstream.answers(stalled_answer(whole(b'{"choices":[]}')[:-3]))

    assert type(await failure(backend)) is BackendTimedOut
    await upstream.no_connection()


async def test_a_refusal_that_does_not_end_is_not_waited_for(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    upstream.answers(stalled_answer(whole(b"{}", status=500)[:-1]))

    assert type(await failure(backend)) is BackendFailed

    await upstream.no_connection()


async def test_a_caller_who_leaves_ends_the_connection(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    upstream.answers(stalled_answer())
    asking = asyncio.create_task(backend.complete(ASK))
    await upstream.requests(1)

    asking.cancel()

    await upstream.no_connection()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_more_calls_than_connections_are_refused(build: Build, upstream: Upstream) -> None:
    backend = build(upstream, connections_max=1)
    upstream.answers(stalled_answer(), json_answer(COMPLETION))
    first = asyncio.create_task(backend.complete(ASK))
    await upstream.requests(1)

    failed = await failure(backend)
    first.cancel()
    await asyncio.wait([first])
    await backend.complete(ASK)

    assert type(failed) is BackendBusy
    assert failed.replica is None
    assert failed.retry_after_seconds == 1


async def test_a_large_request_arrives_whole(backend: OpenAiBackend, upstream: Upstream) -> None:
    body = bytes(range(256)) * 40_000

    await backend.complete(UpstreamRequest(path="/chat/completions", body=body))

    assert upstream.received[0].body == body
    assert upstream.received[0].headers["content-length"] == str(len(body))


class Counted(msgspec.Struct):
    count: int


async def test_other_questions_may_go_to_the_host_itself(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    upstream.answers(json_answer({"count": 7, "max_model_len": 2048}))
    ask = UpstreamRequest(path="/tokenize", body=b"{}", is_at_host=True)

    counted, replica = await backend.fetch(ask, Counted)

    assert counted == Counted(7)
    assert replica == upstream.name
    assert upstream.received[0].target == "/tokenize"


async def test_another_question_with_an_answer_of_another_form_is_nonsense(
    backend: OpenAiBackend, upstream: Upstream
) -> None:
    upstream.answers(json_answer({"count": "seven"}))

    with pytest.raises(BackendMalformed):
        await backend.fetch(ASK, Counted)
