"""Renders the JSON schemas of the wire types, with the origin of each schema and property."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Protocol, cast

import msgspec
from msgspec import UNSET, Meta, Struct, inspect

from tollhouse.contract import descriptions
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


EXCLUSIVE_MEMBER = "x-tollhouse-exclusive"
"""The member of a schema that lists properties that exclude each other."""
DEFAULT_MEMBER = "x-tollhouse-default"
"""The member with the default of such a property. Clients send what they find in `default`."""
FREE_ITEM = "A free-form object."
"""Items need a description: openapi-generator takes them for the free-form objects that may be null
and have none.
"""
_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


class Marked(Protocol):
    """A wire type with the mark of its origin. A type without a mark cannot be rendered.

    Its tuple `exclusive`, if it has one, names fields that exclude each other.
    """

    mark: ClassVar[Meta]


def render(requests: list[type[Struct]], results: list[type[Struct]]) -> dict[str, Schema]:
    """Return all schemas by name, in the form that code generators read.

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
    return {name: _readable(rendered[name]) for name in sorted(rendered)}


def reference(type_: type[Struct]) -> Schema:
    """Return a reference to the schema of a type."""
    return {"$ref": REFERENCE.format(name=type_.__name__)}


def portable(pattern: str) -> str:
    """Return a pattern in the dialect of JSON Schema, which anchors with `^` and `$`."""
    return pattern.replace(r"\A", "^").replace(r"\Z", "$")


def _mark(schema: Schema, type_: type[Struct]) -> None:
    mark = members(cast("type[Marked]", type_).mark)
    schema.update(mark)
    _describe(schema, type_)
    inherited = {name: mark[name] for name in (ORIGIN_MEMBER, QUESTIONS_MEMBER) if name in mark}
    is_extension = mark[ORIGIN_MEMBER] == Origin.EXTENSION
    for prop in schema["properties"].values():
        # Fields of an extension may be declared in a given type that it derives from.
        if ORIGIN_MEMBER not in prop or (is_extension and prop[ORIGIN_MEMBER] == Origin.GIVEN):
            prop.pop(PARTS_MEMBER, None)
            prop.update(inherited)
    if names := getattr(type_, "exclusive", ()):
        schema[EXCLUSIVE_MEMBER] = list(names)
        for prop in (schema["properties"][name] for name in names):
            if "default" in prop:
                prop[DEFAULT_MEMBER] = prop.pop("default")


def _describe(schema: Schema, type_: type[Struct]) -> None:
    """Add the meanings of a type and of its properties, as far as they are written."""
    schema["description"] = descriptions.of_type(type_)
    names: dict[str, str] = {
        field.encode_name: field.name for field in msgspec.structs.fields(type_)
    }
    for name, prop in schema["properties"].items():
        text = descriptions.of_field(type_, names.get(name) or name)
        text = text or prop.get("description") or descriptions.SHARED.get(name)
        if text is not None:
            prop["description"] = text


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


def _readable(node: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema as generators need it.

    Patterns are portable, constants typed, free-form objects open and integers long.
    """
    if isinstance(node, list):
        return [_readable(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema: Schema = {
        name: value if name.startswith("x-") else _readable(value)
        for name, value in cast("Schema", node).items()
    }
    if isinstance(pattern := schema.get("pattern"), str):
        schema["pattern"] = portable(pattern)
    if isinstance(values := schema.get("enum"), list):
        schema = _typed(schema, cast("list[Any]", values))
    if _is_free(schema):
        schema.setdefault("additionalProperties", True)
    if _is_free(items := cast("Schema", schema.get("items", {}))):
        items.setdefault("description", FREE_ITEM)
    # Without a format, generators for Go, Java and C# choose 32 bits, which costs and times exceed.
    if schema.get("type") == "integer":
        schema["format"] = "int64"
    return schema


def _is_free(schema: Schema) -> bool:
    return schema.get("type") == "object" and "title" not in schema


def _typed(schema: Schema, values: list[Any]) -> Schema:
    """Return the schema of an enumeration with its type. A single value is a constant."""
    (kind,) = {_JSON_TYPES[type(value)] for value in values}
    if len(values) > 1:
        return {"type": kind, **schema}
    others = {name: value for name, value in schema.items() if name != "enum"}
    return {"type": kind, "const": values[0], **others}
