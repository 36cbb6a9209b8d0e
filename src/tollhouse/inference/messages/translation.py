"""Translate a Messages request to the chat that is priced, judged and forwarded.

Options that a chat cannot express were refused before. Options without effect are left out.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType

from tollhouse.backends.types import MessageHints
from tollhouse.contract import chat
from tollhouse.contract.bounds import Effort, FreeObject
from tollhouse.contract.field_checks import invalid_value, mistyped, text, unsupported_type
from tollhouse.contract.message_request import ROLES, MessageRequest
from tollhouse.contract.reasoning import Reasoning
from tollhouse.contract.response_tools import RefusedTool
from tollhouse.inference.chat_content import Part, content_of
from tollhouse.inference.endpoint import NameOf
from tollhouse.inference.forwarded_tools import FUNCTION, known_members
from tollhouse.inference.messages.content import (
    Block,
    blocks_of,
    parts_of,
    shown_parts,
)
from tollhouse.inference.messages.hints import asks_for_cache, signed_thoughts

_EFFORTS: Final = get_args(Effort)
_THINKING: Final = ("enabled", "adaptive", "disabled")
_NAMES: Final = {
    "max_completion_tokens": "max_tokens",
    "stop": "stop_sequences",
    "response_format": "output_config.format",
    "reasoning_effort": "output_config.effort",
    "reasoning.max_tokens": "thinking.budget_tokens",
    "reasoning.enabled": "thinking.type",
    "thinking": "thinking.type",
}
"""The names of chat fields in a Messages request."""
_MEMBERS: Final = {"image_url": "source", "file": "source", "file_data": "source"}
"""The names of members of chat parts in a Messages request."""
_MESSAGE: Final = re.compile(r"messages\[(\d+)\]")
_SYSTEM: Final = "system"
_SCHEMA_NAME: Final = "output"
"""A chat names its schema, a Messages request does not."""


class MessageTurns:
    """Collects chat messages, and the path of each message and part in the caller's request."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.messages: list[chat.ChatMessage] = []
        self._names = names
        self._origins: list[str] = []
        self._parts: dict[str, str] = {}
        self._thoughts: dict[int, list[FreeObject]] = {}
        self._failed_results: set[int] = set()

    def say(
        self,
        role: Literal["system", "user", "tool"],
        parts: list[Part],
        origin: str,
        *,
        tool_call_id: str | UnsetType = UNSET,
    ) -> None:
        """Add a message of anyone but the assistant."""
        message = chat.ChatMessage(role=role, content=content_of(parts), tool_call_id=tool_call_id)
        self._append(message, parts, origin)

    def add_user(self, blocks: list[Block], origin: str) -> None:
        """Add results of tools as messages of their own, in the order of the blocks."""
        parts: list[Part] = []
        begun = len(self.messages)
        for block in blocks:
            if block.kind != "tool_result":
                parts += shown_parts(block)
                continue
            if parts:
                self.say("user", parts, origin)
                parts = []
            result = parts_of(block.fields.get("content"), f"{block.path}.content")
            called = text(block.fields, block.path, "tool_use_id")
            if block.fields.get("is_error") is True:
                self._failed_results.add(len(self.messages))
            self.say("tool", result, block.path, tool_call_id=called)
        if parts or len(self.messages) == begun:
            self.say("user", parts, origin)

    def add_assistant(self, blocks: list[Block], origin: str) -> None:
        """Add text, thinking and calls of one turn as one message."""
        parts: list[Part] = []
        thoughts: list[str] = []
        calls: list[FreeObject] = []
        for block in blocks:
            match block.kind:
                case "thinking":
                    thoughts.append(text(block.fields, block.path, "thinking"))
                case "redacted_thinking":
                    pass  # only the provider that encrypted it can read it
                case "tool_use":
                    calls.append(_call(block))
                case "text":
                    parts += shown_parts(block)
                case _:
                    known = ("text", "thinking", "redacted_thinking", "tool_use")
                    raise unsupported_type(f"{block.path}.type", "blocks", known)
        if signed := signed_thoughts(blocks):
            self._thoughts[len(self.messages)] = signed
        reasoning = "\n".join(filter(None, thoughts)) or UNSET
        message = chat.ChatMessage(
            role="assistant",
            content=UNSET if calls and not parts else content_of(parts),
            # Engines read the one name or the other.
            reasoning=reasoning,
            reasoning_content=reasoning,
            tool_calls=calls or UNSET,
        )
        self._append(message, parts, origin)

    def hints(self, request: MessageRequest) -> MessageHints:
        """Return what only a backend that speaks Messages can be told."""
        return MessageHints(
            thoughts=self._thoughts,
            failed_results=frozenset(self._failed_results),
            asks_for_cache=asks_for_cache(request),
            thinks_adaptively=(request.thinking or {}).get("type") == "adaptive",
        )

    def name_of(self, param: str) -> str:
        """Return the caller's name of a field; messages and parts differ in their positions."""
        if param in self._parts:
            return self._parts[param]
        part, dot, member = param.rpartition(".")
        part = part.removesuffix(".file")
        if part in self._parts:
            return f"{self._parts[part]}{dot}{_MEMBERS.get(member, member)}"
        if (found := _MESSAGE.match(param)) is not None:
            origin = self._origins[int(found[1])]
            return origin if origin == _SYSTEM else f"{origin}{param[found.end() :]}"
        return self._names.get(param, param)

    def _append(self, message: chat.ChatMessage, parts: list[Part], origin: str) -> None:
        if isinstance(message.content, list):
            prefix = f"messages[{len(self.messages)}].content"
            for index, part in enumerate(parts):
                self._parts[f"{prefix}[{index}]"] = part.origin
        self.messages.append(message)
        self._origins.append(origin)


