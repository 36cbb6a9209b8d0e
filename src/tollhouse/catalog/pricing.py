"""Prices as numbers."""

from dataclasses import dataclass
from typing import Final

import msgspec

from tollhouse.base.money import PicoUsd, from_decimal_string
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Pricing

PRICE_PICO_USD_MAX: Final = 2**63 - 1
"""What a `bigint` holds: a hold for a single unit could not be stored above it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitPrices:
    """What one unit of each kind costs; none is left open."""

    prompt_pico_usd: PicoUsd
    completion_pico_usd: PicoUsd
    image_pico_usd: PicoUsd
    request_pico_usd: PicoUsd
    input_cache_read_pico_usd: PicoUsd
    reasoning_pico_usd: PicoUsd


def check(path: str, pricing: Pricing) -> None:
    """Refuse what cannot be paid exactly."""
    for name, text in msgspec.structs.asdict(pricing).items():
        if text is not None and _read(text) is None:
            reason = (
                "expected US dollars for one unit as a plain decimal like '0.0000025', with at "
                "most 12 digits after its point and not negative"
            )
            raise InvalidCatalog(f"{path}.{name}", reason)


def unit_prices(pricing: Pricing) -> UnitPrices:
    """The prices of a sound catalog, with those that others stand for."""
    prompt, completion = _sound(pricing.prompt), _sound(pricing.completion)
    cached, reasoning = pricing.input_cache_read, pricing.reasoning
    return UnitPrices(
        prompt_pico_usd=prompt,
        completion_pico_usd=completion,
        image_pico_usd=_sound(pricing.image),
        request_pico_usd=_sound(pricing.request),
        input_cache_read_pico_usd=prompt if cached is None else _sound(cached),
        reasoning_pico_usd=completion if reasoning is None else _sound(reasoning),
    )


def _sound(text: str) -> PicoUsd:
    price = _read(text)
    assert price is not None, "a catalog with another text was refused"
    return price


def _read(text: str) -> PicoUsd | None:
    price = from_decimal_string(text)
    if price is None or text.startswith("-") or price > PRICE_PICO_USD_MAX:
        return None
    return price
