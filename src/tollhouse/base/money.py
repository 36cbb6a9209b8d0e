"""Amounts of money: whole numbers of pico-dollars, never floats."""

import re
from typing import NewType

PicoUsd = NewType("PicoUsd", int)

PICO_USD_PER_USD = 10**12
_DECIMAL_PLACES = 12
_DECIMAL = re.compile(
    r"(?P<sign>-?)(?P<whole>[0-9]{1,12})(?:\.(?P<fraction>[0-9]{1,12}))?", re.ASCII
)


def to_decimal_string(amount: PicoUsd) -> str:
    """Return an amount in dollars as a plain decimal, without exponent and trailing zeros."""
    whole, fraction = divmod(abs(amount), PICO_USD_PER_USD)
    sign = "-" if amount < 0 else ""
    digits = f"{fraction:0{_DECIMAL_PLACES}d}".rstrip("0")
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


def from_decimal_string(text: str) -> PicoUsd | None:
    """Return the amount of a plain decimal in dollars, or None if the text is not one.

    At most 12 digits are allowed on either side of the point.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    fraction = (match["fraction"] or "").ljust(_DECIMAL_PLACES, "0")
    amount = int(match["whole"]) * PICO_USD_PER_USD + int(fraction)
    return PicoUsd(-amount if match["sign"] else amount)
