"""How the catalog is refused, and how models are."""

from collections.abc import Sequence

from tollhouse.base.errors import GatewayError, Kind, ServiceUnavailable


class InvalidCatalog(Exception):
    """Models or backends cannot be used as configured; the message says which line to change."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class ModelNotFound(GatewayError):
    """Unknown, or not allowed to the key or its project: the answer does not tell which."""

    kind = Kind.NOT_FOUND
    code = "model_not_found"

    def __init__(self) -> None:
        super().__init__(
            "The model does not exist, or this key may not use it. `GET /v1/models` lists those "
            "that it may use.",
            param="model",
        )


class ModelLocked(GatewayError):
    """The organization lacks a check that the operator demands for the model."""

    kind = Kind.DENIED
    code = "model_locked"

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(
            f"The model is locked for this organization. Missing: {', '.join(missing)}. Ask the "
            "operator of this gateway for it, or choose another model.",
            param="model",
        )


class ModelNotReady(ServiceUnavailable):
    """No replica of its backend answers at present."""

    def __init__(self) -> None:
        super().__init__("The model is not ready. Try again in a moment.", param="model")
