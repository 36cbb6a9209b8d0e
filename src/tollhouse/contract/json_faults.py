"""What is wrong with a body that is no JSON, and where.

Of the body itself messages repeat only the names of members that stand twice, each cut short.
"""

import re
from collections import Counter
from json import JSONDecoder
from math import isinf
from typing import Any, Final

from tollhouse.base.errors import InvalidRequest, listed
from tollhouse.contract.json_scan import Document, not_json, place

SOUGHT_BYTES_MAX: Final = 1_048_576
"""In larger bodies names that stand twice and numbers out of range are not sought: the search would
hold up other requests."""
_FAULT: Final = re.compile(r"JSON is malformed: (?P<words>.+) \(byte (?P<byte>\d+)\)\Z")
_READ_BEYOND: Final = ("trailing characters", "invalid escape character in string")
"""Faults that the parser reports one byte late."""
_HALF_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u)")
_PAIR_BYTES: Final = 12
_INTEGER_LENGTH_MAX: Final = 4_300
"""Of an integer that the parser reads, with its sign."""
_STRING_OR_NUMBER: Final = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"|(?P<number>-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)', re.DOTALL
)


def malformed(body: Document, error: Exception) -> InvalidRequest:
    """The refusal of a body that the parser could not read, with the place of the fault."""
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
    """The refusal of an object with two members of one name, which it tells if that is cheap."""
    names = _repeated(body) if len(body) <= SOUGHT_BYTES_MAX else []
    words = f": {listed(names)}" if names else ""
    return not_json(f"an object has two members of the same name{words}")


def _out_of_range(body: Document) -> InvalidRequest:
    """The refusal of a number that the parser cannot hold, with its place if that is cheap."""
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
