"""Options and arguments for the fields of an operation, and their values as the wire has them."""

import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast

import click
from msgspec import NODEFAULT, Struct, inspect

from tollhouse.base.ids import parse_policy_id, parse_uuid
from tollhouse.base.money import from_decimal_string, to_decimal_string
from tollhouse.contract.command import OPTIONS, Command, Words
from tollhouse.contract.money import MoneyToSet
from tollhouse.contract.operation import AnyOperation
from tollhouse.contract.operator_operations import SignedMoney

FILE_FROM: Final = 2_001
"""Texts that may be this long can be given as a file."""
EXPIRES_IN_DAYS_MAX: Final = 36_500
_PATH_PARAMETER: Final = re.compile(r"\{(\w+)\}")
NOT_CLEARED: Final = object()
PAGING: Final = frozenset({"after", "limit", "page"})
REFERENCES: Final = {
    "project_id": "project",
    "project_ids": "project",
    "api_key_id": "key",
    "api_key_ids": "key",
    "policy_id": "policy",
    "alert_subscription_id": "subscription",
    "organization_id": "organization",
}
"""The fields that name an object, and its kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A field of a body, a query or a path.

    `node` is the type of its value, or of the items of its list. `cleared` is what clears it.
    """

    path: tuple[str, ...]
    node: inspect.Type
    is_list: bool = False
    is_required: bool = True
    default: object = None
    cleared: object = NOT_CLEARED

    @property
    def variable(self) -> str:
        """The name of its value among those of a command."""
        return "__".join(self.path)


def fields_of(struct: type[Struct] | None) -> list[Field]:
    """Return the fields of a body or a query; those of a part stand beside the others."""
    if struct is None:
        return []
    shape = inspect.type_info(struct)
    assert isinstance(shape, inspect.StructType)
    return [field for each in shape.fields for field in _fields(each)]


def path_fields(operation: AnyOperation) -> list[Field]:
    """Return the parameters in the path of an operation."""
    names = _PATH_PARAMETER.findall(operation.path)
    return [Field(path=(name,), node=_path_node(name)) for name in names]


def words_of(field: Field, spec: Command) -> Words:
    """Return the option's name and help: the command's own, or those of the field."""
    name = ".".join(field.path)
    fallback = Words(name.replace("_", "-").replace(".", "-"), "")
    return spec.words.get(name) or OPTIONS.get(name, fallback)


def _path_node(name: str) -> inspect.Type:
    return inspect.IntType(ge=1) if name == "version" else inspect.StrType()


def _fields(declared: inspect.Field) -> list[Field]:
    node, is_nullable = _without_null(declared.type)
    if isinstance(node, inspect.StructType) and node.cls not in (MoneyToSet, SignedMoney):
        parts = [part for each in node.fields for part in _fields(each)]
        return [
            Field(
                path=(declared.encode_name, *part.path),
                node=part.node,
                is_required=False,
                default=part.default,
            )
            for part in parts
        ]
    items = node.item_type if isinstance(node, inspect.ListType) else node
    default = declared.default
    return [
        Field(
            path=(declared.encode_name,),
            node=_without_null(items)[0],
            is_list=isinstance(node, inspect.ListType),
            is_required=declared.required,
            default=None if default is NODEFAULT else default,
            cleared=NOT_CLEARED if declared.required else _cleared(node, is_nullable=is_nullable),
        )
    ]


def is_fixed(field: Field) -> bool:
    """Return whether a field has only one value."""
    return isinstance(field.node, inspect.LiteralType) and len(field.node.values) == 1


def _without_null(node: inspect.Type) -> tuple[inspect.Type, bool]:
    """Return the type without null, absence and notes, and whether it may be null."""
    while isinstance(node, inspect.Metadata) and not _is_choice(node):
        node = node.type
    if not isinstance(node, inspect.UnionType):
        return node, False
    (value, *_) = (each for each in node.types if not isinstance(each, inspect.NoneType))
    return _without_null(value)[0], len(node.types) > 1


def _is_choice(node: inspect.Metadata) -> bool:
    return bool(_choices(node))


def _choices(node: inspect.Metadata) -> list[str]:
    schema = cast("dict[str, Any] | None", node.extra_json_schema) or {}  # pyright: ignore[reportUnknownMemberType] - untyped there
    return schema.get("enum", [])


