"""What one configuration changes of another, without showing secrets."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import Struct

from tollhouse.catalog.types import Catalog
from tollhouse.cli.output import JsonValue
from tollhouse.settings import Settings, is_secret, read_tables

SettingPath: TypeAlias = tuple[str, ...]
SettingValues: TypeAlias = Mapping[SettingPath, JsonValue]
NAMED: Final = frozenset({"backends", "models"})
"""Sections whose tables are one difference each if only one of the configurations has them."""


class DifferenceKind(StrEnum):
    """How a setting, a model or a backend differs."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class SettingDifference(Struct, frozen=True, kw_only=True):
    """A setting, or a whole model or backend. Those and secrets have no values here."""

    path: str
    change: DifferenceKind
    before: JsonValue
    after: JsonValue


def values_of(path: Path, settings: Settings, catalog: Catalog) -> SettingValues:
    """Return all values in force, with defaults, and secrets as they are written."""
    tables = _builtins(settings)
    tables |= {name: _builtins(getattr(catalog, name)) for name in sorted(NAMED)}
    tables["judge"] = {} if catalog.judge is None else _builtins(catalog.judge)
    in_force = {place: value for place, value in _flat(tables) if not is_secret(place)}
    return in_force | {place: each for place, each in _flat(read_tables(path)) if is_secret(place)}


def differences(before: SettingValues, after: SettingValues) -> list[SettingDifference]:
    """Return the differences in the order of their paths."""
    one_sided = _named_tables(before) ^ _named_tables(after)
    old, new = _collapsed(before, one_sided), _collapsed(after, one_sided)
    return [
        SettingDifference(
            path=_shown(place),
            change=_kind(old.get(place), new.get(place)),
            before=None if is_secret(place) or place in one_sided else old.get(place),
            after=None if is_secret(place) or place in one_sided else new.get(place),
        )
        for place in sorted({*old, *new})
        if old.get(place) != new.get(place)
    ]


def _kind(before: JsonValue, after: JsonValue) -> DifferenceKind:
    if before is None:
        return DifferenceKind.ADDED
    return DifferenceKind.REMOVED if after is None else DifferenceKind.CHANGED


def _named_tables(values: SettingValues) -> AbstractSet[SettingPath]:
    return {place[:2] for place in values if place[0] in NAMED}


def _collapsed(values: SettingValues, tables: AbstractSet[SettingPath]) -> SettingValues:
    """Return the values with one in place of all that are in one of these tables."""
    return {
        place[:2] if place[:2] in tables else place: True if place[:2] in tables else value
        for place, value in values.items()
    }


def _flat(
    table: Mapping[str, Any], above: SettingPath = ()
) -> Iterator[tuple[SettingPath, JsonValue]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), (*above, name))
        else:
            yield (*above, name), value


def _builtins(value: object) -> dict[str, Any]:
    """Return the value as JSON has it, with sets in one order."""
    return msgspec.json.decode(msgspec.json.encode(value, order="deterministic"))


def _shown(place: SettingPath) -> str:
    """Return the path as errors of the catalog write it, with names in quotes."""
    if place[0] in NAMED:
        name = msgspec.json.encode(place[1]).decode()
        return ".".join((place[0], name, *place[2:]))
    return ".".join(place)
