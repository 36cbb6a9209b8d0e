"""Money from tokens: exact, never above the hold, never short of the worst case."""

import re
import tomllib
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from tests.cli.documents import blocks, read
from tollhouse.base.money import PicoUsd, to_decimal_string
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.ledger.bounds import ModelBounds, TokenizerFamily, of_chat_request
from tollhouse.ledger.errors import InvalidPrice, ReservationTooLarge
from tollhouse.ledger.pricing import (
    HOLD_PICO_USD_MAX,
    Prices,
    TokenBound,
    Usage,
    charge,
    parse_price,
    reserve,
    within,
)

AMOUNTS = st.integers(0, 10**9).map(PicoUsd)
PRICES = st.builds(
    Prices,
    prompt_token_pico_usd=AMOUNTS,
    cached_input_token_pico_usd=AMOUNTS,
    cache_write_token_pico_usd=st.none() | AMOUNTS,
    completion_token_pico_usd=AMOUNTS,
    reasoning_token_pico_usd=AMOUNTS,
    image_pico_usd=AMOUNTS,
    request_pico_usd=AMOUNTS,
)
COUNTS = st.integers(0, 10**6)
USAGES = st.builds(
    Usage,
    prompt_tokens=COUNTS,
    completion_tokens=COUNTS,
    cached_tokens=COUNTS,
    cache_write_tokens=COUNTS,
    reasoning_tokens=COUNTS,
    images=st.integers(0, 100),
)
HOLDS = st.integers(0, 10**16).map(PicoUsd)
COMPLETIONS = st.integers(1, 128)

EXAMPLE_PRICES = Prices(
    prompt_token_pico_usd=PicoUsd(3_000_000),
    cached_input_token_pico_usd=PicoUsd(300_000),
    cache_write_token_pico_usd=PicoUsd(3_750_000),
    completion_token_pico_usd=PicoUsd(15_000_000),
    reasoning_token_pico_usd=PicoUsd(20_000_000),
    image_pico_usd=PicoUsd(7),
    request_pico_usd=PicoUsd(5),
)
EXAMPLE_USAGE = Usage(
    prompt_tokens=100, cached_tokens=40, completion_tokens=10, reasoning_tokens=4, images=2
)


