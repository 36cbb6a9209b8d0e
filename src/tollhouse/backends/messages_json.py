"""Chat requests as bodies of Anthropic's Messages API.

The rules are those of `openai_json`: a body is encoded anew from the decoded request, and only the
fields named here leave the gateway. What this API lacks was refused before (OQ-228).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tollhouse.backends.openai_json import Forwarding
from tollhouse.backends.types import NO_HINTS, FreeObject, MessageHints
from tollhouse.contract.bounds import Effort
from tollhouse.contract.chat import ChatMessage, ChatRequest, JsonSchemaFormat
from tollhouse.contract.reasoning import Reasoning

INVALID_JSON: Final = "INVALID_JSON"
"""The member for arguments of an earlier call that are no JSON object, as Anthropic advises."""
BUDGET_TOKENS_MIN: Final = 1_024
"""The least budget for thinking that the API accepts."""
BUDGET_PERCENTS: Final[Mapping[Effort, int]] = {
    "minimal": 10,
    "low": 20,
    "medium": 50,
    "high": 80,
    "xhigh": 95,
    "max": 95,
    "ultracode": 95,
}
"""The share of the output bound that an effort means for a model that takes budgets (OQ-230)."""
_EPHEMERAL: Final[FreeObject] = {"type": "ephemeral"}
_PDF: Final = "application/pdf"
_SYSTEM_ROLES: Final = ("system", "developer")
_NO_REASONING: Final = Reasoning()


class _MessagesBody(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body as JSON. Fields that are None or UNSET are left out."""

    model: str
    max_tokens: int
    messages: list[FreeObject]
    system: list[FreeObject] | None = None
    stream: bool = False
    temperature: float | UnsetType | None = None
    top_p: float | UnsetType | None = None
    stop_sequences: list[str] | None = None
    thinking: FreeObject | None = None
    output_config: FreeObject | None = None
    tools: list[FreeObject] | None = None
    tool_choice: FreeObject | None = None
    cache_control: FreeObject | None = None


_encode = msgspec.json.Encoder().encode


def encode_messages(request: ChatRequest, forward: Forwarding) -> bytes:
    """Return the body of `POST /messages`. It always states the output bound."""
    hints = forward.hints or NO_HINTS
    system = [
        block
        for message in request.messages
        if message.role in _SYSTEM_ROLES
        for block in _content(message)
    ]
    thinking, effort = _thinking(request, forward, hints)
    config = _format(request) | ({"effort": effort} if effort else {})
    asks_for_cache = hints.asks_for_cache or bool(request.prompt_cache_key)
    tools = [_tool(tool) for tool in request.tools or ()]
    return _encode(
        _MessagesBody(
            model=forward.upstream_model,
            max_tokens=forward.output_tokens,
            messages=_turns(request, hints),
            system=system or None,
            stream=request.stream,
            temperature=request.temperature,
            top_p=request.top_p,
            stop_sequences=_stops(request.stop),
            thinking=thinking,
            output_config=config or None,
            tools=tools or None,
            tool_choice=_choice(request) if tools else None,
            cache_control=_EPHEMERAL if asks_for_cache and forward.writes_cache else None,
        )
    )


def has_turns(request: ChatRequest) -> bool:
    """Whether anything is said beside the system prompt: the API refuses an empty conversation."""
    return any(
        message.role not in _SYSTEM_ROLES and any(True for _ in _blocks(message, 0, NO_HINTS))
        for message in request.messages
    )


def _turns(request: ChatRequest, hints: MessageHints) -> list[FreeObject]:
    """Return the conversation. Messages of one role in a row become one, and empty ones none."""
    turns: list[FreeObject] = []
    for position, message in enumerate(request.messages):
        if message.role in _SYSTEM_ROLES:
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = list(_blocks(message, position, hints))
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: ChatMessage, position: int, hints: MessageHints) -> Iterator[FreeObject]:
    if message.role == "tool":
        result: FreeObject = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        if content := list(_content(message)):
            result["content"] = content
        yield result | ({"is_error": True} if position in hints.failed_results else {})
        return
    if message.role == "assistant":
        yield from hints.thoughts.get(position, ())
    yield from _content(message)
    for call in message.tool_calls or ():
        function: FreeObject = call.get("function") or {}
        yield {
            "type": "tool_use",
            "id": call.get("id") or "",
            "name": function.get("name") or "",
            "input": _input(function.get("arguments")),
        }


