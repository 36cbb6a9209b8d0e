"""Refuse what code generators misread in the OpenAPI document, and parts without a meaning."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from tools.checks.source import Finding, Findings

PATH = "docs/openapi.json"
EXCLUSIVE = "x-tollhouse-exclusive"

Json = dict[str, Any]


def read(root: Path) -> Json:
    """Return the document of the repository at `root`."""
    return msgspec.json.decode((root / PATH).read_bytes(), type=Json)


def check(document: Json) -> Findings:
    """Find the faults of the document, each with the place at which it stands."""
    examined = 0
    for place, node in _objects(document, "#"):
        examined += 1
        for message in (
            *_exclusive_defaults(node),
            *_untyped(node),
            *_closed(node),
            *_narrow(node),
            *_null_alone(node),
            *_undescribed(node),
            *_without_example(node),
        ):
            yield Finding(path=PATH, line=1, message=f"{place}: {message}")
    return examined


def _objects(node: object, place: str) -> Iterator[tuple[str, Json]]:
    """Yield every object of the document with its place, without examples and our own members."""
    if isinstance(node, dict):
        members = cast("Json", node)
        yield place, members
        for name, value in members.items():
            if not name.startswith(("x-", "example")):
                yield from _objects(value, f"{place}/{name.replace('/', '~1')}")
    elif isinstance(node, list):
        for position, value in enumerate(cast("list[Any]", node)):
            yield from _objects(value, f"{place}/{position}")


def _exclusive_defaults(node: Json) -> Iterator[str]:
    properties: Json = node.get("properties", {})
    for name in node.get(EXCLUSIVE, []):
        if "default" in properties[name]:
            yield f"a client would send '{name}' beside fields that exclude it; drop its default"


def _untyped(node: Json) -> Iterator[str]:
    is_listed = isinstance(node.get("enum"), list)
    is_constant = "const" in node and not isinstance(node["const"], dict)
    if (is_listed or is_constant) and "type" not in node:
        yield "a constant or enumeration without a type; clients drop its schema"


def _closed(node: Json) -> Iterator[str]:
    has_form = "additionalProperties" in node or ("properties" in node and "title" in node)
    if node.get("type") == "object" and not has_form:
        yield "a free-form object; say `additionalProperties: true`, or clients read it as empty"


def _narrow(node: Json) -> Iterator[str]:
    if node.get("type") == "integer" and node.get("format") != "int64":
        yield "an integer without `format: int64`; clients in Go, Java and C# give it 32 bits"


def _null_alone(node: Json) -> Iterator[str]:
    for name, part in node.get("properties", {}).items():
        if part.get("type") == "null":
            yield f"property '{name}' can only be null; name the type that it has elsewhere"


def _undescribed(node: Json) -> Iterator[str]:
    parts: list[tuple[str, Json]] = [
        *((f"parameter '{each.get('name')}'", each) for each in node.get("parameters", [])),
        *((f"property '{name}'", each) for name, each in node.get("properties", {}).items()),
    ]
    if "operationId" in node or isinstance(node.get("title"), str):
        parts.append(("it", node))
    for name, part in parts:
        if not part.get("description"):
            yield f"{name} has no description; write a docstring below its declaration"


def _without_example(node: Json) -> Iterator[str]:
    if "operationId" in node:
        answers = node.get("responses", {}).get("200", {})
        for holder in (node.get("requestBody", {}), answers):
            content = holder.get("content", {}).get("application/json")
            if content is not None and "example" not in content:
                yield "a body or an answer has no example"
