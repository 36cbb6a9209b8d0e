"""Money is a whole number of pico-dollars; floats never touch it."""

from typing import NewType

PicoUsd = NewType("PicoUsd", int)

PICO_USD_PER_USD = 10**12
_DECIMAL_PLACES = 12


def to_decimal_string(amount: PicoUsd) -> str:
    """Print as the contract's plain decimal: no exponent, no trailing zeros, `0` for zero."""
    whole, fraction = divmod(abs(amount), PICO_USD_PER_USD)
    sign = "-" if amount < 0 else ""
    digits = f"{fraction:0{_DECIMAL_PLACES}d}".rstrip("0")
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"
