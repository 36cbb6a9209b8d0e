"""Renders the JSON schemas of the wire types, with the origin of each schema and property."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Protocol, cast

import msgspec
from msgspec import UNSET, Meta, Struct, inspect

from tollhouse.contract.origins import (
    ORIGIN_MEMBER,
    PARTS_MEMBER,
    QUESTIONS_MEMBER,
    Origin,
    members,
)

REFERENCE = "#/components/schemas/{name}"
REQUIRED_QUESTION = "OQ-199"
"""The open question: which fields of an answer are always present?"""

Schema = dict[str, Any]


class Marked(Protocol):
    """A wire type with the mark of its origin. A type without a mark cannot be rendered."""

    mark: ClassVar[Meta]


def render(requests: list[type[Struct]], results: list[type[Struct]]) -> dict[str, Schema]:
    """Return all schemas by name.

    The required fields of a result are those in `given_required`, which the specification requires,
    or without that tuple all fields that are always present.
    """
    _, rendered = msgspec.json.schema_components([*requests, *results], ref_template=REFERENCE)
    for type_ in _structs(requests):
        _mark(rendered[type_.__name__], type_)
    for type_ in _structs(results):
        schema = rendered[type_.__name__]
        _mark(schema, type_)
        _require(schema, type_)
    return {name: _portable(rendered[name]) for name in sorted(rendered)}


def reference(type_: type[Struct]) -> Schema:
    """Return a reference to the schema of a type."""
    return {"$ref": REFERENCE.format(name=type_.__name__)}


def portable(pattern: str) -> str:
    """Return a pattern in the dialect of JSON Schema, which anchors with `^` and `$`."""
    return pattern.replace(r"\A", "^").replace(r"\Z", "$")


def _mark(schema: Schema, type_: type[Struct]) -> None:
    mark = members(cast("type[Marked]", type_).mark)
    schema.update(mark)
    inherited = {name: mark[name] for name in (ORIGIN_MEMBER, QUESTIONS_MEMBER) if name in mark}
    is_extension = mark[ORIGIN_MEMBER] == Origin.EXTENSION
    for prop in schema["properties"].values():
        # Fields of an extension may be declared in a given type that it derives from.
        if ORIGIN_MEMBER not in prop or (is_extension and prop[ORIGIN_MEMBER] == Origin.GIVEN):
            prop.pop(PARTS_MEMBER, None)
            prop.update(inherited)


def _require(schema: Schema, type_: type[Struct]) -> None:
    for prop in schema["properties"].values():
        prop.pop("default", None)
    if names := getattr(type_, "given_required", None):
        schema["required"] = list(names)
        return
    if schema[ORIGIN_MEMBER] == Origin.GIVEN:
        schema[PARTS_MEMBER] = schema.get(PARTS_MEMBER, {}) | {"required": [REQUIRED_QUESTION]}
    tag_field = type_.__struct_config__.tag_field
    schema["required"] = [
        *([] if tag_field is None else [tag_field]),
        *(
            field.encode_name
            for field in msgspec.structs.fields(type_)
            if field.default is not UNSET
        ),
    ]


def _structs(types: Iterable[type[Struct]]) -> list[type[Struct]]:
    """Return these types and all types that they contain."""
    found: dict[type[Struct], None] = {}
    waiting: list[inspect.Type] = [inspect.type_info(type_) for type_ in types]
    while waiting:
        node = waiting.pop()
        if isinstance(node, inspect.StructType):
            if node.cls in found:
                continue
            found[node.cls] = None
        waiting.extend(_parts(node))
    return list(found)


def _parts(node: inspect.Type) -> Iterator[inspect.Type]:
    match node:
        case inspect.StructType():
            yield from (field.type for field in node.fields)
        case inspect.UnionType():
            yield from node.types
        case inspect.Metadata():
            yield node.type
        case inspect.ListType():
            yield node.item_type
        case inspect.DictType():
            yield node.value_type
        case _:
            pass


def _portable(node: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema whose patterns are portable."""
    if isinstance(node, list):
        return [_portable(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("Schema", node)
    return {name: _portable_member(name, value) for name, value in members.items()}


def _portable_member(name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
    if name == "pattern" and isinstance(value, str):
        return portable(value)
    return _portable(value)
