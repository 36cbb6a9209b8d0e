"""Everything that is judged: what a backend would receive, and what a caller would get.

A field is judged unless it is named here with the reason why not, so that a field which is new
in the contract is judged from its first day.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, cast

import msgspec

from tollhouse.backends.types import UpstreamCompletion
from tollhouse.contract.chat import ChatRequest
from tollhouse.judging import tokens
from tollhouse.judging.errors import TooLongToJudge
from tollhouse.judging.parts import of_message_content, of_value
from tollhouse.judging.types import Content, Part
from tollhouse.judging.windows import least_bytes
from tollhouse.policies.types import Direction

UNJUDGED_OF_REQUEST: Final = {
    "model": "a name of the catalog; the backend gets its own name for it",
    "policy_ids": "IDs that stay in the gateway",
    "prompt_cache_key": "the backend gets a keyed hash of it",
    "cache_salt": "the backend gets a keyed hash of it",
    "prompt_cache_retention": "one of a few words",
    "reasoning": "one of a few words, and numbers",
    "reasoning_effort": "one of a few words",
    "stream_options": "truth values",
    "verbosity": "one of a few words",
    "user": "stays in the gateway",
    "safety_identifier": "stays in the gateway",
    "metadata": "stays in the gateway",
}
UNJUDGED_OF_MESSAGE: Final = {
    "role": "one of a few words, in the label of every part",
    "model_id": "stays in the gateway",
}
UNJUDGED_OF_ANSWER: Final = {
    "system_fingerprint": "dropped while an enforcing policy applies",
    "usage": "numbers",
}

_DEFINITIONS = ("tools", "functions", "response_format")
"""They come first because a conversation keeps them while it grows."""
_PREDICTION = "prediction"


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """One choice of an answer: its message as an object, and its log probabilities as they came."""

    index: int
    message: Mapping[str, Any]
    logprobs: Sequence[Any]


class _Room:
    """What is certainly more than a judge may read is not even put together."""

    def __init__(self, bytes_max: float) -> None:
        self._left_bytes = bytes_max

    def take(self, parts: Iterable[Part]) -> list[Part]:
        kept: list[Part] = []
        for part in parts:
            self._left_bytes -= least_bytes(part)
            if self._left_bytes < 0:
                raise TooLongToJudge
            kept.append(part)
        return kept


def of_request(request: ChatRequest, bytes_max: float = inf) -> Content:
    """All that the backend would get. Raises `NotEvaluable` where that is not text alone."""
    room = _Room(bytes_max)
    fields = msgspec.to_builtins(request)
    messages = fields.pop("messages")
    definitions = room.take(
        part for name in _DEFINITIONS for part in of_value(name, fields.pop(name, None))
    )
    conversation = [room.take(_of_message(index, each)) for index, each in enumerate(messages)]
    options = room.take(
        part
        for name, value in fields.items()
        if name not in UNJUDGED_OF_REQUEST
        for part in _of_option(name, value)
    )
    return Content(
        direction=Direction.REQUEST,
        parts=(*definitions, *(part for parts in conversation for part in parts), *options),
        opening=len(definitions) + _opening(messages, conversation),
    )


def of_completion(completion: UpstreamCompletion, bytes_max: float = inf) -> Content:
    """All that a caller would get of an answer that came whole."""
    said = [
        Said(
            index=choice.index,
            message=msgspec.to_builtins(choice.message),
            logprobs=[choice.logprobs],
        )
        for choice in completion.choices
    ]
    return of_answer(said, bytes_max, prompt_logprobs=completion.prompt_logprobs)


def of_answer(
    said: Iterable[Said],
    bytes_max: float = inf,
    *,
    prompt_logprobs: Sequence[Any] | None = None,
) -> Content:
    """All that a caller would get: every choice, with its probabilities where they were asked."""
    room = _Room(bytes_max)
    parts = room.take(part for choice in sorted(said, key=_index) for part in _of_choice(choice))
    parts += room.take(tokens.of_prompt("prompt_logprobs", prompt_logprobs))
    return Content(direction=Direction.RESPONSE, parts=tuple(parts), opening=1)


def _of_message(index: int, message: Mapping[str, Any]) -> Iterator[Part]:
    label = f"messages[{index}] {message['role']}"
    for name, value in message.items():
        if name == "content":
            yield from of_message_content(label, value, param=f"messages[{index}].content")
        elif name not in UNJUDGED_OF_MESSAGE:
            yield from of_value(f"{label} {name}", value)


def _of_option(name: str, value: Any) -> Iterator[Part]:  # noqa: ANN401 - any field
    if name == _PREDICTION and isinstance(value, dict):
        prediction = dict(cast("dict[str, Any]", value))
        yield from of_message_content(
            name, prediction.pop("content", None), param="prediction.content"
        )
        yield from of_value(name, prediction)
    else:
        yield from of_value(name, value)


def _opening(messages: Sequence[Mapping[str, Any]], parts: Sequence[Sequence[Part]]) -> int:
    """How many parts there are up to the first that a user said."""
    count = 0
    for message, of_message in zip(messages, parts, strict=True):
        count += len(of_message)
        if message["role"] == "user":
            break
    return count


def _index(choice: Said) -> int:
    return choice.index


def _of_choice(choice: Said) -> Iterator[Part]:
    label = f"choices[{choice.index}]"
    message = dict(choice.message)
    if message.get("reasoning"):
        # Callers get one of the two, under both names.
        message.pop("reasoning_content", None)
    content = message.pop("content", None)
    yield from of_message_content(label, content)
    for name, value in message.items():
        yield from of_value(f"{label} {name}", value)
    yield from tokens.of_choice(f"{label} logprobs", choice.logprobs, said=content)