def _content(message: ChatMessage) -> Iterator[FreeObject]:
    """Yield the blocks of a content. The API refuses empty texts."""
    if isinstance(message.content, str):
        if message.content:
            yield {"type": "text", "text": message.content}
        return
    for part in message.content or ():
        if (block := _block(part)) is not None:
            yield block


def _block(part: FreeObject) -> FreeObject | None:
    kind = part["type"]
    if kind == "image_url":
        return {"type": "image", "source": _source(part[kind]["url"])}
    if kind == "file":
        data = part[kind]["file_data"]
        is_url = data.startswith("data:")
        return {"type": "document", "source": _source(data) if is_url else _base64(_PDF, data)}
    text = part.get(kind)
    return {"type": "text", "text": text} if text else None


def _source(url: str) -> FreeObject:
    """Return the source of media: an address, or data with its type."""
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    head, _, data = url.partition(",")
    return _base64(head.removeprefix("data:").partition(";")[0].lower(), data)


def _base64(media_type: str, data: str) -> FreeObject:
    return {"type": "base64", "media_type": media_type, "data": data}


def _input(arguments: Any) -> Any:  # noqa: ANN401 - free-form
    """Return arguments as an object, unchanged if they are the JSON of one."""
    if isinstance(arguments, dict):
        return cast("FreeObject", arguments)
    if not arguments:
        return {}
    try:
        found: Any = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {INVALID_JSON: arguments}
    # What can be read may still be nested too deep to be written.
    return msgspec.Raw(arguments.encode()) if isinstance(found, dict) else {INVALID_JSON: arguments}


def _tool(tool: FreeObject) -> FreeObject:
    function: FreeObject = tool.get("function") or {}
    shown: FreeObject = {"name": function.get("name") or ""}
    if description := function.get("description"):
        shown["description"] = description
    shown["input_schema"] = {"type": "object"} | (function.get("parameters") or {})
    return shown | ({"strict": True} if function.get("strict") is True else {})


def _choice(request: ChatRequest) -> FreeObject | None:
    serial: FreeObject = (
        {"disable_parallel_tool_use": True} if request.parallel_tool_calls is False else {}
    )
    match request.tool_choice:
        case "none":
            return {"type": "none"}
        case "required":
            return {"type": "any"} | serial
        case {"function": {"name": name}}:
            return {"type": "tool", "name": name} | serial
        case _:
            return {"type": "auto"} | serial if serial else None


def _stops(stop: str | list[str] | UnsetType | None) -> list[str] | None:
    stops = [stop] if isinstance(stop, str) else stop or []
    return [each for each in stops if each] or None


def _format(request: ChatRequest) -> FreeObject:
    form = request.response_format
    if not isinstance(form, JsonSchemaFormat):
        return {}
    return {"format": {"type": "json_schema", "schema": form.json_schema.schema}}


def _thinking(
    request: ChatRequest, forward: Forwarding, hints: MessageHints
) -> tuple[FreeObject | None, str | None]:
    """Return how to think and with how much effort. Without either the model does not think.

    A model that takes budgets gets one also for an effort, other models think adaptively.
    """
    reasoning = request.reasoning or _NO_REASONING
    effort = request.reasoning_effort or reasoning.effort or None
    budget = reasoning.max_tokens or None
    is_wanted = request.thinking is True or reasoning.enabled is True or hints.thinks_adaptively
    if not forward.reasons or effort == "none" or not (effort or budget or is_wanted):
        return None, None
    if not forward.takes_budget:
        shown: FreeObject = {"type": "adaptive", "display": "summarized"}
        return shown, forward.effort_names.get(effort, effort) if effort else None
    share = forward.output_tokens * BUDGET_PERCENTS.get(effort or "medium", 50) // 100
    tokens = min(max(budget or share, BUDGET_TOKENS_MIN), forward.reasoning_tokens_max)
    if tokens < BUDGET_TOKENS_MIN or _continues_without_thoughts(request, hints):
        return None, None
    return {"type": "enabled", "budget_tokens": tokens}, None


def _continues_without_thoughts(request: ChatRequest, hints: MessageHints) -> bool:
    """Whether the last turn of the assistant called tools, and its signed thinking is not here.

    The API refuses to think with a budget in such a conversation (OQ-230).
    """
    for position in range(len(request.messages) - 1, -1, -1):
        if request.messages[position].role == "assistant":
            calls = request.messages[position].tool_calls
            return calls not in (None, UNSET, []) and position not in hints.thoughts
    return False
