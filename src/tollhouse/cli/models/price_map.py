"""Prices, lengths and abilities of a model, in the words of LiteLLM's price map."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, cast

from tollhouse.catalog.dialects import MESSAGES_FEATURES
from tollhouse.catalog.types import Pricing
from tollhouse.cli.models.imported import (
    ImportedCatalog,
    ImportedTable,
    positive,
    price_text,
    table_of,
)
from tollhouse.cli.models.litellm_providers import (
    Provider,
    address_of,
    provider_of,
    split_model,
)

_CHAT_MODES: Final = frozenset({"chat", "responses"})
_PRICES: Final = {
    "input_cost_per_token": "prompt",
    "output_cost_per_token": "completion",
    "cache_read_input_token_cost": "input_cache_read",
    "cache_creation_input_token_cost": "input_cache_write",
    "output_cost_per_reasoning_token": "reasoning",
}
_UNOFFERED: Final = ("_batches", "_flex")
"""Cheaper ways to call a provider, which Tollhouse does not use."""
_TIER: Final = re.compile(r"(.+)_above_\d+k?_tokens")
_DEAREST: Final = (
    "its price is that of every request, because Tollhouse has one for all lengths and a cap must"
    " not be below the provider's bill"
)
_NEEDED: Final = ("prompt", "completion")
_ABILITIES: Final = {
    "supports_function_calling": ("tools",),
    "supports_response_schema": ("json_mode", "structured_outputs"),
    "supports_reasoning": ("reasoning",),
}
NO_API_VERSION: Final = 'add it, such as api_version = "2024-10-21"'
_NO_PRICE: Final = (
    'no price is known; add pricing = { prompt = "...", completion = "..." } in US dollars for'
    " one token. Start-up refuses the model until then"
)
_CHARGED_OTHERWISE: Final = (
    "tokens cost 0, but another price is not mapped; add pricing as text, or the model would be"
    " free. Start-up refuses it until then"
)
_NO_CONTEXT: Final = "add the tokens of prompt and answer together. Start-up refuses it until then"
_NO_OUTPUT: Final = "add the tokens of the longest answer. Start-up refuses it until then"


def from_price_map(entries: Mapping[str, Any], names: tuple[str, ...]) -> ImportedCatalog:
    """Return the catalog of a price map, or of these models of it."""
    catalog = ImportedCatalog()
    for name in names:
        if name not in entries:
            catalog.leave_out(name, "the price map does not have it")
    for name, entry in entries.items():
        if name != "sample_spec" and (not names or name in names):
            _add(catalog, name, entry)
    return catalog


def _add(catalog: ImportedCatalog, name: str, entry: object) -> None:
    if not isinstance(entry, dict):
        catalog.leave_out(name, "its entry is no object")
        return
    info = table_of(cast("object", entry))
    prefix, rest = split_model(name)
    named = info.get("litellm_provider")
    if isinstance(named, str) and named != prefix:
        prefix, rest = named, name
    provider = provider_of(prefix)
    if isinstance(provider, str):
        catalog.leave_out(name, provider)
        return
    if not is_chat(info.get("mode", "chat")):
        catalog.leave_out(name, "its mode is not chat")
        return
    settings, gaps = dict(provider.settings), dict[str, str]()
    if provider.dialect is not None:
        settings = {"dialect": provider.dialect, **settings}
    address = address_of(provider.address, provider)
    if address is None:
        gaps["replicas"] = "add the addresses of the backend"
    else:
        settings = {"replicas": [address], **settings}
    if provider.dialect == "azure":
        gaps["api_version"] = NO_API_VERSION
    if provider.key_variable is not None:
        settings["api_key_variable"] = provider.key_variable
    model = ImportedTable()
    if rest != name:
        model.settings["upstream_model"] = rest
    describe(catalog, name, model, info, provider)
    catalog.add(name, provider.name, model, ImportedTable(settings=settings, gaps=gaps))


def is_chat(mode: object) -> bool:
    """Return whether models of a mode of LiteLLM answer chats."""
    return isinstance(mode, str) and mode in _CHAT_MODES


def describe(
    catalog: ImportedCatalog,
    name: str,
    model: ImportedTable,
    info: Mapping[str, Any],
    provider: Provider,
) -> None:
    """Add lengths, abilities and prices to a model. What is not known becomes a gap."""
    speaks_messages = provider.dialect == "anthropic"
    _measure(model, info, provider)
    if info.get("supports_vision") is True:
        model.settings["input_modalities"] = ["text", "image"]
    features = [
        feature
        for ability, known in _ABILITIES.items()
        if info.get(ability) is True
        for feature in known
        if not speaks_messages or feature in MESSAGES_FEATURES
    ]
    if features:
        model.settings["features"] = features
    _price(catalog, name, model, info)


def _measure(model: ImportedTable, info: Mapping[str, Any], provider: Provider) -> None:
    """Add the lengths. A hosted provider counts the answer into the context of the prompt."""
    prompt = positive(info.get("max_input_tokens"))
    output = positive(info.get("max_output_tokens")) or positive(info.get("max_tokens"))
    context = prompt
    if prompt is not None and not provider.is_hosted:
        context = None if output is None else prompt + output
    if context is None:
        model.gaps["context_length"] = _NO_CONTEXT
    else:
        model.settings["context_length"] = context
    if output is None:
        model.gaps["max_output_length"] = _NO_OUTPUT
    else:
        model.settings["max_output_length"] = min(output, context or output)


def _tiers_last(item: tuple[str, Any]) -> bool:
    return _TIER.fullmatch(item[0]) is not None


def _price(
    catalog: ImportedCatalog, name: str, model: ImportedTable, info: Mapping[str, Any]
) -> None:
    """Add the prices, of tiers the dearest. Without those of prompt and completion, write none.

    Neither if those are 0 and another is not mapped: the model is not free.
    """
    prices, is_charged_otherwise = dict[str, str](), False
    for field, value in sorted(info.items(), key=_tiers_last):
        if "cost" not in field or value is None or field.endswith(_UNOFFERED):
            continue
        tier = _TIER.fullmatch(field)
        ours, text = _PRICES.get(field if tier is None else tier[1]), price_text(value)
        if tier is not None and ours in prices and text is not None:
            if Decimal(text) > Decimal(prices[ours]):
                prices[ours] = text
                catalog.leave_out(f"{name}: {field}", _DEAREST)
        elif ours in Pricing.__struct_fields__ and text is not None:
            prices[ours] = text
        elif text != "0":
            reason = (
                "not an exact price with at most 12 decimals"
                if ours in Pricing.__struct_fields__
                else "Tollhouse has no such price, so that requests may be charged too little"
            )
            catalog.leave_out(f"{name}: {field}", reason)
            is_charged_otherwise = True
    if not all(needed in prices for needed in _NEEDED):
        model.gaps["pricing"] = _NO_PRICE
    elif is_charged_otherwise and set(prices.values()) == {"0"}:
        model.gaps["pricing"] = _CHARGED_OTHERWISE
    else:
        order = [field for field in Pricing.__struct_fields__ if field in prices]
        model.settings["pricing"] = {field: prices[field] for field in order}
