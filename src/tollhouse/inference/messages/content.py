"""Translate the blocks of Messages to the parts of chat messages.

A part is rebuilt from the members that its type has. Every other member, such as `cache_control`
or `citations`, is accepted and not forwarded (OQ-221).
"""

from typing import Any, Final, NamedTuple, cast

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.field_checks import (
    mistyped,
    required,
    text,
    unsupported_type,
)
from tollhouse.contract.response_items import stored
from tollhouse.inference.chat_content import Part
from tollhouse.inference.content_parts import forwarded_part

SHOWN_TYPES: Final = ("text", "image", "document", "search_result", "tool_reference")
"""The blocks that become parts of a chat message."""


class Block(NamedTuple):
    """A block of the caller's request, its type and its path."""

    fields: FreeObject
    kind: str
    path: str


def blocks_of(content: Any, path: str) -> list[Block]:  # noqa: ANN401 - free-form
    """Return the blocks of a content; a string is one block of text."""
    if isinstance(content, str):
        return [Block({"type": "text", "text": content}, "text", path)]
    if not isinstance(content, list):
        raise mistyped(path, "a string or an array")
    found = cast("list[Any]", content)
    return [_block(block, f"{path}[{index}]") for index, block in enumerate(found)]


def _block(block: Any, path: str) -> Block:  # noqa: ANN401 - free-form
    if not isinstance(block, dict):
        raise mistyped(path, "an object")
    fields = cast("FreeObject", block)
    return Block(fields, text(fields, path, "type"), path)


def parts_of(content: Any, path: str) -> list[Part]:  # noqa: ANN401 - free-form
    """Return the parts of a content that has nothing but text and media."""
    if content is None:
        return []
    return [part for block in blocks_of(content, path) for part in shown_parts(block)]


def shown_parts(block: Block) -> list[Part]:
    """Return the parts that stand for one block; a document may have several."""
    fields, path = block.fields, block.path
    match block.kind:
        case "text":
            return [_text(text(fields, path, "text"), path)]
        case "image":
            return [_image(fields, path)]
        case "document":
            return _document(fields, path)
        case "search_result":
            described = [text(fields, path, name) for name in ("title", "source")]
            return [
                _text("\n".join(described), path),
                *parts_of(required(fields, path, "content"), f"{path}.content"),
            ]
        case "tool_reference":
            return [_text(f"The tool {text(fields, path, 'tool_name')} can be called now.", path)]
        case _:
            raise unsupported_type(f"{path}.type", "blocks", SHOWN_TYPES)


def _text(said: str, path: str) -> Part:
    return Part({"type": "text", "text": said}, path)


def _source(fields: FreeObject, path: str) -> tuple[FreeObject, str]:
    source = required(fields, path, "source")
    if not isinstance(source, dict):
        raise mistyped(f"{path}.source", "an object")
    known = cast("FreeObject", source)
    return known, text(known, f"{path}.source", "type")


def _image(fields: FreeObject, path: str) -> Part:
    source, kind = _source(fields, path)
    match kind:
        case "base64":
            url = _data_url(source, path)
        case "url":
            url = text(source, f"{path}.source", "url")
        case "file":
            raise stored(f"{path}.source.type")
        case _:
            raise unsupported_type(f"{path}.source.type", "sources", ("base64", "url"))
    part = {"type": "image_url", "image_url": {"url": url}}
    return Part(forwarded_part(part, path), path)


def _document(fields: FreeObject, path: str) -> list[Part]:
    """Return title and context as text, then the document itself."""
    described = [text(fields, path, name) for name in ("title", "context") if fields.get(name)]
    parts = [_text("\n".join(described), path)] if described else []
    source, kind = _source(fields, path)
    match kind:
        case "text":
            return [*parts, _text(text(source, f"{path}.source", "data"), path)]
        case "content":
            content = required(source, f"{path}.source", "content")
            return [*parts, *parts_of(content, f"{path}.source.content")]
        case "base64":
            file = {"file_data": _data_url(source, path), "filename": "document.pdf"}
            return [*parts, Part(forwarded_part({"type": "file", "file": file}, path), path)]
        case "file":
            raise stored(f"{path}.source.type")
        case _:
            types = ("base64", "text", "content")
            raise unsupported_type(f"{path}.source.type", "sources", types)


def _data_url(source: FreeObject, path: str) -> str:
    media_type = text(source, f"{path}.source", "media_type")
    return f"data:{media_type};base64,{text(source, f'{path}.source', 'data')}"
