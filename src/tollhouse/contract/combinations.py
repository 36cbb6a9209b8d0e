"""What the rules between fields share."""

from typing import Any

from msgspec import UNSET

from tollhouse.base.errors import InvalidRequest


def is_set(value: Any) -> bool:  # noqa: ANN401 - any field
    """Whether a field was sent with a meaning: null counts as absent."""
    return value is not UNSET and value is not None


def asks_for_something(value: Any) -> bool:  # noqa: ANN401 - any field
    """Return whether a field was sent with a value that is not empty or false."""
    return value is not UNSET and value not in (None, False, [], {})


def combination(param: str, reason: str) -> InvalidRequest:
    """The answer to fields that are fine alone and not together."""
    message = f"Invalid '{param}': {reason}."
    return InvalidRequest("invalid_parameter_combination", message, param=param)
