"""What the gateway sends, it takes back: copied members of answers, and what came with a call."""

import json
from typing import Any

import msgspec
import pytest

from tests.support.deployment import MODEL, Deployment, offering
from tests.upstream.scripts import ScriptedCall, UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

Body = dict[str, Any]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
MESSAGES = "/compat/anthropic/v1/messages"
USER: Body = {"role": "user", "content": "Hi"}
EXTRA = {"google": {"thought_signature": "c2lnbmF0dXJl"}}


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    compatibility = msgspec.structs.replace(settings.compatibility, accepts_own_answers=True)
    settings = msgspec.structs.replace(settings, compatibility=compatibility)
    return offering(settings, upstream.base_url)


async def sent_back(deployment: Deployment, path: str, **members: object) -> tuple[int, Body, Body]:
    """The status, the answer, and what the engine received last."""
    async with deployment.customer() as client:
        answer = await client.post(path, json={"model": MODEL, "max_tokens": 64, **members})
    seen = deployment.upstream.seen
    return answer.status_code, answer.json(), json.loads(seen[-1].body) if seen else {}


@pytest.mark.parametrize(
    ("copied", "content"),
    [
        ({"content": "a", "refusal": None, "annotations": [{"type": "url_citation"}]}, "a"),
        ({"content": "a", "audio": {}, "parsed": {"b": 1}}, "a"),
        ({"content": None, "refusal": "No.", "audio": None, "tool_calls": None}, "No."),
        ({"content": "a", "refusal": "No."}, ["a", "No."]),
        ({"content": [{"type": "text", "text": "a"}], "refusal": "No."}, ["a", "No."]),
    ],
)
async def test_an_answer_that_an_sdk_copied_is_forwarded_as_a_message(
    deployment: Deployment, copied: Body, content: str | list[str]
) -> None:
    said = {"role": "assistant", **copied}

    status, _, seen = await sent_back(deployment, CHAT, messages=[USER, said, USER])

    texts = [{"type": "text", "text": text} for text in content]
    shown = content if isinstance(content, str) else texts
    assert status == 200
    assert seen["messages"][1] == {"role": "assistant", "content": shown}


@pytest.mark.parametrize(
    ("role", "member", "code"),
    [
        ("assistant", {"audio": {"id": "audio_1"}}, "unknown_parameter"),
        ("assistant", {"provider_specific_fields": {}}, "unknown_parameter"),
        ("assistant", {"refusal": 1}, "invalid_type"),
        ("user", {"refusal": "No."}, "unknown_parameter"),
    ],
)
async def test_no_other_member_of_an_answer_is_taken(
    deployment: Deployment, role: str, member: Body, code: str
) -> None:
    messages = [USER, {"role": role, "content": "a", **member}]

    status, answer, seen = await sent_back(deployment, CHAT, messages=messages)

    assert (status, answer["error"]["code"]) == (400, code)
    assert answer["error"]["param"] == f"messages[1].{next(iter(member))}"
    assert not seen


def result_of(path: str, said: Body) -> Body:
    """The request that sends an answer back with the result of its call."""
    match path:
        case "/v1/chat/completions":
            message = said["choices"][0]["message"]
            result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": ""}
            return {"messages": [USER, message, result]}
        case "/v1/responses":
            call = said["output"][0]
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": ""}
            return {"input": [call, result]}
        case _:
            block = said["content"][0]
            result = {"type": "tool_result", "tool_use_id": block["id"], "content": ""}
            answer = {"role": "assistant", "content": [block]}
            return {"messages": [USER, answer, {"role": "user", "content": [result]}]}


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_the_extra_content_of_a_call_goes_to_the_caller_and_back(
    deployment: Deployment, path: str
) -> None:
    script = UpstreamScript(calls=(ScriptedCall(name="pay", extra_content=EXTRA),))
    for _ in range(2):
        deployment.upstream.queue(script)
    asked = {"input": "Hi"} if path == RESPONSES else {"messages": [USER]}
    async with deployment.customer() as client:
        body = {"model": MODEL, "max_tokens": 64, "stream": True, **asked}
        stream = (await client.post(path, json=body)).text

    _, said, _ = await sent_back(deployment, path, **asked)
    status, _, seen = await sent_back(deployment, path, **result_of(path, said))

    assert json.dumps(EXTRA, separators=(",", ":")) in stream
    assert status == 200
    (call,) = next(message for message in seen["messages"] if "tool_calls" in message)["tool_calls"]
    assert call["extra_content"] == EXTRA
