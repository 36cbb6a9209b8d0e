"""What a mutation changed, field by field, short enough to stand in its audit row."""

import hashlib
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

VALUE_CHARACTERS_MAX: Final = 256
"""Of a value's JSON. What is longer is digested, so that a row stays small."""
DIGESTED_FIELDS: Final = frozenset({"rule", "reason"})
"""However short: who may read the audit log may not therefore read these texts."""
UNAUDITED_FIELDS: Final = frozenset({"last_used_at", "project_name"})
"""They change without a change of the thing that shows them: using a key, renaming its project."""
IDENTITY_FIELDS: Final = frozenset({"organization_id", "id", "policy_id", "reservation_id"})
"""They never change, and the row itself names what it is about."""
MONEY_SUFFIX: Final = "_pico_usd"

Fields: TypeAlias = dict[str, Any]


class DigestedValue(Struct, frozen=True, kw_only=True):
    """In the place of a value: the SHA-256 of its JSON, and the number of its characters."""

    sha256: str
    length: int


Value: TypeAlias = str | int | bool | list[str] | DigestedValue | None


class Change(Struct, frozen=True, kw_only=True):
    """One field that differs. `field` is a path with dots; nothing on one side is null."""

    field: str
    before: Value
    after: Value


def audited(thing: object | None) -> Fields | None:
    """The form of a noun that is digested and compared. Nouns hold no secrets, so neither does it.

    Identifiers, enums and instants are strings in it.
    """
    fields: Fields | None = msgspec.to_builtins(thing)
    if fields is None:
        return None
    return {name: value for name, value in fields.items() if name not in UNAUDITED_FIELDS}


def between(before: Fields | None, after: Fields | None, *, path: str = "") -> list[Change]:
    """The fields that differ between two audited forms, in the order that the nouns give them."""
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


def _shown(name: str, value: Any) -> Value:  # noqa: ANN401 - a field of any noun
    if value is None:
        return None
    if name.endswith(MONEY_SUFFIX):
        # More digits than every reader of JSON keeps in a number.
        return str(value)
    text = msgspec.json.encode(value)
    length = len(text.decode())
    if name in DIGESTED_FIELDS or length > VALUE_CHARACTERS_MAX:
        return DigestedValue(sha256=hashlib.sha256(text).hexdigest(), length=length)
    return value
