"""Money on the wire: a plain decimal that says exactly what the whole number says."""

import re
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tollhouse.base.money import PicoUsd, to_decimal_string

LARGEST = 10**38 - 1
"""What a balance of the database can hold."""

AMOUNTS = st.integers(-LARGEST, LARGEST)
PLAIN_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]{0,11}[1-9])?", re.ASCII)


@given(AMOUNTS)
@example(0)
@example(1)
@example(-1)
@example(10**12)
@example(10**12 - 1)
@example(LARGEST)
def test_an_amount_is_printed_as_the_decimal_that_it_is(amount: int) -> None:
    with localcontext(prec=60):
        assert Decimal(to_decimal_string(PicoUsd(amount))) == Decimal(amount).scaleb(-12)


@given(AMOUNTS)
@example(-(10**12))
@example(10**11)
def test_an_amount_has_one_spelling(amount: int) -> None:
    printed = to_decimal_string(PicoUsd(amount))

    assert PLAIN_DECIMAL.fullmatch(printed)
    assert printed != "-0"


@pytest.mark.parametrize(
    ("amount", "printed"),
    [
        (0, "0"),
        (1, "0.000000000001"),
        (-1, "-0.000000000001"),
        (10, "0.00000000001"),
        (500_000_000_000, "0.5"),
        (10**12, "1"),
        (12_500_000_000_000, "12.5"),
        (-10_000_000_000_000, "-10"),
        (LARGEST, "99999999999999999999999999.999999999999"),
    ],
)
def test_amounts_are_printed_without_exponent_and_trailing_zeros(amount: int, printed: str) -> None:
    assert to_decimal_string(PicoUsd(amount)) == printed
