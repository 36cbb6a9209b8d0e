"""The gate for everything that a caller writes: JSON bodies and queries.

Whatever arrives, the outcome is a value that fits its type, or `InvalidRequest`.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import inspect

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.faults import MEMBER_NAME_LENGTH_MAX, refusal

DEPTH_MAX = 128
ELEMENTS_MAX = 2_000_000
PIECE_BYTES = 1_048_576
NESTING_PIECE = 4_096

T = TypeVar("T", bound=msgspec.Struct)

_PUNCTUATION = b',:[]{}"'
_NOT_PUNCTUATION = bytes(set(range(256)) - set(_PUNCTUATION))
_NESTING_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_CONTAINERS = frozenset((dict, list))

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_INTEGER = re.compile(r"-?[0-9]{1,4300}", re.ASCII)


def screen(body: bytes) -> Any:  # noqa: ANN401 - JSON
    """Parse, refusing all that two readers could understand differently, or that is too much.

    Size and depth are bounded by a scan of the bytes, before the parser allocates anything.
    """
    structure = _structure(body)
    if _is_too_deep(structure):
        raise _not_json(f"it is nested more than {DEPTH_MAX} levels deep")
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise _not_json("it is not valid JSON in UTF-8") from None
    # Each colon outside strings stands for one member; the parser keeps one of each name.
    if _member_count(tree) != structure.count(b":"):
        raise _not_json("an object has two members of the same name")
    return tree


def decode(tree: Any, type_: type[T]) -> T:  # noqa: ANN401 - JSON
    """Fit a parsed body into its type; nothing is converted, so that `"1"` is not 1."""
    try:
        return msgspec.convert(tree, type_, strict=True)
    except msgspec.ValidationError as error:
        raise refusal(error, type_) from None


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
            message = f"Unknown parameter: '{shown}'."
            raise InvalidRequest("unknown_parameter", message, param=shown)
    return decode(tree | {name: list(items) for name, items in lists.items()}, type_)


def _not_json(reason: str) -> InvalidRequest:
    return InvalidRequest("invalid_json", f"The body cannot be read: {reason}.")


def _too_many_elements() -> InvalidRequest:
    return _not_json(f"it has more than {ELEMENTS_MAX} structural elements")


def _structure(body: bytes) -> bytes:
    """The punctuation outside strings, which tells how much a parser would build.

    Up to the first fault this is exact, and a parser does not get beyond the first fault.
    """
    if b"\\u0000" in body and b"\\u0000" in body.replace(b"\\\\", b""):
        raise _not_json("a string contains the character NUL")
    marks = b"".join(map(punctuation, _pieces(body)))
    # Strings have something between them, so that this also bounds the number of pieces.
    if marks.count(b'"') > 2 * (ELEMENTS_MAX + 1):
        raise _too_many_elements()
    structure = b"".join(marks.split(b'"')[::2])
    if len(structure) > ELEMENTS_MAX:
        raise _too_many_elements()
    return structure


def _pieces(body: bytes) -> Iterator[bytes]:
    """Cut between escapes. One call on 30 MB would keep the event loop out for half a second."""
    start = 0
    while start < len(body):
        piece = body[start : start + PIECE_BYTES]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = body[start : start + PIECE_BYTES + 1]
        yield piece
        start += len(piece)


def punctuation(piece: bytes) -> bytes:
    """Brackets, commas, colons and quotes of JSON; between quotes stands what strings contain."""
    if b"\\" in piece:
        # Without pairs of backslashes, each one that is left begins an escape.
        piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
    return piece.translate(None, _NOT_PUNCTUATION)


def _is_too_deep(structure: bytes) -> bool:
    """Whether brackets nest too deep; few brackets cannot, which saves the walk.

    Walked piece by piece, so that what is much too deep costs no more than what is just too deep.
    """
    if structure.count(b"[") + structure.count(b"{") <= DEPTH_MAX:
        return False
    steps = memoryview(structure.translate(_NESTING_STEPS, b",:")).cast("b")
    depth = 0
    for start in range(0, len(steps), NESTING_PIECE):
        depths = [*accumulate(steps[start : start + NESTING_PIECE], initial=depth)]
        if max(depths) > DEPTH_MAX:
            return True
        depth = depths[-1]
    return False


def _member_count(tree: Any) -> int:  # noqa: ANN401 - JSON
    """Members in all objects of the tree; a loop, because recursion has a bound of its own."""
    count = 0
    waiting: list[dict[str, Any] | list[Any]] = [tree] if type(tree) in _CONTAINERS else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            count += len(node)
            waiting += [value for value in node.values() if type(value) in _CONTAINERS]
        else:
            waiting += [value for value in node if type(value) in _CONTAINERS]
    return count


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
