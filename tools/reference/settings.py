"""The page of settings: types and limits from the code, meanings from `settings.toml`."""

import tomllib
from pathlib import Path

from msgspec import NODEFAULT, UNSET, inspect

from tollhouse.settings import Settings
from tools.reference.tables import code, table

CATALOG = frozenset({"backends", "models", "judge"})
"""Their settings have a guide of their own."""
HEAD = """\
# Settings

One TOML file: `tollhouse.toml` in the present directory, or what `--config` or `TOLLHOUSE_CONFIG`
names. Variables of the environment override it: `TOLLHOUSE_SERVER__PORT=9000` sets `server.port`.
[Models and backends](../guides/models-and-backends.md) and [the judge](../guides/judging.md) have
tables of their own. Secrets have no default, weak ones are refused, and each
[can come from a file](../guides/running.md#secrets-from-files-and-from-the-environment).

"""


def page() -> str:
    """Return the page with a row for each setting, in the order of the sections."""
    meanings = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    rows = [
        (
            code(f"{section.name}.{field.name}"),
            _form(field.type),
            _default(field),
            meanings[section.name][field.name],
        )
        for section in _fields(inspect.type_info(Settings))
        if section.name not in CATALOG
        for field in _fields(section.type)
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
