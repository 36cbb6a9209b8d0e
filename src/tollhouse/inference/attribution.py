"""What a request says that it is for, as far as its organization stores it."""

from typing import Any, Final, cast

from msgspec import Struct

from tollhouse.observability.log import bounded_text

METADATA_PREFIX: Final = "metadata."
_MESSAGES_USER: Final = "user_id"

Attribution = tuple[tuple[str, str], ...]


def attribution_of(body: Struct, dimensions: tuple[str, ...]) -> Attribution:
    """Return the values that a body names for these dimensions, each with its dimension.

    Messages have no `user`; their `metadata.user_id` is it.
    """
    sent: Any = getattr(body, "metadata", None)
    named = cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}
    found: list[tuple[str, str]] = []
    for dimension in dimensions:
        is_user = dimension == "user"
        if dimension.startswith(METADATA_PREFIX):
            value = named.get(dimension[len(METADATA_PREFIX) :])
        else:
            value = getattr(body, dimension, named.get(_MESSAGES_USER) if is_user else None)
        text = bounded_text(value) if isinstance(value, str) else None
        if text is not None:
            found.append((dimension, text))
    return tuple(found)
