"""JSON bodies of chat completions: requests encoded for an upstream, and answers decoded.

A request is encoded anew from its decoded form, never from the caller's bytes. Only the fields
named here leave the gateway: not the caller, the policies, or options that only shape the answer.
Answers are decoded leniently: unknown fields are dropped.
"""

import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, DecodeError, Struct, UnsetType

from tollhouse.backends.types import (
    FreeObject,
    MessageHints,
    UpstreamChunk,
    UpstreamCompletion,
)
from tollhouse.contract.bounds import Effort
from tollhouse.contract.chat import (
    ChatMessage,
    ChatRequest,
    JsonObjectFormat,
    JsonSchemaFormat,
    TextFormat,
)
from tollhouse.contract.reasoning import Reasoning

T = TypeVar("T")

REFUSAL_CHARACTERS_MAX: Final = 500
_REFUSAL_READ_MAX: Final = 8_192
_ADDRESS: Final = re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://\S+", re.IGNORECASE)
_UNPRINTABLE: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")
_HIDDEN: Final = "[hidden]"
_ONLY_TEXT: Final[tuple[list[str], ...]] = (["text"], [])


class Forwarding(Struct, frozen=True, kw_only=True):
    """What the gateway decides about a request that it forwards.

    `takes_completion_bound`: the output bound is named `max_completion_tokens`.
    `reasoning_tokens_max` bounds a budget for reasoning, so that at least one token of the output
    bound is left for the answer. `cache_salt` and `prompt_cache_key` are digests of one tenant, or
    None if the backend does not accept them. `takes_budget`, `writes_cache` and `hints` are for
    backends that speak Messages: models with a budget for thinking, or a price for cache writes.
    """

    upstream_model: str
    output_tokens: int
    reasoning_tokens_max: int
    effort_names: Mapping[Effort, str]
    reasons: bool
    takes_budget: bool = False
    takes_completion_bound: bool = False
    takes_continuous_usage: bool = False
    takes_timings: bool = False
    cache_salt: str | None = None
    prompt_cache_key: str | None = None
    writes_cache: bool = False
    hints: MessageHints | None = None


class _StreamOptions(Struct, frozen=True, omit_defaults=True):
    """The gateway asks for usage even if the caller does not want to see it."""

    include_usage: bool
    continuous_usage_stats: bool | None = None


class _Budget(Struct, frozen=True):
    max_tokens: int


class _TemplateArguments(Struct, frozen=True):
    enable_thinking: bool


