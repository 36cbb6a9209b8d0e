"""The interface, rendered from the OpenAPI document."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tollhouse.contract.openapi import document
from tollhouse.contract.schemas import DEFAULT_MEMBER
from tools.reference.tables import code, table

Json = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")
CREDENTIALS = {
    "customerKey": "a project key",
    "customerHeaderKey": "a project key",
    "adminKey": "an Admin key",
}
OPERATIONS_HEAD = """\
# Operations

Every route with its credential, parameters and responses. [openapi.json](../openapi.json) has the
same for programs. *Given* routes are in the specification, *adopted* ones follow a public
convention, *extensions* are Tollhouse's own. All errors have one form, and
[a page for each code](errors/index.md).
"""
SCHEMAS_HEAD = """\
# Types

The members of bodies, responses and events. Requests with other members are refused.
"""


def operations() -> str:
    """Return the page of operations, by tag."""
    tree = document()
    parts = [OPERATIONS_HEAD]
    for tag in tree["tags"]:
        found = [one for one in _operations(tree) if tag["name"] in one[2]["tags"]]
        if found:
            parts.append(f"\n## {tag['name']}\n")
        parts += [_operation(path, method, one) for path, method, one in found]
    return "".join(parts)


def schemas() -> str:
    """Return the page of types, by name."""
    found: dict[str, Json] = document()["components"]["schemas"]
    return SCHEMAS_HEAD + "".join(_schema(name, found[name]) for name in sorted(found))


def _operations(tree: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in tree["paths"].items():
        for method in METHODS:
            if method in methods:
                yield path, method, methods[method]


def _operation(path: str, method: str, one: Json) -> str:
    parts = [f"\n### {one['summary']}\n\n`{method.upper()} {path}`: `{one['operationId']}`, "]
    parts.append(f"{one.get('x-tollhouse-origin', 'given')}. {_needs(one)}\n\n")
    parts.append(f"{one['description']}\n")
    if parameters := one.get("parameters"):
        parts.append(
            "\n" + table(("parameter", "in", "form", "meaning"), map(_parameter, parameters))
        )
    if body := one.get("requestBody"):
        parts.append(f"\nBody: {_contents(body)}.\n")
    parts.append(f"\nAnswers: {_answers(one['responses'])}.\n")
    return "".join(parts)


def _needs(one: Json) -> str:
    needed = {
        f"{CREDENTIALS[name]} with `{'`, `'.join(permissions)}`"
        if permissions
        else CREDENTIALS[name]
        for alternative in one.get("security", [])
        for name, permissions in alternative.items()
    }
    return f"Needs {' or '.join(sorted(needed))}." if needed else "Needs no key."


def _parameter(one: Json) -> tuple[str, str, str, str]:
    name = code(one["name"]) + (" (required)" if one.get("required") else "")
    return name, one["in"], _form(one["schema"]), one.get("description", "")


def _contents(body: Json) -> str:
    return " or ".join(
        f"{_form(content['schema'])} (`{kind}`)" for kind, content in body["content"].items()
    )


def _answers(answers: Json) -> str:
    good = [
        f"{status}{f' {_contents(answer)}' if 'content' in answer else ''}"
        for status, answer in answers.items()
        if status.startswith("2")
    ]
    bad = [status for status in answers if status[0] in "45"]
    return "; ".join([*good, ", ".join(bad)])


def _schema(name: str, schema: Json) -> str:
    parts = [f"\n## {name}\n"]
    if text := schema.get("description"):
        parts.append(f"\n{text}\n")
    if "properties" not in schema:
        return "".join([*parts, f"\n{_form(schema)}\n"])
    required = set(schema.get("required", []))
    rows = [
        (
            code(field) + (" (required)" if field in required else ""),
            _form(form),
            form.get("description", ""),
        )
        for field, form in schema["properties"].items()
    ]
    return "".join([*parts, "\n", table(("member", "form", "meaning"), rows)])


def _form(schema: Json) -> str:
    found = [schema[name] for name in ("default", DEFAULT_MEMBER) if name in schema]
    return " ".join([_shape(schema), *(f"(default {code(_json(each))})" for each in found)])


def _shape(schema: Json) -> str:
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{name}](schemas.md#{name.lower()})"
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(map(_form, schema[union]))
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(code(_json(value)) for value in values)
    return " ".join(filter(None, [_kind(schema), *_bounds(schema)]))


def _kind(schema: Json) -> str:
    kinds: str | list[str] = schema.get("type", "anything")
    named = kinds if isinstance(kinds, str) else " or ".join(kinds)
    return f"array of {_form(schema['items'])}" if named == "array" and "items" in schema else named


def _bounds(schema: Json) -> Iterator[str]:
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        if low in schema or high in schema:
            yield f"{schema.get(low, '')}..{schema.get(high, '')}{unit}"
    if "exclusiveMinimum" in schema:
        yield f"above {schema['exclusiveMinimum']}"
    if schema.get("type") == "string" and "format" in schema:
        yield f"({schema['format']})"


def _json(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return a text as it is, and anything else as JSON writes it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
