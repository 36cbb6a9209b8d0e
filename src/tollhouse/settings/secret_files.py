"""Secrets that the configuration names by a file, such as `secrets.master_file`."""

from collections.abc import Iterable
from typing import Any, Final, cast

from tollhouse.base import credentials
from tollhouse.base.credentials import UnusableCredential
from tollhouse.settings.section import InvalidSettings

_SUFFIX: Final = "_file"
_LISTS: Final = frozenset({"previous_masters"})
"""Their files have one secret per line."""
_SECRETS: Final = {
    "alerts": ("smtp_password",),
    "database": ("url", "replica_url"),
    "oidc": ("client_secret",),
    "redis": ("url",),
    "secrets": ("master", "previous_masters"),
}


def name(field: str) -> str:
    """Return the name of the setting that says where the secret is."""
    return f"{field}{_SUFFIX}"


def other_form(field: str) -> str:
    """Return `master_file` for `master`, and `master` for `master_file`."""
    return field.removesuffix(_SUFFIX) if field.endswith(_SUFFIX) else name(field)


def read_into(tree: dict[str, Any]) -> None:
    """Replace the name of each file by its content. Raises `InvalidSettings`."""
    for section, fields in _SECRETS.items():
        _read_table(_table(tree, section), section, fields)
    peppers = _table(_table(tree, "secrets"), "peppers")
    versions = [version.removesuffix(_SUFFIX) for version in peppers]
    _read_table(peppers, "secrets.peppers", versions)


def _table(tree: dict[str, Any], field: str) -> dict[str, Any]:
    """Return a table; an empty one if there is none, which is refused later if it must be there."""
    found = tree.get(field)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _read_table(table: dict[str, Any], place: str, fields: Iterable[str]) -> None:
    for field in fields:
        if name(field) not in table:
            continue
        if field in table:
            message = f"{place}: set either {field} or {name(field)}, not both"
            raise InvalidSettings(message)
        try:
            table[field] = _content(table.pop(name(field)), is_list=field in _LISTS)
        except UnusableCredential as error:
            message = f"{place}.{name(field)}: {error}"
            raise InvalidSettings(message) from None


def _content(path: object, *, is_list: bool) -> str | list[str]:
    return credentials.lines_of_file(path) if is_list else credentials.from_file(path)
