"""Every way in which a script can make the upstream misbehave, seen on the wire."""

import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.upstream.answers import text_of
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import TOKENS_DEFAULT, ScriptedUpstream
from tests.upstream.wire import EITHER, HELLO, HELLO_TOKENS, STREAM, ask, with_script

Body = dict[str, Any]
LineEnd = Literal["\n", "\r\n", "\r"]


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
    upstream.queue(UpstreamScript(status=500), match="evening")
    upstream.queue(UpstreamScript(status=429), times=2)

    statuses = [(await ask(upstream)).status for _ in range(3)]

    assert statuses == [429, 429, 200]
    assert (await ask(upstream, with_text("Good evening"))).status == 500
    assert (await ask(upstream, with_text("Good evening"))).status == 200


async def test_a_queue_holds_for_all_to_come_until_it_is_cleared(
    upstream: ScriptedUpstream,
) -> None:
    upstream.queue(UpstreamScript(status=503), path="/health", times=None)

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
    upstream.queue(UpstreamScript(status=429, headers={"retry-after": "7"}))
    upstream.queue(UpstreamScript(status=503, body={"detail": "busy"}))
    upstream.queue(UpstreamScript(status=307, headers={"location": "http://127.0.0.1:1/"}, body=""))

    limited, busy, moved = [await ask(upstream, body) for _ in range(3)]

    assert (limited.status, limited.headers["retry-after"]) == (429, "7")
    assert limited.json()["error"]["message"] == "The script says so."
    assert (busy.status, busy.json()) == (503, {"detail": "busy"})
    assert (moved.status, moved.headers["location"]) == (307, "http://127.0.0.1:1/")


async def test_an_error_inside_a_success(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(error={"message": "out of memory"}))
    upstream.queue(UpstreamScript(error={"message": "out of memory"}, error_after_events=2))
    upstream.queue(UpstreamScript(error={"message": "out of memory"}, done=False))

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
    upstream.queue(UpstreamScript(body='{"choices": ['))
    upstream.queue(UpstreamScript(body="data: {nope\n\n", content_type="text/event-stream"))
    upstream.queue(UpstreamScript(content_type="text/html"))

    broken, records, page = [await ask(upstream, body) for _ in range(3)]

    assert (broken.headers["content-type"], broken.body) == ("application/json", b'{"choices": [')
    assert records.headers["content-type"] == "text/event-stream"
    assert records.body == b"data: {nope\n\n"
    assert page.headers["content-type"] == "text/html"
    assert page.is_whole


async def test_garbage_between_two_records(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(inserted="data: {nope\n\n", inserted_after_events=2))

    stream = await ask(upstream, STREAM)

    assert stream.payloads()[2] == "{nope"
    assert stream.payloads()[-1] == "[DONE]"


@pytest.mark.parametrize(
    ("script", "usage"),
    [
        (UpstreamScript(usage={"completion_tokens": -5}), {"completion_tokens": -5}),
        (UpstreamScript(usage={"prompt_tokens": 10**30}), {"prompt_tokens": 10**30}),
        (UpstreamScript(usage={"total_tokens": "many"}), {"total_tokens": "many"}),
        (UpstreamScript(cached_tokens=3), {"prompt_tokens_details": {"cached_tokens": 3}}),
    ],
)
async def test_usage_can_be_absurd(
    upstream: ScriptedUpstream, script: UpstreamScript, usage: dict[str, Any]
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
    upstream.queue(UpstreamScript(usage="lots"))
    upstream.queue(UpstreamScript(usage=None), times=2)

    assert (await ask(upstream)).json()["usage"] == "lots"
    assert "usage" not in (await ask(upstream)).json()
    assert b"usage" not in (await ask(upstream, STREAM)).body


async def test_any_text_and_reason_to_end(upstream: ScriptedUpstream) -> None:
    text = "Two  words,\u2028and [DONE] \r\n too "
    upstream.queue(UpstreamScript(text=text, finish_reason="content_filter"))
    upstream.queue(UpstreamScript(text=text), times=2)
    upstream.queue(UpstreamScript(text="No.", refuses=True))

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
    upstream.queue(UpstreamScript(done=False))

    stream = await ask(upstream, STREAM)

    assert "[DONE]" not in stream.payloads()
    assert stream.is_whole


# How records stand on the wire


async def test_records_split_at_every_byte(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(split_bytes=1, tokens=2))

    stream = await ask(upstream, STREAM)

    assert {len(chunk) for chunk in stream.chunks} == {1}
    assert stream.said() == text_of(2)


async def test_a_whole_body_in_pieces(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(split_bytes=1, body="data: a\n\ndata: b\n\n"))

    stream = await ask(upstream, STREAM)

    assert {len(chunk) for chunk in stream.chunks} == {1}
    assert b"".join(stream.chunks) == b"data: a\n\ndata: b\n\n"


@pytest.mark.parametrize("at_byte", [1, 100, 100_000])
async def test_all_records_in_two_pieces(upstream: ScriptedUpstream, at_byte: int) -> None:
    upstream.queue(UpstreamScript(split_at_byte=at_byte, tokens=2))

    stream = await ask(upstream, STREAM)

    assert [len(chunk) for chunk in stream.chunks[:-1]] == [at_byte][: len(stream.chunks) - 1]
    assert len(stream.chunks) == (1 if at_byte > len(stream.body) else 2)
    assert stream.said() == text_of(2)
    assert upstream.seen[-1].events_sent == len(stream.payloads())


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_lines_end_as_the_script_says(upstream: ScriptedUpstream, end: LineEnd) -> None:
    upstream.queue(UpstreamScript(line_end=end))

    stream = await ask(upstream, STREAM)

    assert all(chunk.endswith(end.encode() * 2) for chunk in stream.chunks)
    assert stream.body.count(b"\n") == ("\n" in end) * 2 * len(stream.chunks)
    assert stream.said() == text_of(TOKENS_DEFAULT)


async def test_comments_stand_between_records(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(comments=True, tokens=1))

    stream = await ask(upstream, STREAM)

    assert stream.body.count(b": still here\n\ndata: ") == len(stream.payloads())


async def test_a_record_can_be_huge(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(padding_bytes=3_000_000))

    stream = await ask(upstream, STREAM)

    assert len(stream.chunks[0]) > 3_000_000
    assert stream.said() == text_of(TOKENS_DEFAULT)


def test_the_guide_names_every_member_of_a_script() -> None:
    guide = (Path(__file__).parents[2] / "docs/architecture/test-upstream.md").read_text("utf-8")

    rows = re.findall(r"^\| (`.+?) \|", guide, re.MULTILINE)

    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == list(
        UpstreamScript.__struct_fields__
    )
