"""How long JSON can become when a template serializes it: indented, escaped, as markup."""

from itertools import accumulate

from tollhouse.contract.decoding import punctuation

INDENTATION_BYTES = 4
LINE_BYTES = 16
"""Around each value: line end, blanks, tags, and the digits of a number written as `1e15`."""
ESCAPE_BYTES = 5
"""`<` becomes `\\u003c`."""
NESTING_OF_ARGUMENTS = 6
"""The depth of a call's arguments in a list of messages that is serialized as a whole."""

_ESCAPED_BY_SOME = b"<>&'\\\x7f"
_ASCII = bytes(range(0x80))
_STEPS = bytes.maketrans(b",[{]}", b"\x00\x01\x01\xff\xff")


def growth_bytes(written: bytes, *, nesting: int) -> int:
    """Return how many bytes longer than `written` its JSON can be in any usual format.

    Text that is not JSON is never serialized again; its result is meaningless, but not negative.
    """
    return _layout_bytes(written, nesting) + _escape_bytes(written)


def _layout_bytes(written: bytes, nesting: int) -> int:
    """Return the bytes added if each value is on its own line, indented by its depth."""
    structure = b"".join(punctuation(written).split(b'"')[::2])
    steps = memoryview(structure.translate(_STEPS, b":")).cast("b")
    lines = len(steps) + 1
    depths = max(0, sum(accumulate(steps))) + nesting * lines
    return lines * LINE_BYTES + depths * INDENTATION_BYTES


def _escape_bytes(written: bytes) -> int:
    """Return the bytes that escaping adds to markup, and to non-ASCII (three times its bytes)."""
    marks = len(written) - len(written.translate(None, _ESCAPED_BY_SOME))
    beyond_ascii = 0 if written.isascii() else len(written.translate(None, _ASCII))
    return marks * ESCAPE_BYTES + beyond_ascii * 2
