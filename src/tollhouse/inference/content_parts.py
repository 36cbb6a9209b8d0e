"""Which members of a content part are forwarded, and which media a backend may be sent.

A part is rebuilt from the members that its type has. Every other member is accepted and not
forwarded, so that no engine reads more in a part than was priced and judged (OQ-195).
"""

import re
from typing import Any, Final, cast

import msgspec

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.field_checks import invalid_value
from tollhouse.inference.forwarded_tools import forwarded_prediction

TEXT_TYPES: Final = ("text", "refusal")
_MEDIA_MEMBERS: Final = {
    "image_url": ("url", "detail"),
    "video_url": ("url",),
    "input_audio": ("data", "format"),
    "file": ("file_data", "filename"),
}
"""The types of media parts. Each has one member of the same name, an object with these members."""
_UNSERVED_MEMBERS: Final = (
    "audio_url",
    "audio_embeds",
    "image_embeds",
    "video_embeds",
    "input_image",
    "input_file",
)
"""Members by which some engines recognise media in a part without a type."""
_CONTENT_MEMBERS: Final = dict.fromkeys((*TEXT_TYPES, *_MEDIA_MEMBERS, *_UNSERVED_MEMBERS))
"""Ordered as error messages name them."""
_STRING_OR_NULL: Final = (str, type(None))
_FORMS: Final = {
    "detail": re.compile("auto|low|high|original"),
    "format": re.compile(r"[A-Za-z0-9]{1,16}"),
    "filename": re.compile(r"[^\x00-\x1f\x7f/\\:]{1,255}"),
}
"""Members that describe media; text of another form would be neither priced nor judged."""
_KINDS: Final = {"image_url": "image", "video_url": "video", "file": "file"}


def with_forwarded_parts(request: ChatRequest) -> ChatRequest:
    """Return the request with only those members of content parts that are forwarded.

    Raises `InvalidRequest` for a part without a type that holds several kinds of content.
    """
    for message in request.messages:
        if isinstance(message.content, list):
            messages = [_with_forwarded(each, at) for at, each in enumerate(request.messages)]
            request = msgspec.structs.replace(request, messages=messages)
            break
    if isinstance(request.prediction, dict):
        prediction = forwarded_prediction(request.prediction)
        if isinstance(parts := prediction.get("content"), list):
            prediction["content"] = _forwarded(cast("list[Any]", parts), "prediction.content")
        request = msgspec.structs.replace(request, prediction=prediction)
    return request


def forwarded_part(part: FreeObject, path: str) -> FreeObject:
    """Return the part as it is forwarded: its type, and the members that this type has."""
    kind = part.get("type") or _kind_without_type(part, path)
    if kind in TEXT_TYPES:
        text = part.get(kind)
        return {"type": kind, kind: text if isinstance(text, str) else ""}
    if kind in _MEDIA_MEMBERS:
        return {"type": kind, kind: _media(kind, part.get(kind))}
    return {"type": kind}


def unsafe_member(part: FreeObject, *, fetches_media: bool) -> str | None:
    """Return the member of a forwarded part that its backend cannot take safely, or None.

    `fetches_media` says that the backend is declared to fetch remote images and videos.
    """
    kind = part["type"]
    if kind in ("image_url", "video_url"):
        url = part[kind].get("url")
        is_fetched = fetches_media and is_http_address(url)
        return None if is_fetched or data_media_type(url) is not None else kind
    if kind == "input_audio":
        return None if is_base64(part[kind].get("data")) else f"{kind}.data"
    if kind == "file":
        data = part[kind].get("file_data")
        is_safe = data_media_type(data) is not None or is_base64(data)
        return None if is_safe else f"{kind}.file_data"
    return None


def misplaced_media(part: FreeObject) -> tuple[str, str] | None:
    """Return the member of a forwarded part whose data is of another kind, and its media type."""
    kind = part["type"]
    if kind not in _KINDS:
        return None
    member = _MEDIA_MEMBERS[kind][0]
    media_type = data_media_type(part[kind].get(member))
    if media_type is None or is_of_kind(media_type, _KINDS[kind]):
        return None
    return (kind if member == "url" else f"{kind}.{member}"), media_type


def _with_forwarded(message: ChatMessage, position: int) -> ChatMessage:
    if not isinstance(message.content, list):
        return message
    parts = _forwarded(message.content, f"messages[{position}].content")
    return msgspec.structs.replace(message, content=parts)


