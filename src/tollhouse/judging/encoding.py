"""Text as a judge reads it: JSON in which nothing can be taken for markup of a chat template.

A content that says `<|im_end|>` or `[/INST]` would otherwise be read by some tokenizers as the
end of the gateway's own message. Line ends are escaped too, so that a content cannot write the
line that closes its fence.
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
"""In a string of JSON that is in a string of JSON the backslash is doubled, or escaped itself.

Each backslash is looked at once: a text may be nothing else.
"""
_PIECE_CHARACTERS = 65_536
"""An expression stops every thread of the process for as long as it looks."""
_encoder = msgspec.json.Encoder()


def quoted(text: str) -> str:
    """A JSON string on one line, quotes included, which decodes to the same text."""
    json = _encoder.encode(text).decode()
    for character, escaped in _MARKUP.items():
        json = json.replace(character, escaped)
    return "".join(_BRACKETED_WORD.sub(r"\\u005b", piece) for piece in _pieces(json))


def _pieces(text: str) -> Iterator[str]:
    """Cut only before a bracket: no word in brackets has another one inside."""
    start, end = 0, text.find("[", _PIECE_CHARACTERS)
    while end >= 0:
        yield text[start:end]
        start, end = end, text.find("[", end + _PIECE_CHARACTERS)
    yield text[start:]


def unescaped(json: str) -> str:
    r"""The text with every `\u0041` as its character, whatever else it is."""
    if "\\u" not in json:
        return json
    found = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), json)
    # A character beyond the first 65,536 is escaped as two halves.
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_plain(text: str) -> bool:
    """Whether JSON writes it as it is."""
    return len(_encoder.encode(text)) == len(text.encode()) + 2


def size_bytes(json: str) -> int:
    """Bytes on the wire, as far as the judge's tokenizer sees them."""
    return len(json) if json.isascii() else len(json.encode())
