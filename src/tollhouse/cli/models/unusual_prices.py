"""Prices that are so far from all others that they are probably in another unit."""

from collections.abc import Iterator, Mapping
from statistics import median_high, median_low
from typing import Final, NamedTuple

import msgspec

from tollhouse.base.money import PicoUsd, from_decimal_string, to_decimal_string
from tollhouse.catalog.types import Model, Pricing

RATIO_MAX: Final = 500
"""Less than a thousand, so that a price for a thousand tokens is found after a discount too."""
PICO_USD_PER_LISTED: Final = 1_000
LIST_PRICES: Final[Mapping[str, tuple[int, int]]] = {
    "claude-haiku": (1_000, 5_000),
    "claude-opus": (5_000, 25_000),
    "claude-sonnet": (3_000, 15_000),
    "gemini-2.5-flash": (300, 2_500),
    "gemini-2.5-flash-lite": (100, 400),
    "gemini-2.5-pro": (1_250, 10_000),
    "gpt-4.1": (2_000, 8_000),
    "gpt-4.1-mini": (400, 1_600),
    "gpt-4.1-nano": (100, 400),
    "gpt-4o": (2_500, 10_000),
    "gpt-4o-mini": (150, 600),
    "gpt-5": (1_250, 10_000),
    "gpt-5-mini": (250, 2_000),
    "gpt-5-nano": (50, 400),
    "mistral-large": (2_000, 6_000),
    "o3": (2_000, 8_000),
}
"""US dollars for 10^9 tokens of prompt and completion, by how the name of a model begins.

Only the magnitude matters, so the list need not follow every change of a provider.
"""
_LISTED: Final[Mapping[str, int]] = {
    **dict.fromkeys(("prompt", "input_cache_read", "input_cache_write"), 0),
    **dict.fromkeys(("completion", "reasoning"), 1),
}
"""Which of the two list prices each price is compared with."""


class _Reference(NamedTuple):
    price: int
    name: str


def unusual_prices(models: Mapping[str, Model]) -> Iterator[str]:
    """Yield a sentence for each price that is far from the list or from the other models.

    Prices of 0 are not compared.
    """
    for field in Pricing.__struct_fields__:
        prices = {name: price for name, model in models.items() if (price := _price(model, field))}
        listed = {name: _listed(models[name].upstream_model or name, field) for name in prices}
        sound = {name: price for name, price in prices.items() if not _is_far(price, listed[name])}
        for name, price in prices.items():
            others = [each for other, each in sound.items() if other != name]
            reference = _middle(price, others) if name in sound else listed[name]
            if reference is not None and _is_far(price, reference):
                path = f"models.{msgspec.json.encode(name).decode()}.pricing.{field}"
                yield f"{path}: {_sentence(price, reference)}"


def _price(model: Model, field: str) -> int | None:
    return from_decimal_string(getattr(model.pricing, field) or "0")


def _listed(upstream_name: str, field: str) -> _Reference | None:
    """Return the price in the list, the usual one for an unknown model, or None if it has none."""
    if (position := _LISTED.get(field)) is None:
        return None
    known = upstream_name.rpartition("/")[2].lower()
    families = [family for family in LIST_PRICES if known.startswith(family)]
    if not families:
        usual = median_low([listed[position] for listed in LIST_PRICES.values()])
        return _Reference(usual * PICO_USD_PER_LISTED, "the usual price of a provider")
    family = max(families, key=len)
    listed = LIST_PRICES[family][position]
    return _Reference(listed * PICO_USD_PER_LISTED, f"the list price of {family}")


def _middle(price: int, others: list[int]) -> _Reference | None:
    """Return the middle of the others, of two the one that is closer to the price."""
    if not others:
        return None
    middles = median_low(others), median_high(others)
    closer = min(middles, key=lambda middle: _ratio(price, middle))
    return _Reference(closer, "the middle of the other models")


def _is_far(price: int, reference: _Reference | None) -> bool:
    return reference is not None and _ratio(price, reference.price) > RATIO_MAX


def _ratio(one: int, other: int) -> int:
    return max(one, other) // min(one, other)


def _sentence(price: int, reference: _Reference) -> str:
    factor = f"{_ratio(price, reference.price):,} times"
    relation = "more" if price > reference.price else "less"
    return (
        f"{_usd(price)} is {factor} {relation} than {reference.name}, {_usd(reference.price)}. "
        "A price is US dollars for one unit, not for a thousand or a million."
    )


def _usd(price: int) -> str:
    return to_decimal_string(PicoUsd(price))