def covering(usage: Usage, completions: int) -> TokenBound:
    """The smallest bound that the usage lies within."""
    return TokenBound(
        prompt_tokens=usage.prompt_tokens,
        images=usage.images,
        output_tokens=-(-usage.completion_tokens // completions),
        completions=completions,
    )


@pytest.mark.guarantee("I5")
@given(PRICES, USAGES, HOLDS)
def test_a_charge_never_exceeds_its_hold(prices: Prices, usage: Usage, held: PicoUsd) -> None:
    charged, excess = charge(prices, usage, held)

    assert charged.total_pico_usd <= held
    assert excess >= 0


@pytest.mark.guarantee("I5")
@given(PRICES, USAGES, HOLDS)
def test_charge_and_excess_are_the_actual_cost(prices: Prices, usage: Usage, held: PicoUsd) -> None:
    actual, none = charge(prices, usage, PicoUsd(HOLD_PICO_USD_MAX))

    charged, excess = charge(prices, usage, held)

    assert none == 0
    assert charged.total_pico_usd + excess == actual.total_pico_usd
    assert excess == 0 or charged.total_pico_usd == held


@given(PRICES, USAGES, COMPLETIONS)
def test_a_reservation_covers_every_usage_within_its_bound(
    prices: Prices, usage: Usage, completions: int
) -> None:
    held = reserve(prices, covering(usage, completions))

    assert charge(prices, usage, held)[1] == 0


@given(PRICES, USAGES, st.integers(0, 2_000), st.integers(0, 2_000), COMPLETIONS)
def test_usage_above_a_bound_is_excess_and_other_tokens_do_not_pay_for_it(
    prices: Prices, used: Usage, prompt_tokens: int, output_tokens: int, completions: int
) -> None:
    bound = TokenBound(
        prompt_tokens=prompt_tokens,
        images=used.images,
        output_tokens=output_tokens,
        completions=completions,
    )
    held = reserve(prices, bound)
    billed, _ = charge(prices, used, PicoUsd(HOLD_PICO_USD_MAX))

    charged, excess = charge(prices, within(used, bound), held, used=used)

    assert charged.input_tokens + charged.cached_input_tokens <= prompt_tokens
    assert charged.output_tokens <= output_tokens * completions
    assert charged.total_pico_usd <= held
    assert charged.total_pico_usd + excess == billed.total_pico_usd


@given(
    PRICES,
    USAGES,
    COMPLETIONS,
    st.sampled_from(["prompt_tokens", "images", "output_tokens", "completions"]),
)
def test_a_wider_bound_reserves_no_less(
    prices: Prices, usage: Usage, completions: int, name: str
) -> None:
    bound = covering(usage, completions)

    wider = structs.replace(bound, **{name: getattr(bound, name) + 1})

    assert reserve(prices, wider) >= reserve(prices, bound)


def test_each_part_is_charged_at_its_own_price() -> None:
    charged, excess = charge(EXAMPLE_PRICES, EXAMPLE_USAGE, PicoUsd(10**12))

    assert excess == 0
    assert (charged.input_tokens, charged.cached_input_tokens, charged.output_tokens) == (
        60,
        40,
        10,
    )
    assert charged.input_pico_usd == 60 * 3_000_000
    assert charged.cached_input_pico_usd == 40 * 300_000
    assert charged.output_pico_usd == 6 * 15_000_000 + 4 * 20_000_000
    assert charged.image_pico_usd == 2 * 7
    assert charged.request_pico_usd == 5


def test_input_that_is_written_to_a_cache_has_its_own_price() -> None:
    usage = structs.replace(EXAMPLE_USAGE, cache_write_tokens=25)
    too_many = structs.replace(EXAMPLE_USAGE, cache_write_tokens=1_000)
    without = replace(EXAMPLE_PRICES, cache_write_token_pico_usd=None)

    charged, _ = charge(EXAMPLE_PRICES, usage, PicoUsd(10**12))
    absurd, _ = charge(EXAMPLE_PRICES, too_many, PicoUsd(10**12))
    plain, _ = charge(without, usage, PicoUsd(10**12))

    assert (charged.input_tokens, charged.cached_input_tokens) == (60, 40)
    assert (charged.cache_write_tokens, charged.cache_write_pico_usd) == (25, 25 * 3_750_000)
    assert charged.input_pico_usd == 35 * 3_000_000 + 25 * 3_750_000
    assert (absurd.cache_write_tokens, absurd.input_pico_usd) == (60, 60 * 3_750_000)
    assert (plain.cache_write_tokens, plain.input_pico_usd) == (0, 60 * 3_000_000)
    held = [reserve(prices, covering(usage, 1)) for prices in (EXAMPLE_PRICES, without)]
    assert held[0] - held[1] == 100 * 750_000


def test_a_hold_that_is_too_small_pays_other_input_before_cache_writes() -> None:
    usage = structs.replace(EXAMPLE_USAGE, cache_write_tokens=25)
    whole, _ = charge(EXAMPLE_PRICES, usage, PicoUsd(10**12))
    later = whole.output_pico_usd + whole.cached_input_pico_usd

    charged, _ = charge(EXAMPLE_PRICES, usage, PicoUsd(whole.total_pico_usd - later - 1))

    assert charged.cache_write_pico_usd == whole.cache_write_pico_usd - 1
    assert charged.input_pico_usd == whole.input_pico_usd - 1


def test_output_is_cut_first_and_the_request_last() -> None:
    whole, _ = charge(EXAMPLE_PRICES, EXAMPLE_USAGE, PicoUsd(10**12))
    held = PicoUsd(whole.total_pico_usd - whole.output_pico_usd - 1)

    charged, excess = charge(EXAMPLE_PRICES, EXAMPLE_USAGE, held)

    assert charged.output_pico_usd == 0
    assert charged.cached_input_pico_usd == whole.cached_input_pico_usd - 1
    assert charged.input_pico_usd == whole.input_pico_usd
    assert excess == whole.output_pico_usd + 1
    assert charge(EXAMPLE_PRICES, EXAMPLE_USAGE, PicoUsd(5))[0].total_pico_usd == 5


def test_more_cached_than_prompt_tokens_do_not_make_a_negative_input() -> None:
    usage = Usage(prompt_tokens=10, completion_tokens=2, cached_tokens=15, reasoning_tokens=3)

    charged, _ = charge(EXAMPLE_PRICES, usage, PicoUsd(10**12))

    assert (charged.input_tokens, charged.cached_input_tokens) == (0, 10)
    assert charged.output_pico_usd == 2 * 20_000_000


@pytest.mark.guarantee("I11")
@given(st.integers(0, HOLD_PICO_USD_MAX))
@example(0)
@example(HOLD_PICO_USD_MAX)
def test_a_price_is_read_as_the_decimal_that_it_is(amount: int) -> None:
    assert parse_price(to_decimal_string(PicoUsd(amount))) == amount


@pytest.mark.parametrize(
    ("text", "price"),
    [("0", 0), ("0.0000025", 2_500_000), ("1.50", 15 * 10**11), ("07", 7 * 10**12)],
)
def test_prices_may_have_needless_zeros(text: str, price: int) -> None:
    assert parse_price(text) == price
    assert Decimal(text).scaleb(12) == price


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".5",
        "1.",
        "-1",
        "+1",
        "1e-6",
        "NaN",
        "inf",
        " 1",
        "1\n",
        "1,5",
        "0x1",
        "1_000",
        "٣",
        "0.0000000000001",
        "0.0000000000000",
        "9223372.036854775808",
        "10000000",
    ],
)
def test_what_is_no_whole_number_of_pico_dollars_is_refused(text: str) -> None:
    with pytest.raises(InvalidPrice):
        parse_price(text)


