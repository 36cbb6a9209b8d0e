"""The words in which a table of the specification is written: kinds of values, and lines."""

from dataclasses import dataclass, field
from typing import Any

SAMPLES: dict[str, list[Any]] = {
    "string": ["x"],
    "integer": [3],
    "number": [1.5, 1.0],
    "boolean": [True, False],
    "array": [[1]],
    "object": [{"free": 1}],
}
CODE_STEMS = {"string": "string", "integer": "integer", "number": "decimal", "array": "array"}

ANY = "any"
NOT_GIVEN = object()
"""The specification names no default."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One of the JSON types that a field may have, with its bounds.

    `of` is the kind of the items of an array or of the values of a map, `table` the schema of a
    nested object, `item` a sound item of an array or a sound object.
    """

    json_type: str
    low: float | None = None
    high: float | None = None
    values: tuple[Any, ...] = ()
    item: Any = None
    of: "tuple[Kind, ...]" = ()
    takes_null_items: bool = False
    table: str = ""
    format: str = ""
    ending: str = ""

    def sized(self, size: float) -> object:
        if self.json_type == "string":
            # Two bytes each, so that a bound in bytes would be noticed.
            return ("é" * (int(size) - len(self.ending)) + self.ending)[: int(size)]
        return [self.item] * int(size) if self.json_type == "array" else size

    def samples(self) -> list[Any]:
        if self.values:
            return list(self.values)
        if self.json_type == "array":
            return [[self.item]]
        if self.json_type == "object" and self.item is not None:
            return [self.item]
        if self.ending or self.low is not None:
            return [self.sized(self.low or 1)]
        return SAMPLES.get(self.json_type, [])

    def code(self, side: str) -> str:
        unit = "length" if self.json_type in {"string", "array"} else "value"
        edge = "below_min" if side == "low" else "above_max"
        return f"{CODE_STEMS[self.json_type]}_{edge}_{unit}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table. `is_named`: the specification has the field's name, not only its rules.

    `beside` are the fields without which a sound value may be refused.
    """

    name: str
    kinds: tuple[Kind, ...]
    null: bool
    required: bool
    default: object = NOT_GIVEN
    is_named: bool = True
    beside: dict[str, Any] = field(default_factory=dict[str, Any])


def row(
    name: str,
    *kinds: Kind,
    null: bool = False,
    required: bool = False,
    default: object = NOT_GIVEN,
    is_named: bool = True,
    beside: dict[str, Any] | None = None,
) -> Row:
    return Row(
        name=name,
        kinds=kinds,
        null=null,
        required=required,
        default=default,
        is_named=is_named,
        beside=beside or {},
    )


def rows(names: str, *kinds: Kind, null: bool = False, required: bool = False) -> list[Row]:
    """Lines that differ by their name alone."""
    return [row(name, *kinds, null=null, required=required) for name in names.split()]


def string(low: int | None = None, high: int | None = None, *, ending: str = "") -> Kind:
    return Kind(json_type="string", low=low, high=high, ending=ending)


def integer(low: int | None = None, high: int | None = None) -> Kind:
    return Kind(json_type="integer", low=low, high=high)


def number(low: float | None = None, high: float | None = None) -> Kind:
    return Kind(json_type="number", low=low, high=high)


def array(
    item: object,
    low: int | None = None,
    high: int | None = None,
    *,
    of: Kind | None = None,
    takes_null_items: bool = False,
) -> Kind:
    return Kind(
        json_type="array",
        item=item,
        low=low,
        high=high,
        of=() if of is None else (of,),
        takes_null_items=takes_null_items,
    )


def mapping(item: object, *of: Kind, takes_null_items: bool = False) -> Kind:
    """An object whose members have any name."""
    return Kind(json_type="object", item=item, of=of, takes_null_items=takes_null_items)


def nested(schema: str, item: object = None) -> Kind:
    """An object with a table of its own."""
    return Kind(json_type="object", table=schema, item=item)


def list_of(schema: str) -> Kind:
    return array(None, of=nested(schema))


def one_of(*values: str) -> Kind:
    return Kind(json_type="string", values=values)


BOOLEAN = Kind(json_type="boolean")
ONLY_FALSE = Kind(json_type="boolean", values=(False,))
OBJECT = Kind(json_type="object")
STRING = string()
INTEGER = integer()
UUID = Kind(json_type="string", format="uuid")
ANYTHING = Kind(json_type=ANY)
STRINGS = array("x", of=STRING)
OBJECTS = array({"free": 1}, of=OBJECT)
