"""Contents of requests and answers: all that a backend would receive, or a caller.

Every field is judged unless it is listed here with a reason, so that a new field of the contract
is judged from the start.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, cast

import msgspec

from tollhouse.backends.types import UpstreamCompletion
from tollhouse.base.policies import Direction
from tollhouse.contract.chat import ChatRequest
from tollhouse.evaluation.content import logprobs
from tollhouse.evaluation.content.parts import message_parts, value_parts
from tollhouse.evaluation.content.windows import least_bytes
from tollhouse.evaluation.errors import TooLongToJudge
from tollhouse.evaluation.types import Content, ContentPart

UNJUDGED_OF_REQUEST: Final = {
    "model": "a name of the catalog; the backend gets its own name for it",
    "policy_ids": "IDs that stay in the gateway",
    "prompt_cache_key": "the backend gets a keyed hash of it",
    "cache_salt": "the backend gets a keyed hash of it",
    "prompt_cache_retention": "one of a few words",
    "reasoning": "one of a few words, and numbers",
    "reasoning_effort": "one of a few words",
    "stream_options": "booleans",
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
"""Rendered first, because they do not change while a conversation grows."""
_PREDICTION = "prediction"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChoiceText:
    """One choice of an answer: its message as an object, and its log probabilities as received.

    If the message has text and a refusal, `said` is both as one text, as some dialects send them.
    """

    index: int
    message: Mapping[str, Any]
    logprobs: Sequence[Any]


class _SizeBudget:
    """Stops rendering a content that is certainly longer than the judge may read."""

    def __init__(self, bytes_max: float) -> None:
        self._left_bytes = bytes_max

    def collect(self, parts: Iterable[ContentPart]) -> list[ContentPart]:
        """Return the parts, or raise `TooLongToJudge`."""
        kept: list[ContentPart] = []
        for part in parts:
            self._left_bytes -= least_bytes(part)
            if self._left_bytes < 0:
                raise TooLongToJudge
            kept.append(part)
        return kept


def request_content(request: ChatRequest, bytes_max: float = inf) -> Content:
    """Return all that the backend would receive. Raises `NotEvaluable` and `TooLongToJudge`."""
    budget = _SizeBudget(bytes_max)
    fields = msgspec.to_builtins(request)
    messages = fields.pop("messages")
    definitions = budget.collect(
        part for name in _DEFINITIONS for part in value_parts(name, fields.pop(name, None))
    )
    conversation = [
        budget.collect(_message_parts(index, each)) for index, each in enumerate(messages)
    ]
    options = budget.collect(
        part
        for name, value in fields.items()
        if name not in UNJUDGED_OF_REQUEST
        for part in _option_parts(name, value)
    )
    return Content(
        direction=Direction.REQUEST,
        parts=(*definitions, *(part for parts in conversation for part in parts), *options),
        opening=len(definitions) + _opening(messages, conversation),
    )


def completion_content(completion: UpstreamCompletion, bytes_max: float = inf) -> Content:
    """Return all that a caller would receive of an answer that is not streamed."""
    choices = [
        ChoiceText(
            index=choice.index,
            message=msgspec.to_builtins(choice.message),
            logprobs=[choice.logprobs],
        )
        for choice in completion.choices
    ]
    return answer_content(choices, bytes_max, prompt_logprobs=completion.prompt_logprobs)


def answer_content(
    choices: Iterable[ChoiceText],
    bytes_max: float = inf,
    *,
    prompt_logprobs: Sequence[Any] | None = None,
) -> Content:
    """Return all that a caller would receive: every choice, with its log probabilities."""
    budget = _SizeBudget(bytes_max)
    parts = budget.collect(
        part for choice in sorted(choices, key=_index) for part in _choice_parts(choice)
    )
    parts += budget.collect(logprobs.prompt_parts("prompt_logprobs", prompt_logprobs))
    return Content(direction=Direction.RESPONSE, parts=tuple(parts), opening=1)


def _message_parts(index: int, message: Mapping[str, Any]) -> Iterator[ContentPart]:
    label = f"messages[{index}] {message['role']}"
    for name, value in message.items():
        if name == "content":
            yield from message_parts(label, value, param=f"messages[{index}].content")
        elif name not in UNJUDGED_OF_MESSAGE:
            yield from value_parts(f"{label} {name}", value)


def _option_parts(name: str, value: Any) -> Iterator[ContentPart]:  # noqa: ANN401 - any field
    if name == _PREDICTION and isinstance(value, dict):
        prediction = dict(cast("dict[str, Any]", value))
        yield from message_parts(name, prediction.pop("content", None), param="prediction.content")
        yield from value_parts(name, prediction)
    else:
        yield from value_parts(name, value)


def _opening(messages: Sequence[Mapping[str, Any]], parts: Sequence[Sequence[ContentPart]]) -> int:
    """Return the number of parts up to the first message of a user, with its own."""
    count = 0
    for message, its_parts in zip(messages, parts, strict=True):
        count += len(its_parts)
        if message["role"] == "user":
            break
    return count


def _index(choice: ChoiceText) -> int:
    return choice.index


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a message, which may be in parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in content)


def _choice_parts(choice: ChoiceText) -> Iterator[ContentPart]:
    label = f"choices[{choice.index}]"
    message = dict(choice.message)
    if message.get("reasoning"):
        # Callers receive one of the two, under both names.
        message.pop("reasoning_content", None)
    content, said = message.pop("content", None), message.pop("said", None)
    yield from message_parts(label, content)
    if content and message.get("refusal"):
        yield from value_parts(f"{label} said", said or f"{_text(content)}{message['refusal']}")
    for name, value in message.items():
        yield from value_parts(f"{label} {name}", value)
    yield from logprobs.choice_parts(f"{label} logprobs", choice.logprobs, content=content)
