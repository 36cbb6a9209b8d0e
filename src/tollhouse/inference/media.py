"""The forms in which media may stand in a request: data URLs, plain base64, and http addresses.

The kind of a part decides its price and the modality that its model needs, so data whose media
type is of another kind is refused (OQ-195).
"""

import re
from typing import Final

_DATA_URL: Final = re.compile(
    r"data:([a-z0-9]{1,32}/[a-z0-9.+_-]{1,128})(?:;[a-z0-9_-]{1,64}=[a-z0-9.+_-]{0,128}){0,8};base64,",
    re.IGNORECASE,
)
_DATA_SCHEME: Final = "data:"
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9]{1,32}/[a-z0-9.+_-]{1,128}", re.IGNORECASE)
_HTTP_ADDRESS: Final = re.compile(r"https?://[^\x00-\x20\x7f]{1,8192}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_BASE64_BLOCK: Final = 4
_CHECKED_CHARACTERS: Final = 4096
"""Data can be megabytes. What is an address or a path shows it at one of its ends."""
_SCRIPTED_IMAGE: Final = "image/svg+xml"
"""Text that can name files and addresses, which a renderer may fetch."""
_OWN_PARTS: Final = ("image", "video", "audio")
"""The kinds of media that have parts of their own, and are no files."""


def data_media_type(value: object) -> str | None:
    """Return TYPE/SUBTYPE of `data:TYPE/SUBTYPE;base64,...` in lower case, or None for all else."""
    if not isinstance(value, str) or not value.startswith(_DATA_SCHEME):
        return None
    found = _DATA_URL.match(value)
    return None if found is None else found[1].lower()


def is_media_type(value: str) -> bool:
    """Whether a text has the form TYPE/SUBTYPE, without parameters."""
    return _MEDIA_TYPE.fullmatch(value) is not None


def is_of_kind(media_type: str, kind: str) -> bool:
    """Whether data of this media type may stand in a part of this kind.

    `kind` is `image`, `video`, `audio` or `file`; a file is whatever has no part of its own.
    """
    major = media_type.partition("/")[0].lower()
    if kind == "file":
        return major not in _OWN_PARTS
    return major == kind and media_type.lower() != _SCRIPTED_IMAGE


def is_base64(value: object) -> bool:
    """Whether a value is plain base64 in whole blocks; of a long one both ends are looked at."""
    if not isinstance(value, str) or len(value) % _BASE64_BLOCK:
        return False
    if len(value) <= 2 * _CHECKED_CHARACTERS:
        return _BASE64.fullmatch(value) is not None
    beginning, end = value[:_CHECKED_CHARACTERS], value[-_CHECKED_CHARACTERS:]
    return "=" not in beginning and all(map(_BASE64.fullmatch, (beginning, end)))


def is_http_address(value: object) -> bool:
    """Whether a value is an address that a backend with a safe fetcher may be sent."""
    return isinstance(value, str) and _HTTP_ADDRESS.fullmatch(value) is not None
