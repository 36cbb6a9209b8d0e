"""Finding the models that a caller may use."""

from collections.abc import Callable, Iterator

from tollhouse.catalog.errors import ModelLocked, ModelNotFound, ModelNotReady
from tollhouse.catalog.types import Catalog, Model


def find(catalog: Catalog, model_id: str, *, allowed_models: frozenset[str] | None) -> Model:
    """Return the model of this ID. Raises `ModelNotFound` also for one that is not allowed."""
    model = catalog.models.get(model_id)
    if model is None or not _is_allowed(model_id, allowed_models):
        raise ModelNotFound
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


def require_usable(
    model: Model, *, granted_checks: frozenset[str], is_backend_ready: Callable[[str], bool]
) -> None:
    """Raise `ModelLocked` or `ModelNotReady` if the model cannot be called."""
    is_locked, missing = access(model, granted_checks)
    if is_locked:
        raise ModelLocked(missing)
    if not is_backend_ready(model.backend):
        raise ModelNotReady


def _is_allowed(model_id: str, allowed_models: frozenset[str] | None) -> bool:
    return allowed_models is None or model_id in allowed_models