def _forwarded(parts: list[Any], path: str) -> list[FreeObject]:
    return [
        part if _is_plain_text(part) else _forwarded_one(part, path, index)
        for index, part in enumerate(parts)
    ]


def _is_plain_text(part: Any) -> bool:  # noqa: ANN401 - free-form
    """Whether a part is forwarded unchanged. Checked first, because nearly all parts are."""
    return (
        type(part) is dict
        and len(cast("FreeObject", part)) == len(("type", "text"))
        and cast("FreeObject", part).get("type") == "text"
        and type(cast("FreeObject", part).get("text")) is str
    )


def _forwarded_one(part: Any, path: str, index: int) -> FreeObject:  # noqa: ANN401 - free-form
    if not part and isinstance(part, dict):
        return {"type": "text", "text": ""}
    path = f"{path}[{index}]"
    if not isinstance(part, dict):
        raise _untyped(path)
    fields = cast("FreeObject", part)
    if not isinstance(fields.get("type"), _STRING_OR_NULL):
        raise _untyped(path)
    return forwarded_part(fields, path)


def _untyped(path: str) -> InvalidRequest:
    return invalid_value(path, "expected an object with a 'type'")


def _kind_without_type(part: FreeObject, path: str) -> str:
    """Return the type of a part from its members; a part without a known member is empty text."""
    held = [name for name, value in part.items() if value is not None and name in _CONTENT_MEMBERS]
    if len(held) > 1:
        held.sort(key=list(_CONTENT_MEMBERS).index)
        names = ", ".join(f"'{name}'" for name in held)
        raise invalid_value(path, f"it holds {names}; say its 'type', or send one part for each")
    return held[0] if held else "text"


def _media(kind: str, value: Any) -> FreeObject:  # noqa: ANN401 - free-form
    """Return the members of media; a plain string is its address or its data."""
    names = _MEDIA_MEMBERS[kind]
    if isinstance(value, str):
        return {names[0]: value}
    fields = cast("FreeObject", value) if isinstance(value, dict) else {}
    shown = {name: found for name in names if isinstance(found := fields.get(name), str)}
    return {name: found for name, found in shown.items() if _has_form(name, found)}


def _has_form(name: str, value: str) -> bool:
    return name not in _FORMS or _FORMS[name].fullmatch(value) is not None


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
"""Only both ends of long data are checked: an address or a path shows itself there."""
SIGNATURE_CHARACTERS_MAX: Final = 65_536
_SCRIPTED_IMAGE: Final = "image/svg+xml"
"""SVG can reference files and addresses that a renderer would fetch."""
_OWN_PARTS: Final = ("image", "video", "audio")
"""Kinds of media that have a part type of their own and are not sent as files."""


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
    """Whether a part of this kind may contain data of this media type.

    `kind` is `image`, `video`, `audio` or `file`; a file is any media without a part type.
    """
    major = media_type.partition("/")[0].lower()
    if kind == "file":
        return major not in _OWN_PARTS
    return major == kind and media_type.lower() != _SCRIPTED_IMAGE


def is_base64(value: object) -> bool:
    """Whether a value is base64 in whole blocks. Of a long value only both ends are checked."""
    if not isinstance(value, str) or len(value) % _BASE64_BLOCK:
        return False
    if len(value) <= 2 * _CHECKED_CHARACTERS:
        return _BASE64.fullmatch(value) is not None
    beginning, end = value[:_CHECKED_CHARACTERS], value[-_CHECKED_CHARACTERS:]
    return "=" not in beginning and all(map(_BASE64.fullmatch, (beginning, end)))


def is_signature(value: object) -> bool:
    """Whether a value can be the signature of thinking: whole base64, checked to its end.

    No policy reads a signature, so that none of it may be plain text.
    """
    return (
        isinstance(value, str)
        and 0 < len(value) <= SIGNATURE_CHARACTERS_MAX
        and len(value) % _BASE64_BLOCK == 0
        and _BASE64.fullmatch(value) is not None
    )


def is_http_address(value: object) -> bool:
    """Whether a value is an HTTP address that a backend with a safe fetcher may receive."""
    return isinstance(value, str) and _HTTP_ADDRESS.fullmatch(value) is not None