def translate(request: MessageRequest) -> tuple[chat.ChatRequest, NameOf, MessageHints]:
    """Return the chat, the name of each of its fields in the Messages request, and the rest."""
    turns = _turns(request)
    offered = enumerate(request.tools or [])
    tools = [_tool(tool, f"tools[{at}]") for at, tool in offered if _is_custom(tool)]
    choice = request.tool_choice or {}
    is_serial = choice.get("disable_parallel_tool_use") is True
    translated = chat.ChatRequest(
        model=request.model,
        messages=turns.messages,
        policy_ids=request.policy_ids,
        stream=bool(request.stream),
        max_completion_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        stop=request.stop_sequences or UNSET,
        tools=tools or UNSET,
        tool_choice=_choice(choice) if tools else UNSET,
        parallel_tool_calls=False if tools and is_serial else UNSET,
        response_format=_format(request),
        **_reasoning(request),
    )
    return translated, turns.name_of, turns.hints(request)


def shows_thinking(request: MessageRequest) -> bool:
    """Whether the caller asked for thinking and wants to see it."""
    thinking = request.thinking or {}
    return thinking.get("type") in ("enabled", "adaptive") and thinking.get("display") != "omitted"


def optional_features(request: MessageRequest) -> frozenset[str]:
    """Return the features without which the model may answer too (OQ-224).

    A budget is a target, and adaptive thinking leaves it to the model. Thinking that was enabled by
    name is not optional.
    """
    is_enabled = (request.thinking or {}).get("type") == "enabled"
    return frozenset({"reasoning_budget"} if is_enabled else {"reasoning_budget", "reasoning"})


def _turns(request: MessageRequest) -> MessageTurns:
    form = {"response_format": "output_format"} if request.output_format else {}
    turns = MessageTurns(_NAMES | form)
    if request.system:
        turns.say("system", parts_of(request.system, _SYSTEM), _SYSTEM)
    for position, message in enumerate(request.messages):
        path = f"messages[{position}]"
        role = text(message, path, "role")
        blocks = blocks_of(message.get("content"), f"{path}.content")
        if role == "user":
            turns.add_user(blocks, path)
        elif role == "assistant":
            turns.add_assistant(blocks, path)
        elif role == "system":
            parts = [part for block in blocks for part in shown_parts(block)]
            turns.say("system", parts, path)
        else:
            raise invalid_value(f"{path}.role", f"expected one of {', '.join(ROLES)}")
    return turns


