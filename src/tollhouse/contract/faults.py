"""Turns validation errors of msgspec into `InvalidRequest` with a code, a param and a message.

Messages name fields and bounds. They repeat nothing of a body except names of members.
"""

import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import inspect
from msgspec.structs import fields

from tollhouse.base.errors import InvalidCode, InvalidRequest, did_you_mean
from tollhouse.contract.bounds import FORMS

MEMBER_NAME_LENGTH_MAX = 200
"""The longest name of an unknown member that a message repeats; a name can have 32 MB."""

_PATH = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>[\w.\[\]]*)`\Z", re.ASCII)
_MESSAGE = re.compile(r"\.messages\[\d+\]", re.ASCII)
_STEP = re.compile(r"\.(?P<member>\w+)|\[(?P<index>\d+)\]", re.ASCII)
_MISSING = re.compile(r"Object missing required field `(?P<name>.+)`\Z")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`\Z", re.DOTALL)
_NUMBER = re.compile(r"Expected `(?P<type>int|float)` (?P<side>>=|<=) (?P<bound>\S+)\Z")
_LENGTH = re.compile(
    r"Expected `(?P<type>str|array|object)` of length (?P<side>>=|<=) (?P<bound>\d+)\Z"
)
_TYPE = re.compile(r"Expected `(?P<expected>.+)`, got `(?P<got>.+)`\Z")
_LIKENESS_MIN = 0.75
_REGEX_PREFIX = "Expected `str` matching regex "

_CODES: dict[tuple[str, str], InvalidCode] = {
    ("int", ">="): "integer_below_min_value",
    ("int", "<="): "integer_above_max_value",
    ("float", ">="): "decimal_below_min_value",
    ("float", "<="): "decimal_above_max_value",
    ("str", ">="): "string_below_min_length",
    ("str", "<="): "string_above_max_length",
    ("array", ">="): "array_below_min_length",
    ("array", "<="): "array_above_max_length",
    # OpenAI has no code for the number of members.
    ("object", ">="): "invalid_value",
    ("object", "<="): "invalid_value",
}
_SIDES = {">=": "at least", "<=": "at most"}
_UNITS = {"str": "character", "array": "item", "object": "member"}
_TYPE_WORDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
}
_FORMS_BY_REPR = {repr(pattern): words for pattern, words in FORMS.items()}


class UnknownMessageMember(InvalidRequest):
    """A message has a member that the interface does not have, such as one of an earlier answer."""

    cites_page = True

    def __init__(self, param: str, nearest: str) -> None:
        advice = nearest or "Messages of a request have no such member."
        text = (
            f"Unknown parameter: '{param}'. {advice} If it came with an answer, drop this member "
            "before you send the answer back."
        )
        super().__init__("unknown_parameter", text, param=param)


def refusal(
    error: msgspec.ValidationError,
    type_: type[msgspec.Struct],
    tree: Any,  # noqa: ANN401 - JSON
) -> InvalidRequest:
    """Return the refusal for the first fault of a body or query of this type."""
    text = str(error)
    found = _PATH.search(text)
    path, in_map, _ = (found["path"] if found else "").partition("[...]")
    fault = text[: found.start()] if found else text
    if match := _MISSING.match(fault):
        name = _join(path, match["name"])
        message = f"Missing required parameter: '{name}'."
        return _invalid("missing_required_parameter", message, name)
    if match := _UNKNOWN.match(fault):
        return _unknown_member(path, match["name"][:MEMBER_NAME_LENGTH_MAX], type_)
    if not path:
        return InvalidRequest("invalid_json", "The body must be a JSON object.")
    refused = _value_refusal(fault, path, type_)
    is_of_map = bool(in_map) or (found is not None and found["key"] is not None)
    if is_of_map and (entry := _first_entry(path, type_, tree)) is not None:
        refused.message += f" The entry that does not fit is '{entry}'."
    return refused


def _unknown_member(path: str, name: str, type_: type[msgspec.Struct]) -> InvalidRequest:
    param = _join(path, name)
    nodes = [node for node in _nodes(type_, path) if isinstance(node, inspect.StructType)]
    known = [field.encode_name for node in nodes for field in node.fields]
    if _MESSAGE.fullmatch(path):
        return UnknownMessageMember(param, _nearest(name, known))
    return unknown_parameter(param, name, known)


