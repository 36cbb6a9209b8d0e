"""Identifiers: how they are minted, and which texts are taken for one."""

import time
from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.base.ids import ID_CLOCK, IdClock, parse_uuid, time_ordered_uuid

CANONICAL = "0192f3a4-5b6c-7d8e-9fa0-b1c2d3e4f506"


def test_a_minted_id_is_a_uuid_of_version_7_that_holds_the_present_millisecond() -> None:
    ID_CLOCK.set(datetime.now(UTC) - timedelta(hours=1))
    ID_CLOCK.set(datetime.now(UTC))
    before = time.time_ns() // 1_000_000 - 1
    minted = [time_ordered_uuid() for _ in range(1_000)]
    after = time.time_ns() // 1_000_000

    assert {identifier.version for identifier in minted} == {7}
    assert {identifier.variant for identifier in minted} == {RFC_4122}
    assert all(before <= identifier.int >> 80 <= after for identifier in minted)


def test_ids_are_in_the_order_of_their_minting() -> None:
    minted = [time_ordered_uuid() for _ in range(2_000)]
    instants = [identifier.int >> 64 for identifier in minted]

    assert sorted(instants) == instants
    assert len(set(instants)) > len(instants) // 2


def test_ids_follow_the_time_that_was_set() -> None:
    clock, instant = IdClock(), datetime(2031, 5, 4, 23, 59, 59, 999_999, tzinfo=UTC)
    microsecond = timedelta(microseconds=1)

    clock.set(instant)
    at = clock.nanoseconds() // 1_000
    later = clock.nanoseconds() // 1_000

    since_epoch = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // microsecond
    assert since_epoch <= at <= later < since_epoch + timedelta(minutes=10) // microsecond


def test_ids_keep_their_order_when_the_time_is_set_again_a_moment_late() -> None:
    clock, instant = IdClock(), datetime(2031, 5, 4, tzinfo=UTC)
    clock.set(instant)
    for milliseconds in (0, 1, 10):
        before = clock.nanoseconds()
        clock.set(instant - timedelta(milliseconds=milliseconds))
        assert clock.nanoseconds() >= before

    clock.set(instant - timedelta(hours=1))
    assert clock.nanoseconds() < before


def test_all_of_the_62_random_bits_vary() -> None:
    random_bits = (1 << 62) - 1
    minted = [time_ordered_uuid().int for _ in range(2_000)]

    ever_set = ever_clear = 0
    for number in minted:
        ever_set |= number
        ever_clear |= ~number

    assert ever_set & ever_clear & random_bits == random_bits
    assert len(set(minted)) == len(minted)


@given(st.uuids())
def test_the_canonical_form_is_read_in_either_case(identifier: UUID) -> None:
    assert parse_uuid(str(identifier)) == identifier
    assert parse_uuid(str(identifier).upper()) == identifier


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        f"{{{CANONICAL}}}",
        f"urn:uuid:{CANONICAL}",
        CANONICAL.replace("-", ""),
        f" {CANONICAL}",
        f"{CANONICAL} ",
        f"{CANONICAL}\n",
        CANONICAL[:-1],
        f"{CANONICAL}0",
        CANONICAL.replace("-", "_"),
        CANONICAL.replace("f", "g"),
        CANONICAL[:8] + CANONICAL[9:14] + "-" + CANONICAL[14:],
        f"{{{CANONICAL.replace('-', '')}}}00",
        f"urn:{CANONICAL.replace('-', '')}",
        f"{{}}{{}}{CANONICAL.replace('-', '')}",
        f"----{CANONICAL.replace('-', '')}",
        "0" * 36,
        "-" * 36,
        CANONICAL.replace("0", "\N{FULLWIDTH DIGIT ZERO}"),
        CANONICAL.replace("0", "\N{ARABIC-INDIC DIGIT ZERO}"),
        CANONICAL.replace("01", "\N{LATIN SMALL LETTER DOTLESS I}1"),
        CANONICAL[:-1] + "\0",
        "0x" + CANONICAL[2:],
        "+" + CANONICAL[1:],
        CANONICAL[:1] + "_" + CANONICAL[2:],
    ],
)
def test_no_other_spelling_of_a_uuid_is_read(text: str) -> None:
    assert parse_uuid(text) is None


@given(st.text())
def test_any_text_is_read_as_what_it_says_or_not_at_all(text: str) -> None:
    parsed = parse_uuid(text)

    assert parsed is None or str(parsed) == text.lower()
