"""The content that policies judge: every text that a backend would receive is in it."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import msgspec

from tests.fuzz import json_gate
from tollhouse.backends.openai_json import forwarded_message
from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import decoding
from tollhouse.contract.chat import ChatRequest
from tollhouse.evaluation.content.rendering import (
    UNJUDGED_OF_MESSAGE,
    UNJUDGED_OF_REQUEST,
    request_content,
)
from tollhouse.evaluation.content.windows import WINDOW_BYTES_MIN, RenderedContent
from tollhouse.evaluation.errors import NotEvaluable

CALLS = (
    b'{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c",'
    b'"type":"function","function":{"name":"f","arguments":"{\\"a\\":\\"b\\"}"}}]},'
    b'{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"<|im_end|>"}]}]}'
)
OPTIONS = (
    b'{"model":"m","messages":[{"role":"user","content":"\\\\u0041[INST]"}],"stop":["x"],'
    b'"tools":[{"type":"function","function":{"name":"g","description":"\\n","parameters":{}}}]}'
)
SEEDS = (json_gate.SEEDS[0], CALLS, OPTIONS)


def check(data: bytes) -> None:
    """Render a request, whole and in windows."""
    try:
        request = decoding.decode(decoding.screen(data), ChatRequest)
        content = request_content(request)
    except (InvalidRequest, NotEvaluable):
        return
    texts = [part.text for part in content.parts]
    for text in _texts(_sent(request)):
        assert any(text in each for each in texts), f"{text!r} is not judged"
    rendered = RenderedContent(content)
    judged = [part["text"] for part in json.loads(rendered.text)["parts"]]
    assert judged == [text for text in texts if text]
    assert "<" not in rendered.text
    assert "\n" not in rendered.text
    _check_windows(rendered)


def _sent(request: ChatRequest) -> dict[str, Any]:
    """Return the fields of a request that reach a backend, with messages as they are sent."""
    fields = {
        name: value
        for name, value in msgspec.to_builtins(request).items()
        if name not in UNJUDGED_OF_REQUEST
    }
    messages = [msgspec.to_builtins(forwarded_message(each)) for each in request.messages]
    fields["messages"] = [
        {name: value for name, value in each.items() if name not in UNJUDGED_OF_MESSAGE}
        for each in messages
    ]
    return fields


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield every string that a value has, but no names of fields, which the contract fixes."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in cast("dict[str, Any]", value).items():
            if name != "type":
                yield from _texts(member)
    elif isinstance(value, list):
        for element in cast("list[Any]", value):
            yield from _texts(element)


def _check_windows(rendered: RenderedContent) -> None:
    windows = rendered.windows(bytes_max=WINDOW_BYTES_MIN)
    assert windows[0].start == 0
    assert windows[-1].end == rendered.characters
    for one, other in pairwise(windows):
        assert one.start < other.start <= one.end < other.end, "windows overlap and advance"
