"""A tighter bound near the end of credit: the engine's own count takes the place of bytes.

It is asked for only when the cheap bound was refused (decision 0008), only of a backend that is
declared to bill what it counts, and only for requests whose prompt the count can show whole.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from tollhouse.backends.encoding import forwarded_message
from tollhouse.backends.errors import BackendError
from tollhouse.backends.port import BackendPort
from tollhouse.backends.types import TOKENS_MAX, Ask
from tollhouse.base.money import PicoUsd
from tollhouse.catalog.types import Counter
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest, TextFormat
from tollhouse.contract.combinations import is_set
from tollhouse.inference.offers import Offer
from tollhouse.ledger import pricing
from tollhouse.ledger.pricing import TokenBound
from tollhouse.ledger.prompts import of_chat

logger = logging.getLogger("tollhouse.inference")

COUNT_SECONDS_MAX = 5.0
"""The caller waits for a refusal otherwise."""
PATHS = {"messages": "/messages/count_tokens", "tokenize": "/tokenize"}

_Tokens = Annotated[int, Meta(ge=1, le=TOKENS_MAX)]


class _Counted(Struct, frozen=True):
    """What Messages counters and vLLM's tokenizer call it; no prompt has no tokens."""

    input_tokens: _Tokens | None = None
    count: _Tokens | None = None


async def tightened(
    request: ChatRequest,
    offer: Offer,
    bound: TokenBound,
    *,
    available: PicoUsd,
    may_count: Callable[[int], bool],
) -> TokenBound | None:
    """The bound with the exact prompt; None where nobody can tell it, or it would not help.

    `may_count` takes bytes from what may be counted for nothing; without them the refusal stands.
    """
    if not offer.backend.counts_exactly:
        return None
    # Who has no credit makes no engine count.
    if pricing.reserve(offer.prices, replace(bound, prompt_tokens=1)) > available:
        return None
    body = counting_body(request, offer.upstream_model, offer.backend.counts_tokens_by)
    tokens = None if body is None else await _counted(body, offer, may_count)
    if tokens is None:
        return None
    prompts = bound.completions if offer.backend.bills_prompt_per_choice else 1
    return replace(bound, prompt_tokens=min(tokens * prompts, bound.prompt_tokens))


def counting_body(request: ChatRequest, model: str, counter: Counter) -> FreeObject | None:
    """The prompt as the backend's counter reads it; None where that would leave something out.

    A Messages counter is given text alone. A tokenizer renders the chat, with its tools.
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
    """Whether the prompt is text and tools, and nothing that a counter would miss."""
    prompt, form = of_chat(request), request.response_format
    others = (request.functions, request.reasoning, request.reasoning_effort, request.thinking)
    return (
        not (prompt.is_open or prompt.images)
        and not any(map(is_set, others))
        and (not is_set(form) or isinstance(form, TextFormat))
    )


def _as_messages(messages: Sequence[ChatMessage], model: str) -> FreeObject | None:
    """Anthropic's form, if that is the same conversation: text by turns, a system prompt first."""
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
        and not any(map(is_set, members))
    )


async def _counted(body: FreeObject, offer: Offer, may_count: Callable[[int], bool]) -> int | None:
    """An engine that cannot count now changes nothing: the refusal stands."""
    encoded = msgspec.json.encode(body)
    if not may_count(len(encoded)):
        return None
    try:
        return await engine_count(encoded, offer.port, offer.backend.counts_tokens_by)
    except (BackendError, TimeoutError) as failure:
        logger.warning("prompt_not_counted", extra={"reason": type(failure).__name__})
        return None


async def engine_count(body: bytes, port: BackendPort, counter: Counter) -> int | None:
    """Return what the engine counts for a `counting_body`, or None if its answer has no count.

    Raises `BackendError` or `TimeoutError` if it does not answer.
    """
    ask = Ask(path=PATHS[counter], body=body, is_at_host=counter == "tokenize")
    async with asyncio.timeout(COUNT_SECONDS_MAX):
        counted, _ = await port.fetch(ask, _Counted)
    return counted.count if counter == "tokenize" else counted.input_tokens
