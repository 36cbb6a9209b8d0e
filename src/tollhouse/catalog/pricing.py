"""Prices of the catalog as numbers."""

from dataclasses import dataclass
from typing import Final

import msgspec

from tollhouse.base.money import PicoUsd, from_decimal_string
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Pricing

PRICE_PICO_USD_MAX: Final = 2**63 - 1
"""The largest `bigint`. A hold for one unit of a higher price could not be stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitPrices:
    """The price of one unit of each kind."""

    prompt_pico_usd: PicoUsd
    completion_pico_usd: PicoUsd
    image_pico_usd: PicoUsd
    request_pico_usd: PicoUsd
    input_cache_read_pico_usd: PicoUsd
    input_cache_write_pico_usd: PicoUsd
    reasoning_pico_usd: PicoUsd


def check(path: str, pricing: Pricing) -> None:
    """Raise `InvalidCatalog` for a price that is not an exact amount."""
    for name, text in msgspec.structs.asdict(pricing).items():
        if text is not None and _read(text) is None:
            reason = (
                "expected US dollars for one unit as a plain decimal like '0.0000025', with at "
                "most 12 digits after its point and not negative"
            )
            raise InvalidCatalog(f"{path}.{name}", reason)


def unit_prices(pricing: Pricing) -> UnitPrices:
    """Return the prices of a valid catalog, with defaults for missing ones."""
    prompt, completion = _price(pricing.prompt), _price(pricing.completion)
    cached, reasoning = pricing.input_cache_read, pricing.reasoning
    written = pricing.input_cache_write
    return UnitPrices(
        prompt_pico_usd=prompt,
        completion_pico_usd=completion,
        image_pico_usd=_price(pricing.image),
        request_pico_usd=_price(pricing.request),
        input_cache_read_pico_usd=prompt if cached is None else _price(cached),
        input_cache_write_pico_usd=prompt if written is None else _price(written),
        reasoning_pico_usd=completion if reasoning is None else _price(reasoning),
    )


def _price(text: str) -> PicoUsd:
    price = _read(text)
    assert price is not None, "the catalog was checked"
    return price


def _read(text: str) -> PicoUsd | None:
    price = from_decimal_string(text)
    if price is None or text.startswith("-") or price > PRICE_PICO_USD_MAX:
        return None
    return price
