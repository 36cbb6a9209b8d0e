"""The fields that a mutation changed, short enough for its audit row."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import Struct

VALUE_CHARACTERS_MAX: Final = 256
"""The longest JSON of a value in an audit row. A digest replaces a longer value."""
DIGESTED_FIELDS: Final = frozenset({"rule", "reason"})
"""Always digested, because not every reader of the audit log may read these texts."""
UNAUDITED_FIELDS: Final = frozenset({"last_used_at", "project_name"})
"""Left out, because using a key or renaming its project is no change of the key."""
IDENTITY_FIELDS: Final = frozenset({"organization_id", "id", "policy_id", "reservation_id"})
"""Not compared, because they never change and the audit row names its resource."""
MONEY_SUFFIX: Final = "_pico_usd"

Fields: TypeAlias = dict[str, Any]


class DigestedValue(Struct, frozen=True, kw_only=True):
    """The SHA-256 and the number of characters of a value's JSON, in place of the value."""

    sha256: str
    length: int


Value: TypeAlias = str | int | bool | list[str] | DigestedValue | None


class Change(Struct, frozen=True, kw_only=True):
    """One field that differs. `field` is a path with dots; a missing value is null."""

    field: str
    before: Value
    after: Value


def audited(thing: object | None) -> Fields | None:
    """Return the fields of a resource in the form that is digested and compared.

    Identifiers, enums and timestamps are strings. Resources contain no secrets.
    """
    fields: Fields | None = msgspec.to_builtins(thing)
    if fields is None:
        return None
    return {name: value for name, value in fields.items() if name not in UNAUDITED_FIELDS}


def between(before: Fields | None, after: Fields | None, *, path: str = "") -> list[Change]:
    """Return the fields that differ between two audited forms, in the order of the fields."""
    earlier, later = before or {}, after or {}
    found: list[Change] = []
    for name in dict.fromkeys((*earlier, *later)):
        old, new = earlier.get(name), later.get(name)
        if name in IDENTITY_FIELDS or old == new:
            continue
        if dict in (type(old), type(new)):
            found += between(old, new, path=f"{path}{name}.")
        else:
            change = Change(field=path + name, before=_shown(name, old), after=_shown(name, new))
            found.append(change)
    return found


def _shown(name: str, value: Any) -> Value:  # noqa: ANN401 - a field of any type
    if value is None:
        return None
    if name.endswith(MONEY_SUFFIX):
        # Some JSON readers would lose digits of the number.
        return str(value)
    text = msgspec.json.encode(value)
    length = len(text.decode())
    if name in DIGESTED_FIELDS or length > VALUE_CHARACTERS_MAX:
        return DigestedValue(sha256=hashlib.sha256(text).hexdigest(), length=length)
    if isinstance(value, (list, tuple)):
        return [str(item) for item in cast("Sequence[object]", value)]
    return value
