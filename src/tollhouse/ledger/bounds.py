"""The most tokens that a backend can bill for a request, known before the backend is called.

A tokenizer makes at most one token of a byte, and its normalizer may make several bytes of one.
Decision 0008 has the reasons for the numbers.
"""

from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from tollhouse.contract.bounds import OUTPUT_TOKENS_DEFAULT, FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.field_checks import ABSENT
from tollhouse.ledger.pricing import TokenBound
from tollhouse.ledger.spelling import NESTING_OF_ARGUMENTS, growth_bytes

MESSAGE_TOKENS = 16
TOOLS_TOKENS = 256
"""A template's instructions for calling tools; once per request with tools."""
TOOL_TOKENS = 64


# Tuples, because the value of a free-form member may not be hashable.
TEXT_TYPES = (None, "text", "refusal")
TEXT_MEMBERS = {"type", "text", "refusal", "cache_control"}
_PLAIN_MEMBERS = ("type", "text")
_options_of: Final = attrgetter("tool_choice", "function_call", "response_format", "audio")
IMAGE_TYPES = (None, "image_url")
IMAGE_MEMBERS = {"type", "image_url", "cache_control"}
CLOSED_TOOL_TYPES = ("function", "custom")


class TokenizerFamily(IntEnum):
    """The most bytes that the normalizer of a tokenizer makes of one byte."""

    BYTES = 1
    NFC = 3
    NFKC = 11


TEMPLATE_TOKENS: Final = {
    TokenizerFamily.BYTES: 256,
    TokenizerFamily.NFC: 64,
    TokenizerFamily.NFKC: 64,
}
"""The tokens that a template adds itself: a system prompt, a date, the next role.

A family with a larger factor needs fewer: its bound already contains the JSON around each message
several times, which no template prints.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelBounds:
    """The properties of a model and its backend on which bounds depend.

    Without `tokenizer`, or without `image_tokens` for a request with images, the bound of the
    prompt is the whole context. Without `template_tokens` the family's number is used.
    `default_output_tokens` bounds an answer for which the caller sent no bound.
    """

    tokenizer: TokenizerFamily | None
    context_length: int
    max_output_length: int
    default_output_tokens: int = OUTPUT_TOKENS_DEFAULT
    template_tokens: int | None = None
    image_tokens: int | None = None
    reasons_outside_bound: bool = False
    bills_prompt_per_choice: bool = False


class Prompt(Struct, kw_only=True):
    """The content of a request without the data of its images, by how a template renders it.

    `texts` are rendered as they are or as JSON strings. `structures` may be serialized again, with
    other blanks and escapes. `arguments` are JSON inside a string, which a template may parse.
    `is_open`: the backend may bill input whose size is not known from the request.
    """

    texts: list[Any] = []
    structures: list[Any] = []
    arguments: list[str] = []
    messages: int = 0
    tools: int = 0
    images: int = 0
    is_open: bool = False


def of_chat_request(request: ChatRequest, model: ModelBounds) -> TokenBound:
    """Return the most tokens that the backend can bill for a request with all its choices."""
    requested = request.max_completion_tokens or request.max_tokens
    budget = request.reasoning.max_tokens if request.reasoning else None
    output_tokens = output_tokens_max(requested or None, model)
    if request.prediction:
        output_tokens += _prediction_tokens(request.prediction, model)
    if model.reasons_outside_bound:
        output_tokens += budget or model.context_length
    return _bound(chat_prompt(request), model, output_tokens, request.n or 1)


def fits_context(bound: TokenBound, model: ModelBounds) -> bool:
    """Return whether prompt and answer certainly fit the model's context together."""
    return bound.prompt_tokens + bound.output_tokens <= model.context_length


def output_tokens_max(requested: int | None, model: ModelBounds) -> int:
    """Return the output bound, which must be sent with the request to be effective."""
    bound = requested or model.default_output_tokens
    return min(bound, model.max_output_length, model.context_length)


def _bound(prompt: Prompt, model: ModelBounds, output_tokens: int, completions: int) -> TokenBound:
    prompts = completions if model.bills_prompt_per_choice else 1
    return TokenBound(
        prompt_tokens=_prompt_tokens(prompt, model) * prompts,
        images=prompt.images * prompts,
        output_tokens=output_tokens,
        completions=completions,
    )


