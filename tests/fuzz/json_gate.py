"""The JSON gate: it accepts what `json` can read in one way only, and reads the same."""

import json
import math
from typing import Any, NoReturn, cast

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import decoding
from tollhouse.contract.decoding import DEPTH_MAX

SEEDS = (
    b'{"model":"m","messages":[{"role":"user","content":"hi"}],"n":1,"temperature":0.5}',
    rb'{"a":"\ud83d\ude00\\\"\u0041","b":[true,false,null,-0.0,1e5,12345678901234567890]}',
    b'{"a":1,"a":2}',
    b"[" * 130 + b"]" * 130,
    rb'"\u0000\ud800"',
)
DIGITS_MAX = 4_300
"""Of an integer. The reference has the same bound, but counts a sign."""


class Refused(Exception):
    """The reference does not accept the document."""


def check(data: bytes) -> None:
    """Compare the gate with the reference. Documents within all bounds but that of depth."""
    try:
        found = decoding.screen(data)
    except InvalidRequest:
        _assert_refused(data)
        return
    expected = _reference(data)
    assert _same(found, expected), f"{found!r} is not {expected!r}"
    assert _same(decoding.screen(decoding.canonical(found)), found), "canonical JSON reads the same"


def _assert_refused(data: bytes) -> None:
    try:
        value = _reference(data)
    except Refused:
        return
    raise AssertionError(f"refused, and the reference reads {value!r}")


def _reference(data: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        text = data.decode()
        value = json.loads(
            text,
            parse_constant=_refuse,
            parse_int=_integer,
            parse_float=_number,
            object_pairs_hook=_members,
        )
    except (ValueError, RecursionError) as error:
        raise Refused from error
    if _depth(value) > DEPTH_MAX or not _has_only_characters(value):
        raise Refused
    return value


def _refuse(text: str) -> NoReturn:
    raise Refused(text)


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > DIGITS_MAX:
        raise Refused(text)
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Refused(text)
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Refused
    return members


def _children(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return [*members, *members.values()]
    return cast("list[Any]", value) if isinstance(value, list) else []


def _depth(value: Any) -> int:  # noqa: ANN401 - JSON
    """Return how many objects and arrays are nested."""
    level: list[Any] = [value]
    depth = 0
    while any(isinstance(each, dict | list) for each in level):
        depth += 1
        level = [child for each in level for child in _children(each)]
    return depth


def _has_only_characters(value: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether no string has a lone surrogate or the character NUL."""
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= each <= "\udfff" for each in value)
    return all(map(_has_only_characters, _children(value)))


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 - JSON
    """Equality that tells 1 from 1.0 and from true."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, dict):
        members = cast("dict[str, Any]", one)
        return all(_same(value, other[name]) for name, value in members.items())
    return not isinstance(one, list) or all(map(_same, cast("list[Any]", one), other))