def unknown_parameter(param: str, name: str, known: Iterable[str]) -> InvalidRequest:
    """Return the refusal of an unknown name, with the nearest known name if one is near."""
    nearest = _nearest(name, known)
    advice = f"{nearest} If not, leave it out." if nearest else "Leave it out."
    return _invalid("unknown_parameter", f"Unknown parameter: '{param}'. {advice}", param)


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests the nearest known name, or nothing if none is near."""
    return did_you_mean(name, known, likeness_min=_LIKENESS_MIN).removeprefix(". ")


def _first_entry(path: str, type_: type[msgspec.Struct], tree: Any) -> str | None:  # noqa: ANN401 - JSON
    """Return the name of the first invalid entry of a map that is a field of the body."""
    field = path.removeprefix(".")
    entries = cast("dict[str, Any]", tree).get(field)
    declared = next((each for each in fields(type_) if each.encode_name == field), None)
    if declared is None or not isinstance(entries, dict):
        return None
    found = list(cast("dict[str, Any]", entries).items())
    while len(found) > 1:
        half = found[: len(found) // 2]
        found = found[len(half) :] if _fits(half, declared.type) else half
    if not found or _fits(found, declared.type):
        return None
    return found[0][0][:MEMBER_NAME_LENGTH_MAX]


def _fits(entries: list[tuple[str, Any]], type_: Any) -> bool:  # noqa: ANN401 - a type
    try:
        msgspec.convert(dict(entries), type_, strict=True)
    except msgspec.ValidationError:
        return False
    return True


def _value_refusal(fault: str, path: str, type_: type[msgspec.Struct]) -> InvalidRequest:
    name = path.removeprefix(".")
    if match := _LENGTH.match(fault) or _NUMBER.match(fault):
        code = _CODES[match["type"], match["side"]]
        bound = _bound(match["bound"], _UNITS.get(match["type"]))
        return _invalid(code, f"Invalid '{name}': expected {_SIDES[match['side']]} {bound}.", name)
    if match := _TYPE.match(fault):
        words = f"expected {_words(match['expected'])}, got {_words(match['got'])}"
        return _invalid("invalid_type", f"Invalid type for '{name}': {words}.", name)
    if fault.startswith(_REGEX_PREFIX):
        words = _FORMS_BY_REPR[fault.removeprefix(_REGEX_PREFIX)]
        return _invalid("invalid_value", f"Invalid '{name}': expected {words}.", name)
    if values := [f"'{value}'" for value in _allowed_values(type_, path)]:
        words = f"expected one of {', '.join(values)}"
        return _invalid("invalid_value", f"Invalid '{name}': {words}.", name)
    return _invalid("invalid_value", f"Invalid '{name}': the value is out of range.", name)


def _invalid(code: InvalidCode, message: str, param: str) -> InvalidRequest:
    return InvalidRequest(code, message, param=param)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}".removeprefix(".")


def _bound(text: str, unit: str | None) -> str:
    number = text.removesuffix(".0")
    return number if unit is None else f"{number} {unit}{'' if number == '1' else 's'}"


def _words(names: str) -> str:
    return " or ".join(_TYPE_WORDS.get(name, name) for name in names.split(" | "))


def _allowed_values(type_: type[msgspec.Struct], path: str) -> list[Any]:
    """Return the values that the field at this path may have, if they are enumerated."""
    literals = [node for node in _nodes(type_, path) if isinstance(node, inspect.LiteralType)]
    return [value for literal in literals for value in literal.values]


def _nodes(type_: type[msgspec.Struct], path: str) -> list[inspect.Type]:
    """Return the types that a value at this path may have."""
    nodes = _alternatives(inspect.type_info(type_))
    for step in _STEP.finditer(path):
        nodes = [below for node in nodes for below in _below(node, step)]
    return nodes


def _below(node: inspect.Type, step: re.Match[str]) -> list[inspect.Type]:
    if isinstance(node, inspect.ListType) and step["index"] is not None:
        return _alternatives(node.item_type)
    if not isinstance(node, inspect.StructType):
        return []
    if step["member"] == node.tag_field:
        return [inspect.LiteralType((str(node.tag),))]
    fields = [field for field in node.fields if field.encode_name == step["member"]]
    return [below for field in fields for below in _alternatives(field.type)]


def _alternatives(node: inspect.Type) -> list[inspect.Type]:
    """Return the types that a value may have, without their metadata."""
    if isinstance(node, inspect.Metadata):
        return _alternatives(node.type)
    if isinstance(node, inspect.UnionType):
        return [below for member in node.types for below in _alternatives(member)]
    return [node]
