"""What the bytes of a JSON document tell before a parser allocates anything.

All of it runs at the speed of C. Decision 0004 has the reasons.
"""

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, TypeAlias

from tollhouse.base.errors import InvalidRequest

Document: TypeAlias = bytes | bytearray

DEPTH_MAX: Final = 128
ELEMENTS_MAX: Final = 120_000
"""Brackets, commas and colons outside strings: about twelve for each of the objects below. Up to
here a document is parsed within some ten milliseconds, in at most 25 MB."""
MEMBERS_MAX: Final = 25_000
"""Of all objects together. Each costs several times what another element does."""
OBJECTS_IN_ARRAYS_MAX: Final = 10_000
"""Messages, content parts, tool calls, tools, input items and blocks together. The gateway works on
each of them several times. An agent with 2,000 turns of two messages, one call and two parts each
sends as many."""
PIECE_BYTES: Final = 1_048_576
NESTING_PIECE: Final = 4_096

_PUNCTUATION: Final = b',:[]{}"'
_NOT_PUNCTUATION: Final = bytes(set(range(256)) - set(_PUNCTUATION))
_AS_ARRAYS: Final = bytes.maketrans(b"{}", b"[]")
_NESTING_STEPS: Final = bytes.maketrans(b"[]", b"\x01\xff")
_ASTRAL: Final = re.compile(rb"[\xf0-\xf4]|\\u[dD][89abAB]")


def structure(document: Document) -> bytes:
    """Return the punctuation outside strings, which tells how much a parser would build.

    Up to the first fault this is exact, and a parser does not get beyond the first fault.
    """
    if b"\\u0000" in document:
        # Of the same length, so that what is found stands where it stood.
        offset = document.replace(b"\\\\", b"  ").find(b"\\u0000")
        if offset >= 0:
            raise not_json(f"a string contains the character NUL at {place(document, offset)}")
    marks = b"".join(map(punctuation, _pieces(document)))
    # Strings have something between them, so that this also bounds the number of pieces.
    if marks.count(b'"') > 2 * (ELEMENTS_MAX + 1):
        raise _too_many_elements()
    found = b"".join(marks.split(b'"')[::2])
    if len(found) > ELEMENTS_MAX:
        raise _too_many_elements()
    if found.count(b":") > MEMBERS_MAX:
        raise not_json(f"its objects have more than {MEMBERS_MAX} members together")
    # In an object a name and a colon stand between a comma and a bracket.
    if found.count(b"[{") + found.count(b",{") > OBJECTS_IN_ARRAYS_MAX:
        raise not_json(f"its arrays hold more than {OBJECTS_IN_ARRAYS_MAX} objects")
    return found


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
    """Brackets, commas, colons and quotes of JSON; between quotes stands what strings contain."""
    if b"\\" in piece:
        # Without pairs of backslashes, each one that is left begins an escape.
        piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
    return bytes(piece.translate(None, _NOT_PUNCTUATION))


def refuse_too_deep(found: bytes) -> None:
    """Refuse a structure whose brackets nest too deep; few brackets cannot, which saves the walk.

    What is flat loses most of its brackets with each level that is removed from within; the rest
    is walked piece by piece, so that much too deep costs no more than just too deep.
    """
    if found.count(b"[") + found.count(b"{") <= DEPTH_MAX:
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
    """How deep they nest; as soon as it is more than `enough`, the walk ends."""
    steps = memoryview(brackets.translate(_NESTING_STEPS)).cast("b")
    depth = deepest = 0
    for start in range(0, len(steps), NESTING_PIECE):
        depths = [*accumulate(steps[start : start + NESTING_PIECE], initial=depth)]
        deepest, depth = max(deepest, *depths), depths[-1]
        if deepest > enough:
            break
    return deepest


def place(document: Document, offset: int) -> str:
    """Return line, column and byte for a message; lines and characters count from 1."""
    line = document.count(b"\n", 0, offset) + 1
    start = document.rfind(b"\n", 0, offset) + 1
    column = len(document[start:offset].decode(errors="replace")) + 1
    return f"line {line}, column {column} (byte {offset})"


def not_json(reason: str) -> InvalidRequest:
    """The refusal of a body that is no JSON, or more than is read."""
    return InvalidRequest("invalid_json", f"The body cannot be read: {reason}.")


def _too_many_elements() -> InvalidRequest:
    return not_json(f"it has more than {ELEMENTS_MAX} structural elements")


def _pieces(document: Document) -> Iterator[Document]:
    """Cut between escapes. One call on 30 MB would keep the event loop out for half a second."""
    start = 0
    while start < len(document):
        piece = document[start : start + PIECE_BYTES]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = document[start : start + PIECE_BYTES + 1]
        yield piece
        start += len(piece)
