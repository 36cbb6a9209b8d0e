"""Cases made from tables, to be decoded by our types or sent to a server.

For every field there are cases for each bound, one step beyond it, null, absence, every other JSON
type, and every value of a list.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import pytest

from tests.contract.kinds import SAMPLES, Kind, Row
from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import decoding

T = TypeVar("T", bound=msgspec.Struct)

STEPS = {"string": 1, "array": 1, "integer": 1, "number": 0.001}
ACCEPTED = ("accepted", None)

Told = tuple[str, str | None]
"""The code and the parameter of a refusal, or that there is none."""
Cases = list[tuple[Any, Told]]
"""What is tried, and what comes of it."""


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
        yield from row_cases(table, line)


def row_cases(table: Table, line: Row) -> Iterator[Outcome]:
    """Name, body and outcome of every case of one line."""
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
    if kind.values and kind.json_type == "string":
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
