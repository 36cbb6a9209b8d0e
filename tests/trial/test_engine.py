"""The scripted engine of a trial, asked over HTTP."""

import json
from collections.abc import Generator
from threading import Thread
from typing import Any

import httpx2
import pytest

from tollhouse.trial import engine

HELLO = [{"role": "user", "content": "Good day to you"}]
HELLO_TOKENS = 5
TOOL = {
    "type": "function",
    "function": {
        "name": "pay",
        "parameters": {"properties": {"toll": {"type": "integer"}}, "type": "object"},
    },
}


@pytest.fixture(scope="module")
def client() -> Generator[httpx2.Client]:
    with engine.server(0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        base_url = f"http://127.0.0.1:{server.server_port}"
        with httpx2.Client(base_url=base_url) as opened:
            yield opened
        server.shutdown()


def ask(client: httpx2.Client, **fields: object) -> httpx2.Response:
    return client.post("/v1/chat/completions", json={"messages": HELLO, **fields})


def scripted(**script: object) -> list[dict[str, str]]:
    return [{"role": "user", "content": json.dumps({"script": script})}]


def choices(answer: httpx2.Response) -> list[dict[str, Any]]:
    return answer.json()["choices"]


def events(text: str) -> list[dict[str, Any]]:
    *lines, done = [line for line in text.splitlines() if line]
    assert done == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_every_word_is_a_token_and_the_bound_is_kept(client: httpx2.Client) -> None:
    answer = ask(client, max_tokens=3, n=2)

    assert [choice["message"]["content"] for choice in choices(answer)] == ["The gate is"] * 2
    assert {choice["finish_reason"] for choice in choices(answer)} == {"length"}
    assert answer.json()["usage"] == {
        "prompt_tokens": HELLO_TOKENS,
        "completion_tokens": 6,
        "total_tokens": HELLO_TOKENS + 6,
    }


def test_a_stream_says_what_a_whole_answer_says(client: httpx2.Client) -> None:
    whole = ask(client)

    streamed = events(ask(client, stream=True, stream_options={"include_usage": True}).text)
    *records, last = streamed
    pieces = [record["choices"][0]["delta"].get("content", "") for record in records]

    assert "".join(pieces) == choices(whole)[0]["message"]["content"]
    assert records[-1]["choices"][0]["finish_reason"] == "stop"
    assert last["usage"] == whole.json()["usage"]


def test_a_forced_tool_is_called_in_both_forms(client: httpx2.Client) -> None:
    forced = {"tools": [TOOL], "tool_choice": "required"}
    (whole,) = choices(ask(client, **forced))
    records = events(ask(client, **forced, stream=True).text)

    (call,) = whole["message"]["tool_calls"]
    deltas = [
        delta for record in records for delta in record["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert whole["finish_reason"] == "tool_calls"
    assert call["function"] == {"name": "pay", "arguments": '{"toll": 1}'}
    assert "".join(delta["function"]["arguments"] for delta in deltas) == '{"toll": 1}'
    assert deltas[0]["id"] == call["id"]


def test_a_script_decides_status_and_text(client: httpx2.Client) -> None:
    refused = ask(client, messages=scripted(status=429, headers={"retry-after": "7"}))
    said = ask(client, messages=scripted(text="Pay here."))
    counted = ask(client, messages=scripted(tokens=2))
    unknown = ask(client, messages=scripted(colour="red"))
    nowhere = client.post("/v2")

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")
    assert choices(said)[0]["message"]["content"] == "Pay here."
    assert choices(counted)[0]["message"]["content"] == "The gate"
    assert (unknown.status_code, nowhere.status_code) == (400, 404)


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_script_breaks_an_answer_off(client: httpx2.Client, is_stream: bool) -> None:
    with pytest.raises(httpx2.RemoteProtocolError):
        ask(client, messages=scripted(cut_after=0), stream=is_stream)

    assert ask(client).status_code == 200
