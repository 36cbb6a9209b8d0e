"""Errors of the catalog and of its models."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from tollhouse.base.errors import (
    LISTED_LENGTH_MAX,
    DeploymentError,
    GatewayError,
    Kind,
    ServiceUnavailable,
    did_you_mean,
)

_COMPARED_MAX: Final = 500
"""Models that a name is compared with; more would let callers spend the worker's time."""


class InvalidCatalog(DeploymentError):
    """The configured models or backends are invalid. The message names the setting."""

    code = "invalid_catalog"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class ModelNotFound(GatewayError):
    """The model does not exist, or the key may not use it; the response does not say which."""

    kind = Kind.NOT_FOUND
    code = "model_not_found"
    param = "model"
    template = (
        "The model '{self.shown}' does not exist, or this key may not use it{self.end} `GET "
        "/v1/models` lists those that it may use."
    )

    def __init__(self, name: str, usable: Iterable[str] = ()) -> None:
        self.shown = name[:LISTED_LENGTH_MAX]
        self.end = did_you_mean(self.shown, islice(usable, _COMPARED_MAX)) or "."
        super().__init__()


class ModelLocked(GatewayError):
    """The organization lacks a check that the model requires."""

    kind = Kind.DENIED
    code = "model_locked"
    param = "model"
    template = (
        "The model is locked for this organization. Missing: {self.missing}. Ask the operator of "
        "this gateway for it, or choose another model."
    )

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(missing=", ".join(missing))


class ModelNotReady(ServiceUnavailable):
    """No replica of the model's backend answers."""

    param = "model"
    template = "The model is not ready. Try again in a moment."
