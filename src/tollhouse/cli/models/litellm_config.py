"""Mapping of LiteLLM's `config.yaml`. Pure: no I/O, and no value of a credential in a result."""

from collections.abc import Mapping
from typing import Any, Final, cast

from tollhouse.catalog.types import ALIASES_MAX, FALLBACKS_MAX
from tollhouse.cli.models.imported import (
    ImportedCatalog,
    ImportedTable,
    list_of,
    positive,
    strings_of,
    table_of,
)
from tollhouse.cli.models.litellm_providers import (
    PROVIDERS,
    Provider,
    address_of,
    provider_of,
    split_model,
    variable_of,
)
from tollhouse.cli.models.price_map import NO_API_VERSION, describe, is_chat

_MAPPED: Final = frozenset(
    {"model", "api_base", "base_url", "api_key", "api_version", "timeout", "max_retries"}
)
_LIMITS: Final = frozenset({"rpm", "tpm", "max_parallel_requests"})
_SECTIONS: Final = frozenset({"model_list", "litellm_settings", "router_settings"})
_SECONDS_MAX: Final = 86_400
_NO_SECONDS: Final = f"`total_seconds` of a backend is a whole number up to {_SECONDS_MAX}"
_REASONS: Final = {
    "general_settings": "keys, databases and administration are set up anew: see `tollhouse init`",
    "environment_variables": "set them where Tollhouse runs; values are not copied",
    "guardrails": "write policies: see `tollhouse policy`",
    "weight": "replicas of a backend are equal, and backends are not balanced",
    "max_budget": "set a cap: see `tollhouse caps`",
    "budget_duration": "set a cap: see `tollhouse caps`",
    "context_window_fallbacks": "a fallback answers when a backend fails, for no other reason",
    "content_policy_fallbacks": "a fallback answers when a backend fails, for no other reason",
    "default_fallbacks": "name the fallbacks of each model",
    "stream_timeout": "`first_event_seconds` and `idle_seconds` of a backend bound streams",
}
_NO_COUNTERPART: Final = "Tollhouse has no such setting"
_DIFFERS: Final = (
    "a further deployment that differs in more than its address: make it a model of its own and a"
    " fallback"
)
_RATE: Final = "limit keys or projects instead: see `tollhouse limits`"


def from_config(config: Mapping[str, Any], prices: Mapping[str, Any]) -> ImportedCatalog:
    """Return the catalog of a configuration. `prices` is a price map, or empty."""
    catalog = ImportedCatalog(reserved_variables=_used_variables(config))
    settings = table_of(config.get("litellm_settings"))
    router = table_of(config.get("router_settings"))
    timeout = router.get("timeout", settings.get("request_timeout"))
    for entry in list_of(config.get("model_list")):
        _add(catalog, table_of(entry), prices, timeout)
    for section in (settings, router):
        _add_fallbacks(catalog, section.get("fallbacks"))
    _add_aliases(catalog, router.get("model_group_alias"))
    for name in config.keys() - _SECTIONS:
        catalog.leave_out(name, _REASONS.get(name, _NO_COUNTERPART))
    done = {"fallbacks", "model_group_alias", "timeout", "request_timeout"}
    for title, section in (("litellm_settings", settings), ("router_settings", router)):
        for name in sorted(section.keys() - done):
            catalog.leave_out(f"{title}.{name}", _REASONS.get(name, _NO_COUNTERPART))
    once = dict.fromkeys(catalog.unmapped)
    catalog.unmapped = sorted(once, key=lambda each: each.item)
    return catalog


