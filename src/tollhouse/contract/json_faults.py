"""Refusals of bodies that are not JSON, with the place of the fault.

Messages repeat nothing of the body except the names of repeated members, each cut short.
"""

import re
from collections import Counter
from json import JSONDecoder
from math import isinf
from typing import Any, Final, TypeAlias

from tollhouse.base.errors import InvalidRequest, listed

Document: TypeAlias = bytes | bytearray

SOUGHT_BYTES_MAX: Final = 1_048_576
"""Repeated names and numbers out of range are not searched for in larger bodies, because the search
would delay other requests."""
_FAULT: Final = re.compile(r"JSON is malformed: (?P<words>.+) \(byte (?P<byte>\d+)\)\Z")
_READ_BEYOND: Final = ("trailing characters", "invalid escape character in string")
"""Faults that the parser reports one byte late."""
_HALF_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u)")
_PAIR_BYTES: Final = 12
_INTEGER_LENGTH_MAX: Final = 4_300
"""The longest integer that the parser reads, with its sign."""
_STRING_OR_NUMBER: Final = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"|(?P<number>-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)', re.DOTALL
)


def not_json(reason: str) -> InvalidRequest:
    """Return the refusal of a body that is not JSON, or too large."""
    return InvalidRequest("invalid_json", f"The body cannot be read: {reason}.")


def place(document: Document, offset: int) -> str:
    """Return line, column and byte for a message; lines and columns count from 1."""
    line = document.count(b"\n", 0, offset) + 1
    start = document.rfind(b"\n", 0, offset) + 1
    column = len(document[start:offset].decode(errors="replace")) + 1
    return f"line {line}, column {column} (byte {offset})"


def malformed(body: Document, error: Exception) -> InvalidRequest:
    """Return the refusal of a body that the parser could not read, with the place of the fault."""
    if isinstance(error, UnicodeDecodeError):
        return not_json(f"it is not UTF-8 at {place(body, _first_no_text(body))}")
    if (found := _FAULT.match(str(error))) is not None:
        words = found["words"]
        offset = int(found["byte"]) - (words in _READ_BEYOND)
        return not_json(f"it is not valid JSON at {place(body, offset)}: {words}")
    if "out of range" in str(error):
        return _out_of_range(body)
    if _HALF_PAIR.search(body[-_PAIR_BYTES:]) is not None:
        return not_json(f"half of a surrogate pair stands before {place(body, len(body))}")
    if not body.strip():
        return not_json("it is empty, and a JSON object is expected")
    return not_json(f"it ends at {place(body, len(body))}, before the JSON is complete")


def repeated_names(body: Document) -> InvalidRequest:
    """Return the refusal of an object with two members of one name, named if the body is small."""
    names = _repeated(body) if len(body) <= SOUGHT_BYTES_MAX else []
    words = f": {listed(names)}" if names else ""
    return not_json(f"an object has two members of the same name{words}")


def _out_of_range(body: Document) -> InvalidRequest:
    """Return the refusal of a number out of range, with its place if the body is small."""
    tokens = _STRING_OR_NUMBER.finditer(body) if len(body) <= SOUGHT_BYTES_MAX else ()
    numbers = (token for token in tokens if token["number"])
    found = next((each.start() for each in numbers if _is_out_of_range(each["number"])), None)
    where = "" if found is None else f" at {place(body, found)}"
    return not_json(f"it has a number that is out of range{where}")


def _is_out_of_range(number: bytes) -> bool:
    if number.removeprefix(b"-").isdigit():
        return len(number) > _INTEGER_LENGTH_MAX
    return isinf(float(number))


def _first_no_text(body: Document) -> int:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(body)


def _repeated(body: Document) -> list[str]:
    """Return the repeated names of the first object that has any."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        if not found:
            counts = Counter(name for name, _ in pairs)
            found.extend(name for name, count in counts.items() if count > 1)

    try:
        # The values of numbers do not matter here, and some are too long to be read.
        JSONDecoder(object_pairs_hook=look, parse_int=len, parse_float=len).decode(body.decode())
    except (ValueError, RecursionError):
        return []
    return found
