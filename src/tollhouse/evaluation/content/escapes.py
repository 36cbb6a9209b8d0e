"""JSON strings for the judge's prompt, in which a chat template finds no markup.

Some tokenizers would read `<|im_end|>` or `[/INST]` in a content as the end of the gateway's own
message. Line ends are escaped too, so that a content cannot contain the line with its delimiter.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

_MARKUP: Final = {
    character: f"\\u{ord(character):04x}" for character in "<>|\x7f\x85\u2028\u2029\u2581\uff5c"
}
_BRACKETED_WORD = re.compile(r"\[(?=/?[A-Za-z]\w*\])")
_ESCAPED = re.compile(r"(?<!\\)\\++(?:u005[cC]\\*+)*u([0-9a-fA-F]{4})")
"""Also matches JSON inside a JSON string, where the backslash is doubled or escaped itself.

The possessive quantifiers read each backslash once, even if a text has only backslashes.
"""
_PIECE_CHARACTERS = 65_536
"""A regular expression holds the interpreter lock while it runs, so it runs on short pieces."""
_encoder = msgspec.json.Encoder()


def quoted(text: str) -> str:
    """Return the text as a JSON string on one line, with its quotes."""
    json = _encoder.encode(text).decode()
    for character, escaped in _MARKUP.items():
        json = json.replace(character, escaped)
    return "".join(_BRACKETED_WORD.sub(r"\\u005b", piece) for piece in _pieces(json))


def _pieces(text: str) -> Iterator[str]:
    """Cut before opening brackets only, so that no bracketed word is cut in two."""
    start, end = 0, text.find("[", _PIECE_CHARACTERS)
    while end >= 0:
        yield text[start:end]
        start, end = end, text.find("[", end + _PIECE_CHARACTERS)
    yield text[start:]


def unescaped(json: str) -> str:
    r"""Return the text with every escape such as `\u0041` replaced by its character."""
    if "\\u" not in json:
        return json
    found = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), json)
    # A character above U+FFFF is escaped as two surrogates.
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_plain(text: str) -> bool:
    """Whether JSON needs no escape for the text."""
    return len(_encoder.encode(text)) == len(text.encode()) + 2


def size_bytes(json: str) -> int:
    """Return the length in UTF-8, which is what the judge's tokenizer reads."""
    return len(json) if json.isascii() else len(json.encode())
