"""Looking into objects of which the specification says nothing more."""

from collections.abc import Iterable
from typing import Any, cast

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.errors import SupportedNowhere


def text(fields: FreeObject, path: str, name: str) -> str:
    """A member that must be there and be a string."""
    value = fields.get(name)
    if isinstance(value, str):
        return value
    required(fields, path, name)
    raise mistyped(f"{path}.{name}", "a string")


def required(fields: FreeObject, path: str, name: str) -> Any:  # noqa: ANN401 - free-form
    """A member that must be there."""
    if name not in fields:
        param = f"{path}.{name}"
        message = f"Missing required parameter: '{param}'."
        raise InvalidRequest("missing_required_parameter", message, param=param)
    return fields[name]


def objects(fields: FreeObject, path: str, name: str) -> list[FreeObject]:
    """A list of objects; one that is absent or null is empty."""
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
    """The answer to a `type` that no model takes; `types` are those that some model may take."""
    return SupportedNowhere(
        param, feature=f"{things} of this type", instead=f"Send one of {quoted(types)}."
    )


def quoted(names: Iterable[str]) -> str:
    """Return a list of names for a message."""
    return ", ".join(f"'{name}'" for name in names)


def mistyped(param: str, expected: str) -> InvalidRequest:
    """The answer to a member of another type."""
    message = f"Invalid type for '{param}': expected {expected}."
    return InvalidRequest("invalid_type", message, param=param)


def invalid_value(param: str, reason: str) -> InvalidRequest:
    """The answer to a member of the right type that says nothing known."""
    return InvalidRequest("invalid_value", f"Invalid '{param}': {reason}.", param=param)
