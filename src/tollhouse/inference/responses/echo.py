"""Build the response object that repeats the request, before there is an answer (OQ-59)."""

from typing import Any, Final, TypeVar

import msgspec
from msgspec import UnsetType

from tollhouse.contract.bounds import OUTPUT_TOKENS_DEFAULT, FreeObject
from tollhouse.contract.response_result import ResponseResult
from tollhouse.contract.responses import (
    ResponseReasoning,
    ResponseRequest,
    ResponseText,
    output_bounds,
)

T = TypeVar("T")

_DEFAULT_TIER: Final = "default"


def begun(request: ResponseRequest, *, response_id: str, created_at: int) -> ResponseResult:
    """Return the response in progress. Options without a value or default are null."""
    return ResponseResult(
        id=response_id,
        created_at=created_at,
        completed_at=None,
        status="in_progress",
        frequency_penalty=request.frequency_penalty or 0.0,
        instructions=_sent(request.instructions),
        max_output_tokens=next(iter(output_bounds(request).values()), OUTPUT_TOKENS_DEFAULT),
        metadata=request.metadata or {},
        model=request.model,
        output=[],
        parallel_tool_calls=request.parallel_tool_calls is not False,
        presence_penalty=request.presence_penalty or 0.0,
        prompt_cache_key=_sent(request.prompt_cache_key),
        reasoning=_reasoning(request.reasoning or ResponseReasoning()),
        safety_identifier=_sent(request.safety_identifier),
        service_tier=_tier(request),
        temperature=_sent(request.temperature),
        text=_text(request.text or ResponseText()),
        tool_choice=request.tool_choice or "auto",
        tools=request.tools or [],
        top_logprobs=request.top_logprobs or 0,
        top_p=_sent(request.top_p),
        truncation="auto" if request.truncation == "auto" else "disabled",
        usage=None,
        user=_sent(request.user),
    )


def _tier(request: ResponseRequest) -> str:
    """Return the service tier until the backend reports its own."""
    tier = _sent(request.service_tier)
    return _DEFAULT_TIER if tier is None or tier == "auto" else tier


def _reasoning(reasoning: ResponseReasoning) -> FreeObject:
    summary = _sent(reasoning.summary) or _sent(reasoning.generate_summary)
    return {"effort": _sent(reasoning.effort), "summary": summary}


def _text(text: ResponseText) -> FreeObject:
    shown: Any = msgspec.to_builtins(text)
    return {"format": {"type": "text"}} | shown


def _sent(value: T | UnsetType | None) -> T | None:
    return None if isinstance(value, UnsetType) else value