def _prompt_tokens(prompt: Prompt, model: ModelBounds) -> int:
    image_tokens = model.image_tokens if prompt.images else 0
    if prompt.is_open or model.tokenizer is None or image_tokens is None:
        return model.context_length
    template_tokens = model.template_tokens
    if template_tokens is None:
        template_tokens = TEMPLATE_TOKENS[model.tokenizer]
    tokens = (
        template_tokens
        + MESSAGE_TOKENS * prompt.messages
        + (TOOLS_TOKENS if prompt.tools else 0)
        + TOOL_TOKENS * prompt.tools
        + image_tokens * prompt.images
        + model.tokenizer * _rendered_bytes(prompt, model.context_length)
    )
    return min(tokens, model.context_length)


def _rendered_bytes(prompt: Prompt, enough: int) -> int:
    """Return the most bytes that a template can print; not exact if it is `enough` or more."""
    if not prompt.arguments and not prompt.structures:
        return len(_written(prompt.texts))
    pieces = [(text.encode(), NESTING_OF_ARGUMENTS) for text in prompt.arguments]
    if prompt.structures:
        pieces.append((_written(prompt.structures), 0))
    plain = len(_written(prompt.texts)) + sum(len(written) for written, _ in pieces)
    if plain >= enough:
        return plain
    return plain + sum(growth_bytes(written, nesting=nesting) for written, nesting in pieces)


def _written(value: list[Any]) -> bytes:
    """Return the JSON of texts, which is never shorter than the texts."""
    return msgspec.json.encode(value)


def _prediction_tokens(prediction: FreeObject, model: ModelBounds) -> int:
    """Return the most tokens of predicted text, whose unused part is billed as output."""
    if model.tokenizer is None:
        return model.context_length
    return min(model.tokenizer * len(_written([prediction])), model.context_length)


def chat_prompt(request: ChatRequest) -> Prompt:
    """Return the parts of a request that a chat template can render."""
    prompt = Prompt(is_open=request.web_search_options not in ABSENT)
    prompt.messages = len(request.messages)
    for message in request.messages:
        _add_message(prompt, message)
    if request.tools:
        _add_tools(prompt, request.tools)
    if request.functions:
        _add_tools(prompt, [{"function": function} for function in request.functions])
    for option in _options_of(request):
        if option not in ABSENT:
            prompt.structures.append(option)
    return prompt


def _add_message(prompt: Prompt, message: ChatMessage) -> None:
    if isinstance(message.content, list):
        texts = _text_parts(prompt, message.content)
        message = msgspec.structs.replace(message, content=texts)
    if not message.tool_calls and not message.function_call:
        prompt.texts.append(message)
        return
    calls = [call.get("function") for call in message.tool_calls or []]
    if message.function_call:
        calls.append(message.function_call)
    prompt.structures.append(message)
    for call in calls:
        _add_arguments(prompt, call)


def _text_parts(prompt: Prompt, parts: list[FreeObject]) -> list[FreeObject]:
    """Return the text parts, and count images; other parts may be of any size."""
    texts: list[FreeObject] = []
    for part in parts:
        if part.get("type") == "text" and "text" in part and len(part) == len(_PLAIN_MEMBERS):
            texts.append(part)
            continue
        members = {name for name, value in part.items() if value is not None}
        if part.get("type") in TEXT_TYPES and members <= TEXT_MEMBERS:
            texts.append(part)
        elif part.get("type") in IMAGE_TYPES and members <= IMAGE_MEMBERS:
            prompt.images += 1
        else:
            prompt.is_open = True
    return texts


def _add_tools(prompt: Prompt, tools: list[FreeObject]) -> None:
    """Add tools; one that the backend runs itself, such as web search, adds unknown input."""
    prompt.tools += len(tools)
    prompt.structures += tools
    if not all((tool.get("type") or "function") in CLOSED_TOOL_TYPES for tool in tools):
        prompt.is_open = True


def _add_arguments(prompt: Prompt, call: Any) -> None:  # noqa: ANN401 - free-form
    arguments = cast("FreeObject", call).get("arguments") if isinstance(call, dict) else None
    if isinstance(arguments, str):
        prompt.arguments.append(arguments)
