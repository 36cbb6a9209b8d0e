"""The gate for everything that a caller writes: JSON bodies and queries.

Whatever arrives, the outcome is a value that fits its type, or `InvalidRequest`.
"""

import re
from functools import cache
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import inspect

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.faults import MEMBER_NAME_LENGTH_MAX, refusal, unknown_parameter
from tollhouse.contract.json_faults import malformed, repeated_names
from tollhouse.contract.json_scan import Document, refuse_too_deep, structure

T = TypeVar("T", bound=msgspec.Struct)

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_INTEGER = re.compile(r"-?[0-9]{1,4300}", re.ASCII)


def screen(body: Document) -> Any:  # noqa: ANN401 - JSON
    """Parse, refusing all that two readers could understand differently, or that is too much.

    Size and depth are bounded by a scan of the bytes, before the parser allocates anything.
    """
    return parse(body, structure(body))


def parse(body: Document, found: bytes) -> Any:  # noqa: ANN401 - JSON
    """The second half of `screen`, for a body whose structure was found before."""
    refuse_too_deep(found)
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise malformed(body, error) from None
    # Each colon outside strings stands for one member; the parser keeps one of each name.
    if not _has_members(tree, found.count(b":")):
        raise repeated_names(body)
    return tree


def decode(tree: Any, type_: type[T]) -> T:  # noqa: ANN401 - JSON
    """Fit a parsed body into its type; nothing is converted, so that `"1"` is not 1."""
    try:
        return msgspec.convert(tree, type_, strict=True)
    except msgspec.ValidationError as error:
        raise refusal(error, type_, tree) from None


def canonical(tree: Any) -> bytes:  # noqa: ANN401 - JSON
    """One spelling for all bodies that mean the same: members sorted, no blanks."""
    return msgspec.json.encode(tree, order="deterministic")


def decode_query(raw: bytes, type_: type[T], *, ignores_unknown: bool) -> T:
    """Fit a query string into its type.

    Fields that are lists may be repeated, comma-separated, and written as `name[]`; repeats
    are dropped before anything is counted. All others may stand once.
    """
    kinds = _query_kinds(type_)
    tree: dict[str, Any] = {}
    lists: dict[str, dict[str, None]] = {}
    for name, text in _pairs(raw):
        list_name = name.removesuffix("[]")
        if kinds.get(list_name) is inspect.ListType:
            # A dict keeps the order and drops repeats.
            lists.setdefault(list_name, {}).update(dict.fromkeys(text.split(",")))
        elif name in tree:
            message = f"Invalid '{name}': it may be given only once."
            raise InvalidRequest("invalid_value", message, param=name)
        elif name in kinds:
            tree[name] = _integer(name, text) if kinds[name] is inspect.IntType else text
        elif not ignores_unknown:
            shown = name[:MEMBER_NAME_LENGTH_MAX]
            raise unknown_parameter(shown, shown, kinds)
    return decode(tree | {name: list(items) for name, items in lists.items()}, type_)


def _has_members(tree: Any, wanted: int) -> bool:  # noqa: ANN401 - JSON
    """Whether the objects of the tree have so many members together; more are not possible.

    Level by level, until all are found: recursion has a bound of its own.
    """
    level: list[Any] = [tree]
    while wanted and level:
        objects: list[dict[str, Any]] = [node for node in level if type(node) is dict]
        arrays: list[list[Any]] = [node for node in level if type(node) is list]
        wanted -= sum(map(len, objects))
        members = chain.from_iterable([node.values() for node in objects])
        level = [*members, *chain.from_iterable(arrays)]
    return not wanted


@cache
def _query_kinds(type_: type[msgspec.Struct]) -> dict[str, type[inspect.Type]]:
    """For each parameter, whether it is a list, an integer or something that stays text."""
    return {
        field.encode_name: _kind(inspect.type_info(field.type))
        for field in msgspec.structs.fields(type_)
    }


def _kind(node: inspect.Type) -> type[inspect.Type]:
    return _kind(node.type) if isinstance(node, inspect.Metadata) else type(node)


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    parts = (part.partition(b"=") for part in raw.replace(b"+", b" ").split(b"&") if part)
    return [(_text(name), _text(value)) for name, _, value in parts]


def _text(escaped: bytes) -> str:
    if not _BROKEN_ESCAPE.search(escaped):
        try:
            text = unquote_to_bytes(escaped).decode()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" not in text:
            return text
    message = "The query is not valid percent-encoded UTF-8 without NUL."
    raise InvalidRequest("invalid_value", message)


def _integer(name: str, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        message = f"Invalid type for '{name}': expected an integer."
        raise InvalidRequest("invalid_type", message, param=name)
    return int(text)
