"""What is sent upstream: the decoded request encoded anew, never the caller's bytes.

Whatever is not named here stays in the gateway: who calls, which policies apply, what is only
about the answer's form.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

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

FreeObject = dict[str, Any]
_ONLY_TEXT: Final[tuple[list[str], ...]] = (["text"], [])


class Forwarding(Struct, frozen=True, kw_only=True):
    """What the gateway decides about a request that it forwards.

    `reasoning_tokens_max` is what a budget for reasoning is lowered to, so that one token of the
    output bound is left for the answer. `cache_salt` and `prompt_cache_key` are digests that
    belong to one tenant, or None where the backend does not take them.
    """

    upstream_model: str
    output_tokens: int
    reasoning_tokens_max: int
    effort_names: Mapping[Effort, str]
    reasons: bool
    takes_continuous_usage: bool = False
    cache_salt: str | None = None
    prompt_cache_key: str | None = None


class _StreamOptions(Struct, frozen=True, omit_defaults=True):
    """Usage is asked for whether or not the caller wants to see it."""

    include_usage: bool
    continuous_usage_stats: bool | None = None


class _Budget(Struct, frozen=True):
    max_tokens: int


class _TemplateArguments(Struct, frozen=True):
    enable_thinking: bool


class _UpstreamRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A field that is None or was not sent is left out."""

    model: str
    messages: list[ChatMessage]
    max_tokens: int
    stream: bool = False
    stream_options: _StreamOptions | None = None
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
_USAGE: Final = _StreamOptions(include_usage=True)
_CONTINUOUS_USAGE: Final = _StreamOptions(include_usage=True, continuous_usage_stats=True)


def encode(request: ChatRequest, forward: Forwarding) -> bytes:
    """The body for the upstream; the output bound is always in it."""
    # An empty list counts as absent, and upstreams refuse a choice between no tools (OQ-37).
    tools, functions = request.tools or None, request.functions or None
    effort, budget, switch = _reasoning(request, forward)
    return _encode(
        _UpstreamRequest(
            model=forward.upstream_model,
            messages=[forwarded_message(message) for message in request.messages],
            max_tokens=forward.output_tokens,
            stream=request.stream,
            stream_options=_stream_options(request, forward),
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


def _stream_options(request: ChatRequest, forward: Forwarding) -> _StreamOptions | None:
    if not request.stream:
        return None
    return _CONTINUOUS_USAGE if forward.takes_continuous_usage else _USAGE


def forwarded_message(message: ChatMessage) -> ChatMessage:
    """Null counts as absent, and which model wrote a message is not the upstream's business."""
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
    """Effort, budget or switch: an effort says more than a switch, and excludes a budget (OQ-35).

    A model that does not reason is not told anything: turning reasoning off never fails.
    """
    reasoning = request.reasoning or _NO_REASONING
    if not forward.reasons:
        return None, None, None
    if effort := request.reasoning_effort or reasoning.effort:
        return forward.effort_names.get(effort, effort), None, None
    if budget := min(reasoning.max_tokens or 0, forward.reasoning_tokens_max):
        return None, _Budget(budget), None
    for switch in (request.thinking, reasoning.enabled):
        if isinstance(switch, bool):
            return None, None, _TemplateArguments(switch)
    return None, None, None
