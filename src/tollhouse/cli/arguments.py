"""Arguments and options that verbs share, with the bounds that the API has in the same place."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.base.errors import InvalidRequest
from tollhouse.base.ids import parse_uuid
from tollhouse.base.money import PicoUsd, from_decimal_string
from tollhouse.catalog.types import CHECK_NAME_PATTERN
from tollhouse.contract.bounds import ModelName, Name, StatusFilter
from tollhouse.contract.decoding import decode

EXPIRES_IN_DAYS_MAX: Final = 36_500
EXAMPLE_ID: Final = "01890a5d-ac96-774b-bcce-b302099a8057"
LISTED_MAX: Final = 10_000
"""More than this no list shows; `has_more` then says so."""

F = TypeVar("F", bound=Callable[..., Any])


class _Named(Struct, frozen=True, kw_only=True):
    name: Name


class _Modelled(Struct, frozen=True, kw_only=True):
    model: ModelName


class _WithStatus(Struct, frozen=True, kw_only=True):
    status: StatusFilter


class _Text(click.ParamType[str]):
    """A text that fits the one field of a struct."""

    def __init__(self, fitting: type[Struct]) -> None:
        self._fitting = fitting
        (self.name,) = fitting.__struct_fields__

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As the API would judge it."""
        try:
            value.encode()
            return getattr(decode({self.name: value}, self._fitting), self.name)
        except UnicodeEncodeError:
            self.fail("It is not valid UTF-8.", param, ctx)
        except InvalidRequest as error:
            self.fail(error.message, param, ctx)


class _Check(click.ParamType[str]):
    name = "check"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As a model of the catalog may require it."""
        if re.search(CHECK_NAME_PATTERN, value) is None:
            form = "1 to 100 small letters, digits, '.', '_' and '-', and no sign first"
            self.fail(f"It is not the name of a check, which has {form}.", param, ctx)
        return value


class _Identifier(click.ParamType[UUID]):
    name = "id"

    def convert(
        self, value: str | UUID, param: click.Parameter | None, ctx: click.Context | None
    ) -> UUID:
        """The canonical form only, as everywhere."""
        if isinstance(value, UUID):
            return value
        if (parsed := parse_uuid(value)) is None:
            self.fail(f"It is not an ID, which looks like {EXAMPLE_ID}.", param, ctx)
        return parsed


class _Usd(click.ParamType[PicoUsd]):
    name = "usd"

    def __init__(self, *, may_be_negative: bool) -> None:
        self._may_be_negative = may_be_negative

    def convert(
        self, value: str | PicoUsd, param: click.Parameter | None, ctx: click.Context | None
    ) -> PicoUsd:
        """Exactly as it is written."""
        if not isinstance(value, str):
            return value
        if (amount := from_decimal_string(value)) is None:
            self.fail("It is not an amount of US dollars, which looks like 12.5.", param, ctx)
        if amount < 0 and not self._may_be_negative:
            self.fail("It must not be negative.", param, ctx)
        return amount


NAME: Final = _Text(_Named)
MODEL: Final = _Text(_Modelled)
STATUS: Final = _Text(_WithStatus)
CHECK: Final = _Check()
IDENTIFIER: Final = _Identifier()
USD: Final = _Usd(may_be_negative=False)
SIGNED_USD: Final = _Usd(may_be_negative=True)


def example(*lines: str) -> str:
    """The end of a verb's help, kept from being joined into one line."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def json_option(verb: F) -> F:
    """Give the verb `as_json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document instead of tables."
    )(verb)


def yes_option(verb: F) -> F:
    """Give the verb `yes`."""
    return click.option("--yes", is_flag=True, help="Do not ask for confirmation.")(verb)


def organization_option(verb: F) -> F:
    """Give the verb `organization`, an ID or nothing."""
    return click.option(
        "--org",
        "organization",
        type=IDENTIFIER,
        help="The organization. May be left out when there is only one.",
    )(verb)


def expiry_option(verb: F) -> F:
    """Give the verb `expires_in_days`, a number or nothing."""
    return click.option(
        "--expires-in-days",
        type=click.IntRange(1, EXPIRES_IN_DAYS_MAX),
        help="Never, when left out.",
    )(verb)


def expiry(days: int | None, *, now: datetime) -> datetime | None:
    """The instant that so many days lead to."""
    return None if days is None else now + timedelta(days=days)
