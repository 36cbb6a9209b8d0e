"""Which blocks of a Messages-shaped input are forwarded to a backend that counts tokens.

The rule is that of content parts: a block is rebuilt from the members that its type has, media
carry their own data, and every other member is accepted and not forwarded (OQ-195).
"""

from typing import Any, Final, cast

import msgspec

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.errors import MediaTypeRefused, RemoteMediaRefused
from tollhouse.contract.field_checks import (
    invalid_value,
    mistyped,
    required,
    text,
    unsupported_type,
)
from tollhouse.contract.messages import CountTokens
from tollhouse.contract.response_items import stored
from tollhouse.inference.content_parts import is_base64, is_http_address, is_media_type, is_of_kind
from tollhouse.inference.forwarded_tools import WORD, Shape, known_members, known_options

_TEXT_MEMBERS: Final = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name"),
    "tool_result": ("tool_use_id",),
    "image": (),
    "document": ("title", "context"),
}
"""The types of blocks that are forwarded, with the string members of each."""
_ESTIMATED_TYPES: Final = (
    "search_result",
    "server_tool_use",
    "web_fetch_tool_result",
    "web_search_tool_result",
)
"""Blocks that only a provider with its own tools can render. They are counted by length."""
_DATA_SOURCES: Final = ("base64", "text")


class _NotForwarded(Exception):
    """The input contains a block that must be estimated."""


def forwarded_input(body: CountTokens, *, fetches_images: bool) -> CountTokens | None:
    """Return the input that a backend counts, or None if it must be estimated.

    Raises `RemoteMediaRefused` for an address, unless it is an image's and `fetches_images`.
    """
    blocks = _Blocks(fetches_images=fetches_images)
    try:
        messages = [
            blocks.message(message, f"messages[{position}]")
            for position, message in enumerate(body.messages)
        ]
        system = body.system
        if isinstance(system, list):
            system = blocks.forwarded(system, "system")
    except _NotForwarded:
        return None
    shown = msgspec.structs.replace(body, messages=messages, system=system)
    return with_forwarded_options(shown)


class _Blocks:
    """Rebuilds blocks for one backend."""

    def __init__(self, *, fetches_images: bool) -> None:
        self._fetches_images = fetches_images

    def message(self, message: FreeObject, path: str) -> FreeObject:
        """Return a message with its role and its forwarded content."""
        shown: FreeObject = _texts(message, path, ("role",))
        if message.get("content") is not None:
            shown["content"] = self._content(message["content"], f"{path}.content")
        return shown

    def forwarded(self, blocks: list[Any], path: str) -> list[FreeObject]:
        """Return the forwarded form of every block."""
        return [self._block(block, f"{path}[{index}]") for index, block in enumerate(blocks)]

    def _content(self, content: Any, path: str) -> str | list[FreeObject]:  # noqa: ANN401 - free-form
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            raise mistyped(path, "a string or an array")
        return self.forwarded(cast("list[Any]", content), path)

    def _block(self, block: Any, path: str) -> FreeObject:  # noqa: ANN401 - free-form
        if not isinstance(block, dict):
            raise mistyped(path, "an object")
        fields = cast("FreeObject", block)
        kind = text(fields, path, "type")
        if kind in _ESTIMATED_TYPES:
            raise _NotForwarded
        if kind not in _TEXT_MEMBERS:
            raise unsupported_type(f"{path}.type", "blocks", (*_TEXT_MEMBERS, *_ESTIMATED_TYPES))
        shown = {"type": kind} | _texts(fields, path, _TEXT_MEMBERS[kind])
        if kind in ("image", "document"):
            shown["source"] = self._source(fields, path, is_image=kind == "image")
        elif kind == "tool_use":
            shown["input"] = _input(fields, path)
        elif kind == "tool_result":
            shown |= self._result(fields, path)
        return shown

    def _result(self, block: FreeObject, path: str) -> FreeObject:
        shown: FreeObject = {"is_error": True} if block.get("is_error") is True else {}
        if block.get("content") is not None:
            shown["content"] = self._content(block["content"], f"{path}.content")
        return shown

    def _source(self, block: FreeObject, path: str, *, is_image: bool) -> FreeObject:
        path = f"{path}.source"
        source = required(block, path.removesuffix(".source"), "source")
        if not isinstance(source, dict):
            raise mistyped(path, "an object")
        fields = cast("FreeObject", source)
        kind = text(fields, path, "type")
        if kind in _DATA_SOURCES:
            return _data(fields, path, kind, of_kind="image" if is_image else "file")
        if kind == "content" and not is_image:
            content = self._content(required(fields, path, "content"), f"{path}.content")
            return {"type": kind, "content": content}
        if kind == "url":
            return self._address(fields, path, may_be_fetched=is_image and self._fetches_images)
        if kind == "file":
            raise stored(f"{path}.type")
        types = ("base64",) if is_image else (*_DATA_SOURCES, "content")
        raise unsupported_type(f"{path}.type", "sources", types)

    def _address(self, source: FreeObject, path: str, *, may_be_fetched: bool) -> FreeObject:
        url = source.get("url")
        if not may_be_fetched or not is_http_address(url):
            raise RemoteMediaRefused(param=f"{path}.url")
        return {"type": "url", "url": url}


def _input(block: FreeObject, path: str) -> FreeObject:
    found = block.get("input")
    if not isinstance(found, dict | None):
        raise mistyped(f"{path}.input", "an object")
    return cast("FreeObject", found or {})


def _data(source: FreeObject, path: str, kind: str, *, of_kind: str) -> FreeObject:
    if kind == "base64" and not is_base64(data := text(source, path, "data")):
        if is_http_address(data):
            raise RemoteMediaRefused(param=f"{path}.data")
        raise invalid_value(f"{path}.data", "expected base64 with its padding, and nothing else")
    shown = {"type": kind} | _texts(source, path, ("media_type", "data"))
    if (media_type := shown.get("media_type")) is not None:
        if not is_media_type(media_type):
            raise invalid_value(f"{path}.media_type", "expected a type such as image/png")
        if not is_of_kind(media_type, of_kind):
            raise MediaTypeRefused(param=f"{path}.media_type", media_type=media_type)
    return shown


def _texts(fields: FreeObject, path: str, names: tuple[str, ...]) -> FreeObject:
    return {name: text(fields, path, name) for name in names if fields.get(name) is not None}


_TOOL: Final[Shape] = {
    "type": WORD,
    "name": str,
    "description": str,
    "input_schema": dict,
    "max_uses": int,
}
_OPTIONS: Final[dict[str, Shape]] = {
    "thinking": {"type": WORD, "budget_tokens": int},
    "tool_choice": {"type": WORD, "name": str, "disable_parallel_tool_use": bool},
    "output_config": {"effort": WORD, "format": {"type": WORD, "schema": dict}},
    "cache_control": {"type": WORD, "ttl": WORD},
}


def with_forwarded_options(body: CountTokens) -> CountTokens:
    """Return the input with only those members of its tools and options that are forwarded."""
    fields = known_options(body, _OPTIONS)
    if body.tools:
        fields["tools"] = [known_members(tool, _TOOL) for tool in body.tools]
    return msgspec.structs.replace(body, **fields)
