"""Rebuilding a free-form object from the members that are known of it.

Every other member is accepted and not forwarded, so that no engine finds an address, or text that
was neither priced nor judged, where the gateway looks for none (OQ-195).
"""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Struct

from tollhouse.contract.bounds import FreeObject

WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""A word of a closed list, of which engines may know more than the gateway does."""

Shape = Mapping[str, Any]
"""The form of each member: a type, a pattern of a whole text, a shape, or a list of one shape."""


def known_members(value: object, shape: Shape) -> FreeObject:
    """Return the members of an object that have a known name and form; nulls are left out."""
    fields = cast("FreeObject", value) if isinstance(value, dict) else {}
    return {
        name: _known(found, form)
        for name, form in shape.items()
        if _fits(found := fields.get(name), form)
    }


def _fits(found: object, form: Any) -> bool:  # noqa: ANN401 - see Shape
    match form:
        case re.Pattern():
            return (
                isinstance(found, str)
                and cast("re.Pattern[str]", form).fullmatch(found) is not None
            )
        case Mapping():
            return isinstance(found, dict)
        case list():
            return isinstance(found, list)
        case _:
            return isinstance(found, form)


def _known(found: Any, form: Any) -> Any:  # noqa: ANN401 - see Shape
    match form:
        case Mapping():
            return known_members(found, cast("Shape", form))
        case [shape]:
            return [known_members(each, cast("Shape", shape)) for each in found]
        case _:
            return found


def known_options(request: Struct, shapes: Mapping[str, Shape]) -> FreeObject:
    """Return the fields of a request that are objects, each with its known members alone."""
    found: dict[str, Any] = {name: getattr(request, name) for name in shapes}
    return {
        name: known_members(value, shapes[name])
        for name, value in found.items()
        if _fits(value, dict)
    }
