"""Replace the byte bound of a prompt by the engine's own count, near the end of credit.

The engine counts only if the byte bound was refused (decision 0008), only if it is declared to bill
what it counts, and only if the count covers the whole prompt.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from tollhouse.backends.errors import BackendError, PromptTooLong
from tollhouse.backends.openai_json import forwarded_message
from tollhouse.backends.port import BackendPort
from tollhouse.backends.types import TOKENS_MAX, UpstreamRequest
from tollhouse.base.money import PicoUsd
from tollhouse.catalog.types import Counter
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest, TextFormat
from tollhouse.contract.field_checks import ABSENT
from tollhouse.inference.model_resolver import ResolvedModel
from tollhouse.inference.prepared_request import PreparedRequest
from tollhouse.ledger import pricing
from tollhouse.ledger.bounds import chat_prompt

logger = logging.getLogger("tollhouse.inference")

COUNT_SECONDS_MAX = 5.0
"""The caller waits for this count before it is refused."""
PATHS = {"messages": "/messages/count_tokens", "tokenize": "/tokenize"}

_Tokens = Annotated[int, Meta(ge=1, le=TOKENS_MAX)]


class _PromptCount(Struct, frozen=True):
    """The answer of a Messages counter (`input_tokens`) or of vLLM's tokenizer (`count`)."""

    input_tokens: _Tokens | None = None
    count: _Tokens | None = None


async def with_exact_prompt(
    prepared: PreparedRequest,
    *,
    available: PicoUsd,
    may_count: Callable[[int], bool],
) -> PreparedRequest | None:
    """Return the request bounded by the exact prompt, or None if it is not known or does not help.

    `may_count` takes bytes from the organization's free quota; without quota the refusal stands.
    Raises `PromptTooLong` if the prompt alone exceeds the model's context.
    """
    candidate = prepared.candidate
    resolved, bound, hints = candidate.resolved, candidate.bound, candidate.hints
    if not resolved.backend.counts_exactly:
        return None
    # No backend receives a request in any form before its request policies have passed.
    if prepared.evaluation is not None and prepared.evaluation.guards_request:
        return None
    # No counter is shown signatures, or how the model is told to think.
    if hints is not None and (hints.thoughts or hints.thinks_adaptively):
        return None
    # Who has no credit makes no engine count.
    if pricing.reserve(resolved.prices, replace(bound, prompt_tokens=1)) > available:
        return None
    counter = resolved.backend.counts_tokens_by
    body = counting_body(candidate.request, resolved.upstream_model, counter)
    tokens = None if body is None else await _counted(body, resolved, may_count)
    if tokens is None:
        return None
    if tokens > resolved.model.context_length:
        raise PromptTooLong(
            prompt_tokens=tokens,
            output_tokens=bound.output_tokens,
            context_tokens=resolved.model.context_length,
            replica="",
        )
    prompts = bound.completions if resolved.backend.bills_prompt_per_choice else 1
    exact = replace(bound, prompt_tokens=min(tokens * prompts, bound.prompt_tokens))
    return prepared.with_exact_bound(exact)


def counting_body(request: ChatRequest, model: str, counter: Counter) -> FreeObject | None:
    """Return the prompt in the form of the backend's counter, or None if that is incomplete.

    A Messages counter receives text alone. A tokenizer receives the chat with its tools.
    """
    if not _is_shown_whole(request):
        return None
    if counter == "tokenize":
        messages = [forwarded_message(message) for message in request.messages]
        chat = {"model": model, "messages": messages}
        return chat | ({"tools": request.tools} if request.tools else {})
    if request.tools:
        return None
    return _as_messages(request.messages, model)


def _is_shown_whole(request: ChatRequest) -> bool:
    """Whether the prompt is only text and tools, which a counter sees completely."""
    prompt, form = chat_prompt(request), request.response_format
    others = (request.functions, request.reasoning, request.reasoning_effort, request.thinking)
    return (
        not (prompt.is_open or prompt.images)
        and all(other in ABSENT for other in others)
        and (form in ABSENT or isinstance(form, TextFormat))
    )


def _as_messages(messages: Sequence[ChatMessage], model: str) -> FreeObject | None:
    """Return the conversation in Anthropic's form, or None if that form cannot express it."""
    first, turns = messages[0], list(messages)
    body: FreeObject = {"model": model}
    if first.role == "system" and isinstance(first.content, str):
        body["system"] = first.content
        turns = turns[1:]
    if not all(map(_is_plain_turn, turns)) or not turns or turns[-1].role != "user":
        return None
    body["messages"] = [{"role": turn.role, "content": turn.content} for turn in turns]
    return body


def _is_plain_turn(message: ChatMessage) -> bool:
    members = (
        message.name,
        message.tool_calls,
        message.function_call,
        message.reasoning,
        message.reasoning_content,
    )
    return (
        message.role in ("user", "assistant")
        and isinstance(message.content, str)
        and all(member in ABSENT for member in members)
    )


async def _counted(
    body: FreeObject, resolved: ResolvedModel, may_count: Callable[[int], bool]
) -> int | None:
    """Return the engine's count, or None if it cannot count now or the quota is used up."""
    encoded = msgspec.json.encode(body)
    if not may_count(len(encoded)):
        return None
    try:
        return await engine_count(encoded, resolved.port, resolved.backend.counts_tokens_by)
    except (BackendError, TimeoutError) as failure:
        logger.warning("prompt_not_counted", extra={"reason": type(failure).__name__})
        return None


async def engine_count(body: bytes, port: BackendPort, counter: Counter) -> int | None:
    """Return the engine's count of a `counting_body`, or None if its answer has no count.

    Raises `BackendError` or `TimeoutError` if the engine does not answer.
    """
    ask = UpstreamRequest(path=PATHS[counter], body=body, is_at_host=counter == "tokenize")
    async with asyncio.timeout(COUNT_SECONDS_MAX):
        counted, _ = await port.fetch(ask, _PromptCount)
    return counted.count if counter == "tokenize" else counted.input_tokens
