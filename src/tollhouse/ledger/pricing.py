"""Prices, the highest possible cost of a request, and its charge.

Every amount is a product of integers, so nothing is rounded.
"""

from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from tollhouse.base.money import PicoUsd, from_decimal_string
from tollhouse.ledger.errors import InvalidPrice, ReservationTooLarge
from tollhouse.ledger.types import Charge

HOLD_PICO_USD_MAX = 2**63 - 1
"""The largest `bigint`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """The price of one unit of each kind.

    `cache_write_token_pico_usd` is None if writes cost what input costs, and make no line item.
    """

    prompt_token_pico_usd: PicoUsd
    cached_input_token_pico_usd: PicoUsd
    cache_write_token_pico_usd: PicoUsd | None
    completion_token_pico_usd: PicoUsd
    reasoning_token_pico_usd: PicoUsd
    image_pico_usd: PicoUsd
    request_pico_usd: PicoUsd


class TokenBound(Struct, frozen=True, kw_only=True):
    """The most that a backend can bill for a request.

    `prompt_tokens` and `images` are for all choices together, `output_tokens` for each of them.
    """

    prompt_tokens: int
    images: int
    output_tokens: int
    completions: int


class Usage(Struct, frozen=True, kw_only=True):
    """The usage that a backend reports, for all choices together.

    Prompt tokens include those that were read from a cache (`cached_tokens`) or written to one, and
    completion tokens include reasoning. The usage of a backend that reports them separately is
    normalised before.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    images: int = 0


def parse_price(text: str) -> PicoUsd:
    """Parse US dollars per unit in the catalog's form (OQ-78), or raise `InvalidPrice`."""
    price = from_decimal_string(text)
    if price is None or text.startswith("-") or price > HOLD_PICO_USD_MAX:
        raise InvalidPrice(text=text)
    return price


def reserve(prices: Prices, bound: TokenBound) -> PicoUsd:
    """Return the highest possible cost; raise `ReservationTooLarge` if it cannot be held.

    Uses the highest price where it is not known whether input is read from or written to a cache,
    or whether output is reasoning.
    """
    input_price = max(
        prices.prompt_token_pico_usd,
        prices.cached_input_token_pico_usd,
        prices.cache_write_token_pico_usd or 0,
    )
    output_price = max(prices.completion_token_pico_usd, prices.reasoning_token_pico_usd)
    amount_pico_usd = (
        prices.request_pico_usd
        + bound.prompt_tokens * input_price
        + bound.images * prices.image_pico_usd
        + bound.output_tokens * bound.completions * output_price
    )
    if amount_pico_usd > HOLD_PICO_USD_MAX:
        raise ReservationTooLarge
    return PicoUsd(amount_pico_usd)


def within(usage: Usage, bound: TokenBound) -> Usage:
    """Return the usage limited to the bound, separately for prompt and completion tokens.

    The parts of the prompt that a cache has stay within it.
    """
    if (
        usage.prompt_tokens <= bound.prompt_tokens
        and usage.completion_tokens <= bound.output_tokens * bound.completions
    ):
        return usage
    prompt_tokens = min(usage.prompt_tokens, bound.prompt_tokens)
    cached_tokens = min(usage.cached_tokens, prompt_tokens)
    return replace(
        usage,
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
        cache_write_tokens=min(usage.cache_write_tokens, prompt_tokens - cached_tokens),
        completion_tokens=min(usage.completion_tokens, bound.output_tokens * bound.completions),
    )


def charge(
    prices: Prices, usage: Usage, held: PicoUsd, *, used: Usage | None = None
) -> tuple[Charge, PicoUsd]:
    """Return the charge, which is at most `held`, and the excess cost that is not charged.

    The hold pays for the request, images, input, cache writes, cached input and output, in this
    order: if it is too small, output is cut first. `used` is the usage that the backend bills, if
    that is more than `usage`; its cost beyond the charge is excess.
    """
    costs = _costs(prices, usage)
    request, images, read, written, cached_input, output = _paid(costs, held)
    cached_tokens = min(usage.cached_tokens, usage.prompt_tokens)
    charged = Charge(
        input_tokens=usage.prompt_tokens - cached_tokens,
        cache_write_tokens=_written_tokens(prices, usage),
        cached_input_tokens=cached_tokens,
        output_tokens=usage.completion_tokens,
        images=usage.images,
        input_pico_usd=PicoUsd(read + written),
        cache_write_pico_usd=written,
        cached_input_pico_usd=cached_input,
        output_pico_usd=output,
        image_pico_usd=images,
        request_pico_usd=request,
    )
    # A backend that reports an absurd usage must not make a settlement that cannot be stored.
    billed = sum(costs if used is None or used is usage else _costs(prices, used))
    return charged, PicoUsd(min(billed - charged.total_pico_usd, HOLD_PICO_USD_MAX))


def _costs(prices: Prices, usage: Usage) -> tuple[int, ...]:
    """Return the costs of request, images, other input, cache writes, cached input and output."""
    cached_tokens = min(usage.cached_tokens, usage.prompt_tokens)
    written_tokens = _written_tokens(prices, usage)
    return (
        prices.request_pico_usd,
        usage.images * prices.image_pico_usd,
        (usage.prompt_tokens - cached_tokens - written_tokens) * prices.prompt_token_pico_usd,
        written_tokens * (prices.cache_write_token_pico_usd or 0),
        cached_tokens * prices.cached_input_token_pico_usd,
        _output_cost(prices, usage),
    )


def _written_tokens(prices: Prices, usage: Usage) -> int:
    """Return the tokens that are charged as cache writes."""
    if not usage.cache_write_tokens or prices.cache_write_token_pico_usd is None:
        return 0
    return max(0, min(usage.cache_write_tokens, usage.prompt_tokens - usage.cached_tokens))


def _output_cost(prices: Prices, usage: Usage) -> int:
    reasoning_tokens = min(usage.reasoning_tokens, usage.completion_tokens)
    answer_tokens = usage.completion_tokens - reasoning_tokens
    return (
        answer_tokens * prices.completion_token_pico_usd
        + reasoning_tokens * prices.reasoning_token_pico_usd
    )


def _paid(costs: tuple[int, ...], held: PicoUsd) -> list[PicoUsd]:
    """Return the part of each cost that the hold pays, from the first to the last."""
    if sum(costs) <= held:
        return [*map(PicoUsd, costs)]
    left = int(held)
    paid: list[PicoUsd] = []
    for cost in costs:
        paid.append(PicoUsd(min(cost, left)))
        left -= paid[-1]
    return paid