def test_a_reservation_that_no_hold_can_be_is_refused() -> None:
    prices = replace(EXAMPLE_PRICES, request_pico_usd=PicoUsd(HOLD_PICO_USD_MAX))
    nothing = TokenBound(prompt_tokens=0, images=0, output_tokens=0, completions=1)

    assert reserve(prices, nothing) == HOLD_PICO_USD_MAX
    with pytest.raises(ReservationTooLarge):
        reserve(prices, structs.replace(nothing, images=1))


def test_the_worked_example_of_the_guide_is_what_the_rules_compute() -> None:
    """The numbers of its text are here, those of its table and its prices in the guide."""
    guide = read("docs/guides/credits-and-caps.md")
    example = guide.partition("## A worked example\n")[2].partition("\n## ")[0]
    pricing = tomllib.loads(blocks(example, "toml")[0])["pricing"]
    prices = replace(
        EXAMPLE_PRICES,
        prompt_token_pico_usd=parse_price(pricing["prompt"]),
        cached_input_token_pico_usd=parse_price(pricing["input_cache_read"]),
        cache_write_token_pico_usd=None,
        completion_token_pico_usd=parse_price(pricing["completion"]),
        reasoning_token_pico_usd=parse_price(pricing["completion"]),
        request_pico_usd=PicoUsd(0),
    )
    message = ChatMessage(role="user", content="a" * 24_000)
    request = ChatRequest(model="m", messages=[message], max_completion_tokens=1_000)
    model = ModelBounds(
        tokenizer=TokenizerFamily.BYTES, context_length=131_072, max_output_length=16_384
    )
    usage = Usage(prompt_tokens=6_000, cached_tokens=4_000, completion_tokens=350)

    bound = of_chat_request(request, model)
    held = reserve(prices, bound)
    charged, _ = charge(prices, usage, held)

    rows = re.findall(r"^\| \**([^|*]+?)\** \| ([^|]*)\| \**([\d.]+)\** \|$", example, re.MULTILINE)
    computed = {
        "input that is held": bound.prompt_tokens * prices.prompt_token_pico_usd,
        "output that is held": bound.output_tokens * prices.completion_token_pico_usd,
        "held before the call": held,
        "input": charged.input_pico_usd,
        "cached input": charged.cached_input_pico_usd,
        "output": charged.output_pico_usd,
        "charged after the call": charged.total_pico_usd,
        "free again": held - charged.total_pico_usd,
    }
    assert {name: usd for name, _, usd in rows} == {
        name: to_decimal_string(PicoUsd(pico_usd)) for name, pico_usd in computed.items()
    }
    assert f"{bound.prompt_tokens:,} x" in rows[0][1]
    cap, exact = 10 * 10**12, reserve(prices, structs.replace(bound, prompt_tokens=6_000))
    for needed in (held, exact):
        fitting = (cap - needed) // charged.total_pico_usd + 1
        assert f" {fitting:,} " in example
