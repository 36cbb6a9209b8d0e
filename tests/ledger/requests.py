"""Chat requests that no reasonable client would send."""

import json
from functools import reduce
from typing import Any

from hypothesis import strategies as st

from tollhouse.contract import chat
from tollhouse.contract.bounds import COMPLETIONS_MAX
from tollhouse.contract.decoding import decode

Body = dict[str, Any]

NASTY = (
    "\U0001d160"  # three times as many bytes in NFC
    "\u0390\u0344\u1fa2\u0958"
    "\ufdfa\ufdfb\u3300\u2a74\ufb03"  # up to eleven times as many in NFKC
    "\u0301\u0323\u0345\u20dd"
    "\U0001f469\u200d\U0001f4bb\U000e0001\U0010fffd"
    "\u00ad\u2028\ufeff\x01\x1b\x7f\x85"
    "\"\\/\n\t\r'<>&\u00e9\u4e2d"
    "<|im_end|>a 1"
)

CHARACTERS = st.one_of(
    st.sampled_from(NASTY), st.characters(exclude_categories=["Cs"], exclude_characters="\0")
)


def repeated(text: str, times: int) -> str:
    """Long enough for what a character costs to outweigh what a template adds."""
    return text * times


TEXTS = st.builds(repeated, st.text(CHARACTERS, max_size=12), st.integers(1, 100))
SHORT_TEXTS = st.text(CHARACTERS, min_size=1, max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e15, 1e16, 1e-7, -1e300]),
    SHORT_TEXTS,
    TEXTS,
)


def nested(value: Any, depth: int) -> Any:  # noqa: ANN401 - JSON
    """The value inside of as many lists."""
    return reduce(lambda inner, _: [inner], range(depth), value)


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(SHORT_TEXTS, inner, max_size=6),
        st.builds(nested, inner, st.integers(1, 60)),
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(SHORT_TEXTS, VALUES, max_size=6)


def compact(value: Body, *, ensure_ascii: bool) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=ensure_ascii)


ARGUMENTS = st.one_of(
    st.builds(compact, OBJECTS, ensure_ascii=st.booleans()),
    st.integers(1, 300).map(lambda times: f"[{','.join(['1E15'] * times)}]"),
    st.integers(1, 300).map(lambda times: f"[{','.join(['{}'] * times)}]"),
    TEXTS,
)


def tool(name: str, description: str, parameters: Body) -> Body:
    """A function as chat requests define it."""
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def call(name: str, arguments: str) -> Body:
    """A call of a function as an earlier answer had it."""
    function = {"name": name, "arguments": arguments}
    return {"id": "call_1", "type": "function", "function": function}


def text_part(text: str) -> Body:
    """Text as a part of content."""
    return {"type": "text", "text": text}


def said(role: str, content: str | list[Body]) -> Body:
    """A message of text."""
    return {"role": role, "content": content}


def called(calls: list[Body], reasoning: str) -> Body:
    """An earlier answer that called functions."""
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return message | {"reasoning_content": reasoning}


def returned(content: str, name: str) -> Body:
    """What a function gave back."""
    return {"role": "tool", "content": content, "name": name, "tool_call_id": "call_1"}


SAID = st.builds(
    said,
    st.sampled_from(["system", "user", "assistant"]),
    st.one_of(TEXTS, st.lists(st.builds(text_part, TEXTS), min_size=1, max_size=3)),
)
CALLED = st.builds(
    called, st.lists(st.builds(call, SHORT_TEXTS, ARGUMENTS), min_size=1, max_size=3), TEXTS
)
RETURNED = st.builds(returned, TEXTS, SHORT_TEXTS)
CONVERSATIONS = st.lists(st.one_of(SAID, RETURNED), min_size=1, max_size=4)
BODIES: st.SearchStrategy[Body] = st.fixed_dictionaries(
    {
        "model": st.just("m"),
        "messages": st.lists(st.one_of(SAID, CALLED, RETURNED), min_size=1, max_size=4),
        "n": st.integers(1, COMPLETIONS_MAX),
    },
    optional={"tools": st.lists(st.builds(tool, SHORT_TEXTS, TEXTS, OBJECTS), max_size=3)},
)


def request_of(body: Body) -> chat.ChatRequest:
    """The request as the edge would decode it."""
    return decode(body, chat.ChatRequest)
