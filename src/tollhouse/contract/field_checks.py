"""Checks of fields that their types cannot express, and the refusals that they raise."""

from collections.abc import Iterable
from typing import Any, Final, cast

from msgspec import UNSET, Struct

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.errors import SupportedNowhere

ABSENT: Final = (UNSET, None)
"""The values of a field that was not sent: null counts as absent."""


def asks_for_something(value: Any) -> bool:  # noqa: ANN401 - any field
    """Return whether a field was sent with a value that is not empty or false."""
    return value is not UNSET and value not in (None, False, [], {})


def combination(param: str, reason: str) -> InvalidRequest:
    """Return the refusal of fields that are valid alone and not together."""
    message = f"Invalid '{param}': {reason}."
    return InvalidRequest("invalid_parameter_combination", message, param=param)


def check_exclusive(request: Struct, names: Iterable[str]) -> None:
    """Raise `InvalidRequest` if several of these fields were sent."""
    sent = [name for name in names if getattr(request, name) not in ABSENT]
    if len(sent) > 1:
        raise combination(sent[1], f"send it or '{sent[0]}', not both")


def text(fields: FreeObject, path: str, name: str) -> str:
    """Return a required member. Raises `InvalidRequest` unless it is a string."""
    value = fields.get(name)
    if isinstance(value, str):
        return value
    required(fields, path, name)
    raise mistyped(f"{path}.{name}", "a string")


def required(fields: FreeObject, path: str, name: str) -> Any:  # noqa: ANN401 - free-form
    """Return a required member of any type. Raises `InvalidRequest` if it is missing."""
    if name not in fields:
        param = f"{path}.{name}"
        message = f"Missing required parameter: '{param}'."
        raise InvalidRequest("missing_required_parameter", message, param=param)
    return fields[name]


def objects(fields: FreeObject, path: str, name: str) -> list[FreeObject]:
    """Return a member that is a list of objects, or an empty list if it is absent or null."""
    found = fields.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise mistyped(f"{path}.{name}", "an array")
    for index, member in enumerate(cast("list[Any]", found)):
        if not isinstance(member, dict):
            raise mistyped(f"{path}.{name}[{index}]", "an object")
    return cast("list[FreeObject]", found)


def unsupported_type(param: str, things: str, types: Iterable[str]) -> SupportedNowhere:
    """Return the refusal of a `type` that no model takes; some models take `types`."""
    return SupportedNowhere(
        param=param, feature=f"{things} of this type", instead=f"Send one of {quoted(types)}."
    )


def quoted(names: Iterable[str]) -> str:
    """Return names for a message, each in quotes."""
    return ", ".join(f"'{name}'" for name in names)


def mistyped(param: str, expected: str) -> InvalidRequest:
    """Return the refusal of a member that has another type than expected."""
    message = f"Invalid type for '{param}': expected {expected}."
    return InvalidRequest("invalid_type", message, param=param)


def invalid_value(param: str, reason: str) -> InvalidRequest:
    """Return the refusal of a member that has the right type and an unknown value."""
    return InvalidRequest("invalid_value", f"Invalid '{param}': {reason}.", param=param)
