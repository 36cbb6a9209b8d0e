"""Keys that no gateway has made: well-formed ones that nobody knows, and every kind of garbage.

The form is written down here a second time, from the register and not from the product.
"""

import secrets
import zlib

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM_LENGTH = 43
CHECKSUM_LENGTH = 6
PROJECT_PREFIX = "thp_"
ADMIN_PREFIX = "tha_"


def unknown_key(prefix: str) -> str:
    """A key in perfect form that was never created."""
    body = prefix + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return body + checksum(body)


def checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits: list[str] = []
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits.insert(0, ALPHABET[digit])
    return "".join(digits)


def malformed_keys(prefix: str) -> dict[str, str]:
    """Near misses of a key, by what is wrong with each."""
    sound = unknown_key(prefix)
    last = ALPHABET[(ALPHABET.index(sound[-1]) + 1) % len(ALPHABET)]
    return {
        "too short": sound[:-1],
        "too long": sound + "0",
        "wrong checksum": sound[:-1] + last,
        "other prefix": "sk-proj-" + sound[4:],
        "no prefix": sound[4:],
        "only a prefix": prefix,
        "a character outside the alphabet": sound[:20] + "-" + sound[21:],
        "a word": "key",
    }
