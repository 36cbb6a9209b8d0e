"""Finding the models that a caller may use."""

from collections.abc import Iterator

from tollhouse.catalog.errors import ModelLocked, ModelNotFound
from tollhouse.catalog.types import Catalog, Model


def find(
    catalog: Catalog,
    model_id: str,
    *,
    allowed_models: frozenset[str] | None,
    named: str | None = None,
) -> Model:
    """Return the model of this ID. Raises `ModelNotFound` also for one that is not allowed.

    The error says what the caller `named`, which may be an alias.
    """
    model = catalog.models.get(model_id)
    if model is None or not _is_allowed(model_id, allowed_models):
        usable = (name for name, _ in offered(catalog, allowed_models=allowed_models))
        raise ModelNotFound(named or model_id, usable)
    return model


def offered(
    catalog: Catalog, *, allowed_models: frozenset[str] | None
) -> Iterator[tuple[str, Model]]:
    """Yield the models that `find` returns, in the order of the configuration."""
    for model_id, model in catalog.models.items():
        if _is_allowed(model_id, allowed_models):
            yield model_id, model


def access(model: Model, granted_checks: frozenset[str]) -> tuple[bool, tuple[str, ...]]:
    """Return whether the model is locked, and the checks that the organization lacks."""
    missing = tuple(check for check in model.required_checks if check not in granted_checks)
    return bool(missing), missing


def require_unlocked(model: Model, *, granted_checks: frozenset[str]) -> None:
    """Raise `ModelLocked` if the organization lacks a check that the model requires."""
    is_locked, missing = access(model, granted_checks)
    if is_locked:
        raise ModelLocked(missing)


def _is_allowed(model_id: str, allowed_models: frozenset[str] | None) -> bool:
    return allowed_models is None or model_id in allowed_models
