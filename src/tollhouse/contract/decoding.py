"""Decodes what a caller writes, JSON bodies and queries, into types or raises `InvalidRequest`.

Bodies are bounded by a scan of their bytes, before a parser allocates anything. The scan uses only
operations on whole byte strings, which run at the speed of C. Decision 0004 has the reasons.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import Any, Final, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import inspect

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.faults import MEMBER_NAME_LENGTH_MAX, refusal, unknown_parameter
from tollhouse.contract.json_faults import Document, malformed, not_json, place, repeated_names

T = TypeVar("T", bound=msgspec.Struct)

DEPTH_MAX: Final = 128
ELEMENTS_MAX: Final = 120_000
"""The most brackets, commas and colons outside strings, about twelve for each object of an array.
Such a document is parsed within some ten milliseconds, in at most 25 MB."""
MEMBERS_MAX: Final = 25_000
"""The most members of all objects together. A member costs several times what an element does."""
OBJECTS_IN_ARRAYS_MAX: Final = 10_000
"""The most messages, content parts, tool calls, tools, input items and blocks together. The gateway
works on each of them several times. An agent with 2,000 turns of two messages, one call and two
parts each sends 10,000."""
_UNCOUNTED_MARKS_MAX: Final = min(ELEMENTS_MAX, MEMBERS_MAX, OBJECTS_IN_ARRAYS_MAX)
"""So few brackets, commas, colons and quotes exceed none of these bounds."""
PIECE_BYTES: Final = 1_048_576
NESTING_PIECE: Final = 4_096

_PUNCTUATION: Final = b',:[]{}"'
_NOT_PUNCTUATION: Final = bytes(set(range(256)) - set(_PUNCTUATION))
_AS_ARRAYS: Final = bytes.maketrans(b"{}", b"[]")
_NESTING_STEPS: Final = bytes.maketrans(b"[]", b"\x01\xff")
_ASTRAL: Final = re.compile(rb"[\xf0-\xf4]|\\u[dD][89abAB]")
_BROKEN_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_INTEGER: Final = re.compile(r"-?[0-9]{1,4300}", re.ASCII)


def screen(body: Document) -> Any:  # noqa: ANN401 - JSON
    """Parse a body. Raises `InvalidRequest` if it is too large or can be read in two ways."""
    return parse(body, structure(body))


def parse(body: Document, found: bytes) -> Any:  # noqa: ANN401 - JSON
    """Parse a body whose `structure` is known, as `screen` does."""
    refuse_too_deep(found)
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise malformed(body, error) from None
    # Each colon outside strings is one member; the parser keeps only one member of each name.
    if not _has_members(tree, found.count(b":")):
        raise repeated_names(body)
    return tree


def decode(tree: Any, type_: type[T]) -> T:  # noqa: ANN401 - JSON
    """Convert a parsed body to its type. Nothing is coerced: `"1"` is not 1."""
    try:
        return msgspec.convert(tree, type_, strict=True)
    except msgspec.ValidationError as error:
        raise refusal(error, type_, tree) from None


def canonical(tree: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return the same bytes for all bodies with the same meaning: members sorted, no blanks."""
    return msgspec.json.encode(tree, order="deterministic")


