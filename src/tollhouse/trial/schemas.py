"""Examples of JSON schemas."""

from typing import Any, Final, TypeAlias, cast

from tollhouse.contract.bounds import FreeObject

DEPTH_MAX: Final = 16
REFERENCE: Final = "#/$defs/"
SCALARS: Final[dict[str, "Value"]] = {
    "string": "toll",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
}

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"


def example(schema: FreeObject) -> Value:
    """Return a value of the schema, always the same one. Ignores bounds of numbers and lengths."""
    return _example(schema, schema.get("$defs") or {}, depth=0)


def _example(schema: FreeObject, definitions: FreeObject, *, depth: int) -> Value:
    if depth >= DEPTH_MAX:
        return None
    if "const" in schema:
        return schema["const"]
    if isinstance(reference := schema.get("$ref"), str):
        found: Any = definitions.get(reference.removeprefix(REFERENCE), {})
        return _example(found, definitions, depth=depth + 1)
    for choices in (schema.get("anyOf"), schema.get("oneOf"), schema.get("allOf")):
        if choices:
            return _example(choices[0], definitions, depth=depth + 1)
    if schema.get("enum"):
        return schema["enum"][0]
    return _of_type(schema, definitions, depth=depth)


def _of_type(schema: FreeObject, definitions: FreeObject, *, depth: int) -> Value:
    stated: Any = schema.get("type", "object")
    name = cast("list[str]", stated)[0] if isinstance(stated, list) else stated
    if name == "object":
        properties: dict[str, FreeObject] = schema.get("properties") or {}
        return {
            key: _example(inner, definitions, depth=depth + 1) for key, inner in properties.items()
        }
    if name == "array":
        return [_example(schema.get("items") or {}, definitions, depth=depth + 1)]
    return SCALARS.get(name)