class _UpstreamBody(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body as JSON. Fields that are None or UNSET are left out."""

    model: str
    messages: list[ChatMessage]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream: bool = False
    stream_options: _StreamOptions | None = None
    timings_per_token: bool | None = None
    temperature: float | UnsetType | None = None
    top_p: float | UnsetType | None = None
    frequency_penalty: float | UnsetType | None = None
    presence_penalty: float | UnsetType | None = None
    logit_bias: dict[str, float] | UnsetType | None = None
    n: int | UnsetType | None = None
    seed: int | UnsetType | None = None
    stop: str | list[str] | UnsetType | None = None
    reasoning_effort: str | None = None
    reasoning: _Budget | None = None
    chat_template_kwargs: _TemplateArguments | None = None
    tools: list[FreeObject] | None = None
    tool_choice: str | FreeObject | UnsetType | None = None
    parallel_tool_calls: bool | UnsetType | None = None
    functions: list[FreeObject] | None = None
    function_call: str | FreeObject | UnsetType | None = None
    response_format: TextFormat | JsonObjectFormat | JsonSchemaFormat | UnsetType | None = None
    modalities: list[str] | UnsetType | None = None
    verbosity: str | UnsetType | None = None
    audio: FreeObject | UnsetType | None = None
    prediction: FreeObject | UnsetType | None = None
    service_tier: str | UnsetType | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | UnsetType | None = None
    logprobs: bool | UnsetType | None = None
    top_logprobs: int | UnsetType | None = None
    prompt_logprobs: int | UnsetType | None = None
    web_search_options: FreeObject | UnsetType | None = None
    cache_salt: str | None = None


_encode = msgspec.json.Encoder().encode
_NO_REASONING: Final = Reasoning()
_controls_of: Final = attrgetter("reasoning", "reasoning_effort", "thinking")
_NO_CONTROLS: Final = (UNSET, UNSET, UNSET)
_USAGE: Final = _StreamOptions(include_usage=True)
_CONTINUOUS_USAGE: Final = _StreamOptions(include_usage=True, continuous_usage_stats=True)


def encode(request: ChatRequest, forward: Forwarding) -> bytes:
    """Return the body for the upstream. It always states the output bound."""
    # An empty list counts as absent: upstreams refuse a tool choice without tools (OQ-37).
    tools, functions = request.tools or None, request.functions or None
    effort, budget, switch = _reasoning(request, forward)
    has_other_name = forward.takes_completion_bound
    usage = _CONTINUOUS_USAGE if forward.takes_continuous_usage else _USAGE
    return _encode(
        _UpstreamBody(
            model=forward.upstream_model,
            messages=list(map(forwarded_message, request.messages)),
            max_tokens=None if has_other_name else forward.output_tokens,
            max_completion_tokens=forward.output_tokens if has_other_name else None,
            stream=request.stream,
            stream_options=usage if request.stream else None,
            timings_per_token=True if request.stream and forward.takes_timings else None,
            temperature=request.temperature,
            top_p=request.top_p,
            frequency_penalty=request.frequency_penalty,
            presence_penalty=request.presence_penalty,
            logit_bias=request.logit_bias,
            n=None if request.n == 1 else request.n,
            seed=request.seed,
            stop=request.stop,
            reasoning_effort=effort,
            reasoning=budget,
            chat_template_kwargs=switch,
            tools=tools,
            tool_choice=request.tool_choice if tools else None,
            parallel_tool_calls=request.parallel_tool_calls if tools else None,
            functions=functions,
            function_call=request.function_call if functions else None,
            response_format=request.response_format,
            modalities=None if request.modalities in _ONLY_TEXT else request.modalities,
            verbosity=request.verbosity,
            audio=request.audio,
            prediction=request.prediction,
            service_tier=request.service_tier,
            prompt_cache_key=forward.prompt_cache_key,
            prompt_cache_retention=request.prompt_cache_retention,
            logprobs=request.logprobs or None,
            top_logprobs=request.top_logprobs,
            prompt_logprobs=request.prompt_logprobs,
            web_search_options=request.web_search_options,
            cache_salt=forward.cache_salt,
        )
    )


def forwarded_message(message: ChatMessage) -> ChatMessage:
    """Return a message without its `null` fields and without the ID of the model that wrote it."""
    optional = (
        message.content,
        message.reasoning,
        message.reasoning_content,
        message.name,
        message.tool_call_id,
        message.tool_calls,
        message.function_call,
    )
    if message.model_id is UNSET and None not in optional:
        return message
    return ChatMessage(
        role=message.role,
        content=_sent(message.content),
        reasoning=_sent(message.reasoning),
        reasoning_content=_sent(message.reasoning_content),
        name=_sent(message.name),
        tool_call_id=_sent(message.tool_call_id),
        tool_calls=_sent(message.tool_calls),
        function_call=_sent(message.function_call),
    )


def _sent(value: T | UnsetType | None) -> T | UnsetType:
    return UNSET if value is None else value


def _reasoning(
    request: ChatRequest, forward: Forwarding
) -> tuple[str | None, _Budget | None, _TemplateArguments | None]:
    """Return the effort, the budget or the switch to forward; at most one of them (OQ-35).

    An effort takes precedence over a budget, and a budget over a switch. A model that does not
    reason gets none of them, so that turning reasoning off never fails. OpenAI's reasoning models
    have no switch: they refuse the field, and are turned off by an effort.
    """
    if not forward.reasons or _controls_of(request) == _NO_CONTROLS:
        return None, None, None
    reasoning = request.reasoning or _NO_REASONING
    if effort := request.reasoning_effort or reasoning.effort:
        return forward.effort_names.get(effort, effort), None, None
    if budget := min(reasoning.max_tokens or 0, forward.reasoning_tokens_max):
        return None, _Budget(budget), None
    for switch in (request.thinking, reasoning.enabled):
        if isinstance(switch, bool):
            return _switched(forward, is_on=switch)
    return None, None, None


def _switched(
    forward: Forwarding, *, is_on: bool
) -> tuple[str | None, _Budget | None, _TemplateArguments | None]:
    if not forward.takes_completion_bound:
        return None, None, _TemplateArguments(is_on)
    return None if is_on else forward.effort_names.get("none", "none"), None, None


class Undecodable(Exception):
    """The bytes are not a valid answer, or the engine reports an error in them."""


class _ChunkOrError(UpstreamChunk, frozen=True):
    error: Any = None


class _CompletionOrError(UpstreamCompletion, frozen=True):
    error: Any = None


class _Refusal(Struct, frozen=True):
    """The members in which OpenAI, older vLLM and FastAPI state their reason."""

    error: Any = None
    message: Any = None
    detail: Any = None


INVALID: Final = (DecodeError, UnicodeDecodeError, RecursionError)
_chunk_decoder = msgspec.json.Decoder(_ChunkOrError)
_completion_decoder = msgspec.json.Decoder(_CompletionOrError)
_refusal_decoder = msgspec.json.Decoder(_Refusal)


def decode_chunk(payload: bytes) -> UpstreamChunk:
    """Return one record of a stream. Invalid usage is dropped. Raises `Undecodable`."""
    try:
        chunk = _chunk_decoder.decode(payload)
    except INVALID:
        chunk = _without_usage(_ChunkOrError, payload)
    if chunk.error is not None:
        raise Undecodable
    return chunk


def decode_completion(body: bytes) -> UpstreamCompletion:
    """Return an answer of at least one choice. Invalid usage is dropped. Raises `Undecodable`."""
    try:
        answer = _completion_decoder.decode(body)
    except INVALID:
        answer = _without_usage(_CompletionOrError, body)
    if answer.error is not None or not answer.choices:
        raise Undecodable
    return answer


def decode_to(kind: type[T], body: bytes) -> T:
    """Return an answer other than a completion. Raises `Undecodable`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except INVALID:
        raise Undecodable from None


def _without_usage(kind: type[T], data: bytes) -> T:
    """Decode without the counts: the caller gets the answer even if they are invalid."""
    try:
        tree = msgspec.json.decode(data)
        if isinstance(tree, dict):
            for counts in ("usage", "timings"):
                cast("dict[str, Any]", tree).pop(counts, None)
        return msgspec.convert(tree, kind)
    except INVALID:
        raise Undecodable from None


def refusal_text(body: bytes, *, hidden: Sequence[str]) -> str | None:
    """Return the reason in a refusal as one printable line, or None if it states none.

    URLs and the texts in `hidden` are replaced.
    """
    try:
        found = _refusal_decoder.decode(body)
    except INVALID:
        return None
    for reason in (_message(found.error), found.message, found.detail):
        if isinstance(reason, str):
            return _printable(reason[:_REFUSAL_READ_MAX], hidden) or None
    return None


def _message(error: object) -> object:
    return cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error


def _printable(text: str, hidden: Sequence[str]) -> str:
    for secret in hidden:
        text = text.replace(secret, _HIDDEN)
    line = _UNPRINTABLE.sub(" ", _ADDRESS.sub(_HIDDEN, text)).strip()
    printable = "".join(character for character in line if character.isprintable())
    return printable[:REFUSAL_CHARACTERS_MAX]