def _cleared(node: inspect.Type, *, is_nullable: bool) -> object:
    if is_nullable:
        return None
    if isinstance(node, inspect.ListType) and not node.min_length:
        return list[object]()
    if isinstance(node, inspect.StrType) and not node.min_length and node.pattern is None:
        return ""
    return NOT_CLEARED


def parameter_type(field: Field, *, is_past: bool) -> click.ParamType[Any]:
    """Return the type of an option or an argument; a query's times are in the past."""
    name = field.path[-1]
    if name in REFERENCES:
        return Reference(REFERENCES[name])
    if isinstance(field.node, inspect.IntType) and name.endswith(("_time", "_at")):
        return Instant(is_past=is_past)
    return _plain_type(field.node)


def _plain_type(node: inspect.Type) -> click.ParamType[Any]:
    kind: click.ParamType[Any] = click.STRING
    match node:
        case inspect.Metadata():
            kind = click.Choice(_choices(node))
        case inspect.StructType(cls=cls):
            kind = Money(may_be_negative=cls is SignedMoney)
        case inspect.LiteralType(values=values):
            kind = click.Choice([str(value) for value in values])
        case inspect.IntType(ge=least, le=most):
            kind = Number(least, most)
        case inspect.StrType(max_length=length) if length is not None and length >= FILE_FROM:
            kind = LongText()
        case _:
            pass
    return kind


class Number(click.ParamType[int]):
    """A whole number within bounds, which only a refusal names: most are far away."""

    name = "number"

    def __init__(self, least: int | None, most: int | None) -> None:
        self._bounds = click.IntRange(least, most)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        return self._bounds(value, param, ctx)


class Reference(click.ParamType[str]):
    """The name or the ID of an object."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = kind


def is_id(kind: str, text: str) -> bool:
    """Return whether a text is an ID and no name."""
    return (parse_policy_id(text) if kind == "policy" else parse_uuid(text)) is not None


class Money(click.ParamType[dict[str, str]]):
    """An amount of US dollars, as people write it."""

    name = "usd"

    def __init__(self, *, may_be_negative: bool = False) -> None:
        self._may_be_negative = may_be_negative

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        """Return the exact amount."""
        written = value.strip().replace("$", "", 1).replace(",", "")
        amount = from_decimal_string(written)
        if amount is None:
            self.fail(f"{value!r} is not an amount of US dollars like 12.5.", param, ctx)
        if amount < 0 and not self._may_be_negative:
            self.fail("The amount must not be negative.", param, ctx)
        return {"value": to_decimal_string(amount), "currency": "usd"}


@dataclass(frozen=True, slots=True)
class Days:
    """A number of days before or after the day on which the command runs, which is in UTC."""

    number: int
    is_past: bool

    def instant(self, now: datetime) -> int:
        """Return the midnight at which they begin or end, so that a repetition is the same."""
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        distance = timedelta(days=-self.number if self.is_past else self.number + 1)
        return int((midnight + distance).timestamp())


class Instant(click.ParamType["int | Days"]):
    """A time as Unix seconds: a date, a time, or a number of days from now."""

    name = "time"

    def __init__(self, *, is_past: bool) -> None:
        self._is_past = is_past

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> "int | Days":
        """Return the instant, or the days until it is known when the command runs."""
        days = value.removesuffix("d")
        if days != value and days.isascii() and days.isdigit():
            return Days(min(int(days), EXPIRES_IN_DAYS_MAX), self._is_past)
        try:
            parsed = datetime.fromisoformat(value)
            return int(parsed.replace(tzinfo=parsed.tzinfo or UTC).timestamp())
        except (ValueError, OverflowError):
            forms = "2026-01-31, 2026-01-31T12:00:00, '2026-01-31 12:00:00+00' or 30d"
            self.fail(f"{value!r} is not a time. Use a form such as {forms}.", param, ctx)


class LongText(click.ParamType[str]):
    """A text, or `@` and the file that has it; `@-` is standard input, and `@@` begins with @."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        if not value.startswith("@"):
            return value
        if value.startswith("@@"):
            return value[1:]
        try:
            if value == "@-":
                return sys.stdin.read()
            return Path(value[1:]).read_text(encoding="utf-8-sig").rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            self.fail(f"{value[1:]} cannot be read: {error}", param, ctx)
