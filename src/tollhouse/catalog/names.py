"""Checking the names by which models refer to each other and callers to them."""

from collections.abc import Mapping

from tollhouse.base.errors import did_you_mean
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Model


def aliases(paths: Mapping[str, str], models: Mapping[str, Model]) -> dict[str, str]:
    """Return the ID of the model of each alias. Raises `InvalidCatalog` if a name has two models.

    `paths` has the path of each model in the configuration.
    """
    found: dict[str, str] = {}
    for model_id, model in models.items():
        for index, alias in enumerate(model.aliases):
            path = f"{paths[model_id]}.aliases[{index}]"
            if alias in models:
                raise InvalidCatalog(path, "there is a model with this ID")
            if alias in found:
                raise InvalidCatalog(path, f"also an alias in {paths[found[alias]]}")
            if not alias.isprintable():
                raise InvalidCatalog(path, "an alias has printable characters only")
            found[alias] = model_id
    return found


def check_fallbacks(paths: Mapping[str, str], models: Mapping[str, Model]) -> None:
    """Raise `InvalidCatalog` unless every fallback is another model, and named once."""
    for model_id, model in models.items():
        for index, fallback in enumerate(model.fallbacks):
            path = f"{paths[model_id]}.fallbacks[{index}]"
            if fallback not in models:
                reason = f"there is no such model{did_you_mean(fallback, models)}"
                raise InvalidCatalog(path, reason)
            if fallback == model_id:
                raise InvalidCatalog(path, "the model itself")
            if model.fallbacks.index(fallback) != index:
                raise InvalidCatalog(path, "contains a value twice")
