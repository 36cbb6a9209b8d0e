"""What an import found: backends and models as tables of our configuration, and what is missing."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, cast

PRICE_DECIMALS_MAX: Final = 12
PRICE_MAX: Final = 1_000
NUMBER_MAX: Final = 2**63 - 1
"""The largest whole number that every reader of TOML accepts."""
GAP: Final = "GAP: "
_DIGITS: Final = re.compile(r"[0-9]{1,19}")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Unmapped:
    """A part of the source that is not in the result, and why. Never has a value of the source."""

    item: str
    reason: str


@dataclass(kw_only=True, slots=True)
class ImportedTable:
    """One backend or model. `gaps` are settings that it needs and that the source does not have."""

    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    gaps: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(kw_only=True, slots=True)
class ImportedCatalog:
    """The result of an import.

    `reserved_variables` have a credential already, by the source or by habit. `credentials` are
    those in the source with the variables chosen for them, and are not shown.
    """

    backends: dict[str, ImportedTable] = field(default_factory=dict[str, ImportedTable])
    models: dict[str, ImportedTable] = field(default_factory=dict[str, ImportedTable])
    unmapped: list[Unmapped] = field(default_factory=list[Unmapped])
    reserved_variables: frozenset[str] = frozenset()
    credentials: list[tuple[str, object, str]] = field(
        default_factory=list[tuple[str, object, str]], repr=False
    )

    def leave_out(self, item: str, reason: str) -> None:
        """Note a part that is not mapped."""
        self.unmapped.append(Unmapped(item=item, reason=reason))

    def part(self) -> "ImportedCatalog":
        """Return an empty catalog that chooses the same variables for credentials."""
        return ImportedCatalog(
            reserved_variables=self.reserved_variables, credentials=self.credentials
        )

    def add(self, name: str, kind: str, model: ImportedTable, backend: ImportedTable) -> None:
        """Add or replace a model and its backend, whose name begins with `kind`."""
        chosen = self.backend_of(kind, backend.settings, backend.gaps)
        settings = {"backend": chosen, **model.settings}
        self.models[name] = ImportedTable(settings=settings, gaps=model.gaps)

    def variable_for(self, name: str, credential: object) -> str:
        """Return the variable of a credential: `name`, or a numbered one if that has another."""
        for wanted, known, variable in self.credentials:
            if (wanted, known) == (name, credential):
                return variable
        taken = self.reserved_variables | {variable for _, _, variable in self.credentials}
        position, chosen = 1, name
        while chosen in taken:
            position += 1
            chosen = f"{name}_{position}"
        self.credentials.append((name, credential, chosen))
        return chosen

    def backend_of(self, name: str, settings: dict[str, Any], gaps: dict[str, str]) -> str:
        """Return the name of a backend with exactly these settings; make it if there is none."""
        position = 1
        while True:
            numbered = name if position == 1 else f"{name}-{position}"
            found = self.backends.setdefault(
                numbered, ImportedTable(settings=dict(settings), gaps=dict(gaps))
            )
            if found.settings == settings and found.gaps == gaps:
                return numbered
            position += 1

    def toml(self) -> str:
        """Return the tables as text. A gap is a comment, so that start-up refuses the table."""
        parts = [
            *(_table("backends", name, table) for name, table in self.backends.items()),
            *(_table("models", name, table) for name, table in self.models.items()),
        ]
        return "\n".join(parts)


def price_text(value: object) -> str | None:
    """Return a price per token as our decimal text, or None if it is not an exact one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        price = Decimal(str(value))
    except (InvalidOperation, ValueError):  # the latter for a whole number of thousands of digits
        return None
    if not price.is_finite() or not 0 <= price <= PRICE_MAX:
        return None
    # A zero may have a sign.
    text = f"{abs(price).normalize():f}"
    return text if len(text.partition(".")[2]) <= PRICE_DECIMALS_MAX else None


def positive(value: object) -> int | None:
    """Return a positive whole number that TOML can have, or None."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    # Not a number and infinities have no order or no whole part.
    is_finite = isinstance(value, int) or math.isfinite(value)
    if not is_finite or not 1 <= value <= NUMBER_MAX:
        return None
    return int(value) if value == int(value) else None


def table_of(value: object) -> dict[str, Any]:
    """Return an object of a file that was read, or an empty one for anything else."""
    if not isinstance(value, dict):
        return {}
    return {str(name): each for name, each in cast("dict[Any, Any]", value).items()}


def list_of(value: object) -> list[Any]:
    """Return a list of a file that was read, or an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def strings_of(tree: object) -> Iterator[str]:
    """Yield all strings of a file that was read, names too. Aliases of YAML may form a circle."""
    waiting, seen = [tree], set[int]()
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict | list) and id(cast("object", found)) not in seen:
            seen.add(id(cast("object", found)))
            if isinstance(found, dict):
                fields = cast("dict[object, object]", found)
                waiting += [*fields.keys(), *fields.values()]
            else:
                waiting += cast("list[object]", found)


def _table(kind: str, name: str, table: ImportedTable) -> str:
    key = name if _PLAIN_KEY.fullmatch(name) else _value(name)
    lines = [f"[{kind}.{key}]"]
    lines += [f"{setting} = {_value(value)}" for setting, value in table.settings.items()]
    lines += [f"# {GAP}{setting}: {reason}" for setting, reason in table.gaps.items()]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    """Return a value as TOML, whose basic strings are those of JSON but for one character."""
    if isinstance(value, dict):
        fields = table_of(cast("object", value)).items()
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in fields) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, list_of(cast("object", value)))) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