def decode_query(raw: bytes, type_: type[T], *, ignores_unknown: bool) -> T:
    """Convert a query string to its type.

    A list may be repeated, comma-separated, and written as `name[]`; its repeated items are dropped
    before anything is counted. Every other field may be given once.
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


def structure(document: Document) -> bytes:
    """Return the punctuation outside strings, which tells how much a parser would build.

    The result is exact up to the first fault, and a parser stops at the first fault.
    """
    if b"\\u0000" in document:
        # The replacement has the same length, so that offsets stay valid.
        offset = document.replace(b"\\\\", b"  ").find(b"\\u0000")
        if offset >= 0:
            raise not_json(f"a string contains the character NUL at {place(document, offset)}")
    if len(document) <= PIECE_BYTES:
        marks = punctuation(document)
    else:
        marks = b"".join(map(punctuation, _pieces(document)))
    # Between two strings is at least one element, so that this also bounds the strings.
    is_small = len(marks) <= _UNCOUNTED_MARKS_MAX
    if not is_small and marks.count(b'"') > 2 * (ELEMENTS_MAX + 1):
        raise _too_many_elements()
    # Two adjacent quotes are therefore one string without punctuation, as most strings are.
    found = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    if not is_small:
        _refuse_too_many(found)
    return found


def _refuse_too_many(found: bytes) -> None:
    if len(found) > ELEMENTS_MAX:
        raise _too_many_elements()
    if found.count(b":") > MEMBERS_MAX:
        raise not_json(f"its objects have more than {MEMBERS_MAX} members together")
    # An object directly after a bracket or a comma is in an array: members begin with a name.
    if found.count(b"[{") + found.count(b",{") > OBJECTS_IN_ARRAYS_MAX:
        raise not_json(f"its arrays hold more than {OBJECTS_IN_ARRAYS_MAX} objects")


def elements_bound(document: Document) -> int:
    """Return how many structural elements the document has at most, counting those in strings."""
    opened = document.count(b"[") + document.count(b"{")
    return 2 * opened + document.count(b",") + document.count(b":")


def character_bytes(document: Document) -> int:
    """Return the most bytes that Python may need for one character of the document's texts."""
    if document.isascii() and b"\\u" not in document:
        return 1
    return 2 if _ASTRAL.search(document) is None else 4


def punctuation(piece: Document) -> bytes:
    """Return the brackets, commas, colons and quotes of a piece, those inside strings included."""
    if b"\\" in piece:
        # Once pairs of backslashes are removed, each remaining backslash begins an escape.
        piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
    return bytes(piece.translate(None, _NOT_PUNCTUATION))


def refuse_too_deep(found: bytes) -> None:
    """Raise `InvalidRequest` if the brackets of a structure nest deeper than `DEPTH_MAX`.

    Removing the innermost level repeatedly empties a flat structure fast. What remains is walked
    in pieces until it is too deep, so that a very deep body costs no more than one just too deep.
    """
    if len(found) <= DEPTH_MAX or found.count(b"[") + found.count(b"{") <= DEPTH_MAX:
        return
    brackets, levels = found.translate(_AS_ARRAYS, b",:"), 0
    while brackets:
        outer = brackets.replace(b"[]", b"")
        if len(outer) > len(brackets) * 3 // 4:
            break
        brackets, levels = outer, levels + 1
    if levels + _depth(brackets, DEPTH_MAX - levels) > DEPTH_MAX:
        raise not_json(f"it is nested more than {DEPTH_MAX} levels deep")


def _depth(brackets: bytes, enough: int) -> int:
    """Return how deep brackets nest, or some depth above `enough`."""
    steps = memoryview(brackets.translate(_NESTING_STEPS)).cast("b")
    depth = deepest = 0
    for start in range(0, len(steps), NESTING_PIECE):
        depths = [*accumulate(steps[start : start + NESTING_PIECE], initial=depth)]
        deepest, depth = max(deepest, *depths), depths[-1]
        if deepest > enough:
            break
    return deepest


def _has_members(tree: Any, wanted: int) -> bool:  # noqa: ANN401 - JSON
    """Return whether the objects of a tree have `wanted` members together; they cannot have more.

    Goes level by level instead of recursing, because recursion is bounded.
    """
    level: list[Any] = [tree]
    while wanted and level:
        below: list[Any] = []
        for node in level:
            if node.__class__ is dict:
                wanted -= len(node)
                below += node.values()
            elif node.__class__ is list:
                below += node
        level = below
    return not wanted


@cache
def _query_kinds(type_: type[msgspec.Struct]) -> dict[str, type[inspect.Type]]:
    """Return for each parameter whether it is a list, an integer, or text."""
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


def _too_many_elements() -> InvalidRequest:
    return not_json(f"it has more than {ELEMENTS_MAX} structural elements")


def _pieces(document: Document) -> Iterator[Document]:
    """Cut a document between escapes. One call on 30 MB would block the event loop for 0.5 s."""
    start = 0
    while start < len(document):
        piece = document[start : start + PIECE_BYTES]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = document[start : start + PIECE_BYTES + 1]
        yield piece
        start += len(piece)
