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
from tollhouse.cli.models.price_map import CHAT_MODES, NO_API_VERSION, describe

_MAPPED: Final = frozenset(
    {"model", "api_base", "base_url", "api_key", "api_version", "timeout", "max_retries"}
)
_LIMITS: Final = frozenset({"rpm", "tpm", "max_parallel_requests"})
_SECTIONS: Final = frozenset({"model_list", "litellm_settings", "router_settings"})
_SECONDS_MAX: Final = 86_400
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
    catalog.unmapped.sort(key=lambda each: each.item)
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
    info = _info(entry, parameters, prices, upstream_model)
    if info.get("mode") not in (None, *CHAT_MODES):
        catalog.leave_out(name, "its mode is not chat")
        return
    if name in catalog.models:
        _add_replica(catalog, name, provider, parameters, upstream_model)
        return
    backend = _backend(catalog, name, provider, parameters, timeout)
    model = ImportedTable(settings={"backend": backend})
    if upstream_model != name:
        model.settings["upstream_model"] = upstream_model
    describe(catalog, name, model, info)
    catalog.models[name] = model
    _leave_out_parameters(catalog, name, parameters)


def _info(
    entry: Mapping[str, Any],
    parameters: Mapping[str, Any],
    prices: Mapping[str, Any],
    upstream_model: str,
) -> dict[str, Any]:
    """Return what is known of a model: the price map, then the entry, which has precedence."""
    own = table_of(entry.get("model_info"))
    base = own.get("base_model")
    names = (base, parameters.get("model"), upstream_model)
    known = next((prices[name] for name in names if isinstance(name, str) and name in prices), None)
    costs = {name: value for name, value in parameters.items() if "cost" in name}
    given = {name: value for name, value in {**own, **costs}.items() if value is not None}
    return {**table_of(known), **given}


def _backend(
    catalog: ImportedCatalog,
    name: str,
    provider: Provider,
    parameters: Mapping[str, Any],
    timeout: object,
) -> str:
    """Return the name of the backend of a deployment."""
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
            gaps["api_version"] = NO_API_VERSION
    key = _key_variable(catalog, name, provider, parameters.get("api_key"))
    if key is not None:
        settings["api_key_variable"] = key
    settings |= provider.settings
    seconds = positive(parameters.get("timeout", timeout))
    if seconds is not None and seconds <= _SECONDS_MAX:
        settings["total_seconds"] = seconds
    return catalog.backend_of(provider.name, settings, gaps)


def _key_variable(
    catalog: ImportedCatalog, name: str, provider: Provider, key: object
) -> str | None:
    """Return the variable that has the credential. A credential in the file is never copied.

    It gets a variable of its own: one that has another credential would send that one instead.
    """
    if key is None:
        return provider.key_variable
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
    parameters: Mapping[str, Any],
    upstream_model: str,
) -> None:
    """Add a further deployment of a model as a replica, if only its address differs."""
    model = catalog.models[name]
    backend = catalog.backends[model.settings["backend"]]
    address = address_of(parameters.get("api_base", parameters.get("base_url")), provider)
    key = _key_variable(catalog, name, provider, parameters.get("api_key"))
    is_equal = (
        model.settings.get("upstream_model", name) == upstream_model
        and backend.settings.get("dialect") == provider.dialect
        and backend.settings.get("api_key_variable") == key
    )
    if not is_equal or address is None or "replicas" in backend.gaps:
        reason = "a further deployment that differs: make it a model of its own and a fallback"
        catalog.leave_out(name, reason)
        return
    replicas = [*backend.settings["replicas"], address]
    settings = {**backend.settings, "replicas": list(dict.fromkeys(replicas))}
    shared = model.settings.pop("backend")
    if all(each.settings.get("backend") != shared for each in catalog.models.values()):
        del catalog.backends[shared]
    own = catalog.backend_of(provider.name, settings, backend.gaps)
    model.settings = {"backend": own, **model.settings}


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
                if not isinstance(other, str) or other not in catalog.models or other == name:
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
