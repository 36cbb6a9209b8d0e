"""Amounts of money: exact decimals as strings, in US dollars."""

from typing import ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.bounds import Usd
from tollhouse.contract.origins import extension


class Money(Struct, frozen=True, kw_only=True):
    """Without exponent or trailing zeros, as in the cost report (OQ-130)."""

    mark: ClassVar[Meta] = extension("OQ-138")

    value: str
    """An exact decimal, such as `12.5`."""
    currency: Literal["usd"] = "usd"


class MoneyToSet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An amount as callers write it."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-166")

    value: Usd
    """A plain decimal, such as `12.5`."""
    currency: Literal["usd"] = "usd"
