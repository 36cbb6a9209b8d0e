"""What is wrong with a body that is no JSON, and where. Nothing of the body itself is repeated."""

import re
from collections import Counter
from json import JSONDecoder
from typing import Any, Final

from tollhouse.base.errors import InvalidRequest, listed
from tollhouse.contract.json_scan import Document, not_json

NAMES_SOUGHT_BYTES_MAX: Final = 1_048_576
"""In larger bodies nobody looks for the name that stands twice: it would hold up others."""
_FAULT: Final = re.compile(r"JSON is malformed: (?P<words>.+) \(byte (?P<byte>\d+)\)\Z")
_READ_BEYOND: Final = ("trailing characters", "invalid escape character in string")
"""Faults that the parser reports one byte late."""
_HALF_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u)")
_PAIR_BYTES: Final = 12


def malformed(body: Document, error: Exception) -> InvalidRequest:
    """The refusal of a body that the parser could not read, with the place of the fault."""
    if isinstance(error, UnicodeDecodeError):
        return not_json(f"it is not UTF-8 at {_place(body, _first_no_text(body))}")
    if (found := _FAULT.match(str(error))) is not None:
        words = found["words"]
        offset = int(found["byte"]) - (words in _READ_BEYOND)
        return not_json(f"it is not valid JSON at {_place(body, offset)}: {words}")
    if "out of range" in str(error):
        return not_json("it has a number that is out of range")
    if _HALF_PAIR.search(body[-_PAIR_BYTES:]) is not None:
        return not_json(f"half of a surrogate pair stands before {_place(body, len(body))}")
    if not body.strip():
        return not_json("it is empty, and a JSON object is expected")
    return not_json(f"it ends at {_place(body, len(body))}, before the JSON is complete")


def repeated_names(body: Document) -> InvalidRequest:
    """The refusal of an object with two members of one name, which it tells if that is cheap."""
    names = _repeated(body) if len(body) <= NAMES_SOUGHT_BYTES_MAX else []
    words = f": {listed(names)}" if names else ""
    return not_json(f"an object has two members of the same name{words}")


def _place(body: Document, offset: int) -> str:
    """Lines and columns count from 1, columns in characters."""
    line = body.count(b"\n", 0, offset) + 1
    start = body.rfind(b"\n", 0, offset) + 1
    column = len(body[start:offset].decode(errors="replace")) + 1
    return f"line {line}, column {column} (byte {offset})"


def _first_no_text(body: Document) -> int:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(body)


def _repeated(body: Document) -> list[str]:
    """The names that stand twice, in the object that ends first."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        if not found:
            counts = Counter(name for name, _ in pairs)
            found.extend(name for name, count in counts.items() if count > 1)

    try:
        # Numbers are no names, and some are too long to be read.
        JSONDecoder(object_pairs_hook=look, parse_int=len, parse_float=len).decode(body.decode())
    except (ValueError, RecursionError):
        return []
    return found
