"""Every way in which a script can make the upstream misbehave, seen on the wire."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.testing.wire import HELLO, HELLO_TOKENS, STREAM, ask, connect, request
from tollhouse.testing.answers import text_of
from tollhouse.testing.exchanges import Outcome
from tollhouse.testing.scripts import Cut, Script
from tollhouse.testing.upstream import TOKENS_DEFAULT, ScriptedUpstream

EITHER = pytest.mark.parametrize("body", [HELLO, STREAM], ids=["json", "stream"])
Body = dict[str, Any]
Breaking = Literal["close", "reset"]
LineEnd = Literal["\n", "\r\n", "\r"]


def with_script(script: dict[str, Any], body: Body = HELLO) -> Body:
    text = json.dumps({"script": script}) + "\nGood day to you"
    return body | {"messages": [{"role": "user", "content": text}]}


# Where a script comes from


async def test_a_message_can_bring_its_script(upstream: ScriptedUpstream) -> None:
    answer = await ask(upstream, with_script({"tokens": 2}))
    counted = await ask(upstream, with_script({"status": 503}), path="/v1/messages/count_tokens")

    assert answer.json()["choices"][0]["message"]["content"] == text_of(2)
    assert counted.status == 503


async def test_only_the_last_word_of_the_user_can(upstream: ScriptedUpstream) -> None:
    script = with_script({"tokens": 2})["messages"]

    first = await ask(upstream, {"messages": [*script, *HELLO["messages"]]})
    last = await ask(
        upstream,
        {"messages": [*HELLO["messages"], *script, {"role": "tool", "content": "paid"}]},
    )

    assert first.json()["choices"][0]["message"]["content"] == text_of(TOKENS_DEFAULT)
    assert last.json()["choices"][0]["message"]["content"] == text_of(2)


async def test_a_script_that_cannot_be_read_is_refused(upstream: ScriptedUpstream) -> None:
    refused = await ask(upstream, with_script({"tokns": 2}))

    assert refused.status == 400
    assert "tokns" in refused.json()["error"]["message"]


async def test_scripts_wait_in_a_queue_for_the_text_that_they_match(
    upstream: ScriptedUpstream,
) -> None:
    upstream.queue(Script(status=500), match="evening")
    upstream.queue(Script(status=429), times=2)

    statuses = [(await ask(upstream)).status for _ in range(3)]

    assert statuses == [429, 429, 200]
    assert (await ask(upstream, with_text("Good evening"))).status == 500
    assert (await ask(upstream, with_text("Good evening"))).status == 200


async def test_a_queue_holds_for_all_to_come_until_it_is_cleared(
    upstream: ScriptedUpstream,
) -> None:
    upstream.queue(Script(status=503), path="/health", times=None)

    ill = [(await ask(upstream, b"", path="/health", method="GET")).status for _ in range(3)]
    asked = (await ask(upstream)).status
    upstream.scripts.clear()

    assert (ill, asked) == ([503] * 3, 200)
    assert (await ask(upstream, b"", path="/health", method="GET")).status == 200


def with_text(text: str, body: Body = HELLO) -> Body:
    return body | {"messages": [{"role": "user", "content": text}]}


# What is answered


@EITHER
async def test_any_status_with_any_headers_and_body(upstream: ScriptedUpstream, body: Body) -> None:
    upstream.queue(Script(status=429, headers={"retry-after": "7"}))
    upstream.queue(Script(status=503, body={"detail": "busy"}))
    upstream.queue(Script(status=307, headers={"location": "http://127.0.0.1:1/"}, body=""))

    limited, busy, moved = [await ask(upstream, body) for _ in range(3)]

    assert (limited.status, limited.headers["retry-after"]) == (429, "7")
    assert limited.json()["error"]["message"] == "The script says so."
    assert (busy.status, busy.json()) == (503, {"detail": "busy"})
    assert (moved.status, moved.headers["location"]) == (307, "http://127.0.0.1:1/")


async def test_an_error_inside_a_success(upstream: ScriptedUpstream) -> None:
    upstream.queue(Script(error={"message": "out of memory"}))
    upstream.queue(Script(error={"message": "out of memory"}, error_after_events=2))
    upstream.queue(Script(error={"message": "out of memory"}, done=False))

    whole = await ask(upstream)
    late = await ask(upstream, STREAM)
    first = await ask(upstream, STREAM)

    assert (whole.status, whole.json()) == (200, {"error": {"message": "out of memory"}})
    assert late.status == 200
    assert len(late.payloads()) == 4
    assert json.loads(late.payloads()[2]) == {"error": {"message": "out of memory"}}
    assert late.payloads()[3] == "[DONE]"
    assert first.payloads() == ['{"error":{"message":"out of memory"}}']
    assert first.is_whole


@EITHER
async def test_garbage_in_place_of_an_answer(upstream: ScriptedUpstream, body: Body) -> None:
    upstream.queue(Script(body='{"choices": ['))
    upstream.queue(Script(body="data: {nope\n\n", content_type="text/event-stream"))
    upstream.queue(Script(content_type="text/html"))

    broken, records, page = [await ask(upstream, body) for _ in range(3)]

    assert (broken.headers["content-type"], broken.body) == ("application/json", b'{"choices": [')
    assert records.headers["content-type"] == "text/event-stream"
    assert records.body == b"data: {nope\n\n"
    assert page.headers["content-type"] == "text/html"
    assert page.is_whole


async def test_garbage_between_two_records(upstream: ScriptedUpstream) -> None:
    upstream.queue(Script(inserted="data: {nope\n\n", inserted_after_events=2))

    stream = await ask(upstream, STREAM)

    assert stream.payloads()[2] == "{nope"
    assert stream.payloads()[-1] == "[DONE]"


@pytest.mark.parametrize(
    ("script", "usage"),
    [
        (Script(usage={"completion_tokens": -5}), {"completion_tokens": -5}),
        (Script(usage={"prompt_tokens": 10**30}), {"prompt_tokens": 10**30}),
        (Script(usage={"total_tokens": "many"}), {"total_tokens": "many"}),
        (Script(cached_tokens=3), {"prompt_tokens_details": {"cached_tokens": 3}}),
    ],
)
async def test_usage_can_be_absurd(
    upstream: ScriptedUpstream, script: Script, usage: dict[str, Any]
) -> None:
    upstream.queue(script, times=2)
    exact = {
        "prompt_tokens": HELLO_TOKENS,
        "completion_tokens": TOKENS_DEFAULT,
        "total_tokens": HELLO_TOKENS + TOKENS_DEFAULT,
    }

    assert (await ask(upstream)).json()["usage"] == exact | usage
    assert (await ask(upstream, STREAM)).records()[-1]["usage"] == exact | usage


async def test_usage_can_be_a_text_or_missing(upstream: ScriptedUpstream) -> None:
    upstream.queue(Script(usage="lots"))
    upstream.queue(Script(usage=None), times=2)

    assert (await ask(upstream)).json()["usage"] == "lots"
    assert "usage" not in (await ask(upstream)).json()
    assert b"usage" not in (await ask(upstream, STREAM)).body


async def test_any_text_and_reason_to_end(upstream: ScriptedUpstream) -> None:
    text = "Two  words,\u2028and [DONE] \r\n too "
    upstream.queue(Script(text=text, finish_reason="content_filter"))
    upstream.queue(Script(text=text), times=2)
    upstream.queue(Script(text="No.", refuses=True))

    answer = (await ask(upstream)).json()
    whole = (await ask(upstream)).json()
    stream = await ask(upstream, STREAM)
    refusal = (await ask(upstream)).json()["choices"][0]["message"]

    assert answer["choices"][0]["finish_reason"] == "content_filter"
    assert answer["choices"][0]["message"]["content"] == text
    assert stream.said() == text
    assert stream.records()[-1]["usage"] == whole["usage"]
    assert (refusal["content"], refusal["refusal"]) == (None, "No.")


async def test_a_stream_without_its_last_word(upstream: ScriptedUpstream) -> None:
    upstream.queue(Script(done=False))

    stream = await ask(upstream, STREAM)

    assert "[DONE]" not in stream.payloads()
    assert stream.is_whole


# How records stand on the wire


async def test_records_split_at_every_byte(upstream: ScriptedUpstream) -> None:
    upstream.queue(Script(split_bytes=1, tokens=2))

    stream = await ask(upstream, STREAM)

    assert {len(chunk) for chunk in stream.chunks} == {1}
    assert stream.said() == text_of(2)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_lines_end_as_the_script_says(upstream: ScriptedUpstream, end: LineEnd) -> None:
    upstream.queue(Script(line_end=end))

    stream = await ask(upstream, STREAM)

    assert all(chunk.endswith(end.encode() * 2) for chunk in stream.chunks)
    assert stream.body.count(b"\n") == ("\n" in end) * 2 * len(stream.chunks)
    assert stream.said() == text_of(TOKENS_DEFAULT)


async def test_comments_stand_between_records(upstream: ScriptedUpstream) -> None:
    upstream.queue(Script(comments=True, tokens=1))

    stream = await ask(upstream, STREAM)

    assert stream.body.count(b": still here\n\ndata: ") == len(stream.payloads())


async def test_a_record_can_be_huge(upstream: ScriptedUpstream) -> None:
    upstream.queue(Script(padding_bytes=3_000_000))

    stream = await ask(upstream, STREAM)

    assert len(stream.chunks[0]) > 3_000_000
    assert stream.said() == text_of(TOKENS_DEFAULT)


# Breaking off


@EITHER
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_not_even_a_head(upstream: ScriptedUpstream, body: Body, how: Breaking) -> None:
    upstream.queue(Script(cut=Cut(how=how)))

    wire = await ask(upstream, body)

    assert (wire.raw, wire.was_reset) == (b"", how == "reset")
    assert upstream.seen[0].outcome is Outcome.CUT


@EITHER
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_head_and_nothing_more(
    upstream: ScriptedUpstream, body: Body, how: Breaking
) -> None:
    upstream.queue(Script(cut=Cut(how=how, after=0)))

    wire = await ask(upstream, body)

    assert (wire.status, wire.body, wire.is_whole) == (200, b"", False)
    assert wire.was_reset == (how == "reset")


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_half_a_body(upstream: ScriptedUpstream, how: Breaking) -> None:
    upstream.queue(Script(cut=Cut(how=how, after=0, inside=True)))

    wire = await ask(upstream)

    length = int(wire.headers["content-length"])
    assert len(wire.body) == length // 2
    assert wire.was_reset == (how == "reset")


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("inside", [False, True])
async def test_some_events_and_no_more(
    upstream: ScriptedUpstream, how: Breaking, inside: bool
) -> None:
    upstream.queue(Script(cut=Cut(how=how, after=3, inside=inside)))

    wire = await ask(upstream, STREAM)

    assert len(wire.chunks) == 3
    assert (wire.raw.endswith(b"\r\n"), wire.is_whole) == (not inside, False)
    assert wire.was_reset == (how == "reset")
    assert upstream.seen[0].events_sent == 3


async def test_all_events_but_no_end(upstream: ScriptedUpstream) -> None:
    upstream.queue(Script(tokens=1, cut=Cut(how="close", after=5)))

    wire = await ask(upstream, STREAM)

    assert wire.payloads()[-1] == "[DONE]"
    assert not wire.is_whole


# Waiting


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (Cut(how="stall"), b""),
        (Cut(how="stall", after=0), b"HTTP/1.1 200 OK\r\n"),
        (Cut(how="stall", after=2), b'"content":"The"'),
        (Cut(how="stall", after=2, inside=True), b'data: {"id"'),
    ],
)
@EITHER
async def test_a_stall_lasts_until_it_is_let_go(
    upstream: ScriptedUpstream, cut: Cut, said: bytes, body: Body
) -> None:
    if body is HELLO and cut.after == 2:
        cut = Cut(how="stall", after=0, inside=True)
        said = b'{"id"'
    upstream.queue(Script(cut=cut))
    reader, writer = await connect(upstream)
    writer.write(request(json.dumps(body).encode()))

    exchange = await upstream.seen.arrival("Good day")
    await exchange.stall()

    before = await reader.readuntil(said) if said else b""
    assert exchange.outcome is Outcome.UNDER_WAY
    exchange.release()
    assert await exchange.end() is Outcome.COMPLETE
    end = b'"total_tokens":21}}' if body is HELLO else b"0\r\n\r\n"
    assert (before + await reader.readuntil(end)).count(b"HTTP/1.1") == 1
    writer.transport.abort()


@EITHER
@pytest.mark.parametrize("name", ["before_head_ms", "before_first_event_ms"])
async def test_a_delay_is_kept_before_head_and_first_event(
    upstream: ScriptedUpstream, name: str, body: Body
) -> None:
    clock = asyncio.get_running_loop().time
    began = clock()

    answer = await ask(upstream, with_script({name: 100}, body))

    assert answer.is_whole
    assert clock() - began >= 0.1


async def test_a_delay_is_kept_between_events(upstream: ScriptedUpstream) -> None:
    clock = asyncio.get_running_loop().time
    began = clock()

    stream = await ask(upstream, with_script({"between_events_ms": 10, "tokens": 8}, STREAM))

    assert len(stream.payloads()) == 12
    assert clock() - began >= 0.11


def test_the_guide_names_every_member_of_a_script() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/test-upstream.md").read_text("utf-8")

    rows = re.findall(r"^\| (`.+?) \|", guide, re.MULTILINE)

    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == list(
        Script.__struct_fields__
    )