def _call(block: Block) -> FreeObject:
    fields, path = block.fields, block.path
    found = fields.get("input")
    if not isinstance(found, dict | None):
        raise mistyped(f"{path}.input", "an object")
    arguments = msgspec.json.encode(found or {}).decode()
    function = {"name": text(fields, path, "name"), "arguments": arguments}
    call: FreeObject = {"id": text(fields, path, "id"), "type": "function", "function": function}
    extra = fields.get("extra_content")
    return call if extra is None else call | {"extra_content": extra}


def refused_tools(request: MessageRequest) -> tuple[RefusedTool, ...]:
    """Return the tools that run at a provider. One that the request demands is refused at once."""
    refused: list[RefusedTool] = []
    for position, tool in enumerate(request.tools or []):
        if not _is_custom(tool):
            kind = text(tool, f"tools[{position}]", "type")
            refusal = unsupported_type(f"tools[{position}].type", "tools", ("custom",))
            if _demands(request.tool_choice or {}, tool):
                raise refusal
            refused.append(RefusedTool(kind, refusal))
    return tuple(refused)


def _demands(choice: FreeObject, tool: FreeObject) -> bool:
    """Whether the model may not do without this tool, as far as the request says."""
    is_named = choice.get("type") == "tool" and choice.get("name") == tool.get("name")
    return is_named or choice.get("type") == "any"


def _is_custom(tool: FreeObject) -> bool:
    return tool.get("type") in (None, "custom")


def _tool(tool: FreeObject, path: str) -> FreeObject:
    """Return a tool of the caller's own as a function."""
    if not text(tool, path, "name"):
        raise invalid_value(f"{path}.name", "it is empty")
    if not isinstance(tool.get("input_schema"), dict):
        raise mistyped(f"{path}.input_schema", "an object")
    function = known_members({**tool, "parameters": tool["input_schema"]}, FUNCTION)
    return {"type": "function", "function": function}


def _choice(choice: FreeObject) -> FreeObject | Literal["none", "required"] | UnsetType:
    match choice.get("type"):
        case "any":
            return "required"
        case "none":
            return "none"
        case "tool":
            return {"type": "function", "function": {"name": choice["name"]}}
        case None | "auto":
            return UNSET
        case _:
            expected = "expected one of auto, any, tool, none"
            raise invalid_value("tool_choice.type", expected)


def _format(request: MessageRequest) -> chat.JsonSchemaFormat | UnsetType:
    form = (request.output_config or {}).get("format") or request.output_format or None
    if form is None:
        return UNSET
    fields = cast("FreeObject", form) if isinstance(form, dict) else {}
    if fields.get("type") != "json_schema" or not isinstance(fields.get("schema"), dict):
        param = "output_format" if request.output_format else "output_config.format"
        raise invalid_value(param, "expected a 'json_schema' with its 'schema'")
    schema = chat.JsonSchema(name=_SCHEMA_NAME, schema=fields["schema"], strict=True)
    return chat.JsonSchemaFormat(json_schema=schema)


def _reasoning(request: MessageRequest) -> dict[str, Any]:
    """Return the fields of a chat that control reasoning: an effort, a budget, or a switch."""
    thinking = request.thinking or {}
    kind = thinking.get("type")
    if thinking and kind not in _THINKING:
        raise invalid_value("thinking.type", f"expected one of {', '.join(_THINKING)}")
    if kind == "disabled":
        return {"thinking": False}
    effort = (request.output_config or {}).get("effort")
    if effort is not None:
        if effort not in _EFFORTS:
            raise invalid_value("output_config.effort", f"expected one of {', '.join(_EFFORTS)}")
        return {"reasoning_effort": effort}
    if kind is None:
        # As at Anthropic: who does not ask for thinking pays for none.
        return {"thinking": False}
    if kind == "adaptive":
        return {}
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        raise mistyped("thinking.budget_tokens", "a positive integer")
    if budget >= request.max_tokens:
        raise invalid_value("thinking.budget_tokens", "it must be below 'max_tokens'")
    return {"reasoning": Reasoning(max_tokens=budget)}
