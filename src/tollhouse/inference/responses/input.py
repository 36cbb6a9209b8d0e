"""Translate the input of a response to chat messages, and remember where each part comes from.

Everything that the assistant said between two other turns becomes one message: a chat has no order
between text, reasoning and calls, and engines refuse calls without their outputs. Instructions,
system and developer messages become `system`, and those at the beginning become one message:
engines drop roles that their template does not know, and many templates accept a system message
only at the beginning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec import UNSET, UnsetType

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage
from tollhouse.inference.chat_content import Part, content_of
from tollhouse.inference.content_parts import forwarded_part
from tollhouse.inference.responses.client_tools import called_function


@dataclass(kw_only=True, slots=True)
class _Turn:
    """The assistant's output between two other turns."""

    parts: list[Part] = field(default_factory=list[Part])
    reasoning: list[str] = field(default_factory=list[str])
    calls: list[FreeObject] = field(default_factory=list[FreeObject])


class Conversation:
    """Collects messages. `names` has the origins of all parts that are not plain text."""

    def __init__(self) -> None:
        self.messages: list[ChatMessage] = []
        self.names: dict[str, str] = {}
        self._instructions: list[Part] = []
        self._turn: _Turn | None = None

    def instruct(self, text: str) -> None:
        """Add the instructions before all messages."""
        self._instructions.append(Part({"type": "text", "text": text}, "instructions"))

    def add(self, item: FreeObject, path: str) -> None:
        """Add an item of the input, which was validated before."""
        match item.get("type", "message"):
            case "message":
                self._add_message(item["role"], _parts(item["content"], f"{path}.content"))
            case "function_call" | "custom_tool_call" | "local_shell_call":
                self._assistant().calls.append(_call(item))
            case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
                parts = _parts(item["output"], f"{path}.output")
                self._say("tool", parts, tool_call_id=_call_id(item))
            case _:
                self._add_reasoning(item)

    def end(self) -> None:
        """Finish the last message, and return all messages."""
        self._end_instructions()
        self._end_turn()

    def _add_message(self, role: str, parts: list[Part]) -> None:
        if role == "assistant":
            self._assistant().parts += parts
        elif role == "user":
            self._say("user", parts)
        elif self.messages or self._turn:
            self._say("system", parts)
        else:
            self._instructions += parts

    def _add_reasoning(self, item: FreeObject) -> None:
        """Add reasoning text, or its summary; engines cannot read encrypted reasoning."""
        parts: list[FreeObject] = item.get("content") or item.get("summary") or []
        if parts:
            self._assistant().reasoning += [part["text"] for part in parts]

    def _say(
        self,
        role: Literal["system", "user", "tool"],
        parts: list[Part],
        *,
        tool_call_id: str | UnsetType = UNSET,
    ) -> None:
        if self._turn or self._instructions:
            self.end()
        message = ChatMessage(role=role, content=content_of(parts), tool_call_id=tool_call_id)
        self._append(message, parts)

    def _assistant(self) -> _Turn:
        self._end_instructions()
        self._turn = self._turn or _Turn()
        return self._turn

    def _end_instructions(self) -> None:
        if parts := self._instructions:
            self._instructions = []
            self._append(ChatMessage(role="system", content=content_of(parts)), parts)

    def _end_turn(self) -> None:
        if (turn := self._turn) is None:
            return
        self._turn = None
        # Engines read the one name or the other.
        reasoning = "\n".join(turn.reasoning) or UNSET
        message = ChatMessage(
            role="assistant",
            content=UNSET if turn.calls and not turn.parts else content_of(turn.parts),
            reasoning=reasoning,
            reasoning_content=reasoning,
            tool_calls=turn.calls or UNSET,
        )
        self._append(message, turn.parts)

    def _append(self, message: ChatMessage, parts: Sequence[Part]) -> None:
        if isinstance(message.content, list):
            prefix = f"messages[{len(self.messages)}].content"
            for index, part in enumerate(parts):
                self.names[f"{prefix}[{index}]"] = part.origin
        self.messages.append(message)


def _parts(content: str | list[FreeObject], path: str) -> list[Part]:
    if isinstance(content, str):
        return [Part({"type": "text", "text": content}, path)]
    return [_part(part, f"{path}[{index}]") for index, part in enumerate(content)]


def _part(part: FreeObject, path: str) -> Part:
    """Return the equivalent chat part, with the members that are forwarded."""
    match part["type"]:
        case "input_text" | "output_text":
            shown = {"type": "text", "text": part["text"]}
        case "refusal":
            shown = {"type": "text", "text": part["refusal"]}
        case "input_image":
            image = {"url": part["image_url"], "detail": part.get("detail")}
            shown = forwarded_part({"type": "image_url", "image_url": image}, path)
        case _:
            shown = forwarded_part({"type": "file", "file": part}, path)
    return Part(shown, path)


def _call(item: FreeObject) -> FreeObject:
    call: FreeObject = {
        "id": _call_id(item),
        "type": "function",
        "function": called_function(item),
    }
    extra = item.get("extra_content")
    return call if extra is None else call | {"extra_content": extra}


def _call_id(item: FreeObject) -> str:
    """Return the ID of a call; the local shell has it in `id` alone."""
    call_id = item.get("call_id")
    return item["id"] if call_id is None else call_id
