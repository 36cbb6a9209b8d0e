"""Every place in a type that can carry a text, each shown by one value that has it there."""

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from msgspec import inspect

MARKER = "zzmarkerzz"

Path = tuple[str, ...]
Body = dict[str, Any]
Sample = tuple[Path, Any]

_TEXTLESS = (
    inspect.BoolType,
    inspect.CustomType,
    inspect.FloatType,
    inspect.IntType,
    inspect.LiteralType,
    inspect.NoneType,
)


def of(type_: type) -> list[tuple[Path, Body]]:
    """One sample for each place; all other fields are absent, or as small as they may be."""
    return list(_samples(inspect.type_info(type_), ()))


@singledispatch
def _samples(info: inspect.Type, path: Path) -> Iterator[Sample]:
    assert isinstance(info, _TEXTLESS), f"can {info} carry a text at {path}?"
    yield from ()


@_samples.register
def _(info: inspect.Metadata, path: Path) -> Iterator[Sample]:
    yield from _samples(info.type, path)


@_samples.register
def _(info: inspect.StrType, path: Path) -> Iterator[Sample]:
    yield path, MARKER


@_samples.register
def _(info: inspect.AnyType, path: Path) -> Iterator[Sample]:
    yield path, MARKER
    yield (*path, "any"), {"inner": [{"deep": MARKER}]}
    yield (*path, "any name"), {"inner": [{MARKER: 1}]}


@_samples.register
def _(info: inspect.ListType, path: Path) -> Iterator[Sample]:
    for inner, value in _samples(info.item_type, (*path, "item")):
        yield inner, [value]


@_samples.register
def _(info: inspect.DictType, path: Path) -> Iterator[Sample]:
    yield (*path, "name"), {MARKER: _smallest(info.value_type)}
    for inner, value in _samples(info.value_type, (*path, "value")):
        yield inner, {"text": value}


@_samples.register
def _(info: inspect.UnionType, path: Path) -> Iterator[Sample]:
    for each in info.types:
        yield from _samples(each, path)


@_samples.register
def _(info: inspect.StructType, path: Path) -> Iterator[Sample]:
    for field in info.fields:
        for inner, value in _samples(field.type, (*path, field.encode_name)):
            yield inner, _required(info) | {field.encode_name: value}


def _required(info: inspect.StructType) -> Body:
    tag = {} if info.tag_field is None else {info.tag_field: info.tag}
    return tag | {
        field.encode_name: _smallest(field.type) for field in info.fields if field.required
    }


@singledispatch
def _smallest(info: inspect.Type) -> Any:  # noqa: ANN401 - whatever JSON holds
    return 1 if isinstance(info, inspect.IntType | inspect.FloatType) else None


@_smallest.register
def _(info: inspect.Metadata) -> Any:  # noqa: ANN401 - whatever JSON holds
    return _smallest(info.type)


@_smallest.register
def _(info: inspect.UnionType) -> Any:  # noqa: ANN401 - whatever JSON holds
    return None if info.includes_none else _smallest(info.types[0])


@_smallest.register
def _(info: inspect.StrType) -> str:
    return "a"


@_smallest.register
def _(info: inspect.LiteralType) -> Any:  # noqa: ANN401 - whatever JSON holds
    return info.values[0]


@_smallest.register
def _(info: inspect.ListType) -> list[Any]:
    return [_smallest(info.item_type)]


@_smallest.register
def _(info: inspect.DictType) -> Body:
    return {}


@_smallest.register
def _(info: inspect.StructType) -> Body:
    return _required(info)
