"""Cases made from tables that restate the specification, without a look at our types.

A table lists the fields of one object. For every field there are cases for each bound, one
step beyond it, null, absence, every other JSON type, and every value of a list.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import pytest

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import decoding

T = TypeVar("T", bound=msgspec.Struct)

SAMPLES: dict[str, list[Any]] = {
    "string": ["x"],
    "integer": [3],
    "number": [1.5, 1.0],
    "boolean": [True, False],
    "array": [[1]],
    "object": [{"free": 1}],
}
CODE_STEMS = {"string": "string", "integer": "integer", "number": "decimal", "array": "array"}
STEPS = {"string": 1, "array": 1, "integer": 1, "number": 0.001}
ACCEPTED = ("accepted", None)

Told = tuple[str, str | None]
"""The code and the parameter of a refusal, or that there is none."""
Cases = list[tuple[Any, Told]]
"""What is tried, and what comes of it."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One of the JSON types that a field may have, with its bounds."""

    json_type: str
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()
    item: Any = None
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
        if self.ending or self.low is not None:
            return [self.sized(self.low or 1)]
        return SAMPLES[self.json_type]

    def code(self, side: str) -> str:
        unit = "length" if self.json_type in {"string", "array"} else "value"
        edge = "below_min" if side == "low" else "above_max"
        return f"{CODE_STEMS[self.json_type]}_{edge}_{unit}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table."""

    name: str
    kinds: tuple[Kind, ...]
    null: bool
    required: bool


@dataclass(frozen=True, kw_only=True)
class Table:
    """An object of the specification: where it stands in a body, and its fields."""

    type_: type[msgspec.Struct]
    body: dict[str, Any]
    at: tuple[str | int, ...] = ()
    rows: list[Row] = field(default_factory=list[Row])
    takes_unknown: bool = False

    @property
    def prefix(self) -> str:
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.at]
        return "".join(steps).removeprefix(".")

    def param(self, name: str) -> str:
        return f"{self.prefix}.{name}".removeprefix(".")

    def with_field(self, name: str, value: object) -> dict[str, Any]:
        body = copy.deepcopy(self.body)
        self._object(body)[name] = value
        return body

    def without_field(self, name: str) -> dict[str, Any]:
        body = copy.deepcopy(self.body)
        self._object(body).pop(name, None)
        return body

    def _object(self, body: dict[str, Any]) -> dict[str, Any]:
        node: Any = body
        for step in self.at:
            node = node[step]
        return node


def string(low: int | None = None, high: int | None = None, *, ending: str = "") -> Kind:
    return Kind(json_type="string", low=low, high=high, ending=ending)


def integer(low: int | None = None, high: int | None = None) -> Kind:
    return Kind(json_type="integer", low=low, high=high)


def number(low: float | None = None, high: float | None = None) -> Kind:
    return Kind(json_type="number", low=low, high=high)


def array(item: object, low: int | None = None, high: int | None = None) -> Kind:
    return Kind(json_type="array", item=item, low=low, high=high)


def one_of(*values: str) -> Kind:
    return Kind(json_type="string", values=values)


BOOLEAN = Kind(json_type="boolean")
OBJECT = Kind(json_type="object")


def row(name: str, *kinds: Kind, null: bool = False, required: bool = False) -> Row:
    return Row(name=name, kinds=kinds, null=null, required=required)


def cases(*tables: Table) -> list[Any]:
    """Parameters of `check_case`, each with a name that says what it tries."""
    return [
        pytest.param(table.type_, body, outcome, id=f"{table.type_.__name__}-{name}")
        for table in tables
        for name, body, outcome in _table_cases(table)
    ]


def check_case(type_: type[msgspec.Struct], body: object, outcome: tuple[str, str | None]) -> None:
    """Take a body through the whole gate, as bytes."""
    assert outcome_of(type_, body) == outcome


def outcome_of(type_: type[msgspec.Struct], body: object) -> tuple[str, str | None]:
    try:
        decoded(type_, body)
    except InvalidRequest as refusal:
        return refusal.code, refusal.param
    return ACCEPTED


def decoded(type_: type[T], body: object) -> T:
    return decoding.decode(decoding.screen(json.dumps(body).encode()), type_)


Outcome = tuple[str, dict[str, Any], tuple[str, str | None]]


def _table_cases(table: Table) -> Iterator[Outcome]:
    if not table.takes_unknown:
        unknown = ("unknown_parameter", table.param("zz_unknown"))
        yield f"{table.prefix}-unknown", table.with_field("zz_unknown", 1), unknown
    for line in table.rows:
        param = table.param(line.name)
        absent = ("missing_required_parameter", param) if line.required else ACCEPTED
        yield f"{param}-absent", table.without_field(line.name), absent
        null = ACCEPTED if line.null else ("invalid_type", param)
        yield f"{param}-null", table.with_field(line.name, None), null
        yield from _type_cases(table, line, param)
        for kind in line.kinds:
            yield from _bound_cases(table, line, kind, param)


def _type_cases(table: Table, line: Row, param: str) -> Iterator[Outcome]:
    allowed = {kind.json_type for kind in line.kinds}
    if "number" in allowed:
        allowed.add("integer")
    for json_type, samples in SAMPLES.items():
        if json_type not in allowed:
            for sample in samples:
                name = f"{param}-{json_type}-{sample}"
                yield name, table.with_field(line.name, sample), ("invalid_type", param)
    for kind in line.kinds:
        for sample in kind.samples():
            yield f"{param}-takes-{sample}"[:60], table.with_field(line.name, sample), ACCEPTED


def _bound_cases(table: Table, line: Row, kind: Kind, param: str) -> Iterator[Outcome]:
    if kind.values:
        other = f"{kind.values[0]}x"
        yield f"{param}-other-value", table.with_field(line.name, other), ("invalid_value", param)
    for side, bound, direction in (("low", kind.low, -1), ("high", kind.high, 1)):
        if bound is None:
            continue
        beyond = bound + direction * STEPS[kind.json_type]
        at, past = kind.sized(bound), kind.sized(beyond)
        yield f"{param}-at-{side}", table.with_field(line.name, at), ACCEPTED
        refused = (kind.code(side), param)
        yield f"{param}-beyond-{side}", table.with_field(line.name, past), refused