def _used_variables(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the variables that may have another credential where Tollhouse runs."""
    referenced = {variable_of(text) for text in strings_of(config)}
    usual = {provider.key_variable for provider in PROVIDERS.values()}
    names = referenced | usual | table_of(config.get("environment_variables")).keys()
    return frozenset(name for name in names if name is not None)


def _add(
    catalog: ImportedCatalog, entry: Mapping[str, Any], prices: Mapping[str, Any], timeout: object
) -> None:
    """Add one deployment of a model, as a model or as a further replica of one."""
    name, parameters = entry.get("model_name"), table_of(entry.get("litellm_params"))
    full_name = parameters.get("model")
    if not isinstance(name, str) or not isinstance(full_name, str):
        catalog.leave_out("an entry of model_list", "it has no model_name or no model")
        return
    if "*" in name or "*" in full_name:
        catalog.leave_out(name, "a wildcard: each model needs a price of its own")
        return
    prefix, upstream_model = split_model(full_name)
    provider = provider_of(prefix)
    if isinstance(provider, str):
        catalog.leave_out(name, provider)
        return
    info = _info(entry, parameters, prices)
    if info.get("mode") is not None and not is_chat(info["mode"]):
        catalog.leave_out(name, "its mode is not chat")
        return
    # Its notes are of no use if it differs from the deployment before.
    part = catalog.part()
    backend = _backend(part, name, provider, parameters, timeout)
    model = ImportedTable()
    if upstream_model != name:
        model.settings["upstream_model"] = upstream_model
    describe(part, name, model, info, provider)
    _leave_out_parameters(part, name, parameters)
    if name not in catalog.models:
        catalog.add(name, provider.name, model, backend)
    elif not _add_replica(catalog, name, provider, model, backend):
        catalog.leave_out(name, _DIFFERS)
        return
    catalog.unmapped += part.unmapped


def _info(
    entry: Mapping[str, Any], parameters: Mapping[str, Any], prices: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what is known of a model: the price map, then the entry, which has precedence."""
    own = table_of(entry.get("model_info"))
    full_name = parameters["model"]
    prefix, bare_name = split_model(full_name)
    known = next(
        (
            table_of(prices[name])
            for name in (own.get("base_model"), full_name)
            if isinstance(name, str) and name in prices
        ),
        None,
    )
    if known is None:
        # Another provider may sell a model of the same name at another price.
        known = table_of(prices.get(bare_name))
        if known.get("litellm_provider") != prefix:
            known = {}
    costs = {name: value for name, value in parameters.items() if "cost" in name}
    given = {name: value for name, value in {**own, **costs}.items() if value is not None}
    return {**known, **given}


def _backend(
    catalog: ImportedCatalog,
    name: str,
    provider: Provider,
    parameters: Mapping[str, Any],
    timeout: object,
) -> ImportedTable:
    """Return the backend of a deployment."""
    settings, gaps = dict[str, Any](), dict[str, str]()
    given = parameters.get("api_base", parameters.get("base_url", provider.address))
    address = address_of(given, provider)
    if address is None:
        gaps["replicas"] = "add the address of the backend. Start-up refuses it until then"
    else:
        settings["replicas"] = [address]
    if provider.dialect is not None:
        settings["dialect"] = provider.dialect
    if provider.dialect == "azure":
        version = parameters.get("api_version")
        if isinstance(version, str) and variable_of(version) is None:
            settings["api_version"] = version
        else:
            variable = variable_of(version)
            gaps["api_version"] = f"add the value of {variable}" if variable else NO_API_VERSION
    key = _key_variable(catalog, name, provider, parameters.get("api_key"), address)
    if key is not None:
        settings["api_key_variable"] = key
    settings |= provider.settings
    limit = parameters.get("timeout", timeout)
    seconds = positive(limit)
    if seconds is not None and seconds <= _SECONDS_MAX:
        settings["total_seconds"] = seconds
    elif limit is not None:
        catalog.leave_out(f"{name}: timeout", _NO_SECONDS)
    return ImportedTable(settings=settings, gaps=gaps)


def _key_variable(
    catalog: ImportedCatalog, name: str, provider: Provider, key: object, address: str | None
) -> str | None:
    """Return the variable that has the credential. A credential in the file is never copied.

    It gets a variable of its own: one that has another credential would send that one instead.
    The provider's usual credential is for the provider's own address alone.
    """
    if key is None and provider.address in {None, address}:
        return provider.key_variable
    if key is None:
        if provider.key_variable is not None:
            reason = f"{provider.key_variable} is sent to {provider.address} alone: name another"
            catalog.leave_out(f"{name}: api_key", f"{reason} credential if this address needs one")
        return None
    if (variable := variable_of(key)) is not None:
        return variable
    usual = provider.key_variable or f"{provider.name.upper().replace('-', '_')}_API_KEY"
    chosen = catalog.variable_for(usual, key)
    catalog.leave_out(
        f"{name}: api_key", f"a credential is never copied: put it into the variable {chosen}"
    )
    return chosen


def _add_replica(
    catalog: ImportedCatalog,
    name: str,
    provider: Provider,
    model: ImportedTable,
    backend: ImportedTable,
) -> bool:
    """Add a further deployment of a model as a replica. Return whether only its address differs."""
    known = catalog.models[name]
    shared = known.settings["backend"]
    first = catalog.backends[shared]
    is_equal = (
        known == ImportedTable(settings={"backend": shared, **model.settings}, gaps=model.gaps)
        and {**first.settings, "replicas": []} == {**backend.settings, "replicas": []}
        and first.gaps == backend.gaps
        and "replicas" not in backend.gaps
    )
    if not is_equal:
        return False
    replicas = dict.fromkeys(first.settings["replicas"] + backend.settings["replicas"])
    users = [each for each, other in catalog.models.items() if other.settings["backend"] == shared]
    if users == [name]:
        del catalog.backends[shared]
    joined = ImportedTable(settings={**first.settings, "replicas": list(replicas)}, gaps=first.gaps)
    catalog.add(name, provider.name, model, joined)
    return True


def _leave_out_parameters(
    catalog: ImportedCatalog, name: str, parameters: Mapping[str, Any]
) -> None:
    for parameter in sorted(parameters.keys() - _MAPPED):
        if "cost" not in parameter:
            reason = _RATE if parameter in _LIMITS else _REASONS.get(parameter, _NO_COUNTERPART)
            catalog.leave_out(f"{name}: {parameter}", reason)


def _add_fallbacks(catalog: ImportedCatalog, listed: object) -> None:
    for table in list_of(listed):
        for name, others in table_of(table).items():
            model = catalog.models.get(name)
            if model is None or not isinstance(others, list):
                catalog.leave_out(f"fallbacks of {name}", "the model is not mapped")
                continue
            for other in list_of(cast("object", others)):
                found: list[str] = model.settings.setdefault("fallbacks", [])
                if not isinstance(other, str):
                    # Its parameters may have a credential.
                    catalog.leave_out(f"fallbacks of {name}", "one is not the name of a model")
                elif other not in catalog.models or other == name:
                    catalog.leave_out(f"fallbacks of {name}", f"{other!r} is not mapped")
                elif len(found) >= FALLBACKS_MAX:
                    catalog.leave_out(f"fallbacks of {name}", f"{other!r}: a model has at most 4")
                elif other not in found:
                    found.append(other)
            if not model.settings["fallbacks"]:
                del model.settings["fallbacks"]


def _add_aliases(catalog: ImportedCatalog, aliases: object) -> None:
    for alias, target in table_of(aliases).items():
        name = target if isinstance(target, str) else table_of(target).get("model")
        model = catalog.models.get(name) if isinstance(name, str) else None
        if model is None or alias in catalog.models:
            reason = (
                "a model has this name" if alias in catalog.models else "its model is not mapped"
            )
            catalog.leave_out(f"alias {alias}", reason)
            continue
        found: list[str] = model.settings.setdefault("aliases", [])
        if len(found) < ALIASES_MAX:
            found.append(alias)
        else:
            catalog.leave_out(f"alias {alias}", f"a model has at most {ALIASES_MAX}")
