"""Secrets that the configuration names by a file, such as `secrets.master_file`."""

from collections.abc import Callable, Iterable, Sequence
from secrets import token_urlsafe
from typing import Any, Final, TypeAlias, cast

from tollhouse.base import credentials
from tollhouse.base.credentials import AbsentCredential, UnusableCredential
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
_NEEDED: Final = (("database", "url"), ("secrets", "master"))
_URLS: Final = {"database": "postgresql://absent", "redis": "redis://absent"}
ReportAbsent: TypeAlias = Callable[[str], None]
"""Is told of each secret that this machine lacks."""


def name(field: str) -> str:
    """Return the name of the setting that says where the secret is."""
    return f"{field}{_SUFFIX}"


def other_form(field: str) -> str:
    """Return `master_file` for `master`, and `master` for `master_file`."""
    return field.removesuffix(_SUFFIX) if field.endswith(_SUFFIX) else name(field)


def is_secret(path: Sequence[str]) -> bool:
    """Return whether a setting is a secret, or says where one is."""
    section, field = path[0], path[-1]
    if section == "backends":
        return field.startswith("api_key")
    return section == "secrets" or not {field, other_form(field)}.isdisjoint(
        _SECRETS.get(section, ())
    )


def read_into(tree: dict[str, Any], report_absent: ReportAbsent | None = None) -> None:
    """Replace the name of each file by its content. Raises `InvalidSettings`.

    With `report_absent`, a generated secret stands in for one that this machine lacks.
    """
    if report_absent is not None:
        _add_needed(tree, report_absent)
    for section, fields in _SECRETS.items():
        _read_table(_table(tree, section), section, fields, report_absent)


def refuse_or_report(
    place: str, error: UnusableCredential, report_absent: ReportAbsent | None
) -> None:
    """Report an absent credential, if `report_absent` is set. Otherwise raise `InvalidSettings`."""
    message = f"{place}: {error}"
    if report_absent is None or not isinstance(error, AbsentCredential):
        raise InvalidSettings(message) from None
    report_absent(message)


def _add_needed(tree: dict[str, Any], report_absent: ReportAbsent) -> None:
    for section, field in _NEEDED:
        tree.setdefault(section, {})
        table = _table(tree, section)
        if not {field, name(field)} & table.keys():
            report_absent(f"{section}.{field}: it is not set")
            table[field] = _stand_in(section)


def _table(tree: dict[str, Any], field: str) -> dict[str, Any]:
    """Return a table; an empty one if there is none, which is refused later if it must be there."""
    found = tree.get(field)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _read_table(
    table: dict[str, Any], place: str, fields: Iterable[str], report_absent: ReportAbsent | None
) -> None:
    for field in fields:
        if name(field) not in table:
            continue
        if field in table:
            message = f"{place}: set either {field} or {name(field)}, not both"
            raise InvalidSettings(message)
        try:
            table[field] = _content(table.pop(name(field)), is_list=field in _LISTS)
        except UnusableCredential as error:
            refuse_or_report(f"{place}.{name(field)}", error, report_absent)
            secret = _stand_in(place)
            table[field] = [secret] if field in _LISTS else secret


def _content(path: object, *, is_list: bool) -> str | list[str]:
    return credentials.lines_of_file(path) if is_list else credentials.from_file(path)


def _stand_in(place: str) -> str:
    """Return a secret of the form that settings of this table must have."""
    return _URLS.get(place) or token_urlsafe()
