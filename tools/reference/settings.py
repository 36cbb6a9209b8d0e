"""The page of settings: types and limits from the code, meanings from the README."""

import re

from msgspec import NODEFAULT, UNSET, inspect

from tollhouse.settings import Settings
from tools.reference.tables import code, table

ROW = re.compile(r"^\| `(?P<name>\w+\.\w+)` \| [^|]+ \|(?P<meaning>.*)\|$", re.MULTILINE)
HEAD = """\
# Settings

One TOML file. Variables of the environment override it: `TOLLHOUSE_SERVER__PORT=9000` sets
`server.port`. [Models and backends](../guides/models-and-backends.md) have tables of their own.

"""


def page(readme: str) -> str:
    """Return the page with a row for each setting, in the order of the sections."""
    meanings = {row["name"]: row["meaning"] for row in ROW.finditer(readme)}
    rows = [
        (code(name), _form(field.type), _default(field), meanings[name])
        for section in _fields(inspect.type_info(Settings))
        if isinstance(section.type, inspect.StructType)
        for field in _fields(section.type)
        if (name := f"{section.name}.{field.name}") in meanings
    ]
    return HEAD + table(("setting", "form", "default", "meaning"), rows)


def _fields(node: inspect.Type) -> tuple[inspect.Field, ...]:
    assert isinstance(node, inspect.StructType)
    return node.fields


def _form(node: inspect.Type) -> str:
    match node:
        case inspect.IntType(ge=low, le=high) | inspect.FloatType(ge=low, le=high):
            kind = "whole number" if isinstance(node, inspect.IntType) else "number"
            above = getattr(node, "gt", None)
            parts = [
                f"above {above:g}" if above is not None else "",
                f"from {low:g}" if low is not None else "",
                f"to {high}" if high is not None else "",
            ]
            return " ".join(filter(None, [kind, *parts]))
        case inspect.UnionType(types=types):
            return _form(types[0])
        case inspect.BoolType():
            return "true or false"
        case inspect.DictType():
            return "table"
        case _:
            return "text"


def _default(field: inspect.Field) -> str:
    if isinstance(field.default, bool):
        return str(field.default).lower()
    return "none" if field.default in (NODEFAULT, UNSET, None) else str(field.default)
