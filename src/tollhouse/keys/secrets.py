"""The format of keys, and the digest that is stored of a key.

A key is its prefix, 43 base62 characters of 256 random bits, and 6 of a CRC-32 over both. The
checksum rejects typos and random text without a query. In a deployment with a cell, the prefix of
new keys ends with the cell's name (`thp_eu1_`), so that a proxy can route by it.
"""

import hashlib
import re
import secrets
import zlib
from typing import Final

from tollhouse.keys.types import KeyKind, NewSecret

PREFIXES: Final = {KeyKind.PROJECT: "thp_", KeyKind.ADMIN: "tha_"}
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BODY_LENGTH: Final = 43
_CHECKSUM_LENGTH: Final = 6
_RANDOM_BITS: Final = 256
_SHOWN_CHARACTERS: Final = 4
# The body is tried first: if a cell were, a body in lower case would be read twice.
_FORM: Final = re.compile(r"th[ap]_(?:[0-9A-Za-z]{49}|([a-z][a-z0-9]{0,15})_[0-9A-Za-z]{49})")


def digest(value: str) -> bytes:
    """Return the SHA-256 of a key. Its 256 random bits leave nothing to guess: decision 0042."""
    return hashlib.sha256(value.encode()).digest()


def is_well_formed(value: str) -> bool:
    """Return whether a value has the format and checksum of a key; takes microseconds."""
    if _FORM.fullmatch(value) is None:
        return False
    return value[-_CHECKSUM_LENGTH:] == _checksum(value[:-_CHECKSUM_LENGTH])


def cell_of(value: str) -> str | None:
    """Return the cell that a well-formed key names, or None."""
    form = _FORM.fullmatch(value)
    return form.group(1) if form is not None and is_well_formed(value) else None


def mint(kind: KeyKind, *, cell: str | None = None) -> NewSecret:
    """Create a new secret; the caller shows `value` once and stores the rest."""
    prefix = PREFIXES[kind] if cell is None else f"{PREFIXES[kind]}{cell}_"
    body = prefix + _base62(secrets.randbits(_RANDOM_BITS), _BODY_LENGTH)
    value = body + _checksum(body)
    return NewSecret(value=value, redacted_value=redact(value), digest=digest(value))


def redact(value: str) -> str:
    """Return the prefix and 4 characters from each end: too few to guess the key."""
    shown_until = len(value) - _BODY_LENGTH - _CHECKSUM_LENGTH + _SHOWN_CHARACTERS
    return f"{value[:shown_until]}...{value[-_SHOWN_CHARACTERS:]}"


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits: list[str] = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
