"""Money on the wire: a plain decimal that says exactly what the whole number says."""

import re
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tollhouse.base.money import PicoUsd, from_decimal_string, to_decimal_string

LARGEST = 10**38 - 1
"""What a balance of the database can hold."""

AMOUNTS = st.integers(-LARGEST, LARGEST)
PLAIN_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]{0,11}[1-9])?", re.ASCII)


@pytest.mark.guarantee("I11")
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


@pytest.mark.guarantee("I11")
@given(st.integers(1 - 10**24, 10**24 - 1))
@example(0)
@example(-1)
def test_what_is_printed_is_read_back(amount: int) -> None:
    assert from_decimal_string(to_decimal_string(PicoUsd(amount))) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("12.5", 12_500_000_000_000),
        ("12.500000000000", 12_500_000_000_000),
        ("007", 7 * 10**12),
        ("-0.000000000001", -1),
        ("-0", 0),
    ],
)
def test_a_decimal_is_read_exactly(text: str, amount: int) -> None:
    assert from_decimal_string(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", ".5", "5.", "+1", "1e3", "1E-3", "1_000", "1,5", " 1", "1 ", "1\n", "--1"),
        *("0x1", "NaN", "inf", "1.2.3", "\u0663", "\uff11"),
        *("1" * 13, "0.0000000000001"),
    ],
)
def test_what_is_no_plain_decimal_or_too_fine_or_too_long_is_not_read(text: str) -> None:
    assert from_decimal_string(text) is None
