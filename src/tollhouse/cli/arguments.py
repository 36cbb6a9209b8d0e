"""Arguments and options that commands share, with the same bounds as the API."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.base.errors import InvalidInput
from tollhouse.base.ids import PolicyId, parse_policy_id, parse_uuid
from tollhouse.base.money import PicoUsd, from_decimal_string
from tollhouse.contract.bounds import (
    ModelName,
    Name,
)
from tollhouse.contract.decoding import decode

DEFAULT_DAYS: Final = 30
LISTED_MAX: Final = 10_000
"""The most items that a list shows; `has_more` says whether there are more."""

F = TypeVar("F", bound=Callable[..., Any])


class _Named(Struct, frozen=True, kw_only=True):
    name: Name


class _Modelled(Struct, frozen=True, kw_only=True):
    model: ModelName


class _Policy(click.ParamType[PolicyId]):
    name = "policy"

    def convert(
        self, value: str | PolicyId, param: click.Parameter | None, ctx: click.Context | None
    ) -> PolicyId:
        """Return the ID of a policy."""
        if not isinstance(value, str):
            return value
        if (parsed := parse_policy_id(value)) is None:
            self.fail(f"{value!r} is not the ID of a policy, which begins with pol_.", param, ctx)
        return parsed


class _Text(click.ParamType[str]):
    """A text that is valid for the only field of a struct."""

    def __init__(self, fitting: type[Struct]) -> None:
        self._fitting = fitting
        (self.name,) = fitting.__struct_fields__

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text if the API would accept it."""
        try:
            value.encode()
            return getattr(decode({self.name: value}, self._fitting), self.name)
        except UnicodeEncodeError:
            self.fail("The text is not valid UTF-8.", param, ctx)
        except InvalidInput as error:
            self.fail(error.message, param, ctx)


class _Identifier(click.ParamType[UUID]):
    name = "id"

    def convert(
        self, value: str | UUID, param: click.Parameter | None, ctx: click.Context | None
    ) -> UUID:
        """Return the ID. Only the canonical form is accepted."""
        if isinstance(value, UUID):
            return value
        if (parsed := parse_uuid(value)) is None:
            self.fail(
                f"{value!r} is not an ID. IDs look like 01890a5d-ac96-774b-bcce-b302099a8057.",
                param,
                ctx,
            )
        return parsed


class _Instant(click.ParamType[datetime]):
    name = "time"

    def convert(
        self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the instant in UTC, which is also the zone of one that is given without."""
        if isinstance(value, datetime):
            return value
        try:
            parsed = datetime.fromisoformat(value)
            return parsed.replace(tzinfo=parsed.tzinfo or UTC).astimezone(UTC)
        except (ValueError, OverflowError):
            forms = "2026-01-31, 2026-01-31T12:00:00 or '2026-01-31 12:00:00.5+00'"
            self.fail(f"{value!r} is not a time. Use a form such as {forms}.", param, ctx)


class _Usd(click.ParamType[PicoUsd]):
    name = "usd"

    def convert(
        self, value: str | PicoUsd, param: click.Parameter | None, ctx: click.Context | None
    ) -> PicoUsd:
        """Return the exact amount."""
        if not isinstance(value, str):
            return value
        amount = from_decimal_string(value)
        if amount is None or amount < 0:
            self.fail(f"{value!r} is not an amount of US dollars like 12.5.", param, ctx)
        return amount


NAME: Final = _Text(_Named)
MODEL: Final = _Text(_Modelled)
POLICY: Final = _Policy()
INSTANT: Final = _Instant()
DAY: Final = click.DateTime(["%Y-%m-%d"])
IDENTIFIER: Final = _Identifier()
USD: Final = _Usd()


def example(*lines: str) -> str:
    """Return examples for the end of a command's help, one per line."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def json_option(command: F) -> F:
    """Add the option `as_json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document instead of tables."
    )(command)


def yes_option(command: F) -> F:
    """Add the option `yes`."""
    return click.option("--yes", is_flag=True, help="Do not ask for confirmation.")(command)


def organization_option(command: F) -> F:
    """Add the option `organization`: an ID or None."""
    return click.option(
        "--org",
        "organization",
        type=IDENTIFIER,
        help="The organization's ID. Needed only if there are several.",
    )(command)


def midnight(now: datetime) -> datetime:
    """Return the beginning of a day."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def expiry(days: int | None, *, now: datetime) -> datetime | None:
    """Return the instant in `days` days, or None if `days` is None."""
    return None if days is None else now + timedelta(days=days)
